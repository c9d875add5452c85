package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// ReviewOpen is how long a review waits for an operator (C1).
const ReviewOpen = 7 * 24 * time.Hour

// Decisions of a review.
const (
	decisionSettled   = "settled"
	decisionRetried   = "retried"
	decisionAbandoned = "abandoned"
	decisionExpired   = "expired"
)

// Review stays open after a send that ended in needs_review, shows the part, its
// text and what was delivered before it, and takes one decision: settle with a
// receipt, retry as a new send with its own key, or abandon (C1).
func Review(ctx workflow.Context, in contract.ReviewInput) (contract.ReviewResult, error) {
	r := &review{in: in}
	if err := r.setup(ctx); err != nil {
		return contract.ReviewResult{}, err
	}
	workflow.SetCurrentDetails(ctx, r.details())
	timer, stop := workflow.WithCancel(ctx)
	expiry := workflow.NewTimerWithOptions(timer, ReviewOpen, workflow.TimerOptions{Summary: "review closes"})
	err := workflow.Await(ctx, func() bool { return r.result.Decision != "" || expiry.IsReady() })
	stop()
	if err != nil {
		return r.result, err
	}
	if r.result.Decision == "" {
		r.result.Decision = decisionExpired
	}
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return r.result, err
	}
	workflow.SetCurrentDetails(ctx, cut("**"+r.result.Decision+"** "+r.result.Reason, maxQuote))
	return r.result, recordEnd(ctx, contract.Outcome(r.result.Decision), nil)
}

type review struct {
	in     contract.ReviewInput
	result contract.ReviewResult
	busy   bool
}

func (r *review) setup(ctx workflow.Context) error {
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryState, func() (contract.ReviewInput, error) {
		return r.in, nil
	}, workflow.QueryHandlerOptions{Description: "The part under review, its text, and what was delivered before it"})
	if err != nil {
		return err
	}
	for _, u := range []struct {
		name, description string
		validate          func(contract.ReviewDecision) error
		handle            func(workflow.Context, contract.ReviewDecision) error
	}{
		{contract.UpdateSettle, "Record the message id that the part got", validateSettle, r.settle},
		{contract.UpdateRetry, "Send the part again as a new send", validateRetry, r.retry},
		{contract.UpdateAbandon, "Leave the part unsent", func(contract.ReviewDecision) error { return nil }, r.abandon},
	} {
		handle := func(ctx workflow.Context, d contract.ReviewDecision) (contract.ReviewResult, error) {
			if err := r.undecided(); err != nil {
				return r.result, err
			}
			r.busy = true
			defer func() { r.busy = false }()
			err := u.handle(ctx, d)
			return r.result, err
		}
		err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, handle, workflow.UpdateHandlerOptions{
			Description: u.description,
			Validator: func(_ workflow.Context, d contract.ReviewDecision) error {
				if err := r.undecided(); err != nil {
					return err
				}
				return u.validate(d)
			},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// undecided refuses a second decision. It is asked before an update is
// accepted, and again when its turn comes.
func (r *review) undecided() error {
	if r.busy || r.result.Decision != "" {
		return temporal.NewNonRetryableApplicationError("the review is decided already", "decided", nil)
	}
	return nil
}

func validateSettle(d contract.ReviewDecision) error {
	if d.Receipt == "" {
		return errors.New("settle needs the message id that the part got (--receipt)")
	}
	return nil
}

func validateRetry(d contract.ReviewDecision) error {
	if err := contract.ValidateKey(d.Key); err != nil {
		return err
	}
	return nil
}

func (r *review) settle(_ workflow.Context, d contract.ReviewDecision) error {
	r.result = contract.ReviewResult{
		Decision: decisionSettled, Reason: d.Reason,
		Receipt: &contract.Receipt{Part: r.in.Review.Part, MessageID: d.Receipt},
	}
	return nil
}

func (r *review) abandon(_ workflow.Context, d contract.ReviewDecision) error {
	r.result = contract.ReviewResult{Decision: decisionAbandoned, Reason: d.Reason}
	return nil
}

// retry starts a new logical send of the part and what came after it. It has a
// key of its own, since it is a new decision that may double the part.
func (r *review) retry(ctx workflow.Context, d contract.ReviewDecision) error {
	key := d.Key
	if key == "" {
		key = keyOf(r.in.SendID, contract.PrefixSend) + "-retry"
	}
	send := r.in.Send
	send.Text = r.in.Review.Rest
	if send.Text == "" {
		send.Text = r.in.Review.Text
	}
	if r.in.Review.Part > 1 {
		send.ReplyTo = ""
	}
	id := contract.PrefixSend + key
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		TaskQueue:             queueOf(send.Channel),
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes: sendAttributes(contract.WorkflowSend, contract.StateRunning, send),
		StaticSummary:         summary("send to %s %s (retry after review)", send.Channel, send.To),
	})
	child := workflow.ExecuteChildWorkflow(ctx, contract.WorkflowSend, send)
	if err := child.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("no send could be started under the key %q; give another with --key", key), string(policies.ReasonKeyConflict), err)
	}
	r.result = contract.ReviewResult{Decision: decisionRetried, Reason: d.Reason, RetryID: id}
	return nil
}

func (r *review) details() string {
	d := fmt.Sprintf("**needs review**: part %d of `%s` to %s `%s` may or may not have been sent.\n\n",
		r.in.Review.Part, cut(r.in.SendID, 300), r.in.Send.Channel, cut(r.in.Send.To, 200))
	if r.in.Error != nil {
		d += cut(r.in.Error.Message, 1000) + "\n\n"
	}
	d += "The part:\n\n" + quote(r.in.Review.Text)
	if n := len(r.in.Review.Delivered); n > 0 {
		last := r.in.Review.Delivered[n-1]
		d += fmt.Sprintf("\n\nDelivered before it (message %s):\n\n%s", last.MessageID, quote(last.Text))
	}
	return d
}
