package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/policies"
)

// M3.6: the order in which the pool is walked depends on the reason.
func TestRecoveryWalk(t *testing.T) {
	t.Parallel()
	tests := []struct {
		profile string
		reason  policies.Reason
		want    []int
	}{
		{"default", policies.ReasonRateLimit, []int{0, 1, 2, 3, 4}},
		{"default", policies.ReasonOverloaded, []int{0, 2, 3, 4, 1}}, // the model is overloaded, whoever asks
		{"default", policies.ReasonServerError, []int{0, 1, 3, 4}},
		{"default", policies.ReasonTimeout, []int{0, 1, 3, 4}},
		{"default", policies.ReasonEmptyResponse, []int{0, 1, 3, 4}},
		{"default", policies.ReasonBilling, []int{0, 1, 3, 4}},
		{"default", policies.ReasonAuth, []int{0, 1, 3, 4}},
		{"default", policies.ReasonAuthPermanent, []int{0, 1, 3, 4}},
		{"default", policies.ReasonPermission, []int{0, 1, 3, 4}},
		{"default", policies.ReasonQuotaExhausted, []int{0, 1, 3, 4}},
		{"default", policies.ReasonSessionExpired, []int{0, 1, 3, 4}},
		{"default", policies.ReasonModelNotFound, []int{0, 3, 4}},
		{"default", policies.ReasonUnclassified, []int{0, 3}},
		{"default", policies.ReasonRefusal, []int{0}},
		{"default", policies.ReasonFormat, []int{0}},
		{"default", policies.ReasonTLS, []int{0}},
		{"default", policies.ReasonContextOverflow, []int{0}},
		{"default", policies.ReasonCancelled, []int{0}},
		{"default", policies.ReasonDeadline, []int{0}},
		{"default", policies.ReasonWorkerLost, []int{0}},
		{"default", policies.Reason("no_such_reason"), []int{0, 3}},
		{"openclaw-classic", policies.ReasonRateLimit, []int{0, 1, 2, 3, 4}},
		{"openclaw-classic", policies.ReasonTimeout, []int{0}},
		{"simple", policies.ReasonFormat, []int{0, 3, 4}},
		{"simple", policies.ReasonRefusal, []int{0, 2, 3, 4}},
		{"simple", policies.ReasonCancelled, []int{0}},
	}
	for _, tt := range tests {
		t.Run(tt.profile+"/"+string(tt.reason), func(t *testing.T) {
			t.Parallel()
			got := newRecoveryRun(t, tt.profile, recoveryPool).walk(tt.reason)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("targets (-want +got):\n%s", diff)
			}
		})
	}
}

// M3.6: what one target taught the call holds for the others: a dead auth
// profile is not tried on a sibling, a missing model not with another profile.
func TestRecoveryWalkRemembers(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPool)
	run.fail(policies.ReasonBilling)
	run.retries(policies.ReasonRateLimit)
	if run.last.Target != 3 {
		t.Errorf("went to %d, want 3: the sibling's auth profile is out of credit", run.last.Target)
	}
	run = newRecoveryRun(t, "default", recoveryPool)
	run.fail(policies.ReasonModelNotFound)
	if got := run.walk(policies.ReasonServerError); !cmp.Equal(got, []int{3, 4}) {
		t.Errorf("walked %v, want [3 4]", got)
	}
}

// M3.6, P6: a cooled candidate is skipped, and the walk goes on.
func TestRecoverySkipsCooled(t *testing.T) {
	t.Parallel()
	cooled := func(e *policies.Event) {
		e.Health = make([]policies.Availability, len(recoveryPool))
		e.Health[1].Until = e.Now.Add(time.Hour)
		e.Health[3].Until = e.Now // over
	}
	got := newRecoveryRun(t, "default", recoveryPool).walk(policies.ReasonBilling, cooled)
	if diff := cmp.Diff([]int{0, 3, 4}, got); diff != "" {
		t.Error(diff)
	}
}

// P6: a model call starts at the first candidate that is ready; if all are
// saturated, the earliest release waits; a block of hours is not waited for.
func TestRecoveryStartsWhereHealthy(t *testing.T) {
	t.Parallel()
	health := func(hs ...policies.Availability) func(*policies.Event) {
		return func(e *policies.Event) { e.Health = hs }
	}
	in := func(d time.Duration) time.Time { return recoveryEpoch.Add(d) }
	tests := []struct {
		name   string
		health []policies.Availability
		target int
		delay  time.Duration
		stop   bool
		rule   string
	}{
		{"ready", nil, 0, 0, false, "M3.8/start"},
		{"the first is cooled", []policies.Availability{{Until: in(time.Hour)}, {}}, 1, 0, false, "P6/cooled_down"},
		{"all saturated", []policies.Availability{{Until: in(3 * time.Minute), Saturated: true}, {Until: in(2 * time.Minute), Saturated: true}}, 1, 2 * time.Minute, false, "P6/all_cooled_down"},
		{"all throttled", []policies.Availability{{Until: in(40 * time.Second), Reason: policies.ReasonRateLimit}, {Until: in(time.Hour), Reason: policies.ReasonRateLimit}}, 0, 40 * time.Second, false, "P6/all_cooled_down"},
		{"all blocked", []policies.Availability{{Until: in(2 * time.Hour), Reason: policies.ReasonBilling}, {Until: in(time.Hour), Reason: policies.ReasonAuth}}, 0, 0, true, "P6/all_cooled_down"},
	}
	for _, tt := range tests {
		run := newRecoveryRun(t, "default", recoveryPair)
		run.r = policies.NewRecovery(run.r.Options)
		d := run.start(health(tt.health...))
		if (d.Action == policies.ActionStop) != tt.stop || d.Target != tt.target || d.Delay != tt.delay || d.Rule != tt.rule {
			t.Errorf("%s: %+v", tt.name, d)
		}
		if tt.stop && !d.ResetAt.Equal(in(time.Hour)) {
			t.Errorf("%s: reset at %s", tt.name, d.ResetAt)
		}
	}
}

