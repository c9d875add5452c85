package policies

import (
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// modelInput is the shape of the inputs of the model areas.
type modelInput struct {
	Provider string            `json:"provider"`
	Status   int               `json:"status"`
	Message  string            `json:"message"`
	Code     string            `json:"code"`
	Type     string            `json:"type"`
	Details  []json.RawMessage `json:"details"`
	Headers  json.RawMessage   `json:"headers"`
	Body     string            `json:"body"`
	Now      string            `json:"now"`
	Env      string            `json:"env"`
}

func (in modelInput) fault(t *testing.T) *Fault {
	t.Helper()
	f := &Fault{
		Surface: SurfaceModel, Provider: in.Provider, Status: in.Status, Message: in.Message,
		Code: in.Code, Type: in.Type, Body: []byte(in.Body), Now: time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC),
	}
	if in.Now != "" {
		now, err := time.Parse(time.RFC3339, in.Now)
		if err != nil {
			t.Fatal(err)
		}
		f.Now = now
	}
	for _, d := range in.Details {
		var s string
		if json.Unmarshal(d, &s) != nil {
			s = string(d)
		}
		f.Details = append(f.Details, s)
	}
	var headers map[string]string
	if json.Unmarshal(in.Headers, &headers) == nil {
		f.Header = http.Header{}
		for k, v := range headers {
			f.Header.Set(k, v)
		}
	}
	return f
}

// agreeing maps the coarser reasons of the vectors to ours.
var agreeing = map[string][]Reason{
	"timeout":          {ReasonTimeout, ReasonStreamInterrupted, ReasonServerError},
	"rate_limit":       {ReasonRateLimit, ReasonQuotaExhausted, ReasonRequestTooLarge},
	"billing":          {ReasonBilling, ReasonQuotaExhausted},
	"auth":             {ReasonAuth, ReasonPermission},
	"context_overflow": {ReasonContextOverflow, ReasonRequestTooLarge},
	"null":             {ReasonUnclassified},
	"unknown":          {ReasonUnclassified},
	"no_error_details": {ReasonUnclassified},
}

func agrees(want string, got Reason) bool {
	if reasons, ok := agreeing[want]; ok {
		return slices.Contains(reasons, got)
	}
	return want == string(got)
}

// P4: known failures and their reasons.
func TestVectorsClassification(t *testing.T) {
	t.Parallel()
	runVectors(t, "classification", 247, map[string]string{
		"none-001":               "a 500 with OpenAI's own apology is server_error",
		"none-019":               "a closed socket is timeout (P4.11)",
		"auth-038":               "vendor hook; ours: billing",
		"xai-403-refusal":        "vendor hook; ours: refusal",
		"hook-overloaded-at-400": "provider hooks are not taken over",
		"hook-rate_limit-at-400": "provider hooks are not taken over",
	}, func(t *testing.T, v vector) {
		f := decode[modelInput](t, v.Input).fault(t)
		want := decode[struct {
			Reason             *string `json:"reason"`
			Kind               string  `json:"kind"`
			SameModelRetry     *bool   `json:"sameModelRetry"`
			FallbackMayAdvance *bool   `json:"fallbackMayAdvance"`
		}](t, v.Expect)
		got := JudgeModel(f)
		if want.SameModelRetry != nil && got.RetrySame != *want.SameModelRetry {
			t.Errorf("retry on the same model = %v, want %v (%s, %s)", got.RetrySame, *want.SameModelRetry, got.Reason, got.Rule)
		}
		if want.FallbackMayAdvance != nil {
			if got.Failover != *want.FallbackMayAdvance {
				t.Errorf("failover = %v, want %v", got.Failover, *want.FallbackMayAdvance)
			}
			return
		}
		word := want.Kind
		switch {
		case word != "":
		case want.Reason == nil:
			word = "null"
		default:
			word = *want.Reason
		}
		if !agrees(word, got.Reason) {
			t.Errorf("%s: reason = %s by %s, want %s", v.Input, got.Reason, got.Rule, word)
		}
	})
}

// P4.13: what may be repeated on the same candidate.
func TestVectorsRetryEvidence(t *testing.T) {
	t.Parallel()
	out := map[string]string{"yes-11": "P4.6: tokens per day", "yes-37": "unclassified is not retried"}
	for _, id := range []string{"02", "03", "05", "06", "08", "11", "12", "13", "15", "16", "17", "18", "19", "20", "22", "23", "25"} {
		out["no-"+id] = "a narrower gate than P4.13"
	}
	for _, id := range []string{"401", "402", "403", "422", "500", "502", "503", "520", "521"} {
		out["status-"+id] = "a narrower gate than P4.13"
	}
	runVectors(t, "retry_evidence", 19, out, func(t *testing.T, v vector) {
		got := JudgeModel(decode[modelInput](t, v.Input).fault(t))
		want := decode[struct {
			Retry bool `json:"sameAttemptRetryEvidence"`
		}](t, v.Expect)
		if got.RetrySame != want.Retry {
			t.Errorf("%s: retry = %v (%s by %s), want %v", v.Input, got.RetrySame, got.Reason, got.Rule, want.Retry)
		}
	})
}

