package attempt

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
	"unicode"
)

// maxText bounds an error text that is kept, maxScan what is looked at for it.
const (
	maxText = 512
	maxScan = 4096
)

// Redacted returns the text of err in a form that may be shown and stored: no
// URL (Telegram's hold the bot token), no query, no credentials, no tokens, no
// bytes of an answer that net/http quotes, one line, at most 512 bytes. It is
// empty for nil.
func Redacted(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if e, ok := errors.AsType[*url.Error](err); ok && e.URL != "" {
		text = strings.ReplaceAll(text, e.URL, "(url)")
	}
	return redactText(text[:min(len(text), maxScan)])
}

// redactions are applied in order.
var redactions = []struct {
	find    *regexp.Regexp
	replace string
}{
	// What net/http quotes of an answer.
	{regexp.MustCompile(`(malformed [\w/ ]*\w)\W[\s\S]*`), "$1"},
	{regexp.MustCompile(`(debug=)"[\s\S]*`), "$1(left out)"},
	// Addresses, and what may be left of them.
	{regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`), "(url)"},
	{regexp.MustCompile(`[A-Z][A-Za-z]* "\(url\)": `), ""},
	{regexp.MustCompile(`\?[^\s"'=]+=[^\s"']*`), "?(query)"},
	{regexp.MustCompile(`[^\s/@:"']+:[^\s/@"']+@`), "(credentials)@"},
	// Secrets by their shape.
	{regexp.MustCompile(`\d{5,}:[A-Za-z0-9_-]{20,}`), "(token)"},
	{regexp.MustCompile(`(?i)\b(bearer|basic|bot) +[A-Za-z0-9._~+/=-]{16,}`), "$1 (token)"},
	{regexp.MustCompile(`\b(?:sk|pk|rk|xox[a-z]|gh[a-z]|github_pat|glpat|AIza)[A-Za-z0-9_-]{16,}`), "(token)"},
	{regexp.MustCompile(`(?i)\b([\w-]*(?:key|token|secret|password|authorization)"?=)[^\s&"',;]+`), "$1(token)"},
	{regexp.MustCompile(`(?i)\b([\w-]*(?:key|token|secret|password|authorization)"?: *"?)[^\s&"',;]{12,}`), "$1(token)"},
}

func redactText(text string) string {
	for _, r := range redactions {
		text = r.find.ReplaceAllString(text, r.replace)
	}
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, text)
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}
