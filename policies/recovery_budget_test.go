package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/policies"
)

// M3.1, P1.6, P1.7: the waits of a whole outage, at the middle of the jitter.
func TestRecoveryLadders(t *testing.T) {
	t.Parallel()
	tests := []struct {
		profile string
		reason  policies.Reason
		want    []time.Duration
	}{
		{"default", policies.ReasonRateLimit, recoverySeconds(1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60, 60, 60, 60, 60)},
		{"default", policies.ReasonOverloaded, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonServerError, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonTimeout, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonStreamInterrupted, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonMalformedStream, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonDegenerateOutput, recoverySeconds(1, 2, 4, 8, 16, 30)},
		{"default", policies.ReasonEmptyResponse, recoverySeconds(1, 2)}, // P4.13: twice
		{"openclaw-classic", policies.ReasonRateLimit, recoverySeconds(1, 2, 4, 8, 16, 30, 30, 30, 30)},
		{"claude-code", policies.ReasonServerError, recoverySeconds(0.563, 1.125, 2.25, 4.5, 9, 18, 32, 32, 32, 32)},
		{"simple", policies.ReasonServerError, recoverySeconds(0.75, 1.5, 3)},
		{"simple-aggressive", policies.ReasonServerError, recoverySeconds(0.375, 0.75, 1.5, 3, 6)},
		{"simple-fast-fail", policies.ReasonServerError, recoverySeconds(0.75)},
		{"simple-none", policies.ReasonServerError, nil},
	}
	for _, tt := range tests {
		t.Run(tt.profile+"/"+string(tt.reason), func(t *testing.T) {
			t.Parallel()
			got := newRecoveryRun(t, tt.profile, recoverySolo).retries(tt.reason)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}

// M3.1: a completed response resets count, backoff, window and guard; in
// openclaw-classic the window, never the count.
func TestRecoverySuccessResets(t *testing.T) {
	t.Parallel()
	for profile, want := range map[string]policies.Decision{
		"default":          {Delay: time.Second, Attempt: 2, Of: 16},
		"openclaw-classic": {Delay: 2 * time.Second, Attempt: 3, Of: 10},
	} {
		run := newRecoveryRun(t, profile, recoverySolo)
		run.fail(policies.ReasonRateLimit)
		wantStop(t, run.succeed(), "M3.1/completed")
		if run.r.State.Attempts != 0 {
			t.Errorf("%s: the guard still counts %d attempts", profile, run.r.State.Attempts)
		}
		run.start()
		got := run.fail(policies.ReasonRateLimit)
		if got.Delay != want.Delay || got.Attempt != want.Attempt || got.Of != want.Of {
			t.Errorf("%s: got %s, %d of %d; want %s, %d of %d", profile, got.Delay, got.Attempt, got.Of, want.Delay, want.Attempt, want.Of)
		}
	}
}

// M3.1: classic gives back the window although the count stays.
func TestRecoveryClassicSuccessResetsWindow(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "openclaw-classic", recoverySolo)
	for range 6 {
		run.fail(policies.ReasonServerError)
	}
	run.succeed()
	run.start()
	wantRetry(t, run.fail(policies.ReasonServerError), 30*time.Second, "P1.7/transient")
}

// M3.1: the outer guard stops after 128 attempts without a completed response,
// here spread over model calls that stop by themselves.
func TestRecoveryGuard(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoverySolo)
	for range 127 {
		wantStop(t, run.fail(policies.ReasonFormat), "P4.13/format")
		if d := run.start(); d.Action != policies.ActionAttempt {
			t.Fatalf("refused early: %+v", d)
		}
	}
	run.fail(policies.ReasonFormat)
	wantStop(t, run.start(), "M3.1/guard")
}

// M3.2: once an outage saw a rate limit, its total follows that budget, whatever
// comes later; and the window no longer counts.
func TestRecoveryRateLimitTakesOver(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoverySolo)
	for range 3 {
		if d := run.fail(policies.ReasonServerError); d.Of != 9 {
			t.Fatalf("before: of %d, want 9", d.Of)
		}
	}
	for n := 5; n <= 16; n++ {
		reason := policies.ReasonRateLimit
		if n%2 == 0 {
			reason = policies.ReasonServerError
		}
		if d := run.fail(reason); d.Action != policies.ActionAttempt || d.Attempt != n || d.Of != 16 {
			t.Fatalf("attempt %d: %+v", n, d)
		}
	}
	wantStop(t, run.fail(policies.ReasonServerError), "M3.3/budget_spent")
}

// M3.2: the window counts waits and failing attempts, of a timeout only its
// wait, and starts when the first failure ends.
func TestRecoveryWindow(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		reason policies.Reason
		took   time.Duration
		want   int
	}{
		{"waits alone: 1+2+4+8+16+30, then 30 does not fit", policies.ReasonServerError, 0, 6},
		{"attempts of 20 s count, but for the first: 1+20+2+20+4+20+8 fits, 16 more does not", policies.ReasonServerError, 20 * time.Second, 4},
		{"a timeout counts only its wait", policies.ReasonTimeout, 20 * time.Second, 6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run := newRecoveryRun(t, "default", recoverySolo)
			run.took = tt.took
			if got := len(run.retries(tt.reason)); got != tt.want {
				t.Errorf("%d retries, want %d", got, tt.want)
			}
			wantStop(t, run.last, "M3.2/window_spent")
		})
	}
}

