package discord

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/policies"
)

// explain says in one line what Discord answered and what to do about it.
func explain(f *policies.Fault) string {
	var body struct {
		Message string `json:"message"`
		Code    int    `json:"code"`
	}
	_ = json.Unmarshal(f.Body, &body)
	said := ""
	if body.Message != "" {
		said = fmt.Sprintf(": %s", redact.String(body.Message))
		if body.Code != 0 {
			said += fmt.Sprintf(" (code %d)", body.Code)
		}
	}
	switch {
	case f.Status == 401:
		return "Discord refused the bot token (401); check channels.discord.accounts" + said
	case f.Status == 403:
		return "Discord says the bot may not do this (403); check its permissions in the channel" + said
	case f.Status == 404:
		return "Discord does not know the channel or message (404)" + said
	case f.Status == 429:
		return "Discord asks to slow down (429)" + said
	case f.Status >= 200 && f.Status <= 299:
		return fmt.Sprintf("Discord accepted the request (%d) but its answer could not be read", f.Status)
	case f.Status != 0:
		return fmt.Sprintf("Discord answered %d%s", f.Status, said)
	case f.NotStarted:
		return "Discord could not be reached; nothing was sent"
	}
	return "the connection to Discord broke before its answer came"
}
