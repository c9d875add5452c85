package policies_test

import (
	"strings"
	"testing"
	"time"

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