// P4.6 and P5: a long window leaves the model at once, a floor above the cap
// is not waited for by a replay-safe attempt.
func TestVectorsRateLimitWindow(t *testing.T) {
	t.Parallel()
	const maxRetryDelay = time.Minute
	runVectors(t, "rate_limit_window", 16, nil, func(t *testing.T, v vector) {
		in := decode[struct {
			modelInput
			RetryAfterMS *int64 `json:"retryAfterMs"`
		}](t, v.Input)
		f := in.fault(t)
		if in.RetryAfterMS != nil {
			f.Status, f.Header = 429, http.Header{"Retry-After-Ms": {strconv.FormatInt(*in.RetryAfterMS, 10)}}
		}
		got := JudgeModel(f)
		same := got.RetrySame && got.Floor.Wait <= maxRetryDelay
		want := decode[struct {
			SameModelRetry *bool  `json:"sameModelRetry"`
			Exhausted      *bool  `json:"usageWindowExhausted"`
			MinDelayMS     *int64 `json:"minDelayMs"`
			DelayMS        *int64 `json:"delayMs"`
			Declined       *bool  `json:"declined"`
			LongWindow     *bool  `json:"longWindow"`
			Path           string `json:"path"`
			Reason         string `json:"reason"`
		}](t, v.Expect)
		if want.SameModelRetry != nil && same != *want.SameModelRetry {
			t.Errorf("same-model retry = %v, want %v (%s by %s)", same, *want.SameModelRetry, got.Reason, got.Rule)
		}
		if want.Exhausted != nil && (got.Reason == ReasonQuotaExhausted) != *want.Exhausted {
			t.Errorf("reason = %s, want exhausted %v", got.Reason, *want.Exhausted)
		}
		for _, ms := range []*int64{want.MinDelayMS, want.DelayMS} {
			if ms != nil && got.Floor.Wait.Milliseconds() != *ms {
				t.Errorf("floor = %v, want %d ms", got.Floor.Wait, *ms)
			}
		}
		if want.Declined != nil && same == *want.Declined {
			t.Errorf("same-model retry = %v, want declined %v", same, *want.Declined)
		}
		if want.LongWindow != nil && (got.Floor.Wait > maxRetryDelay) != *want.LongWindow {
			t.Errorf("floor %v above the cap, want %v", got.Floor.Wait, *want.LongWindow)
		}
		if want.Path != "" && (want.Path == "same_model_retry") != same {
			t.Errorf("same-model retry = %v (%s), want path %s", same, got.Reason, want.Path)
		}
		if want.Reason != "" && !agrees(want.Reason, got.Reason) {
			t.Errorf("reason = %s, want %s", got.Reason, want.Reason)
		}
	})
}

// P3: bucket resets count only for exhausted buckets of a 429, and less than
// anything explicit.
func TestVectorsQuotaResetHeaders(t *testing.T) {
	t.Parallel()
	runVectors(t, "quota_reset_headers", 7, nil, func(t *testing.T, v vector) {
		wantMillis(t, ModelFloor(decode[modelInput](t, v.Input).fault(t)), decode[struct {
			Want *int64 `json:"waitFloorMs"`
		}](t, v.Expect).Want)
	})
}

// P3: hints in the text.
func TestVectorsTextRetryHint(t *testing.T) {
	t.Parallel()
	runVectors(t, "text_retry_hint", 6, nil, func(t *testing.T, v vector) {
		wantMillis(t, ModelFloor(decode[modelInput](t, v.Input).fault(t)), decode[struct {
			Want *int64 `json:"retryAfterMs"`
		}](t, v.Expect).Want)
	})
}

func wantMillis(t *testing.T, got Floor, want *int64) {
	t.Helper()
	switch {
	case want == nil && got.Asked():
		t.Errorf("floor = %+v, want none", got)
	case want != nil && (!got.Asked() || got.Wait != time.Duration(*want)*time.Millisecond):
		t.Errorf("floor = %+v, want %d ms", got, *want)
	}
}

// P3: retry-after and retry-after-ms.
func TestVectorsProviderRetryAfter(t *testing.T) {
	t.Parallel()
	runVectors(t, "provider_retry_after", 8, nil, func(t *testing.T, v vector) {
		got := ModelFloor(decode[modelInput](t, v.Input).fault(t))
		switch want := decode[map[string]any](t, v.Expect)["seconds"].(type) {
		case nil:
			if got.Asked() {
				t.Errorf("floor = %+v, want none", got)
			}
		case string:
			if !got.Infinite {
				t.Errorf("floor = %+v, want infinite", got)
			}
		case float64:
			if math.Abs(got.Wait.Seconds()-want) > 1e-9 || got.Infinite {
				t.Errorf("floor = %+v, want %v s", got, want)
			}
		}
	})
}

