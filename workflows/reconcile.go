package workflows

import (
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

const (
	lookPage  = 100 // messages per read, the most that Discord gives
	lookPages = 10  // reads per look
)

// reconcile asks the outside what became of a part whose outcome is unknown
// (C4), and decides. It goes on when the send was cancelled: a request that has
// started is finished or reconciled.
func (d *delivery) reconcile(ctx workflow.Context, f contract.Failure) (*contract.SendResult, bool) {
	s := d.send
	cancelled := ctx.Err() != nil
	if s.route.readable {
		s.state = "reconciling"
		s.describe(ctx, fmt.Sprintf("part %d may have been sent (%s): looking for it", d.part.N, f.Reason))
		// The look is owed also when the send is cancelled before or during it.
		apart, _ := workflow.NewDisconnectedContext(ctx)
		found := d.look(apart)
		cancelled = ctx.Err() != nil
		s.state = "sending"
		s.describe(ctx, "")
		switch found.Answer {
		case policies.ReconcileFound:
			d.receipt(found.Receipt)
			return nil, true
		case policies.ReconcileAbsent:
			return d.absent(ctx, f)
		}
	}
	switch s.in.OnUnknown {
	case contract.OnUnknownResend:
		if !cancelled && d.used < s.route.envelope.Attempts {
			d.firstAt = workflow.Now(ctx)
			return nil, false
		}
	case contract.OnUnknownDrop:
		s.dropped = s.failed(f)
		s.dropped.Message = fmt.Sprintf("part %d was left out, since its outcome is unknown and the send says on_unknown drop: %s", d.part.N, f.Message)
		return nil, true
	}
	return d.review(ctx, f), true
}

// absent follows the proof that the part was not sent.
func (d *delivery) absent(ctx workflow.Context, f contract.Failure) (*contract.SendResult, bool) {
	s := d.send
	if ctx.Err() != nil {
		return d.cancelled("cancelled; this part was looked for and not found, so it was not sent"), true
	}
	if !workflow.Now(ctx).Before(s.expires) {
		return s.expired(ctx, f), true
	}
	if d.used >= s.route.envelope.Attempts {
		return &contract.SendResult{Outcome: contract.OutcomeNotSent, Error: s.failed(f)}, true
	}
	d.firstAt = workflow.Now(ctx) // nothing is out there, so the nonce window begins anew
	return nil, false
}

// look reads the channel after the anchor, twice if need be (C4).
func (d *delivery) look(ctx workflow.Context) policies.ReconcileVerdict {
	s := d.send
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: 5 * time.Minute,
		StartToCloseTimeout:    requestLimit,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: policies.EnvelopeDiscordREST.Min, BackoffCoefficient: 2,
			MaximumInterval: policies.EnvelopeDiscordREST.Max,
			MaximumAttempts: int32(policies.EnvelopeDiscordREST.Attempts),
		},
		Summary: summary("reconcile part %d/%d", d.part.N, len(s.parts)),
	})
	var self contract.DiscordUserResult
	if !d.ask(ctx, contract.ActivityDiscordCurrentUser, contract.DiscordListInput{Account: s.in.Account}, &self) {
		return policies.ReconcileVerdict{Answer: policies.ReconcileUnresolved}
	}
	before := ""
	r := policies.Reconciliation{
		Self: self.ID, Content: d.part.Text, StartID: policies.Snowflake(d.firstAt.Add(-policies.ClockMargin)),
	}
	for _, receipt := range s.receipts {
		r.Receipted = append(r.Receipted, receipt.MessageID)
		before = receipt.MessageID
	}
	r.Anchor = policies.ReconcileAnchor(before, "", s.started)
	for {
		r.Looks = append(r.Looks, d.read(ctx, r.Anchor.ID, self.ID))
		verdict := policies.Reconcile(r)
		if verdict.Answer != policies.ReconcileLookAgain {
			return verdict
		}
		said := summary("wait %s: second look for part %d", verdict.After, d.part.N)
		_ = workflow.NewTimerWithOptions(ctx, verdict.After, workflow.TimerOptions{Summary: said}).Get(ctx, nil)
	}
}

// ask makes one read of a look. A floor that is too long for the server's own
// retry delay is a timer here too (P2).
func (d *delivery) ask(ctx workflow.Context, activity string, in contract.DiscordListInput, answer any) bool {
	for range policies.EnvelopeDiscordREST.Attempts {
		err := workflow.ExecuteActivity(ctx, activity, in).Get(ctx, answer)
		if err == nil {
			return true
		}
		f := failure.From(err)
		delay := time.Duration(f.DelayMS) * time.Millisecond
		if !f.RetrySame || delay <= policies.ChannelInlineFloor || workflow.Now(ctx).Add(delay).After(d.send.expires) {
			return false
		}
		said := summary("wait %s: %s, looking for part %d", round(delay), f.Reason, d.part.N)
		_ = workflow.NewTimerWithOptions(ctx, delay, workflow.TimerOptions{Summary: said}).Get(ctx, nil)
	}
	return false
}

