package policies_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// recoveryReasons are the reasons of the model surface, and one nobody knows.
var recoveryReasons = []policies.Reason{
	policies.ReasonRateLimit, policies.ReasonOverloaded, policies.ReasonServerError, policies.ReasonTimeout,
	policies.ReasonStreamInterrupted, policies.ReasonMalformedStream, policies.ReasonDegenerateOutput,
	policies.ReasonEmptyResponse, policies.ReasonWorkerLost, policies.ReasonOutputLimit, policies.ReasonQuotaExhausted,
	policies.ReasonBilling, policies.ReasonAuth, policies.ReasonAuthPermanent, policies.ReasonPermission,
	policies.ReasonSessionExpired, policies.ReasonModelNotFound, policies.ReasonRequestTooLarge,
	policies.ReasonContextOverflow, policies.ReasonRefusal, policies.ReasonFormat, policies.ReasonTLS,
	policies.ReasonUnclassified, policies.ReasonCancelled, policies.ReasonDeadline, "from_the_future",
}

func drawRecoveryOptions(t *rapid.T) policies.RecoveryOptions {
	p, err := profiles.Load(rapid.SampledFrom(profiles.Names()).Draw(t, "profile"))
	if err != nil {
		t.Fatal(err)
	}
	p.RefusalFailover = rapid.Bool().Draw(t, "refusal failover")
	o := policies.RecoveryOptions{Policy: p, Started: recoveryEpoch}
	for range rapid.IntRange(1, 6).Draw(t, "targets") {
		o.Targets = append(o.Targets, policies.Target{
			Provider:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "provider"),
			Model:         rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"),
			AuthProfile:   rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "auth profile"),
			Sibling:       rapid.Bool().Draw(t, "sibling"),
			Refreshable:   rapid.Bool().Draw(t, "refreshable"),
			ContextWindow: rapid.SampledFrom([]int{0, 100, 200}).Draw(t, "window"),
		})
	}
	if rapid.Bool().Draw(t, "bounded") {
		o.Deadline = recoveryEpoch.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "deadline")) * time.Second)
	}
	if rapid.Bool().Draw(t, "explicit") {
		n := rapid.IntRange(-1, 40).Draw(t, "max retries")
		o.MaxRetries = &n
	}
	return o
}

func drawRecoveryEvent(t *rapid.T, d policies.Decision, now time.Time) policies.Event {
	e := policies.Event{Kind: policies.EventFailed, Started: now.Add(d.Delay), Streaming: d.Streaming}
	e.Ended = e.Started.Add(time.Duration(rapid.IntRange(0, 30_000).Draw(t, "took")) * time.Millisecond)
	e.Now = e.Ended
	e.Verdict.Reason = rapid.SampledFrom(recoveryReasons).Draw(t, "reason")
	if rapid.Bool().Draw(t, "floored") {
		e.Verdict.Floor = policies.Floor{
			Source:   policies.FloorRetryAfter,
			Infinite: rapid.IntRange(0, 9).Draw(t, "infinite") == 0,
			Wait:     time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "floor")),
		}
	}
	e.ReplaySafe = rapid.Bool().Draw(t, "replay-safe")
	e.Random = rapid.Float64Range(0, 1).Draw(t, "random")
	e.TPM = rapid.IntRange(0, 4).Draw(t, "tpm") == 0
	e.Phase = rapid.SampledFrom([]policies.Phase{"", policies.PhaseConnect, policies.PhaseBody}).Draw(t, "phase")
	return e
}

// recoveryCheck holds what must be true of every model call.
type recoveryCheck struct {
	o        policies.RecoveryOptions
	left     map[int]bool // candidates that the call has left
	current  int
	requests int // to the current candidate
	sawLimit bool
	lost     int // requests that cost nothing: lost workers
}

