package policies

import (
	"slices"
	"time"
)

// Bounds of recovery that no policy profile moves.
const (
	// defaultGuard is the outer guard of M3.1.
	defaultGuard = 128
	// maxRateLimitAttempts bounds a rate-limit outage whatever max_retries says
	// (M3.4).
	maxRateLimitAttempts = 16
	// maxWorkerLost is how often in a row an attempt may die with its worker
	// (M3.17).
	maxWorkerLost = 3
	// maxEmptyRetries is how often an empty response is asked for again (P4.13).
	maxEmptyRetries = 2
	// tpmRetries and tpmWindow bound same-model retries while an organisation's
	// tokens per minute are exhausted and another candidate is ready (P6).
	tpmRetries = 2
	tpmWindow  = 15 * time.Second
)

// RecoveryState is everything a Recovery remembers. It is plain data: a
// workflow may carry it through continue-as-new.
type RecoveryState struct {
	// Current indexes the target of the running or last attempt.
	Current int
	// Outages has one entry per target.
	Outages []Outage
	// Attempts counts the attempts since the last completed response (the
	// outer guard of M3.1).
	Attempts int
	// OutageStarted is when the first failure since the last completed
	// response began.
	OutageStarted time.Time
	// WorkerLost counts attempts in a row that died with their worker.
	WorkerLost int
	// OutputContinued says that this run used its one continuation (M3.11).
	OutputContinued bool
	// UnclassifiedMoved says that this model call used its one other candidate.
	UnclassifiedMoved bool
	// RateLimitRotations and OverloadRotations count the auth-profile rotations
	// of this model call.
	RateLimitRotations, OverloadRotations int
}

// Outage is what is remembered of one target.
type Outage struct {
	Visited bool // in this model call
	Tries   int  // attempts since the last completed response

	Failures     int           // charged to the budget
	SawRateLimit bool          // the rate-limit budget governs (M3.2)
	FirstEnded   time.Time     // when the window began
	LastEnded    time.Time     // end of the latest failed attempt
	WindowUsed   time.Duration // waits and failing attempts since FirstEnded
	TPMSince     time.Time     // when tokens per minute ran out first

	Empty     int // empty responses
	Streams   int // stream failures in a row among streamed attempts
	Overloads int // overloads in a row
	Refreshed bool

	Reason  Reason    // of the latest failure
	ResetAt time.Time // when the other side said it would serve again
}

func newRecoveryState(o RecoveryOptions) RecoveryState {
	return RecoveryState{Outages: make([]Outage, len(o.Targets))}
}

// here is the outage of the current target.
func (r *Recovery) here() *Outage { return &r.State.Outages[r.State.Current] }

// startCall forgets what belongs to one model call only.
func (s *RecoveryState) startCall() {
	for i := range s.Outages {
		s.Outages[i].Visited = false
		s.Outages[i].Refreshed = false
	}
	s.UnclassifiedMoved = false
	s.RateLimitRotations, s.OverloadRotations = 0, 0
}

// succeed ends the outage. What that resets is the policy's choice: everything
// (M3.1), or the window but never the count.
func (s *RecoveryState) succeed(resets string) {
	s.Attempts, s.WorkerLost, s.OutageStarted = 0, 0, time.Time{}
	for i := range s.Outages {
		o := &s.Outages[i]
		kept := Outage{Visited: o.Visited}
		if resets == "window" {
			kept.Failures, kept.SawRateLimit = o.Failures, o.SawRateLimit
		}
		*o = kept
	}
}

// record adds a failure to the current target's outage.
func (r *Recovery) record(e Event) {
	if r.State.OutageStarted.IsZero() {
		r.State.OutageStarted = e.Started
	}
	o := r.here()
	reason := e.Verdict.Reason
	o.Reason = reason
	if f := e.Verdict.Floor; f.Asked() && !f.Infinite {
		o.ResetAt = e.Ended.Add(f.Wait)
	}
	if reason == ReasonWorkerLost {
		r.State.WorkerLost++
		o.LastEnded = e.Ended
		return
	}
	r.State.WorkerLost = 0
	o.recordWindow(e)
	o.recordStreaks(e)
	if reason == ReasonRateLimit {
		o.SawRateLimit = true
	}
	o.Failures++
}

// recordWindow does the accounting of M3.2: the window starts when the first
// failure ends and counts waits and failing attempts, of a timeout only its
// wait. An output limit is outside the window (M3.11).
func (o *Outage) recordWindow(e Event) {
	defer func() { o.LastEnded = e.Ended }()
	if e.Verdict.Reason == ReasonOutputLimit {
		return
	}
	if o.FirstEnded.IsZero() {
		o.FirstEnded = e.Ended
		return
	}
	o.WindowUsed += max(0, e.Started.Sub(o.LastEnded))
	if e.Verdict.Reason != ReasonTimeout {
		o.WindowUsed += max(0, e.Ended.Sub(e.Started))
	}
}

func (o *Outage) recordStreaks(e Event) {
	if e.Streaming {
		o.Streams++
		if !streamFailure(e) {
			o.Streams = 0
		}
	}
	o.Overloads++
	if e.Verdict.Reason != ReasonOverloaded {
		o.Overloads = 0
	}
	if e.Verdict.Reason == ReasonEmptyResponse {
		o.Empty++
	}
	if !e.TPM {
		o.TPMSince = time.Time{}
	} else if o.TPMSince.IsZero() {
		o.TPMSince = e.Ended
	}
}

// streamFailure reports whether it was the stream that failed, not the service
// behind it (M3.7).
func streamFailure(e Event) bool {
	switch e.Verdict.Reason {
	case ReasonStreamInterrupted, ReasonMalformedStream:
		return true
	case ReasonTimeout:
		return e.Phase == PhaseFirstEvent || e.Phase == PhaseBody
	}
	return false
}

// own gives the receiver its own copy of what it is about to change, so that a
// copied Recovery stays what it was.
func (s *RecoveryState) own() { s.Outages = slices.Clone(s.Outages) }
