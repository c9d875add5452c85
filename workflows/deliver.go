package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// delivery works on one part of a send until the part has a receipt or the send
// ends.
type delivery struct {
	send *send
	part *contract.Part

	original string // the part's text before its markup was given up
	to       string
	used     int       // attempts of the envelope spent on the part
	firstAt  time.Time // when the first of them began
	plain    bool      // the markup was given up (C2.7)
	migrated bool      // the destination was followed once
}

// run returns nil when the send may go on with the next part.
func (d *delivery) run(ctx workflow.Context) *contract.SendResult {
	d.to, d.original = d.send.in.To, d.part.Text
	if d.send.moved != "" {
		d.to, d.migrated = d.send.moved, true
	}
	d.firstAt = workflow.Now(ctx)
	for {
		if ctx.Err() != nil {
			return d.cancelled("cancelled before this part was sent")
		}
		result, err := d.attempt(ctx)
		if err == nil {
			d.send.attempts += max(result.Attempts-d.used, 1)
			d.receipt(result.MessageID)
			return nil
		}
		f := d.charge(err)
		if end, done := d.after(ctx, f); done {
			return end
		}
	}
}

func (d *delivery) receipt(messageID string) {
	d.send.receipts = append(d.send.receipts, contract.Receipt{Part: d.part.N, MessageID: messageID, Plain: d.plain})
}

// cancelled is the end of a send whose part is proved not sent.
func (d *delivery) cancelled(message string) *contract.SendResult {
	s := d.send
	e := &contract.Error{
		Reason: string(policies.ReasonCancelled), Rule: "C1/cancelled", Message: message, Attempts: s.attempts,
	}
	if s.dropped != nil {
		e.Message += "; " + s.dropped.Message
	}
	return &contract.SendResult{Outcome: contract.OutcomeCancelled, Error: e}
}

// charge reads the failure of an activity and counts its requests.
func (d *delivery) charge(err error) contract.Failure {
	f := failure.From(err)
	if !d.send.route.keyed && idle(err) {
		f.Effect = string(policies.EffectNotSent)
	}
	n := f.Attempts
	var ae *temporal.ActivityError
	if errors.As(err, &ae) && f.Attempts == 0 {
		switch {
		case ae.RetryState() == enumspb.RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED:
			n = d.send.route.envelope.Attempts - d.used
		case f.Reason == string(policies.ReasonWorkerLost):
			n = 1
		}
	}
	d.used += n
	d.send.attempts += n
	return f
}

// idle reports that an activity ended while none of its attempts was at work: it
// was cancelled, or not picked up in time, between them or before the first.
// Where the server repeats only what is proved not sent, nothing was sent then.
func idle(err error) bool {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
	}
	var app *temporal.ApplicationError
	return !errors.As(err, &app) && temporal.IsCanceledError(err)
}

// attempt runs the one activity of the part. The server repeats it within the
// envelope as far as its failures allow.
func (d *delivery) attempt(ctx workflow.Context) (contract.MessageResult, error) {
	s := d.send
	left := max(s.expires.Sub(workflow.Now(ctx)), time.Second)
	env := s.route.envelope
	policy := &temporal.RetryPolicy{
		InitialInterval:    env.Min,
		BackoffCoefficient: 2,
		MaximumInterval:    env.Max,
		MaximumAttempts:    int32(env.Attempts - d.used),
	}
	if !s.route.keyed {
		policy.NonRetryableErrorTypes = failure.LostWorkerTypes()
	}
	actx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToStartTimeout: left,
		ScheduleToCloseTimeout: left + requestLimit,
		StartToCloseTimeout:    requestLimit,
		HeartbeatTimeout:       heartbeatTimeout,
		WaitForCancellation:    true,
		RetryPolicy:            policy,
		Summary:                summary("%s part %d/%d", s.in.Channel, d.part.N, len(s.parts)),
	})
	in := contract.MessageInput{
		Account: s.in.Account, To: d.to, Thread: s.in.Thread, ReplyTo: d.part.ReplyTo,
		Text: d.part.Text, Format: d.part.Format,
		Used: d.used, ExpiresAt: s.expires,
	}
	if s.route.keyed {
		in.Nonce = policies.Nonce(fmt.Sprintf("%s/part/%d", s.id, d.part.N))
		in.FirstAt = d.firstAt
	}
	var result contract.MessageResult
	err := workflow.ExecuteActivity(actx, s.route.activity, in).Get(ctx, &result)
	return result, err
}

