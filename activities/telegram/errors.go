package telegram

import (
	"encoding/json"
	"fmt"

	"github.com/mymmrac/telego/telegoapi"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/policies"
)

// explain says in one line what Telegram answered and what to do about it.
func explain(f *policies.Fault) string {
	var body telegoapi.Error
	_ = json.Unmarshal(f.Body, &body)
	said := ""
	if body.Description != "" {
		said = ": " + redact.String(body.Description)
	}
	status := f.Status
	if body.ErrorCode != 0 {
		status = body.ErrorCode // a proxy may have changed the status
	}
	switch {
	case status == 401:
		return "Telegram refused the bot token (401); check channels.telegram.accounts" + said
	case status == 403:
		return "Telegram says the bot may not write there (403)" + said
	case status == 404:
		return "Telegram does not know this bot or method (404); check the token" + said
	case status == 429:
		return "Telegram asks to slow down (429)" + said
	case status >= 200 && status <= 299:
		return fmt.Sprintf("Telegram accepted the request (%d) but its answer could not be read", status)
	case status != 0:
		return fmt.Sprintf("Telegram answered %d%s", status, said)
	case f.NotStarted:
		return "Telegram could not be reached; nothing was sent"
	}
	return "the connection to Telegram broke before its answer came"
}
