package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// M3.10: nothing is continued while something of the latest batch is open.
func TestRecoveryUnsettledTools(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]policies.Unsettled{
		"running": {Running: 1}, "no result": {WithoutResult: 1}, "approval": {Approvals: 1},
		"asynchronous": {Asynchronous: 1}, "stopped by a tool": {StoppedByATool: true},
	} {
		open := func(e *policies.Event) { e.Tools = u }
		for _, reason := range []policies.Reason{policies.ReasonTimeout, policies.ReasonOutputLimit} {
			if d := newRecoveryRun(t, "default", recoveryPair).fail(reason, open); d.Rule != "M3.10/unsettled_tools" || d.Action != policies.ActionStop {
				t.Errorf("%s, %s: %+v", name, reason, d)
			}
		}
	}
	wantRetry(t, newRecoveryRun(t, "default", recoveryPair).fail(policies.ReasonTimeout), time.Second, "P1.7/transient")
}

// M3.11: an output limit is continued once per run, on the same target, from
// the count but outside the window.
func TestRecoveryOutputLimit(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPair)
	run.took = 10 * time.Minute
	wantRetry(t, run.fail(policies.ReasonOutputLimit), 0, "M3.11/output_limit")
	run.took = 0
	if d := run.fail(policies.ReasonServerError); d.Attempt != 3 || d.Target != 0 {
		t.Errorf("it shares the count and not the window: %+v", d)
	}
	run.succeed()
	run.start()
	wantStop(t, run.fail(policies.ReasonOutputLimit), "M3.11/once_per_run")

	run = newRecoveryRun(t, "default", recoverySolo)
	run.fail(policies.ReasonServerError)
	run.took = 10 * time.Minute
	run.fail(policies.ReasonOutputLimit)
	run.took = 0
	wantRetry(t, run.fail(policies.ReasonServerError), 4*time.Second, "P1.7/transient")

	wantStop(t, newRecoveryRun(t, "default", recoveryPair, recoveryMaxRetries(0)).fail(policies.ReasonOutputLimit), "M3.4/max_retries")
}

// M3.12: one notice while a retry waits; one summary at the end.
func TestRecoveryNoticeAndSummary(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryTargets("anthropic/claude", "openai/gpt"))
	if n := run.r.Notice(run.last); n != "" {
		t.Errorf("notice before any failure: %q", n)
	}
	d := run.fail(policies.ReasonRateLimit, recoveryFloor(7500*time.Millisecond))
	if got, want := run.r.Notice(d), "retrying anthropic/claude… 2 of 16, next in 8 s"; got != want {
		t.Errorf("notice %q, want %q", got, want)
	}
	run.fail(policies.ReasonQuotaExhausted, recoveryFloor(time.Hour))
	d = run.fail(policies.ReasonFormat)
	want := "no completed response after 3 tries over 8 s on anthropic/claude, openai/gpt; next reset at 2026-03-01T13:00:07Z"
	if got := run.r.Summary(d, run.now); got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
}

// M3.17, P4.13: a lost worker is continued uncharged, at most three times in a
// row, and even where retries are disabled.
func TestRecoveryWorkerLost(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPair, recoveryMaxRetries(0))
	for range 3 {
		d := run.fail(policies.ReasonWorkerLost)
		wantRetry(t, d, 0, "M3.17/worker_lost")
		if d.Attempt != 1 {
			t.Errorf("charged: %+v", d)
		}
	}
	wantStop(t, run.fail(policies.ReasonWorkerLost), "M3.17/worker_lost")

	run = newRecoveryRun(t, "default", recoverySolo)
	for range 3 {
		run.fail(policies.ReasonWorkerLost)
	}
	run.fail(policies.ReasonServerError)
	wantRetry(t, run.fail(policies.ReasonWorkerLost), 0, "M3.17/worker_lost")
}

// P4.13: auth and session_expired are tried once more after a refresh, where
// the credential can be refreshed.
func TestRecoveryRefresh(t *testing.T) {
	t.Parallel()
	targets := recoveryTargets("a/m", "b/m")
	targets[0].Refreshable = true
	for _, reason := range []policies.Reason{policies.ReasonAuth, policies.ReasonSessionExpired} {
		run := newRecoveryRun(t, "default", targets)
		d := run.fail(reason)
		wantRetry(t, d, 0, "P4.13/refresh")
		if !d.Refresh {
			t.Error("no refresh asked for")
		}
		wantMove(t, run.fail(reason), 1, "P4.13/"+string(reason))
		wantStop(t, run.fail(reason), "P4.13/"+string(reason))
	}
	wantMove(t, newRecoveryRun(t, "default", targets, recoveryMaxRetries(0)).fail(policies.ReasonAuth), 1, "P4.13/auth")
}

