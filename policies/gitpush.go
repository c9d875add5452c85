package policies

import (
	"strings"
	"time"
)

const (
	// PushReadSpacing is how far apart two readings of the remote must be to
	// prove anything but a landing: a replica may lag behind the push (G6).
	PushReadSpacing = 2 * time.Second

	// pushReserve is what a push leaves of its operation's time at most, for the
	// readings after it.
	pushReserve = 30 * time.Second

	// pushLeastReading is for how long a lost push is looked for although its
	// operation's time is spent: enough for two readings.
	pushLeastReading = 5 * time.Second

	// pushLastReading is for how long it is looked for once it was cancelled.
	pushLastReading = 10 * time.Second
)

// pushReadDelays are the waits after the first, second … reading in a row that
// failed; the last one repeats.
var pushReadDelays = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second}

// PushShare is how much of what is left of an operation's time its push may
// take, so that time remains to read the remote if its answer is lost.
func PushShare(left time.Duration) time.Duration { return left - min(pushReserve, left/4) }

// PushReadShare is how much of what is left one reading may take, so that one
// which hangs leaves time for another.
func PushReadShare(left time.Duration) time.Duration { return min(left, max(pushLeastReading, left/2)) }

// PushReadUntil is the end of the readings after a push: that of the operation,
// but not before two readings can be made, and soon after a cancellation, whose
// time is zero where there was none.
func PushReadUntil(deadline, failed, cancelled time.Time) time.Time {
	until := failed.Add(pushLeastReading)
	if deadline.After(until) {
		until = deadline
	}
	if last := cancelled.Add(pushLastReading); !cancelled.IsZero() && last.Before(until) {
		until = last
	}
	return until
}

// PushRead is one reading of the remote's ref after a push.
type PushRead struct {
	// At is when the reading ended.
	At time.Time
	// Found is what the ref is, empty if there is none. Contains says that Found
	// is ours or a descendant of it.
	Found    string
	Contains bool
	// Failure says why the remote could not be read; nil if it was.
	Failure *Verdict
}

// PushEvidence is what is known of a push that did not say that it landed.
type PushEvidence struct {
	// Old is what the remote's ref had, empty or all zeros if there was none; New
	// is ours.
	Old, New string
	// Rewinds says that New is an ancestor of Old, so that whatever follows upon
	// Old contains New without our push.
	Rewinds bool
	// Failure is how the one attempt of the push ended.
	Failure Verdict
	// Reads are the readings since, in their order.
	Reads []PushRead
	Now   time.Time
	// Until is the end of the readings (see [PushReadUntil]).
	Until time.Time
	// Cancelled says that the operation was cancelled: the readings that are
	// left are made soon.
	Cancelled bool
}

// PushAnswer is what became of a push, or that it must be read.
type PushAnswer string

// Answers about a push.
const (
	PushReadRemote  PushAnswer = "read"
	PushRefused     PushAnswer = "refused" // before it could begin; nothing to look for
	PushLanded      PushAnswer = "landed"
	PushNotLanded   PushAnswer = "not_landed"
	PushConflict    PushAnswer = "conflict"
	PushNeedsReview PushAnswer = "needs_review"
)

// PushVerdict is the answer, the wait before a reading, and the rule.
type PushVerdict struct {
	Answer PushAnswer
	After  time.Duration
	Rule   string
}

// LocatePush decides what became of a push that failed or was lost (G6). It
// never asks for another push. One reading that has ours proves that it landed.
// Everything else takes two readings that agree, PushReadSpacing apart; where
// they cannot be had in time, nothing is claimed, unless the attempt itself
// proved that nothing was sent.
func LocatePush(e PushEvidence) PushVerdict {
	if rule := e.landed(); rule != "" {
		return PushVerdict{Answer: PushLanded, Rule: rule}
	}
	if len(e.Reads) == 0 {
		return e.first()
	}
	if found, ok := e.agreed(); ok {
		if found == objectID(e.Old) {
			return PushVerdict{Answer: PushNotLanded, Rule: "G6/unchanged"}
		}
		return PushVerdict{Answer: PushConflict, Rule: "G6/moved_elsewhere"}
	}
	last := e.Reads[len(e.Reads)-1]
	if last.Failure != nil && hopeless(*last.Failure) {
		return e.unproved("G6/unreadable")
	}
	next, ok := e.next(last)
	if !ok {
		return e.unproved("G6/not_read_in_time")
	}
	return PushVerdict{Answer: PushReadRemote, After: max(next.Sub(e.Now), 0), Rule: "G6/read_again"}
}

