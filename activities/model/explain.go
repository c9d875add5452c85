package model

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/policies"
)

// maxGuidance bounds the provider's own words in an error.
const maxGuidance = 300

// explainReported says what the provider reported inside an answer, or, where
// no request was made, what the dialect says itself.
func explainReported(f *policies.Fault) string {
	guidance := shorten(redact.String(f.Message))
	if f.Status == 0 {
		return guidance
	}
	return join(f.Provider+" reported an error in its answer", guidance)
}

// explain says in one line what the provider answered: its status and its
// guidance, never its headers or its body.
func explain(f *policies.Fault) string {
	who := f.Provider
	guidance := f.Message
	if f.Status != 0 {
		guidance = guidanceOf(f)
	}
	guidance = shorten(redact.String(guidance))
	switch {
	case f.Status >= 200 && f.Status <= 299:
		return fmt.Sprintf("the answer of %s broke off", who)
	case f.Status == 401:
		return join(fmt.Sprintf("%s refused the credentials (401); check the auth profile", who), guidance)
	case f.Status == 403:
		return join(fmt.Sprintf("%s refused this account or model (403)", who), guidance)
	case isRedirect(f.Status):
		return fmt.Sprintf("%s answered %d, a redirect, which is not followed; set base_url of providers.%s to the address that it points at", who, f.Status, who)
	case f.Status != 0:
		return join(fmt.Sprintf("%s answered %d", who, f.Status), guidance)
	case f.NotStarted:
		return join(who+" could not be reached", guidance)
	}
	return join("the connection to "+who+" broke", guidance)
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

func join(s, more string) string {
	if more == "" {
		return s
	}
	return s + ": " + more
}

// guidanceOf is the message field of an error body, in the shapes that
// providers use; nothing else of the body is shown.
func guidanceOf(f *policies.Fault) string {
	var body struct {
		Message string          `json:"message"`
		Error   json.RawMessage `json:"error"`
	}
	if json.Unmarshal(f.Body, &body) != nil {
		if f.Status >= 200 && f.Status <= 299 {
			return f.Message
		}
		return ""
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body.Error, &inner) == nil && inner.Message != "" {
		return inner.Message
	}
	var text string
	if json.Unmarshal(body.Error, &text) == nil && text != "" {
		return text
	}
	return body.Message
}

func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= maxGuidance {
		return s
	}
	return string(runes[:maxGuidance]) + "…"
}