// M3.2: a wait that fills the window to the last millisecond is still admitted.
func TestRecoveryWindowEdge(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoverySolo)
	wantRetry(t, run.fail(policies.ReasonOverloaded, recoveryFloor(90*time.Second)), 90*time.Second, "P1.7/transient")
	run = newRecoveryRun(t, "default", recoverySolo)
	d := run.fail(policies.ReasonOverloaded, recoveryFloor(90*time.Second+time.Millisecond))
	wantStop(t, d, "M3.2/window_spent")
	if want := run.now.Add(90*time.Second + time.Millisecond); !d.ResetAt.Equal(want) {
		t.Errorf("reset at %s, want %s", d.ResetAt, want)
	}
}

// M3.3: budget spent, then the next auth profile, then the next candidate, then
// one stop; each has a budget of its own.
func TestRecoveryBudgetSpent(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryTargets("a/m#1", "a/m#2", "b/m"))
	for i := range 3 {
		if run.last.Target != i || run.last.Attempt != 1 {
			t.Fatalf("on target %d: %+v", i, run.last)
		}
		if got := len(run.retries(policies.ReasonRateLimit)); got != 15 {
			t.Errorf("target %d: %d retries, want 15", i, got)
		}
	}
	wantStop(t, run.last, "M3.3/budget_spent")
}

// M3.4: max_retries replaces the count, 0 disables, 16 attempts bound a
// rate-limit outage; the classic ceiling is its own 10.
func TestRecoveryMaxRetries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		profile string
		reason  policies.Reason
		max     int
		want    int
	}{
		{"default", policies.ReasonRateLimit, 0, 0},
		{"default", policies.ReasonRateLimit, 3, 3},
		{"default", policies.ReasonRateLimit, 100, 15},
		{"default", policies.ReasonTimeout, 2, 2},
		{"default", policies.ReasonEmptyResponse, 0, 0},
		{"openclaw-classic", policies.ReasonRateLimit, 12, 9},
		{"claude-code", policies.ReasonServerError, 40, 40},
		{"simple", policies.ReasonServerError, 0, 0},
		{"simple", policies.ReasonServerError, 5, 5},
		{"simple", policies.ReasonRateLimit, 99, 15},
	}
	for _, tt := range tests {
		run := newRecoveryRun(t, tt.profile, recoverySolo, recoveryMaxRetries(tt.max))
		if got := len(run.retries(tt.reason)); got != tt.want {
			t.Errorf("%s %s max %d: %d retries, want %d (%+v)", tt.profile, tt.reason, tt.max, got, tt.want, run.last)
		}
	}
}

// M3.4, M3.6: walking a pool is not a retry, so 0 retries still walks it.
func TestRecoveryNoRetriesStillWalks(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPool, recoveryMaxRetries(0))
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4}, run.walk(policies.ReasonRateLimit)); diff != "" {
		t.Error(diff)
	}
}

// M3.5: with a replay-safe fallback no retry is admitted once half of the
// deadline is spent.
func TestRecoveryHalfDeadline(t *testing.T) {
	t.Parallel()
	explicit := func(o *policies.RecoveryOptions) { o.ExplicitTimeout = true }
	tests := []struct {
		name    string
		targets []policies.Target
		took    time.Duration
		with    []func(*policies.RecoveryOptions)
		event   []func(*policies.Event)
		moves   bool
	}{
		{"half spent", recoveryPair, 5 * time.Minute, nil, nil, true},
		{"a millisecond less", recoveryPair, 5*time.Minute - time.Millisecond, nil, nil, false},
		{"explicit max_retries", recoveryPair, 6 * time.Minute, []func(*policies.RecoveryOptions){recoveryMaxRetries(4)}, nil, false},
		{"explicit timeout", recoveryPair, 6 * time.Minute, []func(*policies.RecoveryOptions){explicit}, nil, false},
		{"not replay-safe", recoveryPair, 6 * time.Minute, nil, []func(*policies.Event){recoveryUnsafe}, false},
		{"no fallback", recoverySolo, 6 * time.Minute, nil, nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			run := newRecoveryRun(t, "default", tt.targets, append(tt.with, recoveryDeadline(10*time.Minute))...)
			run.took = tt.took
			d := run.fail(policies.ReasonRateLimit, tt.event...)
			if tt.moves {
				wantMove(t, d, 1, "M3.5/half_deadline")
				return
			}
			wantRetry(t, d, time.Second, "P1.6/rate_limit")
		})
	}
}

// M3.5: the last candidate keeps its budget, and an output limit is continued.
func TestRecoveryHalfDeadlineExceptions(t *testing.T) {
	t.Parallel()
	run := newRecoveryRun(t, "default", recoveryPair, recoveryDeadline(10*time.Minute))
	run.took = 6 * time.Minute
	run.fail(policies.ReasonServerError)
	run.took = 0
	wantRetry(t, run.fail(policies.ReasonServerError), time.Second, "P1.7/transient")

	run = newRecoveryRun(t, "default", recoveryPair, recoveryDeadline(10*time.Minute))
	run.took = 6 * time.Minute
	wantRetry(t, run.fail(policies.ReasonOutputLimit), 0, "M3.11/output_limit")
}
