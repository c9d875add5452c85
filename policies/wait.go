package policies

import (
	"math"
	"math/bits"
	"strings"
	"time"
)

// wait is a length of time that somebody else asked for. A wait that a
// time.Duration cannot hold is infinite (P3).
type wait struct {
	d        time.Duration
	infinite bool
}

func (w wait) longer(than wait) bool {
	if w.infinite != than.infinite {
		return w.infinite
	}
	return w.d > than.d
}

// plus adds two waits without overflow.
func (w wait) plus(v wait) wait {
	if w.infinite || v.infinite || w.d > math.MaxInt64-v.d {
		return wait{infinite: true}
	}
	return wait{d: w.d + v.d}
}

// ceilMillis rounds up to whole milliseconds, since a floor is never undercut.
func (w wait) ceilMillis() wait {
	if r := w.d % time.Millisecond; r != 0 {
		return w.plus(wait{d: time.Millisecond - r})
	}
	return w
}

// untilMoment is the wait from now to t; a past t is a wait of zero.
func untilMoment(t, now time.Time) wait {
	d := t.Sub(now)
	switch {
	case d <= 0:
		return wait{}
	case d == math.MaxInt64:
		return wait{infinite: true}
	}
	return wait{d: d}
}

// scanDecimal reads digits with an optional fraction at the start of s and
// returns them as a wait in the given unit. n is how many bytes were read; 0
// when s does not start with a number. Whole says that there was no fraction.
func scanDecimal(s string, unit time.Duration) (w wait, n int, whole bool) {
	var units uint64
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		hi, lo := bits.Mul64(units, 10)
		lo += uint64(s[n] - '0')
		if hi != 0 || lo > math.MaxInt64 {
			w.infinite, lo = true, math.MaxInt64
		}
		units = lo
		n++
	}
	if n == 0 {
		return wait{}, 0, false
	}
	if hi, lo := bits.Mul64(units, uint64(unit)); hi != 0 || lo > math.MaxInt64 {
		w.infinite = true
	} else {
		w.d = time.Duration(lo)
	}
	if w.infinite {
		w.d = 0
	}
	if n+1 >= len(s) || s[n] != '.' || s[n+1] < '0' || s[n+1] > '9' {
		return w, n, true
	}
	n++
	place, part := unit, time.Duration(0)
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		// Digits below a nanosecond still count: they round up.
		digit := time.Duration(s[n] - '0')
		switch {
		case place%10 == 0:
			place /= 10
			part += digit * place
		case place > 0:
			exact := digit * place
			place = 0
			part += (exact + 9) / 10
		case digit > 0 && place == 0:
			part++
			place = -1
		}
		n++
	}
	return w.plus(wait{d: part}), n, false
}

// decimalWait reads all of s as digits with an optional fraction: no sign, no
// exponent, no unit.
func decimalWait(s string, unit time.Duration) (w wait, ok bool) {
	w, n, _ := scanDecimal(s, unit)
	return w, n > 0 && n == len(s)
}

// timeUnit is the unit that starts s, and its length in bytes; 0 when none
// does. A unit ends where its letters end: "month" is no minute.
func timeUnit(s string) (time.Duration, int) {
	n := 0
	for n < len(s) && isLetter(s[n]) {
		n++
	}
	// In "1h2m" a digit ends the letters; more than 12 are no unit.
	if n == 0 || n > 12 {
		return 0, n
	}
	var buf [12]byte
	for i := range n {
		buf[i] = s[i] | 0x20
	}
	switch string(buf[:n]) {
	case "ns", "nanosecond", "nanoseconds":
		return time.Nanosecond, n
	case "us", "microsecond", "microseconds":
		return time.Microsecond, n
	case "ms", "msec", "msecs", "millis", "millisecond", "milliseconds":
		return time.Millisecond, n
	case "s", "sec", "secs", "second", "seconds":
		return time.Second, n
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute, n
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour, n
	case "d", "day", "days":
		return 24 * time.Hour, n
	}
	return 0, n
}

// scanDuration reads a duration at the start of s: numbers with units, in
// letters or words ("6m0s", "1h2m", "46.72s", "20 seconds", "1 hour and 5
// minutes"), or one bare number of seconds. It returns the bytes read; 0 when
// s starts with no duration or names a unit that is not of time.
func scanDuration(s string) (total wait, n int) {
	pos := 0
	for {
		_, digitsLen, _ := scanDecimal(s[pos:], time.Second)
		if digitsLen == 0 {
			break
		}
		after := pos + digitsLen
		blanks := skipBlanks(s, after)
		unit, unitLen := timeUnit(s[blanks:])
		if unit == 0 {
			if n > 0 {
				break
			}
			if unitLen > 0 && !bareNumberFollower(s[blanks:blanks+unitLen]) || unitLen > 0 && blanks == after {
				return wait{}, 0
			}
			w, _, _ := scanDecimal(s[pos:], time.Second)
			return w, after
		}
		w, _, _ := scanDecimal(s[pos:], unit)
		total = total.plus(w)
		n = blanks + unitLen
		pos = skipJoin(s, n)
	}
	return total, n
}

// bareNumberFollower reports whether a word may follow a number of seconds
// without being its unit ("retry in 5 or later", "retry after 20 and then …").
func bareNumberFollower(word string) bool {
	switch strings.ToLower(word) {
	case "and", "or", "then", "before", "to", "for", "if", "please", "on", "with":
		return true
	}
	return false
}

// skipJoin skips what may stand between the parts of a duration: blanks, a
// comma, "and".
func skipJoin(s string, pos int) int {
	pos = skipBlanks(s, pos)
	if pos < len(s) && s[pos] == ',' {
		pos = skipBlanks(s, pos+1)
	}
	if strings.HasPrefix(s[pos:], "and ") {
		pos = skipBlanks(s, pos+4)
	}
	return pos
}

func skipBlanks(s string, pos int) int {
	for pos < len(s) && (s[pos] == ' ' || s[pos] == '\t') {
		pos++
	}
	return pos
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }
