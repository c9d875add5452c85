package workflows

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// What the Temporal web UI is shown stays within the server's limits: 400 bytes
// for a summary, 20,000 for the current details.
const (
	maxSummary = 400
	maxDetails = 20_000
	maxRows    = 60   // rows of a table; the last ones are shown
	maxQuote   = 6000 // bytes of a text that is quoted
)

// summary formats the summary of an activity, timer or workflow.
func summary(format string, args ...any) string {
	return cut(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " "), maxSummary)
}

// cut shortens s to at most limit bytes, at a rune boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// quote marks text as a Markdown quotation, shortened to maxQuote bytes.
func quote(text string) string {
	return cut("> "+strings.ReplaceAll(text, "\n", "\n> "), maxQuote)
}
