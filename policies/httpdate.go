package policies

import (
	"strings"
	"time"
)

var (
	shortDays = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
	longDays  = [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	months    = [12]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
)

// ParseHTTPDate reads an HTTP date (RFC 9110, section 5.6.7) in one of its
// three forms: IMF-fixdate, RFC 850 and asctime. It is strict: case, widths and
// the day of the week must be right, years start at 1900, and a second of 60
// is the first second of the next minute. The two-digit year of RFC 850 is the
// one that lies at most 50 years after now and less than 50 before it.
// The result is in UTC; ok is false for anything else (P3).
func ParseHTTPDate(s string, now time.Time) (t time.Time, ok bool) {
	switch comma := strings.IndexByte(s, ','); {
	case comma == 3:
		return parseIMF(s)
	case comma > 3:
		return parseRFC850(s, comma, now)
	}
	return parseASCTime(s)
}

// parseIMF reads "Sun, 06 Nov 1994 08:49:37 GMT".
func parseIMF(s string) (time.Time, bool) {
	if len(s) != 29 || s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[25:] != " GMT" {
		return time.Time{}, false
	}
	return dateOf(index(shortDays[:], s[:3]), digits(s[12:16]), index(months[:], s[8:11]), digits(s[5:7]), s[17:25])
}

// parseRFC850 reads "Sunday, 06-Nov-94 08:49:37 GMT".
func parseRFC850(s string, comma int, now time.Time) (time.Time, bool) {
	day := index(longDays[:], s[:comma])
	rest := s[comma+1:]
	if len(rest) != 23 || rest[0] != ' ' || rest[3] != '-' || rest[7] != '-' || rest[10] != ' ' || rest[19:] != " GMT" {
		return time.Time{}, false
	}
	short, month, dom := digits(rest[8:10]), index(months[:], rest[4:7]), digits(rest[1:3])
	if short < 0 {
		return time.Time{}, false
	}
	now = now.UTC()
	year := now.Year() - now.Year()%100 + 100 + short
	for ; year >= 1900; year -= 100 {
		moment, ok := momentOf(year, month, dom, rest[11:19])
		if ok && moment.After(now.AddDate(50, 0, 0)) || !ok && year > now.Year()+50 {
			continue
		}
		return dateOf(day, year, month, dom, rest[11:19])
	}
	return time.Time{}, false
}

// parseASCTime reads "Sun Nov  6 08:49:37 1994", the day padded with a blank
// or a zero.
func parseASCTime(s string) (time.Time, bool) {
	if len(s) != 24 || s[3] != ' ' || s[7] != ' ' || s[10] != ' ' || s[19] != ' ' {
		return time.Time{}, false
	}
	dom := digits(s[8:10])
	if s[8] == ' ' {
		dom = digits(s[9:10])
	}
	return dateOf(index(shortDays[:], s[:3]), digits(s[20:24]), index(months[:], s[4:7]), dom, s[11:19])
}

// dateOf puts a date together and checks its day of the week (0 is Sunday).
func dateOf(weekday, year, month, dom int, clock string) (time.Time, bool) {
	t, ok := momentOf(year, month, dom, clock)
	if !ok || weekday < 0 {
		return time.Time{}, false
	}
	midnight := time.Date(year, time.Month(month+1), dom, 0, 0, 0, 0, time.UTC)
	if int(midnight.Weekday()) != weekday {
		return time.Time{}, false
	}
	return t, true
}

// momentOf builds the instant of a date whose month counts from 0 and whose
// clock reads "08:49:37".
func momentOf(year, month, dom int, clock string) (time.Time, bool) {
	if clock[2] != ':' || clock[5] != ':' {
		return time.Time{}, false
	}
	hour, minute, second := digits(clock[:2]), digits(clock[3:5]), digits(clock[6:])
	switch {
	case year < 1900, month < 0, dom < 1,
		hour < 0, hour > 23, minute < 0, minute > 59, second < 0, second > 60:
		return time.Time{}, false
	}
	if time.Date(year, time.Month(month+1), dom, 0, 0, 0, 0, time.UTC).Day() != dom {
		return time.Time{}, false
	}
	return time.Date(year, time.Month(month+1), dom, hour, minute, second, 0, time.UTC), true
}

// digits reads a short run of ASCII digits, or returns -1.
func digits(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return -1
		}
		n = n*10 + int(s[i]-'0')
	}
	return n
}

func index(words []string, s string) int {
	for i, w := range words {
		if w == s {
			return i
		}
	}
	return -1
}
