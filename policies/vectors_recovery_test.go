package policies_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/policies"
)

type recoveryVector struct {
	ID     string         `json:"id"`
	Basis  string         `json:"basis"`
	Input  map[string]any `json:"input"`
	Expect map[string]any `json:"expect"`
}

// recoveryVectors runs the rows of an area that checks names. The others must
// be exactly those of leftOut, each with its reason, and none of them may be
// one that binds.
func recoveryVectors(t *testing.T, area string, checks map[string]func(*testing.T, recoveryVector), leftOut map[string]string, count int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "vectors", area+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []recoveryVector
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	checked, left := 0, map[string]string{}
	for _, row := range rows {
		check, ok := checks[row.ID]
		if !ok {
			left[row.ID] = leftOut[row.ID]
			if row.Basis == "test" && !strings.HasPrefix(row.ID, "genC-") {
				t.Errorf("%s: %s binds", area, row.ID)
			}
			continue
		}
		checked++
		t.Run(row.ID, func(t *testing.T) { check(t, row) })
	}
	if checked != len(checks) || checked != count {
		t.Errorf("%s: %d rows checked, %d checks written, want %d", area, checked, len(checks), count)
	}
	if diff := cmp.Diff(leftOut, left); diff != "" {
		t.Errorf("%s: rows left out (-named +found):\n%s", area, diff)
	}
	for id, why := range leftOut {
		if why == "" {
			t.Errorf("%s: %s is left out without a reason", area, id)
		}
	}
}

func (v recoveryVector) number(key string) float64 { n, _ := v.Input[key].(float64); return n }

func (v recoveryVector) reason() policies.Reason {
	s, _ := v.Input["reason"].(string)
	return policies.Reason(s)
}

// run is a Recovery on the profile the row is about, with a fallback if it
// names one.
func (v recoveryVector) run(t *testing.T, profile string, targets []policies.Target) *recoveryRun {
	t.Helper()
	return newRecoveryRun(t, profile, targets, func(o *policies.RecoveryOptions) {
		if n, ok := v.Input["maxRetries"].(float64); ok {
			retries := int(n)
			o.MaxRetries = &retries
		}
		if n, ok := v.Input["maxRetryDelayMs"].(float64); ok {
			o.Policy.MaxRetryDelay = time.Duration(n) * time.Millisecond
		}
	})
}

// event puts the row's floor, random number and replay safety into an event.
func (v recoveryVector) event(e *policies.Event) {
	if n, ok := v.Input["retryAfterMs"].(float64); ok {
		recoveryFloor(time.Duration(n) * time.Millisecond)(e)
	}
	if v.Input["retryAfter"] == "Infinity" {
		recoveryInfinite(e)
	}
	if n, ok := v.Input["random"].(float64); ok {
		e.Random = n
	}
	if safe, ok := v.Input["replaySafe"].(bool); ok {
		e.ReplaySafe = safe
	}
}

func recoveryMillis(waits []time.Duration) []any {
	out := make([]any, len(waits))
	for i, w := range waits {
		out[i] = float64(w.Milliseconds())
	}
	return out
}

// recoveryVectorAccepted checks "accepted" against the first failure.
func recoveryVectorAccepted(t *testing.T, v recoveryVector) {
	d := v.run(t, "default", recoveryPair).fail(v.reason(), v.event)
	accepted := d.Action == policies.ActionAttempt && !d.Failover
	if accepted != v.Expect["accepted"] {
		t.Errorf("accepted %t, want %v: %+v", accepted, v.Expect["accepted"], d)
	}
	if least, ok := v.Expect["minDelayMs"].(float64); ok && float64(d.Delay.Milliseconds()) < least {
		t.Errorf("delay %s, want at least %g ms", d.Delay, least)
	}
}