// attempt checks a decision to make a request after e.
func (c *recoveryCheck) attempt(t *rapid.T, e policies.Event, d policies.Decision) {
	if d.Target != c.current {
		// M3.6: each candidate is visited once per model call.
		c.left[c.current] = true
		if c.left[d.Target] || !d.Failover {
			t.Fatalf("went back to %d: %+v", d.Target, d)
		}
		*c = recoveryCheck{o: c.o, left: c.left, current: d.Target, requests: 1}
		return
	}
	c.requests++
	// P2, P3: a floor is never undercut, an infinite one never waited for.
	if f := e.Verdict.Floor; f.Infinite && e.Verdict.Reason != policies.ReasonWorkerLost && e.Verdict.Reason != policies.ReasonOutputLimit {
		t.Fatalf("waits for an infinite floor: %+v", d)
	} else if !f.Infinite && d.Delay < f.Wait {
		t.Fatalf("waits %s for a floor of %s", d.Delay, f.Wait)
	}
	// P2: no wait passes the deadline.
	if !c.o.Deadline.IsZero() && !e.Now.Add(d.Delay).Before(c.o.Deadline) {
		t.Fatalf("the wait of %s passes the deadline", d.Delay)
	}
	// M3.1, M3.2, M3.4: the budget is never exceeded.
	if e.Verdict.Reason == policies.ReasonWorkerLost {
		c.lost++
	}
	c.sawLimit = c.sawLimit || e.Verdict.Reason == policies.ReasonRateLimit
	if charged := c.requests - c.lost; charged > c.limit() {
		t.Fatalf("%d attempts of %d", charged, c.limit())
	}
}

func (c *recoveryCheck) limit() int {
	p := c.o.Policy
	n := p.Transient.Attempts
	switch {
	case p.Simple != nil:
		n = p.Simple.Retries + 1
	case c.sawLimit:
		n = p.RateLimit.Attempts
	}
	if c.o.MaxRetries != nil {
		n = max(*c.o.MaxRetries, 0) + 1
	}
	if c.sawLimit {
		n = min(n, 16)
	}
	return n
}

// M3.1, M3.3: every model call ends, whatever happens, within the guard; P2,
// M3.2, M3.4, M3.6: and on the way keeps what recoveryCheck holds.
func TestRecoveryProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := drawRecoveryOptions(t)
		r, twin := policies.NewRecovery(o), policies.NewRecovery(o)
		event := policies.Event{Kind: policies.EventStart, Now: recoveryEpoch}
		check := recoveryCheck{o: o, left: map[int]bool{}, requests: 1}
		for total := 0; ; total++ {
			if total > 128 {
				t.Fatal("more attempts than the guard allows")
			}
			before := r
			d := r.Next(event)
			// Same events, same decisions.
			if diff := cmp.Diff(d, twin.Next(event)); diff != "" {
				t.Fatal(diff)
			}
			// A copy stays what it was, so the same event decides the same again.
			if diff := cmp.Diff(d, before.Next(event)); diff != "" {
				t.Fatalf("the copy decides otherwise:\n%s", diff)
			}
			if d.Action == policies.ActionStop {
				return
			}
			if event.Kind == policies.EventFailed {
				check.attempt(t, event, d)
			}
			event = drawRecoveryEvent(t, d, event.Now)
		}
	})
}

// M3.2: the waits for anything but a rate limit, in an outage that saw none,
// fit into 90 s together.
func TestRecoveryWindowProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, err := profiles.Load("default")
		if err != nil {
			t.Fatal(err)
		}
		r := policies.NewRecovery(policies.RecoveryOptions{Policy: p, Targets: recoverySolo, Started: recoveryEpoch})
		d := r.Next(policies.Event{Kind: policies.EventStart, Now: recoveryEpoch})
		now, used, first := recoveryEpoch, time.Duration(0), true
		transient := []policies.Reason{policies.ReasonServerError, policies.ReasonOverloaded, policies.ReasonTimeout}
		for {
			e := drawRecoveryEvent(t, d, now)
			e.Verdict.Reason = rapid.SampledFrom(transient).Draw(t, "transient")
			used += d.Delay
			if !first && e.Verdict.Reason != policies.ReasonTimeout {
				used += e.Ended.Sub(e.Started)
			}
			first, now = false, e.Now
			d = r.Next(e)
			if d.Action == policies.ActionStop {
				return
			}
			if used+d.Delay > 90*time.Second {
				t.Fatalf("a wait of %s after %s of the window", d.Delay, used)
			}
		}
	})
}
