package policies

import (
	"html"
	"regexp"
	"strings"
)

// Markups that PlainText takes off; any other name is text that has none.
const (
	markupMarkdown = "markdown"
	markupHTML     = "html"
)

var (
	htmlLink   = regexp.MustCompile(`(?is)<a\b[^<>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s<>"']+))[^<>]*>(.*?)</a\s*>`)
	htmlBreak  = regexp.MustCompile(`(?i)<br\s*/?>|</(?:p|div|h[1-6]|tr)\s*>`)
	htmlItem   = regexp.MustCompile(`(?i)<li(?:\s[^<>]*)?>`)
	htmlMarkup = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

	markdownCode   = regexp.MustCompile("(`+)([^`\n]|[^`\n][^\n]*?[^`\n])(`+)")
	markdownLink   = regexp.MustCompile(`!?\[([^\[\]\n]*)\]\(<?([^()\s<>]*(?:\([^()\s]*\)[^()\s<>]*)*)>?(?:\s+"[^"\n]*")?\)`)
	markdownAuto   = regexp.MustCompile(`<((?:https?|tg|mailto):[^<>\s]+)>`)
	markdownURL    = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://[^\s<>]+`)
	markdownHead   = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]+`)
	markdownQuote  = regexp.MustCompile(`^ {0,3}(?:>[ \t]?)+`)
	markdownStrong = regexp.MustCompile(`\*\*\*|\*\*|~~|\|\|`)
	markdownEmph   = regexp.MustCompile(`(^|[^\pL\pN_*])(\*|__?)([^\s*_](?:[^*_\n]*[^\s*_])?)(\*|__?)([^\pL\pN_*]|$)`)
	markdownEscape = regexp.MustCompile("\\\\([!-/:-@\\[-`{-~])")
)

// PlainText takes the markup off a text that the platform could not parse, so
// that it can be sent as plain text at once (C2.7). Links stay readable, as
// "label (url)"; code keeps its content. The format is "markdown" or "html";
// text of any other is returned as it is.
func PlainText(text, format string) string {
	switch format {
	case markupHTML:
		return plainHTML(text)
	case markupMarkdown:
		return plainMarkdown(text)
	}
	return text
}

func plainHTML(text string) string {
	text = htmlLink.ReplaceAllStringFunc(text, func(link string) string {
		m := htmlLink.FindStringSubmatch(link)
		return readableLink(htmlMarkup.ReplaceAllString(m[4], ""), m[1]+m[2]+m[3])
	})
	text = htmlBreak.ReplaceAllString(text, "\n")
	text = htmlItem.ReplaceAllString(text, "- ")
	return html.UnescapeString(htmlMarkup.ReplaceAllString(text, ""))
}

// readableLink is a link in words: the label alone where it is the address.
func readableLink(label, url string) string {
	switch {
	case label == "" || label == url:
		return url
	case url == "":
		return label
	}
	return label + " (" + url + ")"
}

func plainMarkdown(text string) string {
	var b strings.Builder
	at := 0
	for _, f := range findFences(text) {
		b.WriteString(plainLines(text[at : strings.LastIndexByte(text[:f.open], '\n')+1]))
		if f.content < f.closing {
			b.WriteString(strings.TrimSuffix(text[f.content:f.closing], "\n"))
		}
		at = f.end
	}
	b.WriteString(plainLines(text[at:]))
	return b.String()
}

func plainLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		line = markdownHead.ReplaceAllString(line, "")
		line = markdownQuote.ReplaceAllString(line, "")
		lines[i] = outsideOf(markdownCode, line, plainInline, func(code string) string {
			return strings.Trim(code, "`")
		})
	}
	return strings.Join(lines, "")
}

// plainInline takes links and emphasis off a stretch without code. What the
// links say is set aside first: an address is not emphasised text.
func plainInline(text string) string {
	text = outsideOf(markdownLink, text, func(text string) string {
		text = markdownAuto.ReplaceAllString(text, "$1")
		return outsideOf(markdownURL, text, plainEmphasis, func(url string) string { return url })
	}, func(link string) string {
		m := markdownLink.FindStringSubmatch(link)
		return readableLink(plainEmphasis(m[1]), m[2])
	})
	return text
}

func plainEmphasis(text string) string {
	text = markdownStrong.ReplaceAllString(text, "")
	// Twice, for emphasis within emphasis and for neighbours that share a blank.
	for range 2 {
		text = markdownEmph.ReplaceAllStringFunc(text, func(s string) string {
			m := markdownEmph.FindStringSubmatch(s)
			if m[2] != m[4] {
				return s
			}
			return m[1] + m[3] + m[5]
		})
	}
	return markdownEscape.ReplaceAllString(text, "$1")
}

// outsideOf rewrites the matches of a pattern with one function and what lies
// between them with another.
func outsideOf(pattern *regexp.Regexp, text string, between, match func(string) string) string {
	var b strings.Builder
	at := 0
	for _, m := range pattern.FindAllStringIndex(text, -1) {
		b.WriteString(between(text[at:m[0]]))
		b.WriteString(match(text[m[0]:m[1]]))
		at = m[1]
	}
	b.WriteString(between(text[at:]))
	return b.String()
}