// P4.13: an overflow goes only to a candidate with a larger window.
func TestRecoveryOverflow(t *testing.T) {
	t.Parallel()
	targets := recoveryTargets("a/m", "b/small", "c/unknown", "a/large~")
	targets[0].ContextWindow, targets[1].ContextWindow, targets[3].ContextWindow = 100, 100, 200
	for _, reason := range []policies.Reason{policies.ReasonContextOverflow, policies.ReasonRequestTooLarge} {
		if got := newRecoveryRun(t, "default", targets).walk(reason); !cmp.Equal(got, []int{0, 3}) {
			t.Errorf("%s: walked %v, want [0 3]", reason, got)
		}
	}
	// The simple profiles also try a window nobody stated, after the larger ones.
	if got := newRecoveryRun(t, "simple", targets).walk(policies.ReasonContextOverflow); !cmp.Equal(got, []int{0, 3, 2}) {
		t.Errorf("simple walked %v, want [0 3 2]", got)
	}
}

// P4.13: a refusal moves only with consent, same vendor first; an unclassified
// failure moves once, if nothing can be doubled.
func TestRecoveryRefusalAndUnclassified(t *testing.T) {
	t.Parallel()
	consent := func(o *policies.RecoveryOptions) { o.Policy.RefusalFailover = true }
	targets := recoveryTargets("a/m", "b/m", "a/other")
	if got := newRecoveryRun(t, "default", targets, consent).walk(policies.ReasonRefusal); !cmp.Equal(got, []int{0, 2, 1}) {
		t.Errorf("walked %v, want [0 2 1]", got)
	}
	wantStop(t, newRecoveryRun(t, "default", targets).fail(policies.ReasonUnclassified, recoveryUnsafe), "P4.13/unclassified")
}

// P5: a rate-limit floor above the cap rotates, fails over, else surfaces with
// the reset time; an attempt that is not replay-safe honours it.
func TestRecoveryFloorAboveCap(t *testing.T) {
	t.Parallel()
	long := recoveryFloor(61 * time.Second)
	if got := newRecoveryRun(t, "default", recoveryPool).walk(policies.ReasonRateLimit, long); !cmp.Equal(got, []int{0, 1, 2, 3, 4}) {
		t.Errorf("walked %v", got)
	}
	run := newRecoveryRun(t, "default", recoverySolo)
	d := run.fail(policies.ReasonRateLimit, long)
	wantStop(t, d, "P5/floor_above_cap")
	if want := run.now.Add(61 * time.Second); !d.ResetAt.Equal(want) {
		t.Errorf("reset at %s, want %s", d.ResetAt, want)
	}
	for _, targets := range [][]policies.Target{recoverySolo, recoveryPair} {
		run := newRecoveryRun(t, "default", targets)
		wantRetry(t, run.fail(policies.ReasonRateLimit, long, recoveryUnsafe), 61*time.Second, "P1.6/rate_limit")
	}
	run = newRecoveryRun(t, "default", recoveryPair)
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(60*time.Second)), 60*time.Second, "P1.6/rate_limit")
	off := func(o *policies.RecoveryOptions) { o.Policy.MaxRetryDelay = 0 }
	run = newRecoveryRun(t, "default", recoveryPair, off)
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(2*time.Hour)), 2*time.Hour, "P1.6/rate_limit")
}

// P5, openclaw-classic: with no fallback the floor is honoured, with one it is not.
func TestRecoveryFloorAboveCapClassic(t *testing.T) {
	t.Parallel()
	long := recoveryFloor(10 * time.Minute)
	run := newRecoveryRun(t, "openclaw-classic", recoverySolo)
	wantRetry(t, run.fail(policies.ReasonRateLimit, long), 10*time.Minute, "P1.6/rate_limit")
	run = newRecoveryRun(t, "openclaw-classic", recoveryTargets("a/m#1", "a/m#2"))
	wantMove(t, run.fail(policies.ReasonRateLimit, long), 1, "P5/floor_above_cap")
	wantRetry(t, run.fail(policies.ReasonRateLimit, long), 10*time.Minute, "P1.6/rate_limit")
	run = newRecoveryRun(t, "openclaw-classic", recoveryPair)
	wantMove(t, run.fail(policies.ReasonRateLimit, long), 1, "P5/floor_above_cap")
	wantStop(t, run.fail(policies.ReasonRateLimit, long), "P5/floor_above_cap")
}