func recoveryVectorRetries(t *testing.T, v recoveryVector) {
	if got := float64(len(v.run(t, "default", recoverySolo).retries(v.reason()))); got != v.Expect["retries"] {
		t.Errorf("%g retries, want %v", got, v.Expect["retries"])
	}
}

// P4.3: an HTML body is judged by its status.
func recoveryVectorJudged(t *testing.T, v recoveryVector) {
	verdict := policies.Judge(&policies.Fault{
		Surface: policies.SurfaceModel, Status: int(v.number("status")),
		Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte("<html><title>cloudflare</title></html>"),
	})
	if string(verdict.Reason) != v.Expect["reason"] {
		t.Errorf("reason %s, want %v", verdict.Reason, v.Expect["reason"])
	}
}

// M3.1–M3.11, P5, P1.6, P1.7
func TestRecoveryVectorsModelRecovery(t *testing.T) {
	t.Parallel()
	checks := map[string]func(*testing.T, recoveryVector){
		// The stored source is openclaw-classic.
		"stored-source-rate-limit-ladder": func(t *testing.T, v recoveryVector) {
			waits := v.run(t, "openclaw-classic", recoverySolo).retries(v.reason(), v.event)
			if diff := cmp.Diff(v.Expect["delaysMs"], any(recoveryMillis(waits))); diff != "" {
				t.Error(diff)
			}
		},
		"other-ladder-window-stop": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoverySolo)
			waits := run.retries(v.reason(), v.event)
			if diff := cmp.Diff(v.Expect["acceptedDelaysMs"], any(recoveryMillis(waits))); diff != "" {
				t.Error(diff)
			}
			wantStop(t, run.last, "M3.2/window_spent")
		},
		"budget-3":                     recoveryVectorRetries,
		"budget-0":                     recoveryVectorRetries,
		"unrepresentable-header":       recoveryVectorAccepted,
		"nonretryable-billing":         recoveryVectorAccepted,
		"nonretryable-model_not_found": recoveryVectorAccepted,
		"nonretryable-session_expired": recoveryVectorAccepted,
		"nonretryable-tls_certificate": recoveryVectorAccepted,
		"retryable-rate_limit":         recoveryVectorAccepted,
		"retryable-timeout":            recoveryVectorAccepted,
		"retryable-output_limit":       recoveryVectorAccepted,
		"cap-equal-allowed":            recoveryVectorAccepted,
		"cap-replay-unsafe":            recoveryVectorAccepted,
		// The chunks are of the timers of one runtime; the wait is not.
		"30-day-floor-chunks": func(t *testing.T, v recoveryVector) {
			d := v.run(t, "default", recoverySolo).fail(v.reason(), v.event)
			wantRetry(t, d, 30*24*time.Hour, "P1.6/rate_limit")
		},
		"eight-mixed-then-refuse": func(t *testing.T, v recoveryVector) {
			mixed := []policies.Reason{policies.ReasonTimeout, policies.ReasonOverloaded, policies.ReasonServerError, policies.ReasonStreamInterrupted}
			run := v.run(t, "default", recoverySolo)
			run.r.Options.Policy.Transient.Window = 0
			var got []any
			for i := range v.Input["sequence"].([]any) {
				got = append(got, run.fail(mixed[i%len(mixed)]).Action == policies.ActionAttempt)
			}
			if diff := cmp.Diff(v.Expect["accepted"], any(got)); diff != "" {
				t.Error(diff)
			}
		},
		"rand1-first-delay": func(t *testing.T, v recoveryVector) {
			d := v.run(t, "default", recoverySolo).fail(v.reason(), v.event)
			if float64(d.Delay.Milliseconds()) != v.Expect["delayMs"] {
				t.Errorf("delay %s, want %v ms", d.Delay, v.Expect["delayMs"])
			}
		},
		"output-limit-once": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoverySolo)
			first := run.fail(policies.ReasonOutputLimit)
			run.succeed()
			run.start()
			second := run.fail(policies.ReasonOutputLimit)
			got := []any{first.Action == policies.ActionAttempt, nil, second.Action == policies.ActionAttempt}
			if diff := cmp.Diff(v.Expect["accepted"], any(got)); diff != "" {
				t.Error(diff)
			}
		},
		"rotation-once-then-failover": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "openclaw-classic", recoveryTargets("a/m#1", "a/m#2", "a/m#3", "b/m"))
			run.retries(v.reason())
			if run.last.Target != 1 {
				t.Errorf("first: target %d, want the next auth profile", run.last.Target)
			}
			run.retries(v.reason())
			if run.last.Target != 3 {
				t.Errorf("second: target %d, want the fallback", run.last.Target)
			}
			if got := run.r.State.RateLimitRotations; float64(got) != v.Expect["advanceProfileCalls"] {
				t.Errorf("%d rotations, want %v", got, v.Expect["advanceProfileCalls"])
			}
		},
		"account-switch-none-fallback": func(t *testing.T, v recoveryVector) {
			wantMove(t, v.run(t, "default", recoveryPair).fail(v.reason(), v.event), 1, "P5/floor_above_cap")
		},
		"cap-replay-safe": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoveryTargets("a/m#1", "a/m#2", "b/m"))
			if got := run.walk(v.reason(), v.event); !cmp.Equal(got, []int{0, 1, 2}) {
				t.Errorf("walked %v, want rotation, then fallback, then an error", got)
			}
		},
		"half-timeout-stop": func(t *testing.T, v recoveryVector) {
			run := newRecoveryRun(t, "default", recoveryPair, recoveryDeadline(time.Duration(v.number("runTimeoutMs"))*time.Millisecond))
			run.took = time.Duration(v.number("elapsedMs")) * time.Millisecond
			wantMove(t, run.fail(policies.ReasonServerError, v.event), 1, "M3.5/half_deadline")
		},
		"success-resets-all": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoverySolo)
			run.fail(policies.ReasonRateLimit)
			run.succeed()
			if o := run.r.State.Outages[0]; !o.FirstEnded.IsZero() || o.WindowUsed != 0 {
				t.Errorf("the window was not reset: %+v", o)
			}
			run.start()
			if d := run.fail(policies.ReasonRateLimit); float64(d.Attempt-1) != v.Expect["secondRateLimitAttempt"] {
				t.Errorf("failed attempt %d, want %v", d.Attempt-1, v.Expect["secondRateLimitAttempt"])
			}
		},
		"tool-activity-no-reset": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoverySolo)
			run.fail(policies.ReasonServerError)
			began := run.r.State.Outages[0].FirstEnded
			run.fail(policies.ReasonServerError, recoveryUnsafe) // a tool has run
			if o := run.r.State.Outages[0]; float64(o.Failures) != v.Expect["attemptCount"] || !o.FirstEnded.Equal(began) {
				t.Errorf("count or window began again: %+v", o)
			}
		},
		// P4.5: a 400 without a body is unclassified.
		"empty-400": func(t *testing.T, v recoveryVector) {
			if d := v.run(t, "default", recoveryPair).fail(policies.ReasonUnclassified); !d.Failover {
				t.Errorf("resubmitted: %+v", d)
			}
		},
		"http-502-html-live": recoveryVectorJudged,
		"http-504-html-live": recoveryVectorJudged,
		"retry-limit-server-error-fallback": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "default", recoveryPair)
			run.retries(v.reason())
			wantMove(t, run.last, 1, "M3.2/window_spent")
		},
		"retry-limit-timeout-error": func(t *testing.T, v recoveryVector) {
			run := v.run(t, "openclaw-classic", recoveryPair)
			run.retries(v.reason())
			wantStop(t, run.last, "M3.2/window_spent")
		},
	}
	const noSetting = "a setting that no policy profile has"
	recoveryVectors(t, "model_recovery", checks, map[string]string{
		"connection-retry-disabled-econnrefused": noSetting,
		"connection-retry-disabled-enotfound":    noSetting,
	}, 29)
}

