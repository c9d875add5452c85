package redact

import (
	"regexp"
	"strings"
)

// shape is text that is a credential wherever it stands. The pattern runs only
// on texts that hold one of the hints, which are in lower case.
type shape struct {
	name    string
	hints   []string
	pattern *regexp.Regexp
	replace string
	// plausible, where set, decides about a match by its last group.
	plausible func(string) bool
}

const (
	credentialHeaders = `(?:proxy-)?authorization|x-api-key|api-key|x-goog-api-key|x-auth-token|private-token|x-telegram-bot-api-secret-token|set-cookie|cookie`
	credentialNames   = `access_token|refresh_token|id_token|auth_token|bot_token|private_token|api_?key|client_secret|passw(?:or)?d|passphrase|secret|token`
)

// shapes are tried in this order. All patterns are RE2, so each takes time
// linear in the text.
var shapes = []shape{
	{
		name:    "private key",
		hints:   []string{"private key-----"},
		pattern: regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
		replace: Mark,
	},
	{
		name:  "credential header",
		hints: []string{"authorization", "api-key", "auth-token", "private-token", "secret-token", "cookie"},
		pattern: regexp.MustCompile(`(?i)\b(` + credentialHeaders + `)(\\*["']?\s*(?::|=>?)\s*)` +
			`(?:(\\")[^"\\]*|(")(?:[^"\\]|\\.)*|(')[^']*|\[[^\]\r\n]*\]?|[^\s"'\[][^\r\n]*)`),
		replace: "${1}${2}${3}${4}${5}" + Mark,
	},
	{
		name:      "bearer token",
		hints:     []string{"bearer"},
		pattern:   regexp.MustCompile(`(?i)\b(bearer)(\s+|%20)([A-Za-z0-9._~+/=:-]{8,})`),
		replace:   "${1}${2}" + Mark,
		plausible: looksRandom,
	},
	{
		name:      "basic credentials",
		hints:     []string{"basic"},
		pattern:   regexp.MustCompile(`(?i)\b(basic)(\s+)([A-Za-z0-9+/_-]{8,}={0,2})`),
		replace:   "${1}${2}" + Mark,
		plausible: looksRandom,
	},
	{
		name:    "telegram bot path",
		hints:   []string{"bot"},
		pattern: regexp.MustCompile(`(?i)\b(bot)\d+(?::|%3a)[A-Za-z0-9_-]+`),
		replace: "${1}" + Mark,
	},
	{
		name:    "telegram token",
		hints:   []string{":"},
		pattern: regexp.MustCompile(`\b\d{6,}:[A-Za-z0-9_-]{30,}`),
		replace: Mark,
	},
	{
		name:    "discord token",
		hints:   []string{"."},
		pattern: regexp.MustCompile(`\b[A-Za-z0-9_-]{23,28}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,}`),
		replace: Mark,
	},
	{
		name:    "discord webhook or interaction",
		hints:   []string{"webhooks/", "interactions/"},
		pattern: regexp.MustCompile(`(?i)\b((?:webhooks|interactions)/\d+/)[A-Za-z0-9_.-]+`),
		replace: "${1}" + Mark,
	},
	{
		name:    "openai and anthropic key",
		hints:   []string{"sk-"},
		pattern: regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{8,}`),
		replace: Mark,
	},
	{
		name:    "google key",
		hints:   []string{"aiza", "ya29."},
		pattern: regexp.MustCompile(`\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{10,})`),
		replace: Mark,
	},
	{
		name:    "git host token",
		hints:   []string{"gh", "github_pat_", "glpat-"},
		pattern: regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{20,})`),
		replace: Mark,
	},
	{
		name:    "json web token",
		hints:   []string{"eyj"},
		pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?`),
		replace: Mark,
	},
	{
		name:    "URL userinfo",
		hints:   []string{"://"},
		pattern: regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s/?#"'<>]*@`),
		replace: "${1}" + Mark + "@",
	},
	{
		name:    "query parameter",
		hints:   []string{"="},
		pattern: regexp.MustCompile(`(?i)([?&;](?:key|sig|signature|auth|code|x-amz-signature|x-goog-signature)=)[^&\s"'<>]+`),
		replace: "${1}" + Mark,
	},
	{
		name:    "assignment",
		hints:   []string{"="},
		pattern: regexp.MustCompile(`(?i)\b(` + credentialNames + `)=(?:(")(?:[^"\\]|\\.)+|[^&\s"'<>]+)`),
		replace: "${1}=${2}" + Mark,
	},
	{
		name:    "JSON member",
		hints:   []string{`"`},
		pattern: regexp.MustCompile(`(?i)("(?:` + credentialNames + `)"\s*:\s*")(?:[^"\\]|\\.)+`),
		replace: "${1}" + Mark,
	},
	{
		name:    "JSON member inside a JSON text",
		hints:   []string{`\"`},
		pattern: regexp.MustCompile(`(?i)(\\"(?:` + credentialNames + `)\\"\s*:\s*\\")[^"\\]+`),
		replace: "${1}" + Mark,
	},
}

func scrubShapes(s string) string {
	if len(s) < 4 {
		return s
	}
	lower := strings.ToLower(s)
	for _, sh := range shapes {
		if sh.hinted(lower) {
			s = sh.scrub(s)
		}
	}
	return s
}

func (sh *shape) hinted(lower string) bool {
	for _, h := range sh.hints {
		if strings.Contains(lower, h) {
			return true
		}
	}
	return false
}

func (sh *shape) scrub(s string) string {
	if sh.plausible == nil {
		return sh.pattern.ReplaceAllString(s, sh.replace)
	}
	return sh.pattern.ReplaceAllStringFunc(s, func(m string) string {
		groups := sh.pattern.FindStringSubmatch(m)
		if groups == nil || !sh.plausible(groups[len(groups)-1]) {
			return m
		}
		return sh.pattern.ReplaceAllString(m, sh.replace)
	})
}

var innerCapital = regexp.MustCompile(`[a-z][A-Z]`)

// looksRandom tells a token from a word: "Bearer authentication failed" names
// a scheme, "Bearer abc123def" carries a credential.
func looksRandom(s string) bool {
	return len(s) >= 16 || strings.ContainsAny(s, "0123456789=") || innerCapital.MatchString(s)
}
