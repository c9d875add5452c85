package policies

import (
	"strings"
	"time"
)

// textHints reports every wait that a text asks for: "retry-after: X", "retry
// after X", "retry in X", "try again in X", where X is a duration (default
// seconds), "infinity" or, after "retry-after", an HTTP date (P3).
func textHints(s string, now time.Time, report func(wait)) {
	for pos := 0; pos < len(s); pos++ {
		if c := s[pos] | 0x20; c != 'r' && c != 't' || pos > 0 && isAlnum(s[pos-1]) {
			continue
		}
		rest := s[pos:]
		if after, ok := cutWords(rest, "retry", "after"); ok {
			unit := time.Second
			if more, ok := cutWords(after, "", "ms"); ok {
				after, unit = more, time.Millisecond
			}
			if w, ok := hintValue(after, unit, now, true); ok {
				report(w)
			}
			continue
		}
		for _, first := range [...]string{"retry", "try again"} {
			for _, second := range [...]string{"in", "after"} {
				if after, ok := cutWords(rest, first, second); ok {
					if w, ok := hintValue(after, time.Second, now, false); ok {
						report(w)
					}
				}
			}
		}
	}
}

// cutWords removes two words and the blank, "-" or "_" between them from the
// start of s, case aside. Case of ASCII letters only.
func cutWords(s, first, second string) (string, bool) {
	if len(s) < len(first)+1+len(second) || !strings.EqualFold(s[:len(first)], first) {
		return s, false
	}
	rest := s[len(first):]
	if rest[0] != ' ' && rest[0] != '-' && rest[0] != '_' {
		return s, false
	}
	rest = rest[1:]
	if !strings.EqualFold(rest[:len(second)], second) {
		return s, false
	}
	rest = rest[len(second):]
	if rest != "" && isAlnum(rest[0]) {
		return s, false
	}
	return rest, true
}

// hintValue reads the wait that follows the words of a hint.
func hintValue(s string, unit time.Duration, now time.Time, dates bool) (wait, bool) {
	s = strings.TrimLeft(s, " \t:=\"'`*")
	for _, filler := range [...]string{"in ", "about ", "approximately ", "at least "} {
		if len(s) >= len(filler) && strings.EqualFold(s[:len(filler)], filler) {
			s = strings.TrimLeft(s[len(filler):], " \t~")
		}
	}
	if s == "" {
		return wait{}, false
	}
	if len(s) >= 8 && strings.EqualFold(s[:8], "infinity") {
		return wait{infinite: true}, true
	}
	if isDigit(s[0]) {
		if unit != time.Second {
			w, n, _ := scanDecimal(s, unit)
			return w.ceilMillis(), n > 0 && (n == len(s) || !isAlnum(s[n]))
		}
		w, n := scanDuration(s)
		return w.ceilMillis(), n > 0
	}
	if dates && isLetter(s[0]) {
		if t, ok := leadingDate(s, now); ok {
			return untilMoment(t, now), true
		}
	}
	return wait{}, false
}

// leadingDate reads an HTTP date at the start of a text.
func leadingDate(s string, now time.Time) (time.Time, bool) {
	if now.IsZero() {
		return time.Time{}, false
	}
	if gmt := strings.Index(s[:min(len(s), 40)], " GMT"); gmt >= 0 {
		return ParseHTTPDate(s[:gmt+4], now)
	}
	if len(s) >= 24 {
		return ParseHTTPDate(s[:24], now)
	}
	return time.Time{}, false
}
