package policies

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonVisitor receives what scanJSON finds.
type jsonVisitor interface {
	// object says that an object starts or ends.
	object()
	// text gives a string member, still escaped; key is "" outside objects.
	text(key, raw string)
	// number gives a number, as written.
	number(key, raw string)
}

// scanJSON walks the JSON value at the start of s and returns where it ends.
// It forgives what error bodies do to JSON: a text that is cut short yields
// what stood before the cut. It takes one pass and no memory.
//
// The elements of an array carry the key of the array.
func scanJSON(s string, v jsonVisitor) int {
	depth, key, pos := 0, "", 0
	for pos < len(s) {
		switch c := s[pos]; {
		case c == '{' || c == '[':
			depth++
			if c == '{' {
				v.object()
			}
			pos++
		case c == '}' || c == ']':
			depth--
			if c == '}' {
				v.object()
			}
			pos++
			if depth <= 0 {
				return pos
			}
		case c == '"':
			raw, end := scanString(s, pos)
			pos = end
			if next := skipSpace(s, pos); next < len(s) && s[next] == ':' {
				key, pos = raw, next+1
				continue
			}
			v.text(key, raw)
		case c == '-' || isDigit(c):
			end := pos + 1
			for end < len(s) && (isAlnum(s[end]) || s[end] == '.' || s[end] == '+' || s[end] == '-') {
				end++
			}
			v.number(key, s[pos:end])
			pos = end
		default:
			pos++
		}
	}
	return pos
}

// scanString returns the inside of the string that opens at pos, and where it
// ends. A string that is cut short ends with the text.
func scanString(s string, pos int) (raw string, end int) {
	for end = pos + 1; end < len(s); {
		quote := strings.IndexByte(s[end:], '"')
		if quote < 0 {
			break
		}
		end += quote
		slashes := 0
		for end-1-slashes > pos && s[end-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return s[pos+1 : end], end + 1
		}
		end++
	}
	return s[pos+1:], len(s)
}

func skipSpace(s string, pos int) int {
	for pos < len(s) && (s[pos] == ' ' || s[pos] == '\t' || s[pos] == '\n' || s[pos] == '\r') {
		pos++
	}
	return pos
}

// unescape undoes the escapes of a JSON string. What is no valid escape stays
// as it is.
func unescape(raw string) string {
	first := strings.IndexByte(raw, '\\')
	if first < 0 {
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw))
	b.WriteString(raw[:first])
	for i := first; i < len(raw); i++ {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'n', 'r', 't', 'b', 'f':
			b.WriteByte(" \n\r\t"[strings.IndexByte("bnrtf", raw[i])%4])
		case 'u':
			r, n := hexRune(raw[i+1:])
			if n == 0 {
				b.WriteByte('u')
				continue
			}
			i += n
			if utf16.IsSurrogate(r) && strings.HasPrefix(raw[i+1:], `\u`) {
				if low, m := hexRune(raw[i+3:]); m != 0 {
					r = utf16.DecodeRune(r, low)
					i += 2 + m
				}
			}
			b.WriteRune(r)
		default:
			b.WriteByte(raw[i])
		}
	}
	return b.String()
}

// hexRune reads four hexadecimal digits.
func hexRune(s string) (rune, int) {
	if len(s) < 4 {
		return utf8.RuneError, 0
	}
	var r rune
	for i := range 4 {
		switch c := s[i]; {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return utf8.RuneError, 0
		}
	}
	return r, 4
}

// jsonStart finds the first place at or after pos where a JSON object or a
// quoted one starts: "{" before a quote or "}", or the same escaped. It
// returns -1 when there is none.
func jsonStart(s string, pos int) (start int, escaped bool) {
	if strings.IndexByte(s[pos:], '"') < 0 && strings.IndexByte(s[pos:], '}') < 0 {
		return -1, false
	}
	for pos < len(s) {
		brace := strings.IndexByte(s[pos:], '{')
		if brace < 0 {
			return -1, false
		}
		pos += brace
		next := skipSpace(s, pos+1)
		switch {
		case next == len(s):
			return -1, false
		case s[next] == '"' || s[next] == '}':
			return pos, false
		case strings.HasPrefix(s[next:], `\"`):
			return pos, true
		}
		pos = next
	}
	return -1, false
}