// P6
func TestRecoveryVectorsAuthCooldown(t *testing.T) {
	t.Parallel()
	classic := recoveryPolicy(t, "openclaw-classic").Health
	now := recoveryEpoch
	after := func(h policies.Health, reason policies.Reason) policies.Health {
		return h.After(classic, policies.HealthFailure{Reason: reason, Started: true, Now: now})
	}
	ladder := func(t *testing.T, v recoveryVector) {
		got := classic.Cooldown(policies.ReasonTimeout, int(v.number("errorCount"))).Seconds()
		if got != v.Expect["cooldownSeconds"] {
			t.Errorf("%g s, want %v", got, v.Expect["cooldownSeconds"])
		}
	}
	billing := func(t *testing.T, v recoveryVector) {
		got := classic.Cooldown(v.reason(), int(v.number("count"))).Hours()
		if got != v.Expect["disabledHours"] {
			t.Errorf("%g h, want %v", got, v.Expect["disabledHours"])
		}
	}
	counts := func(h policies.Health) map[string]any {
		out := map[string]any{}
		for reason, n := range h.Counts {
			out[string(reason)] = float64(n)
		}
		return out
	}
	checks := map[string]func(*testing.T, recoveryVector){
		"genA-4": ladder, "genA-5": ladder,
		"genAB-billing-1": billing, "genAB-billing-2": billing,
		"rate-limit-count-survives-expiry": func(t *testing.T, v recoveryVector) {
			h := policies.Health{
				Until: now.Add(-time.Second), Reason: policies.ReasonRateLimit,
				Counts: map[policies.Reason]int{policies.ReasonRateLimit: 3},
			}
			h = after(h, policies.ReasonTimeout)
			if float64(h.Errors()) != v.Expect["errorCount"] {
				t.Errorf("%d errors, want %v", h.Errors(), v.Expect["errorCount"])
			}
			if diff := cmp.Diff(v.Expect["counts"], any(counts(h))); diff != "" {
				t.Error(diff)
			}
		},
		"counts-after-expiry": func(t *testing.T, v recoveryVector) {
			h := policies.Health{
				Until: now.Add(-time.Second), Reason: policies.ReasonTimeout,
				Counts: map[policies.Reason]int{policies.ReasonRateLimit: 3, policies.ReasonTimeout: 1},
			}
			if diff := cmp.Diff(v.Expect["counts"], any(counts(h.Expire(now)))); diff != "" {
				t.Error(diff)
			}
		},
		"active-cooldown-immutable": func(t *testing.T, v recoveryVector) {
			h := policies.Health{Until: now.Add(50 * time.Minute), Reason: policies.ReasonTimeout}
			if left := after(h, policies.ReasonTimeout).Until.Sub(now).Minutes(); left != v.Expect["cooldownMinutesLeft"] {
				t.Errorf("%g min left", left)
			}
		},
		"active-billing-immutable": func(t *testing.T, v recoveryVector) {
			h := policies.Health{Until: now.Add(20 * time.Hour), Reason: policies.ReasonBilling}
			if left := after(h, policies.ReasonBilling).Until.Sub(now).Hours(); left != v.Expect["disabledHoursLeft"] {
				t.Errorf("%g h left", left)
			}
		},
		"block-different-model-widens": func(t *testing.T, v recoveryVector) {
			h := policies.Health{Until: now.Add(time.Hour), Reason: policies.ReasonPermission, Model: "m1"}
			h = h.After(classic, policies.HealthFailure{Reason: policies.ReasonPermission, Model: "m2", Now: now})
			if h.Ready("m3", now) {
				t.Error("the block still names one model")
			}
		},
		"invalid-clock-ignored": func(t *testing.T, v recoveryVector) {
			h := policies.Health{Until: now, Reason: policies.ReasonTimeout, Counts: map[policies.Reason]int{policies.ReasonTimeout: 1}}
			got := h.After(classic, policies.HealthFailure{Reason: policies.ReasonTimeout, Started: true})
			if diff := cmp.Diff(h, got); diff != "" {
				t.Error(diff)
			}
		},
	}
	left := map[string]string{}
	for _, id := range []string{
		"rate-limit-01", "rate-limit-02", "rate-limit-03", "rate-limit-08", "rate-limit-13", "rate-limit-14", "transient-1", "transient-2",
		"billing-1", "billing-2", "billing-3", "billing-5", "billing-6", "billing-8",
		"auth-permanent-1", "auth-permanent-3", "auth-permanent-4",
	} {
		left["genC-"+id] = "generation C, which no policy profile carries"
	}
	left["genB-1"] = "generation B, which no policy profile carries"
	left["genB-3"] = "generation B, which no policy profile carries"
	recoveryVectors(t, "auth_cooldown", checks, left, 10)
}

