package telegram

import (
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"
)

// checkEntities says in Telegram's words why a text cannot be parsed; empty means
// that it can.
func checkEntities(text, mode string) string {
	fault := ""
	switch strings.ToLower(mode) {
	case "html":
		fault = checkHTML(text)
	case "markdownv2":
		fault = checkMarkdownV2(text)
	case "markdown":
		fault = checkMarkdown(text)
	case "":
	default:
		return "unsupported parse_mode"
	}
	if fault == "" {
		return ""
	}
	return "can't parse entities: " + fault
}

// tags are the HTML tags that Telegram knows.
var tags = []string{
	"b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "code", "pre", "a",
	"blockquote", "tg-spoiler", "tg-emoji", "span",
}

// checkHTML finds unknown tags, and tags that do not close in order.
func checkHTML(text string) string {
	var open []string
	for i := 0; i < len(text); i++ {
		if text[i] != '<' {
			continue
		}
		end := strings.IndexByte(text[i:], '>')
		if end < 0 {
			return fmt.Sprintf("Unclosed start tag at byte offset %d", i)
		}
		inside := text[i+1 : i+end]
		name, closing := strings.CutPrefix(inside, "/")
		if fields := strings.Fields(name); len(fields) > 0 {
			name = strings.ToLower(fields[0])
		}
		switch {
		case !slices.Contains(tags, name):
			return fmt.Sprintf("Unsupported start tag %q at byte offset %d", name, i)
		case !closing:
			open = append(open, name)
		case len(open) == 0:
			return fmt.Sprintf("Unexpected end tag at byte offset %d", i)
		case open[len(open)-1] != name:
			return fmt.Sprintf("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", i, open[len(open)-1], name)
		default:
			open = open[:len(open)-1]
		}
		i += end
	}
	if len(open) > 0 {
		return fmt.Sprintf("Can't find end tag corresponding to start tag %q", open[len(open)-1])
	}
	return ""
}

// reserved are the characters that MarkdownV2 wants escaped where they are not markup.
const reserved = "#+-=|{}.!"

// checkMarkdownV2 finds reserved characters that are not escaped, and entities
// without an end.
func checkMarkdownV2(text string) string {
	var open []string
	lineStart := true
	for i := 0; i < len(text); {
		if text[i] == '\\' {
			i += 2
			lineStart = false
			continue
		}
		if token := fence(text[i:]); token != "" {
			end := closing(text[i+len(token):], token)
			if end < 0 {
				return unclosed(token, i)
			}
			i += 2*len(token) + end
			lineStart = false
			continue
		}
		if text[i] == ']' || text[i] == '[' || text[i] == '!' {
			n, fault := link(text, i)
			if fault != "" {
				return fault
			}
			i += n
			lineStart = false
			continue
		}
		if token := markup(text[i:]); token != "" {
			if n := len(open); n > 0 && open[n-1] == token {
				open = open[:n-1]
			} else {
				open = append(open, token)
			}
			i += len(token)
			lineStart = false
			continue
		}
		if text[i] == '>' && !lineStart || strings.IndexByte(reserved+"()", text[i]) >= 0 {
			return mustEscape(text[i])
		}
		lineStart = text[i] == '\n'
		i++
	}
	if len(open) > 0 {
		return unclosed(open[len(open)-1], strings.LastIndex(text, open[len(open)-1]))
	}
	return ""
}

func mustEscape(c byte) string {
	return fmt.Sprintf(`Character '%c' is reserved and must be escaped with the preceding '\'`, c)
}

func unclosed(token string, at int) string {
	name := map[string]string{
		"*": "Bold", "_": "Italic", "__": "Underline", "~": "Strikethrough", "||": "Spoiler", "`": "Code", "```": "Pre",
	}[token]
	return fmt.Sprintf("Can't find end of %s entity at byte offset %d", name, at)
}

func fence(s string) string { return firstPrefix(s, "```", "`") }

func markup(s string) string { return firstPrefix(s, "||", "__", "*", "_", "~") }

func firstPrefix(s string, tokens ...string) string {
	for _, t := range tokens {
		if strings.HasPrefix(s, t) {
			return t
		}
	}
	return ""
}

// closing finds the end of a code entity, past escaped characters.
func closing(s, token string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
		} else if strings.HasPrefix(s[i:], token) {
			return i
		}
	}
	return -1
}

// link steps over the bracket of a link at i, or says what is wrong with it.
func link(text string, i int) (n int, fault string) {
	switch text[i] {
	case '!':
		if strings.HasPrefix(text[i:], "![") {
			return 1, ""
		}
		return 0, mustEscape('!')
	case '[':
		if closing(text[i:], "](") < 0 {
			return 0, mustEscape('[')
		}
		return 1, ""
	}
	if !strings.HasPrefix(text[i:], "](") {
		return 0, mustEscape(']')
	}
	end := closing(text[i:], ")")
	if end < 0 {
		return 0, "Can't find end of a URL at byte offset " + fmt.Sprint(i+1)
	}
	return end + 1, ""
}

// checkMarkdown finds entities of the older Markdown without an end.
func checkMarkdown(text string) string {
	for i := 0; i < len(text); {
		token := firstPrefix(text[i:], "```", "`", "*", "_")
		switch {
		case text[i] == '\\':
			i += 2
		case token == "":
			i++
		default:
			end := strings.Index(text[i+len(token):], token)
			if end < 0 {
				return fmt.Sprintf("Can't find end of the entity starting at byte offset %d", i)
			}
			i += 2*len(token) + end
		}
	}
	return ""
}

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	escape = regexp.MustCompile(`\\(.)`)
)

// visible is about what a text is after its entities are parsed, which is what
// the limits count: HTML without tags, Markdown without backslashes (its other
// marks still count).
func visible(text, mode string) string {
	switch strings.ToLower(mode) {
	case "html":
		return html.UnescapeString(tag.ReplaceAllString(text, ""))
	case "markdownv2", "markdown":
		return escape.ReplaceAllString(text, "$1")
	}
	return text
}
