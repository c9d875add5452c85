package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
)

// reviewRun drives one Review through the updates of an operator.
type reviewRun struct {
	*harness
	in contract.ReviewInput
	// answers are what the updates got, in order: a decision or the refusal.
	answers []string
}

func newReviewRun(t *testing.T) *reviewRun {
	t.Helper()
	r := &reviewRun{harness: newHarness(t, "review/k"), in: contract.ReviewInput{
		SendID: "send/k",
		Send:   contract.SendInput{Channel: "telegram", Account: "main", To: "42", Text: "one\ntwo\nthree", ReplyTo: "7"},
		Review: contract.Review{
			Part: 2, Text: "two", Rest: "two\nthree", Key: "k",
			Delivered: []contract.DeliveredPart{{Part: 1, MessageID: "m1", Text: "one"}},
		},
		Error: &contract.Error{Reason: "timeout", Message: "no answer came"},
	}}
	r.env.RegisterWorkflowWithOptions(func(workflow.Context, contract.SendInput) (contract.SendResult, error) {
		return contract.SendResult{}, nil
	}, workflow.RegisterOptions{Name: contract.WorkflowSend})
	return r
}

// after sends an update when the review has been open for d.
func (r *reviewRun) after(d time.Duration, update string, decision contract.ReviewDecision) {
	r.env.RegisterDelayedCallback(func() {
		r.env.UpdateWorkflow(update, "", &testsuite.TestUpdateCallback{
			OnAccept: func() {},
			OnReject: func(err error) { r.answers = append(r.answers, "refused: "+err.Error()) },
			OnComplete: func(result any, err error) {
				if err != nil {
					r.answers = append(r.answers, "failed: "+err.Error())
					return
				}
				r.answers = append(r.answers, result.(contract.ReviewResult).Decision)
			},
		}, decision)
	}, d)
}

func (r *reviewRun) run() contract.ReviewResult {
	r.t.Helper()
	r.env.ExecuteWorkflow(Review, r.in)
	var result contract.ReviewResult
	r.check(&result)
	return result
}

// C1: a review shows the part and what was delivered before it, and takes a
// receipt once; what comes after the decision is refused.
func TestReviewSettle(t *testing.T) {
	t.Parallel()
	r := newReviewRun(t)
	var shown string
	var asked contract.ReviewInput
	r.env.RegisterDelayedCallback(func() {
		shown = r.details()
		r.query(contract.QueryState, &asked)
	}, time.Minute)
	r.after(time.Hour, contract.UpdateSettle, contract.ReviewDecision{})
	r.after(2*time.Hour, contract.UpdateSettle, contract.ReviewDecision{Receipt: "m2", Reason: "seen in the chat"})
	r.after(2*time.Hour, contract.UpdateAbandon, contract.ReviewDecision{})
	got := r.run()
	want := contract.ReviewResult{Decision: "settled", Reason: "seen in the chat", Receipt: &contract.Receipt{Part: 2, MessageID: "m2"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if len(r.answers) < 2 || !strings.Contains(r.answers[0], "--receipt") || r.answers[1] != "settled" {
		t.Errorf("answers %q", r.answers)
	}
	for _, a := range r.answers[2:] {
		if !strings.Contains(a, "decided already") {
			t.Errorf("a second decision was answered with %q", a)
		}
	}
	for _, says := range []string{"part 2 of `send/k` to telegram `42`", "no answer came", "> two", "message m1", "> one"} {
		if !strings.Contains(shown, says) {
			t.Errorf("I4: details %q do not say %q", shown, says)
		}
	}
	if diff := cmp.Diff(r.in, asked); diff != "" {
		t.Errorf("query state (-want +got):\n%s", diff)
	}
	if r.since() != 2*time.Hour {
		t.Errorf("closed after %s", r.since())
	}
}

// C1: a retry is a new send of the part and the rest, under its own key; while
// it starts, no other decision is taken.
func TestReviewRetry(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{"": "send/k-retry", "again": "send/again"} {
		r := newReviewRun(t)
		r.after(time.Hour, contract.UpdateRetry, contract.ReviewDecision{Key: key})
		r.after(time.Hour, contract.UpdateSettle, contract.ReviewDecision{Receipt: "m2"})
		got := r.run()
		if got.Decision != "retried" || got.RetryID != want || got.Receipt != nil {
			t.Errorf("result %s", jsonOf(got))
		}
		if len(r.seen.children) != 1 || len(r.answers) == 0 {
			t.Fatalf("%d sends started, answers %q", len(r.seen.children), r.answers)
		}
		child := r.seen.children[0]
		if child.WorkflowID != want || child.TaskQueue != contract.QueueTelegram || child.ParentClosePolicy != enumspb.PARENT_CLOSE_POLICY_ABANDON ||
			child.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE {
			t.Errorf("the send is started with %+v", child)
		}
		send := r.in.Send
		send.Text, send.ReplyTo = "two\nthree", ""
		if diff := cmp.Diff(send, r.seen.childInput[0]); diff != "" {
			t.Errorf("the new send (-want +got):\n%s", diff)
		}
		if !strings.Contains(strings.Join(r.answers, "\n"), "decided already") {
			t.Errorf("answers %q, want the second decision refused", r.answers)
		}
	}
}

// C1: the part stays unsent.
func TestReviewAbandon(t *testing.T) {
	t.Parallel()
	r := newReviewRun(t)
	r.after(time.Hour, contract.UpdateAbandon, contract.ReviewDecision{Reason: "too late"})
	got := r.run()
	if diff := cmp.Diff(contract.ReviewResult{Decision: "abandoned", Reason: "too late"}, got); diff != "" || len(r.seen.children) != 0 {
		t.Errorf("%d sends, result (-want +got):\n%s", len(r.seen.children), diff)
	}
}

// C1: nobody decides for 7 days.
func TestReviewExpires(t *testing.T) {
	t.Parallel()
	r := newReviewRun(t)
	got := r.run()
	if got.Decision != "expired" || r.since() != 7*24*time.Hour {
		t.Errorf("%s after %s", jsonOf(got), r.since())
	}
}

// I4: long texts are shown in part (harness.check).
func TestReviewShowsLittle(t *testing.T) {
	t.Parallel()
	r := newReviewRun(t)
	long := strings.Repeat("ü\n", 20_000)
	r.in.Review.Text, r.in.Review.Delivered[0].Text, r.in.Send.To, r.in.Error.Message = long, long, long, long
	r.env.RegisterDelayedCallback(func() {
		if d := r.details(); len(d) >= maxDetails || !strings.Contains(d, "Delivered before it") {
			t.Errorf("details of %d bytes", len(d))
		}
	}, time.Hour)
	r.after(2*time.Hour, contract.UpdateAbandon, contract.ReviewDecision{Reason: long})
	r.run()
}