// P6: a half-open probe at most every 30 s.
func TestRecoveryVectorsCooldownProbe(t *testing.T) {
	t.Parallel()
	p := recoveryPolicy(t, "openclaw-classic").Health
	now := recoveryEpoch
	probe := func(t *testing.T, v recoveryVector) {
		h := policies.Health{Reason: policies.ReasonRateLimit, Until: now.Add(time.Hour)}
		if r := v.reason(); r != "" {
			h.Reason = r
		}
		if ms, ok := v.Input["msSinceLastProbe"].(float64); ok {
			h.LastProbe = now.Add(-time.Duration(ms) * time.Millisecond)
		}
		if ms, ok := v.Input["cooldownExpiresInMs"].(float64); ok {
			h.Until = now.Add(time.Duration(ms) * time.Millisecond)
		}
		want := v.Expect["probe"] == true || v.Expect["action"] == "attempt"
		if got := h.Ready("", now) || h.Probe(p, now); got != want {
			t.Errorf("probe %t, want %t", got, want)
		}
	}
	recoveryVectors(t, "cooldown_probe", map[string]func(*testing.T, recoveryVector){
		"throttle-closed": probe, "throttle-open-margin": probe, "already-expired": probe,
		"billing-single-provider": probe, "auth-skips": probe,
		"fallback-rate-limit-attempt": probe, "fallback-overloaded-attempt": probe,
		"context-overflow-rethrown": func(t *testing.T, v recoveryVector) {
			wantStop(t, newRecoveryRun(t, "default", recoveryPair).fail(policies.ReasonContextOverflow), "P4.13/context_overflow")
		},
	}, map[string]string{
		"fallback-timeout-skip":          "read from source; the place of a candidate does not decide about its probe (P6)",
		"second-probe-same-provider-run": "read from source; probes are bounded by time, not per run (P6)",
	}, 8)
}

// P4.13, P6: what is blamed on no one.
func TestRecoveryVectorsProfilePenalty(t *testing.T) {
	t.Parallel()
	unblamed := func(t *testing.T, v recoveryVector) {
		reason := v.reason()
		if reason == "no_error_details" {
			reason = policies.ReasonUnclassified
		}
		for _, profile := range []string{"default", "openclaw-classic"} {
			f := policies.HealthFailure{Reason: reason, Started: v.Input["providerStarted"] == true, Now: recoveryEpoch}
			if blamed := recoveryPolicy(t, profile).Health.Blames(f); blamed != policies.BlameNothing {
				t.Errorf("%s blames %s", profile, blamed)
			}
		}
	}
	const local = "a policy for local providers that the spec does not have"
	recoveryVectors(t, "profile_penalty", map[string]func(*testing.T, recoveryVector){
		"server-error": unblamed, "context-overflow": unblamed, "format": unblamed, "no-details": unblamed,
		"timeout-provider-not-started": unblamed,
	}, map[string]string{"local-policy": local, "local-transient-overloaded": local}, 5)
}
