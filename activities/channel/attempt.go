// Package channel holds what the channel activities share: one attempt at one
// message, the evidence it leaves, and the error it ends in.
//
// A channel activity makes exactly one request. Temporal may run it again only
// when the attempt proved that nothing was sent, or when the platform's key
// makes a repeat harmless (C2). Three things decide that, and all three are
// kept here: how many attempts of the envelope are spent, whether every earlier
// attempt proved that it sent nothing, and the time since the first.
package channel

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// RequestTimeout bounds one text request (C6).
const RequestTimeout = 30 * time.Second

// HeartbeatEvery is how often a running attempt reports, so that a cancellation
// arrives in time and a lost worker is noticed (C6).
const HeartbeatEvery = 2 * time.Second

// Evidence is kept in the heartbeat details, which the server hands to the next
// attempt of the same activity. Proven says that attempt Attempt and all before
// it sent nothing; an attempt that left no evidence, because its worker died,
// proves nothing.
type Evidence struct {
	Attempt int  `json:"attempt"`
	Proven  bool `json:"proven"`
}

// Attempt is the current attempt at one message.
type Attempt struct {
	Surface   policies.Surface
	Operation policies.Operation
	Envelope  policies.Envelope

	// Number counts the attempts of the envelope, this one included, over all
	// activities that worked on the message.
	Number int
	// FirstAt is when the first of them was scheduled.
	FirstAt time.Time
	// ExpiresAt is the end of the send's time to live; zero for none.
	ExpiresAt time.Time

	local  int    // attempts of this activity, this one included
	proven bool   // every earlier attempt sent nothing
	quiet  func() // ends the heartbeats, if any
}

// Begin reads what is known of the attempts before this one.
func Begin(ctx context.Context, in contract.MessageInput, a Attempt) *Attempt {
	info := activity.GetInfo(ctx)
	a.local = int(info.Attempt)
	a.Number = in.Used + a.local
	a.ExpiresAt = in.ExpiresAt
	if a.FirstAt = in.FirstAt; a.FirstAt.IsZero() {
		a.FirstAt = info.ScheduledTime
	}
	a.proven = a.local == 1
	if !a.proven && activity.HasHeartbeatDetails(ctx) {
		var e Evidence
		if activity.GetHeartbeatDetails(ctx, &e) == nil {
			a.proven = e.Proven && e.Attempt == a.local-1
		}
	}
	return &a
}

// Unproven reports whether an earlier attempt may have sent the message: its
// worker died, or its answer was lost.
func (a *Attempt) Unproven() bool { return !a.proven }

// Request returns a context for the request itself. Cancelling the activity
// does not cut a request that has started, for its outcome would then be
// unknown; it ends with its answer or after RequestTimeout (C1).
func (a *Attempt) Request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), RequestTimeout)
}

// Heartbeat reports every HeartbeatEvery until the returned function is called.
// A message that is answered sooner costs no report.
func (a *Attempt) Heartbeat(ctx context.Context) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(HeartbeatEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx, Evidence{Attempt: a.local})
			}
		}
	}()
	a.quiet = sync.OnceFunc(func() {
		close(done)
		<-over
	})
	return a.quiet
}

// Refuse says why an attempt must not make its request, as the error that the
// activity returns; nil when it may. It is asked before anything else is done.
func (a *Attempt) Refuse(ctx context.Context) error {
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown):
		return a.unmade(policies.ReasonWorkerLost, "C2.8/worker_stopping", "the worker stopped before the request was made", a.proven)
	case ctx.Err() != nil:
		return a.unmade(policies.ReasonCancelled, "C1/cancelled", "cancelled before the request was made", false)
	case !a.ExpiresAt.IsZero() && time.Now().After(a.ExpiresAt):
		return a.unmade(policies.ReasonDeadline, "C1/expired", "the time to live had passed before the request was made", false)
	}
	return nil
}

// unmade is the error of an attempt that made no request.
func (a *Attempt) unmade(reason policies.Reason, rule, message string, again bool) error {
	effect := policies.EffectNotSent
	if a.Unproven() {
		effect = policies.EffectUnknown
	}
	return failure.New(contract.Failure{
		Surface: string(a.Surface), Reason: string(reason), Rule: rule, RetrySame: again,
		Effect: string(effect), Message: message, Attempts: a.local - 1,
	}, failure.Options{})
}

// Setup is the error of an attempt whose request could not be made for want of
// a setting or because of its input.
func (a *Attempt) Setup(e *SetupError) error {
	effect := policies.EffectNotSent
	if a.Unproven() {
		effect = policies.EffectUnknown
	}
	return failure.New(contract.Failure{
		Surface: string(a.Surface), Reason: string(e.Reason), Rule: "I3/configuration", Permanent: true,
		Effect: string(effect), Message: e.Message, Attempts: a.local - 1,
	}, failure.Options{})
}

// Unknown is the error of an attempt that must not make its request, because an
// earlier one may have sent the message and nothing makes a repeat harmless any
// more.
func (a *Attempt) Unknown(rule string) error {
	return failure.New(contract.Failure{
		Surface: string(a.Surface), Reason: string(policies.ReasonWorkerLost), Rule: rule,
		Effect:  string(policies.EffectUnknown),
		Message: "an earlier attempt may have sent the message, and repeating it would no longer be safe", Attempts: a.local - 1,
	}, failure.Options{})
}

// Fail turns the verdict on the attempt's request into the error the activity
// returns. The server runs the activity again only if the verdict allows it,
// an attempt is left, and the wait is neither so long that the workflow should
// hold it nor past the time to live (P2).
func (a *Attempt) Fail(ctx context.Context, fault *policies.Fault, v policies.Verdict, message string) error {
	if a.quiet != nil {
		a.quiet() // a late report would hide the evidence recorded below
	}
	f := failure.FromVerdict(fault, v, message)
	f.Attempts = a.local
	if a.Unproven() && v.Effect == policies.EffectNotSent {
		f.Effect = string(policies.EffectUnknown)
	}
	if fault.Surface == policies.SurfaceTelegram {
		f.MigrateTo, _ = policies.TelegramMigration(fault)
	}
	if !v.RetrySame || v.Floor.Infinite || a.Number >= a.Envelope.Attempts {
		return failure.New(f, failure.Options{})
	}
	delay := a.Envelope.Delay(a.Number, v.Floor, rand.Float64())
	f.DelayMS = failure.CeilMS(delay)
	next := time.Now().Add(delay)
	proven := a.proven && v.Effect == policies.EffectNotSent
	harmless := proven || v.Effect == policies.EffectNone || a.Repeatable(next)
	late := !a.ExpiresAt.IsZero() && next.After(a.ExpiresAt)
	if !harmless || late || delay > policies.ChannelInlineFloor {
		return failure.New(f, failure.Options{})
	}
	activity.RecordHeartbeat(ctx, Evidence{Attempt: a.local, Proven: proven})
	activity.GetLogger(ctx).Warn(failure.RetryLine(string(a.Surface), a.Number+1, a.Envelope.Attempts, f, delay), "rule", f.Rule)
	return failure.New(f, failure.Options{Retry: true, Delay: delay})
}

// Repeatable reports whether the platform's key still makes a repeat at time t
// harmless (C2.1).
func (a *Attempt) Repeatable(t time.Time) bool {
	return a.Operation == policies.OpCreate && t.Sub(a.FirstAt) <= policies.NonceWindow
}
