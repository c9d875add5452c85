package model

import (
	"encoding/json"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// An answer must fit into one payload of the server, which takes 2 MiB at most
// (M5).
const (
	maxText    = 1 << 20
	maxEncoded = 3 << 19
)

// tooLargeError is an answer that does not fit.
type tooLargeError struct{}

func (tooLargeError) Error() string {
	return "the answer is larger than a run can keep, which is 1 MiB of text or 1.5 MiB written as JSON; limit it with max_output_tokens"
}

// fits reports whether an answer can be kept.
func fits(a transcript.Answer) bool {
	if len(a.Text) > maxText {
		return false
	}
	encoded, err := json.Marshal(a)
	return err == nil && len(encoded) <= maxEncoded
}

// maxWord bounds a name or an id that a provider gives, in bytes.
const maxWord = 200

// tidy keeps of the provider's own words only what is a name or an id, and of
// its counts what can be one: they go into history, where an answer that echoes
// the request could put the key.
func tidy(a transcript.Answer) transcript.Answer {
	a.Served, a.ResponseID, a.Finish = word(a.Served), word(a.ResponseID), word(a.Finish)
	a.Usage = contract.Usage{
		InputTokens: count(a.Usage.InputTokens), OutputTokens: count(a.Usage.OutputTokens),
		CachedTokens: count(a.Usage.CachedTokens), ReasoningTokens: count(a.Usage.ReasoningTokens),
	}
	return a
}

// word is s with secrets redacted, or empty where s is no single word of
// printable ASCII.
func word(s string) string {
	if !isWord(s) {
		return ""
	}
	if s = redact.String(s); !isWord(s) {
		return ""
	}
	return s
}

func isWord(s string) bool {
	return len(s) <= maxWord && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// maxCount is more tokens than any call has.
const maxCount = 1_000_000_000_000

func count(n int64) int64 {
	if n < 0 || n > maxCount {
		return 0
	}
	return n
}
