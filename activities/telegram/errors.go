package telegram

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mymmrac/telego/telegoapi"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/policies"
)

// setupError is a request that could not be made at all: nothing was sent, and
// repeating it cannot help until somebody mends the configuration or the input.
type setupError struct {
	reason  policies.Reason
	message string
}

func (e *setupError) Error() string { return e.message }

func setup(err error) contract.Failure {
	f := contract.Failure{
		Surface: string(policies.SurfaceTelegram), Reason: string(policies.ReasonFormat), Rule: "I3/configuration",
		Permanent: true, Effect: string(policies.EffectNotSent), Message: err.Error(),
	}
	var se *setupError
	if errors.As(err, &se) {
		f.Reason = string(se.reason)
	}
	return f
}

func unknownAccount(name string, accounts map[string]Account) error {
	known := slices.Sorted(maps.Keys(accounts))
	return &setupError{reason: policies.ReasonFormat, message: fmt.Sprintf(
		"no telegram account %q is configured on this worker (known: %s); see channels.telegram.accounts", name, strings.Join(known, ", "))}
}

// explain says in one line what Telegram answered and what to do about it.
func explain(f *policies.Fault) string {
	var body telegoapi.Error
	_ = json.Unmarshal(f.Body, &body)
	said := ""
	if body.Description != "" {
		said = ": " + redact.String(body.Description)
	}
	switch {
	case f.Status == 401:
		return "Telegram refused the bot token (401); check channels.telegram.accounts" + said
	case f.Status == 403:
		return "Telegram says the bot may not write there (403)" + said
	case f.Status == 404:
		return "Telegram does not know this bot or method (404); check the token" + said
	case f.Status == 429:
		return "Telegram asks to slow down (429)" + said
	case f.Status >= 200 && f.Status <= 299:
		return fmt.Sprintf("Telegram accepted the request (%d) but its answer could not be read", f.Status)
	case f.Status != 0:
		return fmt.Sprintf("Telegram answered %d%s", f.Status, said)
	case f.NotStarted:
		return "Telegram could not be reached; nothing was sent"
	}
	return "the connection to Telegram broke before its answer came"
}