// P3: no wait is scheduled for an infinite floor; the failure fails over.
func TestRecoveryInfiniteFloor(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles.Names() {
		for _, safe := range []bool{true, false} {
			with := func(e *policies.Event) { recoveryInfinite(e); e.ReplaySafe = safe }
			run := newRecoveryRun(t, profile, recoveryPair)
			wantMove(t, run.fail(policies.ReasonRateLimit, with), 1, "P3/infinite_floor")
			d := run.fail(policies.ReasonRateLimit, with)
			wantStop(t, d, "P3/infinite_floor")
			if !d.ResetAt.IsZero() {
				t.Errorf("%s: an infinite floor has no reset time: %s", profile, d.ResetAt)
			}
		}
	}
}

// P2: a floor is never undercut, not by a fraction of a millisecond, and a wait
// that passes the deadline is not started.
func TestRecoveryFloorAndDeadline(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoverySolo)
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(5*time.Second+time.Microsecond)), 5001*time.Millisecond, "P1.6/rate_limit")

	run = newRecoveryRun(t, "default", recoverySolo, recoveryDeadline(20*time.Second))
	d := run.fail(policies.ReasonRateLimit, recoveryFloor(20*time.Second))
	wantStop(t, d, "P2/deadline")
	if want := recoveryEpoch.Add(20 * time.Second); !d.ResetAt.Equal(want) {
		t.Errorf("reset at %s, want %s", d.ResetAt, want)
	}
	run = newRecoveryRun(t, "default", recoverySolo, recoveryDeadline(20*time.Second))
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(19*time.Second)), 19*time.Second, "P1.6/rate_limit")
	run = newRecoveryRun(t, "default", recoveryPair, recoveryDeadline(20*time.Second))
	run.took = 20 * time.Second
	wantStop(t, run.fail(policies.ReasonBilling), "P2/deadline")
}

// simple: respect_retry_after and its cap; permanent errors fail over, else
// surface.
func TestRecoverySimple(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "simple", recoveryPair)
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(time.Minute)), time.Minute, "simple/retry")
	wantMove(t, run.fail(policies.ReasonRateLimit, recoveryFloor(61*time.Second)), 1, "simple/retry_after_cap")
	wantStop(t, run.fail(policies.ReasonFormat), "simple/permanent")

	deaf := func(o *policies.RecoveryOptions) {
		s := *o.Policy.Simple
		s.RespectRetryAfter = false
		o.Policy.Simple = &s
	}
	run = newRecoveryRun(t, "simple", recoveryPair, deaf)
	wantRetry(t, run.fail(policies.ReasonRateLimit, recoveryFloor(500*time.Millisecond)), 750*time.Millisecond, "simple/retry")
	wantMove(t, run.fail(policies.ReasonRateLimit, recoveryFloor(10*time.Second)), 1, "simple/retry_after_not_respected")

	strict := func(o *policies.RecoveryOptions) {
		s := *o.Policy.Simple
		s.FailoverPermanent = false
		o.Policy.Simple = &s
	}
	wantStop(t, newRecoveryRun(t, "simple", recoveryPair, strict).fail(policies.ReasonAuth), "simple/permanent")
}

// P4.13: the controller does on a first failure what the table says.
func TestRecoveryFollowsDispositions(t *testing.T) {
	t.Parallel()
	targets := recoveryTargets("a/m", "b/m")
	targets[0].ContextWindow, targets[1].ContextWindow = 100, 200
	targets[0].Refreshable = true
	for _, reason := range recoveryReasons {
		d := newRecoveryRun(t, "default", targets).fail(reason)
		row := policies.DispositionOf(reason)
		retries := row.Retry != policies.RetryNever
		moves := !retries && row.Failover != policies.FailoverNever && row.Failover != policies.FailoverOptIn
		if got := d.Action == policies.ActionAttempt && !d.Failover; got != retries {
			t.Errorf("%s: retried %t, want %t", reason, got, retries)
		}
		if d.Failover != moves {
			t.Errorf("%s: moved %t, want %t", reason, d.Failover, moves)
		}
	}
}

// A Recovery without targets stops instead of failing.
func TestRecoveryWithoutTargets(t *testing.T) {
	t.Parallel()
	r := policies.NewRecovery(policies.RecoveryOptions{})
	wantStop(t, r.Next(policies.Event{Kind: policies.EventStart}), "M3.3/no_candidate")
}