// read takes one look: everything after the anchor, page by page, and what
// stands just before it, for an empty answer can mean a missing permission.
func (d *delivery) read(ctx workflow.Context, anchor, author string) policies.Look {
	in := contract.DiscordListInput{
		Account: d.send.in.Account, Channel: d.send.in.Thread, After: anchor, Limit: lookPage, Author: author,
	}
	if in.Channel == "" {
		in.Channel = d.to
	}
	look := policies.Look{More: true}
	for range lookPages {
		page, ok := d.list(ctx, in)
		if !ok {
			return policies.Look{Failed: true}
		}
		look.After = append(look.After, page...)
		if len(page) < lookPage {
			look.More = false
			break
		}
		in.After = page[len(page)-1].ID
	}
	if len(look.After) == 0 {
		in.After, in.Before, in.Limit = "", anchor, 1
		var ok bool
		if look.Before, ok = d.list(ctx, in); !ok {
			look.Failed = true
		}
	}
	return look
}

func (d *delivery) list(ctx workflow.Context, in contract.DiscordListInput) ([]policies.SeenMessage, bool) {
	var list contract.DiscordListResult
	if !d.ask(ctx, contract.ActivityDiscordListMessages, in, &list) {
		return nil, false
	}
	seen := make([]policies.SeenMessage, len(list.Messages))
	for i, m := range list.Messages {
		seen[i] = policies.SeenMessage{ID: m.ID, AuthorID: m.AuthorID, Content: m.Content, Attachments: m.Attachments}
	}
	return seen, true
}

// review ends the send and leaves a review workflow behind that takes an
// operator's word for 7 days (C1).
func (d *delivery) review(ctx workflow.Context, f contract.Failure) *contract.SendResult {
	s := d.send
	r := contract.Review{
		Part: d.part.N, Text: d.part.Text, Delivered: []contract.DeliveredPart{},
		Key: keyOf(s.id, contract.PrefixSend),
	}
	for _, receipt := range s.receipts {
		r.Delivered = append(r.Delivered, contract.DeliveredPart{
			Part: receipt.Part, MessageID: receipt.MessageID, Text: s.parts[receipt.Part-1].Text,
		})
	}
	if d.part.N < len(s.parts) || d.plain {
		r.Rest = d.rest()
	}
	end := &contract.SendResult{Outcome: contract.OutcomeNeedsReview, Review: &r, Error: s.failed(f)}
	cctx, _ := workflow.NewDisconnectedContext(ctx)
	cctx = workflow.WithChildOptions(cctx, workflow.ChildWorkflowOptions{
		WorkflowID:            contract.PrefixReview + r.Key,
		TaskQueue:             contract.QueueWorkflows,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: sendAttributes(contract.WorkflowReview, contract.StateNeedsReview, s.in),
		StaticSummary:         summary("review part %d of a send to %s %s", r.Part, s.in.Channel, s.in.To),
	})
	child := workflow.ExecuteChildWorkflow(cctx, contract.WorkflowReview, contract.ReviewInput{
		SendID: s.id, Send: withoutText(s.in), Review: r, Error: end.Error,
	})
	if err := child.GetChildWorkflowExecution().Get(cctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("the review workflow did not start", "review", r.Key, "error", err)
		r.Key = ""
	}
	return end
}

// rest is the text from this part on. It is taken from the send's own text where
// the parts are found in it, for a cut drops the blanks around it; a part that
// was changed, as by a code fence that had to be closed, is not found.
func (d *delivery) rest() string {
	s := d.send
	text := s.in.Text
	for _, p := range s.parts[:d.part.N-1] {
		_, after, ok := strings.Cut(text, p.Text)
		if !ok {
			text = ""
			break
		}
		text = after
	}
	if at := strings.Index(text, d.original); at >= 0 && strings.TrimSpace(text[:at]) == "" {
		return text[at:]
	}
	rest := []string{d.original}
	for _, p := range s.parts[d.part.N:] {
		rest = append(rest, p.Text)
	}
	return strings.Join(rest, "\n")
}

// withoutText leaves out what a review holds anyway, so that its input is not
// larger than a payload may be.
func withoutText(in contract.SendInput) contract.SendInput {
	in.Text = ""
	return in
}
