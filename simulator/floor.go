package simulator

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// floorOf reads the wait that an answer asks for: where the whole body left and
// has one, Discord's retry_after or Telegram's parameters.retry_after, of which
// Retry-After is the rounded form; else the greater of Retry-After-Ms and
// Retry-After (seconds, fractions allowed, or an HTTP date). global is Discord's
// word for a limit on the whole account.
func floorOf(header http.Header, body []byte, now time.Time) (wait time.Duration, global bool) {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		wait = max(wait, seconds(ms/1000))
	}
	after := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		wait = max(wait, seconds(s))
	} else if t, err := http.ParseTime(after); err == nil {
		wait = max(wait, t.Sub(now))
	}
	global = header.Get("X-RateLimit-Global") == "true" || header.Get("X-RateLimit-Scope") == "global"
	var said struct {
		RetryAfter float64 `json:"retry_after"`
		Global     bool    `json:"global"`
		Parameters struct {
			RetryAfter float64 `json:"retry_after"`
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &said) == nil {
		if exact := max(seconds(said.RetryAfter), seconds(said.Parameters.RetryAfter)); exact > 0 {
			wait = exact
		}
		global = global || said.Global
	}
	return wait, global
}

// seconds turns a number of seconds into a duration, at most a year.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * time.Hour
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, year.Seconds()) * float64(time.Second))
}
