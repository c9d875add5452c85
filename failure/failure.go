// Package failure says how a failure travels: from the verdict on a fault to
// the ApplicationError an activity returns, and back in the workflow that reads
// it.
//
// An activity of Holdfast, or of an adapter, returns errors built by [New] and
// nothing else, unwrapped: the server looks only at the outermost error, so an
// ApplicationError wrapped with %w would become a plain failure that is
// retried. The error's type is the reason, its details are a
// [contract.Failure], and NextRetryDelay is the delay that the policies chose,
// since the server's own backoff has no jitter and knows no floors.
package failure

import (
	"errors"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// MaxMessage bounds the text of a failure in bytes, so that a stored failure
// stays far below the 4 KiB at which the server cuts it.
const MaxMessage = 600

// Options of one failure.
type Options struct {
	// Retry lets the server run the activity again after Delay. Only proof that
	// nothing was sent, or a key that makes a repeat harmless, permits it.
	Retry bool
	// Delay before the next attempt; at least one millisecond is used, for zero
	// would mean the server's own backoff.
	Delay time.Duration
	// Partial is what was complete when the attempt failed; it travels beside
	// the failure and is read by [Partial].
	Partial any
}

// New builds the error that an activity returns for f. The result must be
// returned as it is, never wrapped. It is benign to Temporal, which would log an
// error for each otherwise: our failures are judged, and what follows from them
// is reported, by us (I5).
func New(f contract.Failure, o Options) error {
	f.Message = Shorten(f.Message)
	ao := temporal.ApplicationErrorOptions{
		NonRetryable: !o.Retry,
		Category:     temporal.ApplicationErrorCategoryBenign,
		Details:      []any{f},
	}
	if o.Partial != nil {
		ao.Details = append(ao.Details, o.Partial)
	}
	if o.Retry {
		ao.NextRetryDelay = max(o.Delay, time.Millisecond)
	}
	message := f.Message
	if message == "" {
		message = f.Reason
	}
	return temporal.NewApplicationErrorWithOptions(message, f.Reason, ao)
}

// FromVerdict puts a verdict on a fault into the form that travels. The message
// is the caller's, free of secrets, URLs and raw bodies.
func FromVerdict(fault *policies.Fault, v policies.Verdict, message string) contract.Failure {
	f := contract.Failure{
		Surface:       string(fault.Surface),
		Reason:        string(v.Reason),
		Rule:          v.Rule,
		RetrySame:     v.RetrySame,
		Failover:      v.Failover,
		Permanent:     v.Permanent,
		Effect:        string(v.Effect),
		Phase:         string(fault.Phase),
		Status:        fault.Status,
		FloorInfinite: v.Floor.Infinite,
		FloorSource:   string(v.Floor.Source),
		Message:       Shorten(message),
	}
	if fault.ExitCode != nil {
		f.ExitCode = *fault.ExitCode
	}
	if v.Floor.Asked() && !v.Floor.Infinite {
		ms := CeilMS(v.Floor.Wait)
		f.FloorMS = &ms
	}
	return f
}

// ToVerdict is the inverse of FromVerdict.
func ToVerdict(f contract.Failure) policies.Verdict {
	v := policies.Verdict{
		Reason:    policies.Reason(f.Reason),
		RetrySame: f.RetrySame,
		Failover:  f.Failover,
		Permanent: f.Permanent,
		Effect:    policies.Effect(f.Effect),
		Rule:      f.Rule,
		Floor:     policies.Floor{Infinite: f.FloorInfinite, Source: policies.FloorSource(f.FloorSource)},
	}
	if f.FloorMS != nil {
		v.Floor.Wait = time.Duration(*f.FloorMS) * time.Millisecond
	}
	return v
}

// From reads the failure out of an error that a workflow got from an activity.
// What no activity of ours said is translated: a lost worker (heartbeat or
// start-to-close timeout) is worker_lost with unknown effect, a
// schedule-to-close timeout is deadline, a cancellation is cancelled, and
// anything else is unclassified with unknown effect. From(nil) is the zero
// Failure.
func From(err error) contract.Failure {
	if err == nil {
		return contract.Failure{}
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		var f contract.Failure
		if app.HasDetails() && app.Details(&f) == nil && f.Reason != "" {
			return f
		}
		return contract.Failure{
			Reason:    string(policies.ReasonUnclassified),
			Rule:      "P4.14/foreign_error",
			Permanent: true,
			Effect:    string(policies.EffectUnknown),
			Message:   Shorten("the activity failed in a way it did not explain: " + app.Type()),
		}
	}
	if temporal.IsCanceledError(err) {
		return contract.Failure{
			Reason:  string(policies.ReasonCancelled),
			Rule:    "C1/cancelled",
			Effect:  string(policies.EffectUnknown),
			Message: "cancelled",
		}
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return fromTimeout(timeout)
	}
	return contract.Failure{
		Reason:    string(policies.ReasonUnclassified),
		Rule:      "P4.14/foreign_error",
		Permanent: true,
		Effect:    string(policies.EffectUnknown),
		Message:   "the activity failed in a way it did not explain",
	}
}

// Partial reads what was complete when the attempt failed into into, and
// reports whether there was any.
func Partial(err error, into any) bool {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || !app.HasDetails() {
		return false
	}
	var f contract.Failure
	return app.Details(&f, into) == nil
}

// Shorten cuts s to MaxMessage bytes at a rune boundary.
func Shorten(s string) string {
	if len(s) <= MaxMessage {
		return s
	}
	cut := MaxMessage - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// CeilMS is d in whole milliseconds, rounded up so that a floor survives it.
func CeilMS(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
