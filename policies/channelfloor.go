package policies

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultChannelFloor is how long a channel is left alone after a 429 that
// says nothing about time (P3).
const DefaultChannelFloor = 60 * time.Second

// ChannelFloor reads what a channel asked for (P3): a valid retry_after of the
// body first, else the Retry-After header. It looks at the response itself,
// then at the errors beneath. It does not supply the default of a bare 429.
func ChannelFloor(f *Fault) Floor {
	return channelFloor(f, maxCauseDepth)
}

func channelFloor(f *Fault, depth int) Floor {
	if wait, ok := bodyRetryAfter(f); ok {
		return Floor{Wait: wait, Source: FloorBody}
	}
	if wait, ok := channelRetryAfter(f.Header, f.Now); ok {
		return Floor{Wait: wait, Source: FloorRetryAfter}
	}
	if depth == 0 {
		return Floor{}
	}
	for i := range f.Causes {
		if floor := channelFloor(&f.Causes[i], depth-1); floor.Asked() {
			return floor
		}
	}
	return Floor{}
}

// rateLimitFloor is ChannelFloor with the default of a 429 that gives none.
func rateLimitFloor(f *Fault) Floor {
	if floor := ChannelFloor(f); floor.Asked() {
		return floor
	}
	return Floor{Wait: DefaultChannelFloor, Source: FloorDefault}
}

// retryAfterBody is where channels put retry_after: Discord at the top, the
// Telegram Bot API under parameters, clients that wrap its answer one deeper.
type retryAfterBody struct {
	RetryAfter json.RawMessage `json:"retry_after"`
	Parameters retryParameters `json:"parameters"`
	Response   struct {
		Parameters retryParameters `json:"parameters"`
	} `json:"response"`
	Error struct {
		Parameters retryParameters `json:"parameters"`
	} `json:"error"`
}

type retryParameters struct {
	RetryAfter json.RawMessage `json:"retry_after"`
}

func bodyRetryAfter(f *Fault) (time.Duration, bool) {
	var body retryAfterBody
	if len(f.Body) == 0 || !lenientJSON(f.Body, &body) {
		return 0, false
	}
	if f.Surface == SurfaceDiscord {
		return jsonSeconds(body.RetryAfter)
	}
	for _, raw := range []json.RawMessage{
		body.Parameters.RetryAfter, body.Response.Parameters.RetryAfter, body.Error.Parameters.RetryAfter,
	} {
		if wait, ok := jsonSeconds(raw); ok {
			return wait, true
		}
	}
	if f.Surface == SurfaceDelivery {
		return jsonSeconds(body.RetryAfter)
	}
	return 0, false
}

// jsonSeconds reads a JSON number of seconds, fractions allowed, rounded up to
// the millisecond.
func jsonSeconds(raw json.RawMessage) (time.Duration, bool) {
	if len(raw) == 0 || raw[0] == '"' {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, false
	}
	return safeSeconds(seconds)
}

// safeSeconds refuses what is negative and what cannot be represented: a
// channel that asks for centuries is not believed (P3).
func safeSeconds(seconds float64) (time.Duration, bool) {
	// The product is off by a rounding error at most: 0.631 s is 631 ms, not 632.
	ms := math.Ceil(seconds*1000 - 1e-6)
	if !(seconds >= 0) || ms > float64(longestDelay/time.Millisecond) {
		return 0, false
	}
	return time.Duration(math.Max(ms, 0)) * time.Millisecond, true
}

// channelRetryAfter reads the largest valid Retry-After header: whole seconds
// or an HTTP date, blanks around it allowed; a past date is zero.
func channelRetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	for _, value := range h.Values("Retry-After") {
		d, valid := channelRetryAfterValue(strings.Trim(value, " \t"), now)
		if valid {
			wait, ok = max(wait, d), true
		}
	}
	return wait, ok
}

func channelRetryAfterValue(value string, now time.Time) (time.Duration, bool) {
	if allDigits(value) {
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, false
		}
		return safeSeconds(seconds)
	}
	if value == "" || now.IsZero() {
		return 0, false
	}
	at, ok := ParseHTTPDate(value, now)
	if !ok {
		return 0, false
	}
	return max(at.Sub(now), 0), true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// lenientJSON decodes an object into v. Fields of an unexpected type are left
// out, as json.Unmarshal leaves them; only text that is not JSON is refused.
func lenientJSON(body []byte, v any) bool {
	err := json.Unmarshal(body, v)
	if err == nil {
		return true
	}
	_, mismatch := err.(*json.UnmarshalTypeError)
	return mismatch
}