// P3: the three forms of an HTTP date, strictly.
func TestVectorsHTTPDate(t *testing.T) {
	t.Parallel()
	runVectors(t, "http_date", 10, nil, func(t *testing.T, v vector) {
		in := decode[struct{ Value, Now string }](t, v.Input)
		now := time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC)
		if in.Now != "" {
			now, _ = time.Parse(time.RFC3339, in.Now)
		}
		want := decode[struct {
			Instant *time.Time
			Seconds *float64
			Year    int
		}](t, v.Expect)
		got, ok := ParseHTTPDate(in.Value, now)
		switch {
		case want.Year != 0:
			if !ok || got.Year() != want.Year {
				t.Errorf("%q = %v, %v, want the year %d", in.Value, got, ok, want.Year)
			}
		case want.Instant == nil:
			if ok {
				t.Errorf("%q = %v, want none", in.Value, got)
			}
		case !ok || !got.Equal(*want.Instant):
			t.Errorf("%q = %v, %v, want %v", in.Value, got, ok, *want.Instant)
		}
		if want.Seconds != nil && got.Sub(now).Seconds() != *want.Seconds {
			t.Errorf("%q is %v away, want %v s", in.Value, got.Sub(now), *want.Seconds)
		}
	})
}

// P4.11, P3: single faults of the ChatGPT-style SSE client.
func TestVectorsChatGPTSSE(t *testing.T) {
	t.Parallel()
	type sseError struct {
		Code, Message string
		Cause         *struct{ Code, Message string }
	}
	runVectors(t, "chatgpt_sse", 13, nil, func(t *testing.T, v vector) {
		in := decode[struct {
			modelInput
			Responses []int
			Error     *sseError
		}](t, v.Input)
		f := in.fault(t)
		if len(in.Responses) > 0 {
			f.Status = in.Responses[0]
		}
		if in.Error != nil {
			f.Code, f.Message = in.Error.Code, in.Error.Message
			if in.Error.Cause != nil {
				f.Causes = []Fault{{Code: in.Error.Cause.Code, Message: in.Error.Cause.Message}}
			}
		}
		got := JudgeModel(f)
		want := decode[struct {
			Calls   int
			Retried *bool
			DelayMS *int64 `json:"delayMs"`
		}](t, v.Expect)
		if want.Calls == 1 && got.RetrySame {
			t.Errorf("retried, want a single call (%s)", got.Reason)
		}
		if want.Retried != nil && got.RetrySame != *want.Retried {
			t.Errorf("retried = %v, want %v (%s)", got.RetrySame, *want.Retried, got.Reason)
		}
		if strings.HasPrefix(v.ID, "tls-") && got.Reason != ReasonTLS {
			t.Errorf("reason = %s, want tls_certificate", got.Reason)
		}
		if want.DelayMS != nil {
			wantMillis(t, got.Floor, want.DelayMS)
		}
	})
}

// P7: the wait guard for client libraries.
func TestVectorsSDKRetryCap(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)
	later := now.Add(2 * time.Minute)
	spelled := map[string]string{
		"IMF-fixdate now+120s": later.Format(http.TimeFormat),
		"RFC 850 now+120s":     later.Format("Monday, 02-Jan-06 15:04:05 GMT"),
		"asctime now+120s":     later.Format(time.ANSIC),
		"invalid asctime":      "Sun Feb 31 00:00:00 2027",
	}
	runVectors(t, "sdk_retry_cap", 19, nil, func(t *testing.T, v vector) {
		in := decode[modelInput](t, v.Input)
		f := in.fault(t)
		if date, ok := spelled[f.Header.Get("Retry-After")]; ok {
			f.Header.Set("Retry-After", date)
		}
		want := decode[struct {
			Inject bool `json:"injectShouldRetryFalse"`
		}](t, v.Expect)
		if got := SDKWaitGuard(in.Status, f.Header, in.Body, in.Env, now); got != want.Inject {
			t.Errorf("guard = %v, want %v", got, want.Inject)
		}
	})
}

// P4.13: failures that blame no auth profile.
func TestVectorsProfilePenalty(t *testing.T) {
	t.Parallel()
	runVectors(t, "profile_penalty", 5, map[string]string{
		"local-policy":               "no policy profile has a local policy",
		"local-transient-overloaded": "no policy profile has a local policy",
	}, func(t *testing.T, v vector) {
		in := decode[struct{ Reason string }](t, v.Input)
		if in.Reason == "no_error_details" {
			in.Reason = string(ReasonUnclassified)
		}
		want := decode[struct {
			Penalty bool `json:"sharedProfilePenalty"`
		}](t, v.Expect)
		if got := DispositionOf(Reason(in.Reason)).Blames != BlameNothing; got != want.Penalty {
			t.Errorf("%s: blames = %v, want %v", in.Reason, got, want.Penalty)
		}
	})
}
