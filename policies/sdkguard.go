package policies

import (
	"net/http"
	"strings"
	"time"
)

// sdkMaxWait is the longest wait that is left to a client library (P7).
const sdkMaxWait = 60 * time.Second

// SDKWaitGuard says whether "x-should-retry: false" is to be added to a
// response, so that a client library whose own retries are on does not sleep
// through a long wait (P7). It is for 408, 409, 429 and 5xx with a wait above
// the cap, and for 429 also when the timing is malformed or the text names a
// long window. Only whole numbers and HTTP dates are well formed here.
//
// env is the value of HOLDFAST_SDK_RETRY_MAX_WAIT_SECONDS: whole seconds that
// replace the cap; "0", "false", "off", "none" or "disabled" switch the guard
// off; anything else is ignored.
func SDKWaitGuard(status int, header http.Header, body, env string, now time.Time) bool {
	limit, on := sdkCap(env)
	if !on || status != 408 && status != 409 && status != 429 && (status < 500 || status > 599) {
		return false
	}
	longest, present, valid := sdkWait(header, now)
	if valid && longest.longer(wait{d: limit}) {
		return true
	}
	if status != 429 {
		return false
	}
	if present && !valid {
		return true
	}
	e := gather(&Fault{Status: status, Header: header, Body: []byte(body), Now: now})
	return e.longWindow()
}

// sdkCap reads the environment value.
func sdkCap(env string) (limit time.Duration, on bool) {
	switch s := strings.ToLower(strings.TrimSpace(env)); s {
	case "false", "off", "none", "disabled":
		return 0, false
	default:
		w, n, whole := scanDecimal(s, time.Second)
		if n == 0 || n != len(s) || !whole || w.infinite {
			return sdkMaxWait, true
		}
		return w.d, w.d > 0
	}
}

// sdkWait is the longest well-formed wait of the timing headers; present says
// that there was any timing, however formed.
func sdkWait(header http.Header, now time.Time) (longest wait, present, valid bool) {
	take := func(w wait, ok bool) {
		if !ok {
			return
		}
		if !valid || w.longer(longest) {
			longest = w
		}
		valid = true
	}
	for _, v := range header["Retry-After"] {
		if v = strings.Trim(v, " \t"); v == "" {
			continue
		}
		present = true
		w, n, whole := scanDecimal(v, time.Second)
		take(w, n == len(v) && whole)
		if t, ok := ParseHTTPDate(v, now); ok {
			take(untilMoment(t, now), true)
		}
	}
	for _, v := range header["Retry-After-Ms"] {
		if v = strings.Trim(v, " \t"); v == "" {
			continue
		}
		present = true
		w, n, whole := scanDecimal(v, time.Millisecond)
		take(w, n == len(v) && whole)
	}
	return longest, present, valid
}
