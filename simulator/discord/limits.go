package discord

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

// unlimited is the limit that the headers tell where none is enforced.
const unlimited = 50

type rateLimit struct {
	Message    string  `json:"message"`
	RetryAfter float64 `json:"retry_after"`
	Global     bool    `json:"global"`
	Code       int     `json:"code"`
}

// window counts the requests of one bucket.
type window struct {
	ends  time.Time
	count int
}

// rateLimitHeader is what comes with a 429. Retry-After is in whole seconds,
// rounded up, as Discord sends it; the body has the fraction.
func rateLimitHeader(retryAfter float64, global bool) http.Header {
	h := http.Header{}
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(retryAfter))))
	if global {
		h.Set("X-RateLimit-Global", "true")
		h.Set("X-RateLimit-Scope", "global")
		return h
	}
	h.Set("X-RateLimit-Scope", "user")
	h.Set("X-RateLimit-Remaining", "0")
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(retryAfter, 'f', 3, 64))
	return h
}

// spend counts a request against its bucket; it is false, with the 429, where the
// bucket is empty.
func (p *platform) spend(rt route) (simulator.Answer, bool) {
	now := p.options.Now()
	w := p.window(rt, now)
	if p.options.Limit > 0 && w.count >= p.options.Limit {
		wait := w.ends.Sub(now).Seconds()
		answer := simulator.JSONAnswer(http.StatusTooManyRequests, rateLimit{"You are being rate limited.", wait, false, 0})
		p.limitHeaders(answer.Header, rt)
		for name, values := range rateLimitHeader(wait, false) {
			answer.Header[name] = values
		}
		return answer, false
	}
	w.count++
	return simulator.Answer{}, true
}

func (p *platform) window(rt route, now time.Time) *window {
	name := bucket(rt)
	w := p.windows[name]
	if w == nil || !now.Before(w.ends) {
		w = &window{ends: now.Add(p.options.LimitWindow)}
		p.windows[name] = w
	}
	return w
}

func (p *platform) limitHeaders(h http.Header, rt route) {
	now := p.options.Now()
	w := p.window(rt, now)
	limit, remaining := unlimited, unlimited-1
	if p.options.Limit > 0 {
		limit, remaining = p.options.Limit, max(0, p.options.Limit-w.count)
	}
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(remaining))
	h.Set("X-RateLimit-Reset", strconv.FormatFloat(float64(w.ends.UnixMilli())/1000, 'f', 3, 64))
	h.Set("X-RateLimit-Reset-After", strconv.FormatFloat(w.ends.Sub(now).Seconds(), 'f', 3, 64))
	h.Set("X-RateLimit-Bucket", bucket(rt))
}

// bucket is the opaque name of what a request is limited with: one operation of
// one channel.
func bucket(rt route) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", rt.op, rt.channel)
	return fmt.Sprintf("%016x", h.Sum64())
}
