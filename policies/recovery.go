package policies

import "time"

// Target is one candidate of a model call as recovery walks them.
type Target struct {
	Provider    string
	Model       string
	AuthProfile string
	// Sibling marks another model of the requested model's provider (M3.6).
	Sibling bool
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
}

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
	// Failover says that Target differs from the one that failed.
	Failover bool
	// ResetAt is when the other side said it would serve again, where it said
	// so and the run stops.
	ResetAt time.Time
	// Rule is the id of the rule that decided.
	Rule string
}
