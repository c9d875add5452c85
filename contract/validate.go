package contract

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxKey is the longest key in bytes: with a prefix and what a review adds, it
// stays below the 1,000 that Temporal takes for an id.
const MaxKey = 900

// reasonFormat is the reason of input that cannot be taken.
const reasonFormat = "format"

func refuse(rule, format string, args ...any) *Error {
	return &Error{Reason: reasonFormat, Rule: rule, Message: fmt.Sprintf(format, args...)}
}

// ValidateKey says what is wrong with a caller's key, or nil. Keys are part of
// workflow ids, which travel in headers: printable ASCII without blanks.
func ValidateKey(key string) *Error {
	if len(key) > MaxKey {
		return refuse("C1/key", "the key is %d bytes long; at most %d are taken, so hash a longer one", len(key), MaxKey)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return refuse("C1/key", "the key holds %q; only printable ASCII without blanks is taken, so encode or hash yours", r)
		}
	}
	return nil
}

// Validate says what is wrong with a send before anything leaves, or nil.
func (in SendInput) Validate() *Error {
	const rule = "C1/plan"
	switch {
	case in.To == "":
		return refuse(rule, "the send names no destination (--to)")
	case strings.TrimSpace(in.Text) == "":
		return refuse(rule, "the send has no text (--text)")
	case !utf8.ValidString(in.Text) || strings.ContainsRune(in.Text, 0):
		return refuse(rule, "the text is not valid UTF-8 without NUL characters")
	}
	switch in.OnUnknown {
	case "", OnUnknownReview, OnUnknownResend, OnUnknownDrop:
	default:
		return refuse(rule, "on_unknown %q is not review, resend or drop", in.OnUnknown)
	}
	switch in.Format {
	case "", FormatPlain, FormatMarkdown, FormatHTML:
	default:
		return refuse(rule, "format %q is not plain, markdown or html", in.Format)
	}
	switch in.Channel {
	case "discord":
		if in.Format == FormatHTML {
			return refuse(rule, "Discord has no HTML messages; use --format markdown or plain")
		}
	case "telegram":
	default:
		return refuse(rule, "there is no channel %q; known channels are discord and telegram", in.Channel)
	}
	return positive(rule, "the time to live", in.TTL)
}

// Validate says what is wrong with a run before anything is requested, or nil.
// What depends on the configuration is checked when the run is planned.
func (in RunInput) Validate() *Error {
	const rule = "I3/plan"
	switch {
	case strings.TrimSpace(in.Prompt) == "":
		return refuse(rule, "the run has no prompt (--prompt)")
	case !utf8.ValidString(in.Prompt) || strings.ContainsRune(in.Prompt, 0):
		return refuse(rule, "the prompt is not valid UTF-8 without NUL characters")
	case in.MaxRetries != nil && *in.MaxRetries < 0:
		return refuse(rule, "max_retries is %d; it cannot be negative", *in.MaxRetries)
	}
	return positive(rule, "the deadline", in.Deadline)
}

// positive checks a duration that may be left out.
func positive(rule, what, value string) *Error {
	if value == "" {
		return nil
	}
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		return refuse(rule, "%s %q is not a positive duration such as 30m or 24h", what, value)
	}
	return nil
}
