package policies

import (
	"math"
	"time"
)

// Target is one candidate of a model call as recovery walks them.
type Target struct {
	Provider    string
	Model       string
	AuthProfile string
	// Sibling marks another model of the requested model's provider (M3.6). A
	// model that the operator named as a fallback is not a sibling, whoever
	// provides it.
	Sibling bool
	// Refreshable says that the auth profile's credential can be renewed
	// (OAuth, a file or a command), so that one attempt after a refresh may
	// help (P4.13, auth and session_expired).
	Refreshable bool
	// ContextWindow is in tokens; 0 when not known.
	ContextWindow int
}

// RecoveryOptions are the fixed facts of one run.
type RecoveryOptions struct {
	Policy Policy
	// Targets in the order they may be tried; the first is the requested one.
	Targets []Target
	// MaxRetries overrides the budget's count; nil means the policy's (M3.4).
	MaxRetries *int
	// Started and Deadline bound the run; a zero Deadline means none.
	Started, Deadline time.Time
	// ExplicitTimeout says that the caller set a request timeout (M3.5).
	ExplicitTimeout bool
	// NonStreaming says that the run does not want streams at all.
	NonStreaming bool
}

// EventKind is what happened to the run.
type EventKind int

// Kinds of event.
const (
	EventStart     EventKind = iota // a model call begins
	EventFailed                     // its attempt failed
	EventSucceeded                  // its attempt completed
)

// Event is one thing that happened, with every fact the decision needs.
type Event struct {
	Kind    EventKind
	Verdict Verdict
	// Started and Ended bound the attempt; Now is the moment of the decision.
	Started, Ended, Now time.Time
	// ReplaySafe says that nothing has happened yet that a repeat from the
	// start could double.
	ReplaySafe bool
	// Streaming says whether the attempt streamed.
	Streaming bool
	// Random in [0,1) jitters the next delay.
	Random float64
	// Phase is how far the failed attempt had come.
	Phase Phase
	// TPM says that the organisation's tokens per minute are exhausted (P6).
	TPM bool
	// Tools is what the latest tool batch left open (M3.10).
	Tools Unsettled
	// Health says which targets are cooled down; it has one entry per target,
	// or none where nothing is.
	Health []Availability
}

// Availability is what P6 remembers of one target. The zero value is "ready".
type Availability struct {
	Until  time.Time // not to be tried before; zero: ready
	Reason Reason
	// Saturated says that the target's organisation has no tokens left this
	// minute; if every target is saturated, the earliest release waits.
	Saturated bool
}

// Unsettled counts what prevents a run from being continued (M3.10).
type Unsettled struct {
	Running        int  // tools still at work
	WithoutResult  int  // calls of the latest batch without a recorded result
	Approvals      int  // approvals pending
	Asynchronous   int  // asynchronous tools that have not reported
	StoppedByATool bool // a tool ended the turn on purpose
}

// Blocks reports whether recovery has to stay away.
func (u Unsettled) Blocks() bool { return u != Unsettled{} }

// Action is what to do next.
type Action int

// Actions.
const (
	ActionAttempt Action = iota // after Delay, request Target
	ActionStop                  // end the model call: with success, or with the last failure
)

// Decision is the answer to an Event.
type Decision struct {
	Action Action
	// Target indexes RecoveryOptions.Targets.
	Target int
	Delay  time.Duration
	// Attempt is the number of the coming attempt within its budget, Of the
	// budget ("2 of 16").
	Attempt, Of int
	Streaming   bool
	// Refresh asks for the auth profile's credential to be renewed before the
	// attempt (P4.13).
	Refresh bool
	// Failover says that Target differs from the one that failed.
	Failover bool
	// ResetAt is when the other side said it would serve again, where it said
	// so and the run stops.
	ResetAt time.Time
	// Rule is the id of the rule that decided.
	Rule string
}

// Recovery is the failover controller of one run: it owns the budget of every
// candidate and says, after each event, whether to attempt, to wait, to move on
// or to stop (M3). It is a plain value: a copy decides on its own, and the same
// events give the same decisions.
type Recovery struct {
	Options RecoveryOptions
	State   RecoveryState
}

// NewRecovery returns the controller of a run that has done nothing yet.
func NewRecovery(o RecoveryOptions) Recovery {
	return Recovery{Options: o, State: newRecoveryState(o)}
}

