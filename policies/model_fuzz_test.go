package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// modelReasons are the reasons that the model surface may give (P4.13).
var modelReasons = map[Reason]bool{
	ReasonRateLimit: true, ReasonOverloaded: true, ReasonServerError: true, ReasonTimeout: true, ReasonStreamInterrupted: true,
	ReasonMalformedStream: true, ReasonDegenerateOutput: true, ReasonEmptyResponse: true, ReasonWorkerLost: true, ReasonOutputLimit: true,
	ReasonQuotaExhausted: true, ReasonBilling: true, ReasonAuth: true, ReasonAuthPermanent: true, ReasonPermission: true, ReasonSessionExpired: true,
	ReasonModelNotFound: true, ReasonRequestTooLarge: true, ReasonContextOverflow: true, ReasonRefusal: true, ReasonFormat: true, ReasonTLS: true,
	ReasonUnclassified: true, ReasonCancelled: true, ReasonDeadline: true,
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkVerdict asserts what holds of every verdict of the model surface.
func checkVerdict(t failer, f *Fault) {
	t.Helper()
	got := JudgeModel(f)
	d := DispositionOf(got.Reason)
	switch {
	case !modelReasons[got.Reason]:
		t.Fatalf("unknown reason %q", got.Reason)
	case !strings.HasPrefix(got.Rule, "P4."):
		t.Fatalf("rule %q", got.Rule)
	case got.Effect != EffectNone:
		t.Fatalf("effect %q", got.Effect)
	case got.Floor.Wait < 0:
		t.Fatalf("negative floor %v", got.Floor.Wait)
	case got.RetrySame && !d.retriesSame(), got.RetrySame && got.Floor.Infinite, got.RetrySame && got.Permanent:
		t.Fatalf("retried against P4.13: %+v", got)
	}
	if again := JudgeModel(f); again != got {
		t.Fatalf("not deterministic: %+v, then %+v", got, again)
	}
}

// P4: no input panics or is left without a reason and a rule.
func FuzzJudgeModel(f *testing.F) {
	for _, seed := range []struct {
		provider, message, code, body string
		status                        int
	}{
		{"openai", "429 Too Many Requests", "rate_limit_exceeded", "", 0},
		{"anthropic", "", "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 529},
		{"google", "", "RESOURCE_EXHAUSTED", `[{"error":{"code":429,"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"7s"}]}}]`, 429},
		{"groq", "Request too large: Limit 6000, Requested 9000 (TPM)", "", "", 413},
		{"openrouter", "", "", `{"error":{"metadata":{"raw":"{\"error\":{\"code\":429}}"}}}`, 502},
		{"zai", "已达到 Token Plan 用量上限", "1310", "", 429},
		{"kimi", "weekly usage limit", "access_terminated_error", "", 403},
		{"ollama", "", "", `{"error":"model \"x\" not found, try pulling it first"}`, 404},
		{"", "<!doctype html><html>rate limit</html>", "", "", 503},
		{"", "", "CERT_HAS_EXPIRED", "", 0},
		{"xai", `401 {"error":"Authentication required"}`, "", "", 0},
		{"bedrock", `{"message":"\ud83d\u00`, "com.amazon#ThrottlingException", `{\"message\":\"x\"`, 400},
		{"", "{{{{\"\\\\\\\"", "holdfast:worker_lost", strings.Repeat(`{"message":"{`, 50), 200},
	} {
		f.Add(seed.provider, seed.message, seed.code, []byte(seed.body), seed.status)
	}
	f.Fuzz(func(t *testing.T, provider, message, code string, body []byte, status int) {
		fault := Fault{Surface: SurfaceModel, Provider: provider, Message: message, Code: code, Body: body, Status: status, Now: testNow}
		checkVerdict(t, &fault)
		checkVerdict(t, &Fault{Surface: SurfaceModel, Message: "fetch failed", Causes: []Fault{fault, {Status: status}}})
	})
}

// P3: a floor is never negative, never overflows, and comes with a source.
func FuzzModelFloor(f *testing.F) {
	for _, seed := range []struct{ after, ms, reset, text string }{
		{"7", "", "", ""}, {"1.5", "335.2", "", ""}, {"9007199254740993", "1", "6m0s", ""}, {"", "", "1789905610", ""}, {"", "", "2026-09-20T12:00:20Z", ""},
		{"Sun, 06 Nov 1994 08:49:37 GMT", "", "", ""}, {"Sunday, 06-Nov-94 08:49:37 GMT", "", "", ""}, {"", "", "", "try again in 1h2m3.5s"}, {"0x10", "1e3", "-1", "retry in -5s"},
		{"", "", "99999999999999999999", "retry-after: infinity"}, {"NaN", "", "0.0000000001", "try again in 106751 days 24 hours 1ns"},
	} {
		f.Add(seed.after, seed.ms, seed.reset, seed.text)
	}
	f.Fuzz(func(t *testing.T, after, ms, reset, text string) {
		got := ModelFloor(&Fault{Status: 429, Message: text, Now: testNow, Header: http.Header{
			"Retry-After": {after}, "Retry-After-Ms": {ms}, "X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {reset},
		}})
		if got.Wait < 0 || got.Infinite && got.Wait != 0 || !got.Asked() && (got.Wait != 0 || got.Infinite) {
			t.Errorf("floor = %+v", got)
		}
		if got.Wait%time.Millisecond != 0 {
			t.Errorf("floor %v is no whole number of milliseconds", got.Wait)
		}
	})
}

// P3: what is read as a date is one, in UTC and no earlier than 1900, and an
// RFC 850 year lies at most 50 years ahead.
func FuzzParseHTTPDate(f *testing.F) {
	for _, s := range []string{
		"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994", "Sat, 31 Dec 2016 23:59:60 GMT",
		"Sunday, 06-Nov-77 00:00:00 GMT", "Thursday, 29-Feb-24 00:00:00 GMT", "Mon, 01 Jan 1900 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", ",", "Sunday,",
	} {
		f.Add(s, testNow.Unix())
	}
	f.Fuzz(func(t *testing.T, s string, unix int64) {
		now := time.Unix(unix%(1<<37), 0)
		got, ok := ParseHTTPDate(s, now)
		if !ok {
			return
		}
		if got.Location() != time.UTC || got.Year() < 1900 {
			t.Errorf("%q = %v", s, got)
		}
		if strings.IndexByte(s, ',') > 3 && got.After(now.UTC().AddDate(50, 0, 1)) {
			t.Errorf("%q = %v is more than 50 years after %v", s, got, now)
		}
	})
}

// P4: classification is total and deterministic for anything a provider may
// put together.
func TestJudgeModelTotal(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{
		"429 ", "HTTP 503: ", "(500) ", "rate limit", "quota exceeded", "per minute", "weekly", "usage limit", "insufficient credits", "overloaded", "key revoked",
		"context length exceeded", "model x not found", "stream ended without", "timeout", "certificate has expired", "try again in 7s", "Limit 5, Requested 9",
		`{"error":{"message":"`, `"}}`, `"code":"insufficient_quota",`, `\"`, "额度已用尽", "<html>", " ", "\n",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		body := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "body"), "")
		f := Fault{
			Surface: SurfaceModel, Message: text, Body: []byte(body), Now: testNow,
			Status:   rapid.SampledFrom([]int{0, 200, 302, 400, 401, 402, 403, 404, 407, 408, 409, 410, 413, 418, 422, 429, 499, 500, 502, 503, 504, 524, 529, 599, 999, -1}).Draw(t, "status"),
			Provider: rapid.SampledFrom([]string{"", "openai", "anthropic", "google", "xai", "kimi", "zai", "groq"}).Draw(t, "provider"),
			Code:     rapid.SampledFrom([]string{"", "ECONNRESET", "rate_limit_exceeded", "unknown_parameter", "overloaded_error"}).Draw(t, "code"),
		}
		checkVerdict(t, &f)
	})
}
