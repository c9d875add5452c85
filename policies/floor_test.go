package policies

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// P3: every source of a floor, and which one wins.
func TestModelFloor(t *testing.T) {
	t.Parallel()
	h := func(pairs ...string) http.Header {
		header := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			header.Add(pairs[i], pairs[i+1])
		}
		return header
	}
	tests := []struct {
		name   string
		fault  Fault
		want   time.Duration
		source FloorSource
	}{
		{"zero is valid", Fault{Header: h("retry-after", "0")}, 0, FloorRetryAfter},
		{"past date is zero", Fault{Header: h("retry-after", "Sun, 20 Sep 2026 11:00:00 GMT")}, 0, FloorRetryAfter},
		{"rfc 850", Fault{Header: h("retry-after", "Sunday, 20-Sep-26 12:00:30 GMT")}, 30 * time.Second, FloorRetryAfter},
		{"asctime", Fault{Header: h("retry-after", "Sun Sep 20 12:00:30 2026")}, 30 * time.Second, FloorRetryAfter},
		{"decimals", Fault{Header: h("retry-after", " 1.5 ")}, 1500 * time.Millisecond, FloorRetryAfter},
		{"rounded up", Fault{Header: h("retry-after-ms", "335.01")}, 336 * time.Millisecond, FloorRetryAfterMS},
		{"largest of many", Fault{Header: h("retry-after", "3", "retry-after", "9", "retry-after-ms", "8000")}, 9 * time.Second, FloorRetryAfter},
		{"bad ms hides nothing", Fault{Header: h("retry-after", "7", "retry-after-ms", "-5")}, 7 * time.Second, FloorRetryAfter},
		{"negative", Fault{Header: h("retry-after", "-1")}, 0, ""},
		{"NaN", Fault{Header: h("retry-after", "NaN")}, 0, ""},
		{"hex", Fault{Header: h("retry-after", "0x10")}, 0, ""},
		{"exponent", Fault{Header: h("retry-after", "1e3")}, 0, ""},
		{"unit in a header", Fault{Header: h("retry-after", "90s")}, 0, ""},
		{"dot", Fault{Header: h("retry-after", "1.")}, 0, ""},

		{"text compound", Fault{Message: "Please try again in 6m0s."}, 6 * time.Minute, FloorText},
		{"text compound 2", Fault{Message: "try again in 1h2m"}, 62 * time.Minute, FloorText},
		{"text decimals", Fault{Message: "Try Again In 46.72s, or later"}, 46720 * time.Millisecond, FloorText},
		{"text words", Fault{Message: "retry after 20 seconds"}, 20 * time.Second, FloorText},
		{"text words joined", Fault{Message: "try again in 1 hour and 5 minutes"}, 65 * time.Minute, FloorText},
		{"text days", Fault{Message: "retry in 2 days"}, 48 * time.Hour, FloorText},
		{"text header", Fault{Message: "rate limited; Retry-After: 7"}, 7 * time.Second, FloorText},
		{"text ms header", Fault{Message: "retry-after-ms: 250"}, 250 * time.Millisecond, FloorText},
		{"text header in", Fault{Message: "retry-after: in 2 hours"}, 2 * time.Hour, FloorText},
		{"text date", Fault{Message: "Retry-After: Sun, 20 Sep 2026 12:01:00 GMT, thanks"}, time.Minute, FloorText},
		{"text largest", Fault{Message: "try again in 3s. retry in 9s."}, 9 * time.Second, FloorText},
		{"text bare then word", Fault{Message: "retry in 5 or later"}, 5 * time.Second, FloorText},
		{"text unknown unit", Fault{Message: "try again in 3 fortnights"}, 0, ""},
		{"text month is no minute", Fault{Message: "try again in 2 months"}, 0, ""},
		{"text glued unit", Fault{Message: "try again in 5xyz"}, 0, ""},
		{"text tomorrow", Fault{Message: "try again in a few seconds"}, 0, ""},
		{"text inside a word", Fault{Message: "foretry in 5s"}, 0, ""},
		{"text in JSON", Fault{Body: []byte(`{"error":{"message":"Please retry in 8s"}}`)}, 8 * time.Second, FloorText},
		{"header and text: the larger", Fault{Message: "try again in 2s", Header: h("retry-after", "5")}, 5 * time.Second, FloorRetryAfter},

		{"retry info", Fault{Status: 503, Body: []byte(`{"error":{"details":[{"retryDelay":"34.07s","@type":"type.googleapis.com/google.rpc.RetryInfo"}]}}`)}, 34070 * time.Millisecond, FloorRetryInfo},
		{"other type", Fault{Body: []byte(`{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.Help","retryDelay":"34s"}]}}`)}, 0, ""},
		{"bad retry info", Fault{Body: []byte(`{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"-3s"}]}}`)}, 0, ""},

		{"bucket", Fault{Status: 429, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s")}, 6 * time.Minute, FloorBucket},
		{"bucket in the text's status", Fault{Message: "429 slow", Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s")}, 6 * time.Minute, FloorBucket},
		{"bucket with quota", Fault{Status: 429, Header: h("x-ratelimit-remaining-requests", "3", "x-ratelimit-reset-requests", "6m0s")}, 0, ""},
		{"bucket unknown", Fault{Status: 429, Header: h("x-ratelimit-reset-requests", "6m0s")}, 0, ""},
		{"bucket named", Fault{Status: 429, Message: "limit on tokens per min (TPM)", Header: h("x-ratelimit-reset-tokens", "20ms", "x-ratelimit-reset-requests", "1h")}, 20 * time.Millisecond, FloorBucket},
		{"bucket of the project", Fault{Status: 429, Message: "project tokens per min", Header: h("x-ratelimit-reset-project-tokens", "3s")}, 3 * time.Second, FloorBucket},
		{"bucket at 503", Fault{Status: 503, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s")}, 0, ""},
		{"bucket largest", Fault{Status: 429, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "7.66s", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "59")}, 59 * time.Second, FloorBucket},
		{"bucket epoch seconds", Fault{Status: 429, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1789905610")}, 10 * time.Second, FloorBucket},
		{"bucket epoch ms", Fault{Status: 429, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1789905610500")}, 10500 * time.Millisecond, FloorBucket},
		{"bucket past", Fault{Status: 429, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "1789905500")}, 0, FloorBucket},
		{"unified rejected", Fault{Status: 429, Header: h("anthropic-ratelimit-unified-status", "rejected", "anthropic-ratelimit-unified-reset", "2026-09-20T13:00:00Z")}, time.Hour, FloorBucket},
		{"unified allowed", Fault{Status: 429, Header: h("anthropic-ratelimit-unified-status", "allowed", "anthropic-ratelimit-unified-reset", "2026-09-20T13:00:00Z")}, 0, ""},
		{"input tokens named", Fault{Status: 429, Message: "exceed the rate limit of 30,000 input tokens per minute", Header: h("anthropic-ratelimit-input-tokens-reset", "2026-09-20T12:00:45Z", "anthropic-ratelimit-output-tokens-reset", "2026-09-20T13:00:00Z")}, 45 * time.Second, FloorBucket},
		{"openrouter", Fault{Status: 429, Body: []byte(`{"error":{"code":429,"message":"Rate limit exceeded: free-models-per-min","metadata":{"headers":{"X-RateLimit-Limit":"20","X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1789905660000"}}}}`)}, time.Minute, FloorBucket},
		{"openrouter with quota", Fault{Status: 429, Body: []byte(`{"error":{"code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"4","X-RateLimit-Reset":"1789905660000"}}}}`)}, 0, ""},

		{"cause", Fault{Message: "fetch failed", Causes: []Fault{{Status: 429, Header: h("retry-after", "4"), Now: testNow}}}, 4 * time.Second, FloorRetryAfter},
		{"explicit above a bucket beneath", Fault{Message: "retry in 2s", Causes: []Fault{{Status: 429, Now: testNow, Header: h("x-ratelimit-remaining-tokens", "0", "x-ratelimit-reset-tokens", "6m0s")}}}, 2 * time.Second, FloorText},
		{"nothing", Fault{Status: 429}, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := tt.fault
			f.Now = testNow
			got := ModelFloor(&f)
			if got.Wait != tt.want || got.Source != tt.source || got.Infinite {
				t.Errorf("floor = %+v, want %v from %q", got, tt.want, tt.source)
			}
			if v := JudgeModel(&f); v.Floor != got {
				t.Errorf("verdict's floor = %+v, want %+v", v.Floor, got)
			}
		})
	}
}

// P3: a number too large to represent is infinite, whatever it is written in.
func TestModelFloorInfinite(t *testing.T) {
	t.Parallel()
	for _, f := range []Fault{
		{Header: http.Header{"Retry-After": {"9007199254740993"}}},
		{Header: http.Header{"Retry-After": {strings.Repeat("9", 310)}}},
		{Header: http.Header{"Retry-After-Ms": {"99999999999999999999999"}}},
		{Header: http.Header{"Retry-After": {"Fri, 31 Dec 9999 23:59:59 GMT"}}},
		{Message: "try again in 99999999999 hours"},
		{Message: "retry-after: Infinity"},
		{Message: "try again in 106751 days 23h 99h"},
	} {
		f.Now = testNow
		if got := ModelFloor(&f); !got.Infinite || got.Wait != 0 {
			t.Errorf("%+v: floor = %+v, want infinite", f, got)
		}
	}
}

// P3: explicit timing beats bucket resets, zero and past dates are zero.
func TestModelFloorProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(0, math.MaxInt64/int64(time.Second)).Draw(t, "seconds")
		bucket := time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "bucket")).Truncate(time.Millisecond)
		f := Fault{Status: 429, Now: testNow, Header: http.Header{
			"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {bucket.String()},
		}}
		if got := ModelFloor(&f); got.Wait != bucket || got.Source != FloorBucket {
			t.Fatalf("bucket %v: floor = %+v", bucket, got)
		}
		text := time.Duration(seconds) * time.Second
		f.Header.Set("Retry-After", text.String())
		if got := ModelFloor(&f); got.Source != FloorBucket {
			t.Fatalf("a malformed header hid the bucket: %+v", got)
		}
		f.Header.Set("Retry-After", strconv.FormatInt(seconds, 10))
		if got := ModelFloor(&f); got.Wait != text || got.Source != FloorRetryAfter {
			t.Fatalf("retry-after %d: floor = %+v", seconds, got)
		}
		past := testNow.Add(-time.Duration(rapid.Int64Range(0, int64(80*365*24*time.Hour)).Draw(t, "ago")))
		f.Header.Set("Retry-After", past.Format(http.TimeFormat))
		if got := ModelFloor(&f); got.Wait != 0 || got.Source != FloorRetryAfter {
			t.Fatalf("past date: floor = %+v", got)
		}
	})
}

// P3: what is written in one of the three forms of an HTTP date is read back.
func TestParseHTTPDateRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := testNow.Add(time.Duration(rapid.Int64Range(-49*365*24*3600, 49*365*24*3600).Draw(t, "away")) * time.Second)
		for _, layout := range []string{http.TimeFormat, "Monday, 02-Jan-06 15:04:05 GMT", time.ANSIC, "Mon Jan 02 15:04:05 2006"} {
			s := want.Format(layout)
			if got, ok := ParseHTTPDate(s, testNow); !ok || !got.Equal(want) {
				t.Fatalf("%q = %v, %v, want %v", s, got, ok, want)
			}
		}
	})
}

