package policies

import (
	"strconv"
	"strings"
	"time"
)

// ModelFloor is the least wait that a model provider asked for (P3). The
// strongest source that gives a valid value decides, within it the largest
// value: first the retry-after and retry-after-ms headers, Google's RetryInfo
// and the hints of the text; then, on 429 only, the resets of exhausted
// buckets. A wait too large to represent is Infinite. Malformed values count
// as absent.
//
// Causes are the same failure, so what one of them carries counts; a later
// attempt is another Fault and inherits nothing.
func ModelFloor(f *Fault) Floor {
	if len(f.Body) == 0 && f.Message == "" && len(f.Details) == 0 && len(f.Causes) == 0 {
		if len(f.Header) == 0 {
			return Floor{}
		}
		e := evidence{now: f.Now, status: f.Status}
		e.readHeaders(f)
		e.readBuckets(f)
		return e.floor()
	}
	left := maxCauses
	return floorOf(f, gather(f), &left)
}

// floorOf is the floor of a fault whose evidence is known, and of what lies
// beneath it.
func floorOf(f *Fault, e *evidence, left *int) Floor {
	floor := e.floor()
	for i := range f.Causes {
		if *left == 0 {
			break
		}
		*left--
		floor = stronger(floor, floorOf(&f.Causes[i], gather(&f.Causes[i]), left))
	}
	return floor
}

// floor is the decision between the sources.
func (e *evidence) floor() Floor {
	if e.hinted != "" {
		return Floor{Wait: e.hint.d, Infinite: e.hint.infinite, Source: e.hinted}
	}
	if e.bucket {
		return Floor{Wait: e.reset.d, Infinite: e.reset.infinite, Source: FloorBucket}
	}
	return Floor{}
}

// stronger picks between two floors of one failure.
func stronger(a, b Floor) Floor {
	switch {
	case !b.Asked():
		return a
	case !a.Asked():
		return b
	case (a.Source == FloorBucket) != (b.Source == FloorBucket):
		if a.Source == FloorBucket {
			return b
		}
		return a
	}
	if (wait{b.Wait, b.Infinite}).longer(wait{a.Wait, a.Infinite}) {
		return b
	}
	return a
}

// readHeaders hears retry-after and retry-after-ms.
func (e *evidence) readHeaders(f *Fault) {
	for _, v := range f.Header["Retry-After"] {
		if w, ok := retryAfterValue(v, e.now); ok {
			e.hear(w, FloorRetryAfter)
		}
	}
	for _, v := range f.Header["Retry-After-Ms"] {
		if w, ok := decimalWait(strings.Trim(v, " \t"), time.Millisecond); ok {
			e.hear(w.ceilMillis(), FloorRetryAfterMS)
		}
	}
}

// retryAfterValue reads seconds, with decimals, or an HTTP date.
func retryAfterValue(v string, now time.Time) (wait, bool) {
	v = strings.Trim(v, " \t")
	if w, ok := decimalWait(v, time.Second); ok {
		return w.ceilMillis(), true
	}
	if now.IsZero() {
		return wait{}, false
	}
	if t, ok := ParseHTTPDate(v, now); ok {
		return untilMoment(t, now), true
	}
	return wait{}, false
}

// bucket is one limit that a provider reports in headers.
type bucketHeaders struct {
	reset, remaining, status string
	named                    []mark // families that together name it in a text
}

var buckets = [...]bucketHeaders{
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens", "", []mark{mNamesTokens}},
	{"X-Ratelimit-Reset-Project-Tokens", "X-Ratelimit-Remaining-Project-Tokens", "", []mark{mNamesProject, mNamesTokens}},
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests", "", []mark{mNamesRequests}},
	{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining", "", []mark{mNamesRequests}},
	{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining", "", []mark{mNamesTokens}},
	{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining", "", []mark{mNamesInput}},
	{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining", "", []mark{mNamesOutput}},
	{"Anthropic-Priority-Input-Tokens-Reset", "Anthropic-Priority-Input-Tokens-Remaining", "", nil},
	{"Anthropic-Priority-Output-Tokens-Reset", "Anthropic-Priority-Output-Tokens-Remaining", "", nil},
	{"Anthropic-Ratelimit-Unified-Reset", "Anthropic-Ratelimit-Unified-Remaining", "Anthropic-Ratelimit-Unified-Status", nil},
	{"Anthropic-Ratelimit-Unified-5h-Reset", "", "Anthropic-Ratelimit-Unified-5h-Status", nil},
	{"Anthropic-Ratelimit-Unified-7d-Reset", "", "Anthropic-Ratelimit-Unified-7d-Status", nil},
}

// readBuckets finds the latest reset of the exhausted buckets. A bucket with
// quota left adds no wait.
func (e *evidence) readBuckets(f *Fault) {
	if e.status != 429 {
		return
	}
	for i := range buckets {
		b := &buckets[i]
		value := first(f.Header[b.reset])
		if value == "" || !e.exhausted(f, b) {
			continue
		}
		if w, ok := resetWait(value, e.now); ok {
			e.drained(w)
		}
	}
	if e.meta.reset == "" || e.meta.remaining != "0" && (e.meta.remaining != "" || !e.marks.any(mNamesRequests, mNamesTokens)) {
		return
	}
	if w, ok := resetWait(e.meta.reset, e.now); ok {
		e.drained(w)
	}
}

func (e *evidence) drained(w wait) {
	if !e.bucket || w.longer(e.reset) {
		e.bucket, e.reset = true, w
	}
}

// exhausted reports whether nothing is left in a bucket, by its own header or
// because the text of the error names it.
func (e *evidence) exhausted(f *Fault, b *bucketHeaders) bool {
	if b.remaining != "" {
		if n, err := strconv.ParseFloat(first(f.Header[b.remaining]), 64); err == nil && n == 0 {
			return true
		}
	}
	if b.status != "" && strings.EqualFold(first(f.Header[b.status]), "rejected") {
		return true
	}
	if len(b.named) == 0 {
		return false
	}
	for _, m := range b.named {
		if !e.marks.has(m) {
			return false
		}
	}
	return true
}

// resetWait reads when a bucket refills: a duration ("6m0s"), seconds, an
// epoch in seconds or milliseconds, or RFC 3339.
func resetWait(v string, now time.Time) (wait, bool) {
	v = strings.Trim(v, " \t")
	if w, ok := decimalWait(v, time.Second); ok {
		switch {
		case !w.infinite && w.d < 1e9*time.Second:
			return w.ceilMillis(), true
		case now.IsZero():
			return wait{}, false
		}
		return untilEpoch(v, now)
	}
	if w, n := scanDuration(v); n > 0 && n == len(v) {
		return w.ceilMillis(), true
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil || now.IsZero() {
		return wait{}, false
	}
	return untilMoment(t, now).ceilMillis(), true
}

// untilEpoch reads an epoch in seconds or, from 1e11 on, in milliseconds.
func untilEpoch(v string, now time.Time) (wait, bool) {
	whole, _, _ := strings.Cut(v, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil || n > 1e15:
		return wait{infinite: true}, true
	case n >= 1e11:
		return untilMoment(time.UnixMilli(n), now).ceilMillis(), true
	}
	t := time.Unix(n, 0)
	if whole != v {
		t = t.Add(time.Second)
	}
	return untilMoment(t, now).ceilMillis(), true
}
