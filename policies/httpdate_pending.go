package policies

import (
	"net/http"
	"time"
)

// ParseHTTPDate reads an HTTP date in IMF, RFC 850 or asctime form, exactly as
// those forms are written. A two-digit year lies at most 50 years ahead of now.
func ParseHTTPDate(s string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC, "Mon Jan 02 15:04:05 2006"} {
		t, err := time.Parse(layout, s)
		if err != nil || t.Format(layout) != s || t.Year() < 1900 {
			continue
		}
		if layout[:6] == "Monday" && t.After(now.AddDate(50, 0, 0)) {
			t = t.AddDate(-100, 0, 0)
		}
		return t, true
	}
	return time.Time{}, false
}