// M3.6: fast-failover makes two short retries while another candidate is ready;
// the last candidate has its whole budget.
func TestRecoverySwitchAfter(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "fast-failover", recoveryPair)
	if got := len(run.retries(policies.ReasonRateLimit)); got != 2 {
		t.Errorf("%d retries before the switch, want 2", got)
	}
	wantRule(t, run.last, "M3.6/switch_after")
	if got := len(run.retries(policies.ReasonRateLimit)); got != 15 {
		t.Errorf("%d retries on the last candidate, want 15", got)
	}
	run = newRecoveryRun(t, "fast-failover", recoveryPair)
	wantMove(t, run.fail(policies.ReasonRateLimit, recoveryFloor(20*time.Second)), 1, "M3.6/switch_after")
}

// P6: exhausted tokens per minute allow two same-model retries inside 15 s while
// a replay-safe fallback is ready.
func TestRecoveryTokensPerMinute(t *testing.T) {
	t.Parallel()
	tpm := func(e *policies.Event) { e.TPM = true }
	run := newRecoveryRun(t, "default", recoveryPair)
	if got := len(run.retries(policies.ReasonRateLimit, tpm)); got != 2 {
		t.Errorf("%d retries, want 2", got)
	}
	wantMove(t, run.last, 1, "P6/tokens_per_minute")

	run = newRecoveryRun(t, "default", recoveryPair)
	wantMove(t, run.fail(policies.ReasonRateLimit, tpm, recoveryFloor(15*time.Second+time.Millisecond)), 1, "P6/tokens_per_minute")
	run = newRecoveryRun(t, "default", recoveryPair)
	wantRetry(t, run.fail(policies.ReasonRateLimit, tpm, recoveryFloor(15*time.Second)), 15*time.Second, "P1.6/rate_limit")
	run = newRecoveryRun(t, "default", recoveryPair)
	wantRetry(t, run.fail(policies.ReasonRateLimit, tpm, recoveryUnsafe, recoveryFloor(20*time.Second)), 20*time.Second, "P1.6/rate_limit")
}

// M3.7: two stream failures in a row make the next attempt non-streaming, on
// that candidate only; claude-code leaves after three overloads in a row.
func TestRecoveryNonStreaming(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPair)
	if d := run.fail(policies.ReasonStreamInterrupted); !d.Streaming {
		t.Error("non-streaming after one stream failure")
	}
	if d := run.fail(policies.ReasonServerError); !d.Streaming {
		t.Error("non-streaming after a stream failure and something else")
	}
	run.fail(policies.ReasonMalformedStream)
	late := func(e *policies.Event) { e.Phase = policies.PhaseBody }
	if d := run.fail(policies.ReasonTimeout, late); d.Streaming {
		t.Error("still streaming after two stream failures in a row")
	}
	run.retries(policies.ReasonServerError)
	if run.last.Target != 1 || !run.last.Streaming {
		t.Errorf("the next candidate should stream: %+v", run.last)
	}

	early := func(e *policies.Event) { e.Phase = policies.PhaseConnect }
	run = newRecoveryRun(t, "default", recoverySolo)
	run.fail(policies.ReasonTimeout, early)
	if d := run.fail(policies.ReasonTimeout, early); !d.Streaming {
		t.Error("a timeout while connecting is no stream failure")
	}
	run = newRecoveryRun(t, "openclaw-classic", recoverySolo)
	run.fail(policies.ReasonStreamInterrupted)
	if d := run.fail(policies.ReasonStreamInterrupted); !d.Streaming {
		t.Error("openclaw-classic never leaves streams")
	}
}

// M3.7: three overloads in a row move on in claude-code, not in default.
func TestRecoveryMoveAfterOverloads(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "claude-code", recoveryPair)
	run.fail(policies.ReasonOverloaded)
	run.fail(policies.ReasonOverloaded)
	run.fail(policies.ReasonServerError)
	run.fail(policies.ReasonOverloaded)
	if d := run.fail(policies.ReasonOverloaded); d.Failover {
		t.Error("moved although the overloads were not in a row")
	}
	wantMove(t, run.fail(policies.ReasonOverloaded), 1, "M3.7/overloads")
	run = newRecoveryRun(t, "default", recoveryPair)
	for range 3 {
		if d := run.fail(policies.ReasonOverloaded); d.Failover {
			t.Error("default moved after overloads")
		}
	}
}

// M3.8: within a run the next model call goes on where the last was served; a
// new run starts from the requested model. The requested model may be visited
// again in a later call.
func TestRecoveryFallbackIsLocal(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPair)
	wantMove(t, run.fail(policies.ReasonBilling), 1, "P4.13/billing")
	run.succeed()
	if d := run.start(); d.Target != 1 || d.Failover {
		t.Errorf("the next model call: %+v", d)
	}
	wantMove(t, run.fail(policies.ReasonBilling), 0, "P4.13/billing")
	fresh := policies.NewRecovery(run.r.Options)
	if d := fresh.Next(policies.Event{Kind: policies.EventStart}); d.Target != 0 {
		t.Errorf("the next run: %+v", d)
	}
}