// P3: the two-digit years of RFC 850, leap seconds, and what is no date.
func TestParseHTTPDateStrict(t *testing.T) {
	t.Parallel()
	at := func(year int) time.Time { return time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		value string
		now   time.Time
		want  time.Time
	}{
		{"Sunday, 06-Nov-50 08:49:37 GMT", at(2026), time.Date(2050, 11, 6, 8, 49, 37, 0, time.UTC)},
		{"Monday, 01-Jun-76 00:00:00 GMT", at(2026), at(2076)},
		{"Tuesday, 01-Jun-76 00:00:01 GMT", at(2026), time.Date(1976, 6, 1, 0, 0, 1, 0, time.UTC)},
		{"Friday, 01-Jan-00 00:00:00 GMT", at(2099), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"Sat, 31 Dec 2016 23:59:60 GMT", at(2026), time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC)},
		{"Thu, 29 Feb 2024 00:00:00 GMT", at(2026), time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
	} {
		if got, ok := ParseHTTPDate(tt.value, tt.now); !ok || !got.Equal(tt.want) {
			t.Errorf("%q at %d = %v, %v, want %v", tt.value, tt.now.Year(), got, ok, tt.want)
		}
	}
	for _, s := range []string{
		"", "0", "Sun, 06 Nov 1994 08:49:37 UTC", "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:60:37 GMT",
		"Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06-Nov-94 08:49:37 GMT", "Sunday, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT",
		"Sun Nov  6 08:49:37 1994 GMT", "Sun Nov  6 08:49:37 94", "Sun Nov 00 08:49:37 1994", " Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08-49-37 GMT",
		"Sun Nov  6 8:49:37 1994", "Monday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 0994 08:49:37 GMT", "Sun, +6 Nov 1994 08:49:37 GMT",
	} {
		if got, ok := ParseHTTPDate(s, at(2026)); ok {
			t.Errorf("%q = %v, want none", s, got)
		}
	}
}
