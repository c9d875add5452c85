package policies_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

var recoveryEpoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// recoveryRun drives a Recovery as a workflow does, on a clock of its own.
type recoveryRun struct {
	t    *testing.T
	r    policies.Recovery
	now  time.Time
	last policies.Decision
	took time.Duration
}

func recoveryPolicy(t *testing.T, name string) policies.Policy {
	t.Helper()
	p, err := profiles.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newRecoveryRun(t *testing.T, profile string, targets []policies.Target, with ...func(*policies.RecoveryOptions)) *recoveryRun {
	t.Helper()
	o := policies.RecoveryOptions{Policy: recoveryPolicy(t, profile), Targets: targets, Started: recoveryEpoch}
	for _, w := range with {
		w(&o)
	}
	run := &recoveryRun{t: t, r: policies.NewRecovery(o), now: recoveryEpoch}
	run.start()
	return run
}

func (c *recoveryRun) start(with ...func(*policies.Event)) policies.Decision {
	e := policies.Event{Kind: policies.EventStart, Now: c.now}
	for _, w := range with {
		w(&e)
	}
	c.last = c.r.Next(e)
	return c.last
}

func (c *recoveryRun) after(kind policies.EventKind, reason policies.Reason, with ...func(*policies.Event)) policies.Decision {
	c.t.Helper()
	if c.last.Action != policies.ActionAttempt {
		c.t.Fatalf("no attempt is running: %+v", c.last)
	}
	started := c.now.Add(c.last.Delay)
	c.now = started.Add(c.took)
	e := policies.Event{
		Kind: kind, Verdict: policies.Verdict{Reason: reason}, Started: started, Ended: c.now, Now: c.now,
		ReplaySafe: true, Streaming: c.last.Streaming, Random: 0.5,
	}
	for _, w := range with {
		w(&e)
	}
	c.last = c.r.Next(e)
	return c.last
}

func (c *recoveryRun) fail(reason policies.Reason, with ...func(*policies.Event)) policies.Decision {
	c.t.Helper()
	return c.after(policies.EventFailed, reason, with...)
}

func (c *recoveryRun) succeed() policies.Decision {
	c.t.Helper()
	return c.after(policies.EventSucceeded, "")
}

// retries fails until the run leaves its target, and returns the waits.
func (c *recoveryRun) retries(reason policies.Reason, with ...func(*policies.Event)) []time.Duration {
	c.t.Helper()
	var waits []time.Duration
	for target := c.last.Target; ; {
		d := c.fail(reason, with...)
		if d.Action == policies.ActionStop || d.Target != target {
			return waits
		}
		waits = append(waits, d.Delay)
	}
}

// walk fails every attempt at once with reason and returns the targets visited.
func (c *recoveryRun) walk(reason policies.Reason, with ...func(*policies.Event)) []int {
	c.t.Helper()
	visited := []int{c.last.Target}
	for {
		d := c.fail(reason, with...)
		if d.Action == policies.ActionStop {
			return visited
		}
		if d.Target != visited[len(visited)-1] {
			visited = append(visited, d.Target)
		}
	}
}

func recoveryFloor(d time.Duration) func(*policies.Event) {
	return func(e *policies.Event) {
		e.Verdict.Floor = policies.Floor{Wait: d, Source: policies.FloorRetryAfter}
	}
}

func recoveryInfinite(e *policies.Event) {
	e.Verdict.Floor = policies.Floor{Infinite: true, Source: policies.FloorRetryAfter}
}

func recoveryUnsafe(e *policies.Event) { e.ReplaySafe = false }

func recoveryDeadline(d time.Duration) func(*policies.RecoveryOptions) {
	return func(o *policies.RecoveryOptions) { o.Deadline = recoveryEpoch.Add(d) }
}

func recoveryMaxRetries(n int) func(*policies.RecoveryOptions) {
	return func(o *policies.RecoveryOptions) { o.MaxRetries = &n }
}

func recoveryTargets(names ...string) []policies.Target {
	out := make([]policies.Target, len(names))
	for i, name := range names {
		name, sibling := strings.CutSuffix(name, "~")
		name, auth, _ := strings.Cut(name, "#")
		provider, model, _ := strings.Cut(name, "/")
		out[i] = policies.Target{Provider: provider, Model: model, AuthProfile: auth, Sibling: sibling}
	}
	return out
}

var (
	recoverySolo = recoveryTargets("a/m")
	recoveryPair = recoveryTargets("a/m", "b/m")
	// recoveryPool has, in order: the requested model with two auth profiles,
	// a sibling with the first, and two providers.
	recoveryPool = recoveryTargets("a/m#1", "a/m#2", "a/mini#1~", "b/m", "c/m")
)

func wantRule(t *testing.T, d policies.Decision, rule string) {
	t.Helper()
	if d.Rule != rule {
		t.Errorf("rule %q, want %q (%+v)", d.Rule, rule, d)
	}
}

func wantStop(t *testing.T, d policies.Decision, rule string) {
	t.Helper()
	if d.Action != policies.ActionStop {
		t.Errorf("action %d, want stop (%+v)", d.Action, d)
	}
	wantRule(t, d, rule)
}

func wantMove(t *testing.T, d policies.Decision, target int, rule string) {
	t.Helper()
	if d.Action != policies.ActionAttempt || !d.Failover || d.Target != target || d.Delay != 0 {
		t.Errorf("want an immediate failover to %d, got %+v", target, d)
	}
	wantRule(t, d, rule)
}

func wantRetry(t *testing.T, d policies.Decision, delay time.Duration, rule string) {
	t.Helper()
	if d.Action != policies.ActionAttempt || d.Failover || d.Delay != delay {
		t.Errorf("want a retry after %s, got %+v", delay, d)
	}
	wantRule(t, d, rule)
}

func recoverySeconds(n ...float64) []time.Duration {
	out := make([]time.Duration, len(n))
	for i, s := range n {
		out[i] = time.Duration(s * float64(time.Second))
	}
	return out
}

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