// Next takes in what happened and says what follows. A model call begins with
// EventStart and ends with ActionStop; every ActionAttempt in between is
// answered by EventFailed or EventSucceeded.
func (r *Recovery) Next(e Event) Decision {
	if len(r.Options.Targets) == 0 {
		return Decision{Action: ActionStop, Rule: "M3.3/no_candidate"}
	}
	r.State.own()
	e = e.normal()
	switch e.Kind {
	case EventStart:
		return r.start(e)
	case EventSucceeded:
		r.State.succeed(r.Options.Policy.SuccessResets)
		return Decision{Action: ActionStop, Target: r.State.Current, Rule: "M3.1/completed"}
	}
	r.here().Tries++
	r.record(e)
	return r.failed(e)
}

// normal fills in the times that the caller left out and keeps Random in
// range.
func (e Event) normal() Event {
	if e.Now.IsZero() {
		e.Now = e.Ended
	}
	if e.Ended.IsZero() {
		e.Ended = e.Now
	}
	if e.Started.IsZero() {
		e.Started = e.Ended
	}
	if math.IsNaN(e.Random) {
		e.Random = 0.5
	}
	e.Random = min(max(e.Random, 0), 1)
	return e
}

// start begins a model call at the target that served last, or, where health
// says that it is cooled down, at the first that is ready (P6).
func (r *Recovery) start(e Event) Decision {
	r.State.startCall()
	if ready(e, r.State.Current) {
		return r.attempt(e, r.State.Current, 0, "M3.8/start")
	}
	for i := range r.Options.Targets {
		if ready(e, i) {
			return r.attempt(e, i, 0, "P6/cooled_down")
		}
	}
	if i, wait, ok := r.firstRelease(e); ok {
		return r.attempt(e, i, wait, "P6/all_cooled_down")
	}
	return r.stop(e, "P6/all_cooled_down")
}

// firstRelease is the target that is released first and worth waiting for: a
// saturated one, or one whose throttle ends within MaxRetryDelay.
func (r *Recovery) firstRelease(e Event) (target int, wait time.Duration, ok bool) {
	for i := range r.Options.Targets {
		h := e.Health[i]
		until := h.Until.Sub(e.Now)
		if !h.Saturated && !r.throttled(h, until) {
			continue
		}
		if !ok || until < wait {
			target, wait, ok = i, until, true
		}
	}
	return target, ceilMillis(wait), ok
}

func (r *Recovery) throttled(h Availability, wait time.Duration) bool {
	if h.Reason != ReasonRateLimit && h.Reason != ReasonOverloaded {
		return false
	}
	limit := r.Options.Policy.MaxRetryDelay
	return limit <= 0 || wait <= limit
}

// attempt decides for a request to target after delay, unless that would pass
// the deadline or the outer guard.
func (r *Recovery) attempt(e Event, target int, delay time.Duration, rule string) Decision {
	if r.passesDeadline(e, delay) {
		return r.stop(e, "P2/deadline")
	}
	if r.State.Attempts >= r.guard() {
		return r.stop(e, "M3.1/guard")
	}
	moved := target != r.State.Current
	r.State.Current = target
	r.State.Attempts++
	o := r.here()
	o.Visited = true
	return Decision{
		Action: ActionAttempt, Target: target, Delay: delay,
		Attempt: o.Failures + 1, Of: max(r.limit(o), o.Failures+1),
		Streaming: r.streaming(o), Failover: moved, Rule: rule,
	}
}

func (r *Recovery) stop(e Event, rule string) Decision {
	o := r.here()
	return Decision{
		Action: ActionStop, Target: r.State.Current,
		Attempt: o.Failures, Of: max(r.limit(o), o.Failures),
		ResetAt: r.nextReset(e), Rule: rule,
	}
}

// move goes to the next candidate, or stops where none is left (M3.3).
func (r *Recovery) move(e Event, rule string) Decision {
	to, ok := r.next(e)
	if !ok {
		return r.stop(e, rule)
	}
	r.countRotation(to, e.Verdict.Reason)
	return r.attempt(e, to, 0, rule)
}

func (r *Recovery) passesDeadline(e Event, delay time.Duration) bool {
	deadline := r.Options.Deadline
	return !deadline.IsZero() && !e.Now.Add(delay).Before(deadline)
}

func (r *Recovery) guard() int {
	if g := r.Options.Policy.GuardAttempts; g > 0 {
		return g
	}
	return defaultGuard
}

// streaming says whether the next attempt on o's target streams (M3.7).
func (r *Recovery) streaming(o *Outage) bool {
	after := r.Options.Policy.NonStreamingAfter
	return !r.Options.NonStreaming && (after == 0 || o.Streams < after)
}
