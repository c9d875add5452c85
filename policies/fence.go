package policies

import (
	"regexp"
	"strings"
)

// fence is one fenced code block of a text, by byte offsets.
type fence struct {
	open    int    // the first byte of its opening marker
	content int    // the first byte after the opening line
	closing int    // the first byte of the closing line; len(text) if there is none
	end     int    // the first byte after the closing marker; len(text) if there is none
	opener  string // opening line, marker and info string
	marker  string
}

var (
	fenceOpen  = regexp.MustCompile("^ {0,3}((`{3,})([^`]*)|(~{3,})(.*))$")
	fenceClose = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})[ \t]*$")
)

// findFences lists the fenced code blocks of text in order, by the rules of
// CommonMark.
func findFences(text string) (fences []fence) {
	var open *fence
	for start := 0; start < len(text); {
		line, next := lineAt(text, start)
		if open == nil {
			open = openFence(line, start, next)
		} else if closesFence(line, open.marker) {
			open.closing, open.end = start, start+len(line)
			fences = append(fences, *open)
			open = nil
		}
		start = next
	}
	if open != nil {
		open.closing, open.end = len(text), len(text)
		fences = append(fences, *open)
	}
	return fences
}

// lineAt returns the line that begins at start, without its end, and where the
// next one begins.
func lineAt(text string, start int) (line string, next int) {
	i := strings.IndexByte(text[start:], '\n')
	if i < 0 {
		return text[start:], len(text)
	}
	return strings.TrimSuffix(text[start:start+i], "\r"), start + i + 1
}

func openFence(line string, start, next int) *fence {
	trimmed := strings.TrimLeft(line, " ")
	if !strings.HasPrefix(trimmed, "```") && !strings.HasPrefix(trimmed, "~~~") {
		return nil
	}
	match := fenceOpen.FindStringSubmatch(line)
	if match == nil {
		return nil
	}
	return &fence{
		open: start + len(line) - len(trimmed), content: next,
		opener: strings.TrimRight(match[1], " \t"), marker: match[2] + match[4],
	}
}

func closesFence(line, marker string) bool {
	match := fenceClose.FindStringSubmatch(line)
	return match != nil && match[1][0] == marker[0] && len(match[1]) >= len(marker)
}