// after decides what follows a failure of the part: done with an end of the
// send, done with nil (the part is settled), or not done (try again).
func (d *delivery) after(ctx workflow.Context, f contract.Failure) (end *contract.SendResult, done bool) {
	s := d.send
	switch {
	case f.Reason == string(policies.ReasonParseError) && !d.plain:
		d.plain = true
		d.uncharge() // the same logical attempt goes on without markup
		d.part.Text = policies.PlainText(d.part.Text, string(d.part.Format))
		d.part.Format = contract.FormatPlain
		return nil, false
	case f.MigrateTo != "" && !d.migrated:
		d.migrated = true
		d.uncharge() // nor does it cost one to be sent to the right place
		d.to = f.MigrateTo
		s.moved = f.MigrateTo
		return nil, false
	case f.Effect == string(policies.EffectUnknown):
		return d.reconcile(ctx, f)
	case f.Reason == string(policies.ReasonCancelled):
		return d.cancelled(f.Message), true
	case f.Reason == string(policies.ReasonDeadline):
		return s.expired(ctx, f), true
	case f.RetrySame && d.used < s.route.envelope.Attempts:
		return d.wait(ctx, f)
	case f.RetrySame:
		e := s.failed(f)
		e.ResetAt = resetAt(ctx, f)
		return &contract.SendResult{Outcome: contract.OutcomeNotSent, Error: e}, true
	}
	return &contract.SendResult{Outcome: contract.OutcomeRejected, Error: s.failed(f)}, true
}

func (d *delivery) uncharge() { d.used = max(d.used-1, 0) }

// wait holds a floor that is too long for the server's own retry delay (P2).
func (d *delivery) wait(ctx workflow.Context, f contract.Failure) (*contract.SendResult, bool) {
	s := d.send
	delay := max(time.Duration(f.DelayMS)*time.Millisecond, floorOf(f))
	if workflow.Now(ctx).Add(delay).After(s.expires) {
		return s.expired(ctx, f), true
	}
	notice := fmt.Sprintf("wait %s: %s, attempt %d of %d", round(delay), f.Reason, d.used+1, s.route.envelope.Attempts)
	workflow.GetLogger(ctx).Warn(failure.RetryLine(s.in.Channel, d.used+1, s.route.envelope.Attempts, f, delay), "rule", f.Rule)
	s.state = contract.StateWaiting
	s.describe(ctx, notice)
	s.searchable(ctx, contract.StateWaiting)
	err := workflow.NewTimerWithOptions(ctx, delay, workflow.TimerOptions{Summary: notice}).Get(ctx, nil)
	s.state = "sending"
	s.describe(ctx, "")
	if err != nil {
		return d.cancelled("cancelled while waiting; this part was not sent"), true
	}
	s.searchable(ctx, contract.StateRunning)
	return nil, false
}

// searchable makes the state of a send that waits long known to the list.
func (s *send) searchable(ctx workflow.Context, state string) {
	if err := workflow.UpsertTypedSearchAttributes(ctx, keywords(contract.AttributeState, state)...); err != nil {
		workflow.GetLogger(ctx).Warn("the state could not be made searchable", "error", err)
	}
}

// expired says that waiting as long as the other side asked would pass the time
// to live (P2).
func (s *send) expired(ctx workflow.Context, f contract.Failure) *contract.SendResult {
	e := s.failed(f)
	e.Reason = string(policies.ReasonDeadline)
	e.Message = "the time to live ends before this part may be sent"
	if e.ResetAt = resetAt(ctx, f); e.ResetAt != "" {
		e.Message += "; send again after the reset time, or with a longer --ttl"
	}
	if f.Message != "" {
		e.Message += ": " + f.Message
	}
	return &contract.SendResult{Outcome: contract.OutcomeExpired, Error: e}
}

// resetAt is when the other side said it would serve again, or empty. It is
// rounded up, so that whoever waits for it is not early.
func resetAt(ctx workflow.Context, f contract.Failure) string {
	floor := floorOf(f)
	if floor <= 0 {
		return ""
	}
	return workflow.Now(ctx).Add(floor + time.Second - time.Nanosecond).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func floorOf(f contract.Failure) time.Duration {
	if f.FloorMS == nil {
		return 0
	}
	return time.Duration(*f.FloorMS) * time.Millisecond
}

func round(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}