// landed is the rule by which a reading shows ours, or empty.
func (e PushEvidence) landed() string {
	for _, r := range e.Reads {
		switch {
		case r.Failure != nil || objectID(e.New) == "":
		case r.Found == e.New:
			return "G6/found"
		case r.Contains && objectID(r.Found) != "" && r.Found != e.Old && !e.Rewinds:
			return "G6/contained"
		}
	}
	return ""
}

// first is the decision before anything was read. What was refused before the
// remote could take it in has nothing to look for; a conflict is looked at, for
// what the remote has says which one it is.
func (e PushEvidence) first() PushVerdict {
	f := e.Failure
	if f.Permanent && f.Effect == EffectNotSent && f.Reason != ReasonConflict {
		return PushVerdict{Answer: PushRefused, Rule: "G6/refused"}
	}
	if !e.Now.Before(e.Until) {
		return e.unproved("G6/not_read_in_time")
	}
	return PushVerdict{Answer: PushReadRemote, Rule: "G6/first_reading"}
}

// agreed is what the last two readings that succeeded both found, far enough
// apart.
func (e PushEvidence) agreed() (found string, ok bool) {
	var later *PushRead
	for i := len(e.Reads) - 1; i >= 0; i-- {
		r := &e.Reads[i]
		switch {
		case r.Failure != nil:
		case later == nil:
			later = r
		case objectID(r.Found) != objectID(later.Found):
			return "", false
		case later.At.Sub(r.At) >= PushReadSpacing:
			return objectID(r.Found), true
		}
	}
	return "", false
}

// hopeless reports whether a remote that could not be read will not be readable
// by the same credential in a moment either. Time that was too short, or a
// worker that was lost, says nothing about the remote.
func hopeless(v Verdict) bool {
	switch v.Reason {
	case ReasonDeadline, ReasonCancelled, ReasonWorkerLost:
		return false
	}
	return v.Permanent || v.Floor.Infinite
}

// next is when to read again, if that is before the end. A floor is never
// undercut (P2). A wait that would pass the end is cut so that one more reading
// is made near it.
func (e PushEvidence) next(last PushRead) (at time.Time, ok bool) {
	if last.Failure == nil {
		at = last.At.Add(PushReadSpacing)
		return at, e.beforeEnd(at)
	}
	floor := last.At.Add(last.Failure.Floor.Wait)
	at = last.At.Add(e.delay())
	if latest := e.Until.Add(-PushReadSpacing); at.After(latest) && !latest.Before(last.At.Add(PushReadSpacing)) {
		at = latest
	}
	if floor.After(at) {
		at = floor
	}
	return at, e.beforeEnd(at)
}

// beforeEnd reports whether a reading that is due at a time can still be made.
func (e PushEvidence) beforeEnd(at time.Time) bool {
	return at.Before(e.Until) && e.Now.Before(e.Until)
}

// delay is the wait after the readings in a row that failed. A lost worker's
// reading is made anew at once, a single time, and does not count (G3).
func (e PushEvidence) delay() time.Duration {
	failed, lost := 0, 0
	for i := len(e.Reads) - 1; i >= 0 && e.Reads[i].Failure != nil; i-- {
		failed++
		if e.Reads[i].Failure.Reason == ReasonWorkerLost {
			lost++
		}
	}
	last := e.Reads[len(e.Reads)-1].Failure
	if last.Reason == ReasonWorkerLost && lost == 1 {
		return 0
	}
	if lost > 0 {
		failed--
	}
	delay := pushReadDelays[min(max(failed, 1), len(pushReadDelays))-1]
	if e.Cancelled {
		delay = min(delay, PushReadSpacing)
	}
	return delay
}

// unproved is the end where the readings proved nothing: what the attempt itself
// proved counts, else a person has to look.
func (e PushEvidence) unproved(rule string) PushVerdict {
	if e.Failure.Effect == EffectNotSent {
		return PushVerdict{Answer: PushNotLanded, Rule: "G6/not_sent"}
	}
	return PushVerdict{Answer: PushNeedsReview, Rule: rule}
}

// objectID is an object id as it is compared: all zeros stand for a ref that
// does not exist, as the empty id does.
func objectID(id string) string {
	if strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}
