package starter

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

func execution(id string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: id, RunId: "r1"}
}

// I1: cancel says what was asked for; work that has ended, or never was, is the
// user's to mend.
func TestCancel(t *testing.T) {
	t.Parallel()
	gone := serviceerror.NewNotFound("workflow execution already completed")
	for _, tc := range []struct {
		name     string
		refusal  error
		describe error
		status   int
		message  string
	}{
		{name: "running", status: contract.ExitOK},
		{name: "ended", refusal: gone, status: contract.ExitUsage, message: "send/k has ended already"},
		{name: "unknown", refusal: gone, describe: gone, status: contract.ExitUsage, message: `there is no work "send/k"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			temporal := &mocks.Client{}
			temporal.On("CancelWorkflow", mock.Anything, "send/k", "").Return(tc.refusal)
			temporal.On("DescribeWorkflowExecution", mock.Anything, "send/k", "").
				Return(described(enums.WORKFLOW_EXECUTION_STATUS_COMPLETED), tc.describe)
			s, out, _ := newSession(t.Context(), Globals{JSON: true})
			status := s.fail((&CancelCmd{ID: "send/k"}).ask(t.Context(), s, temporal))
			a := out.answer(t)
			if status != tc.status || !strings.Contains(a.Error.Message, tc.message) {
				t.Errorf("exit status %d, %q, want %d, %q", status, a.Error.Message, tc.status, tc.message)
			}
			if tc.status == contract.ExitOK && a.Requested != "cancel" {
				t.Errorf("%+v does not say what was requested", a)
			}
		})
	}
}

// I1: an interrupted watch gives one object with the id, and exit status 130.
func TestInterruptedWatch(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	temporal := &mocks.Client{}
	temporal.On("DescribeWorkflowExecution", mock.Anything, "send/k", "").Return(nil, ctx.Err())
	s, out, _ := newSession(ctx, Globals{JSON: true})
	status := s.fail((&watch{session: s, id: "send/k", temporal: temporal}).follow(ctx))
	if a := out.answer(t); status != contract.ExitCancelled || a.WorkflowID != "send/k" {
		t.Errorf("exit status %d, %+v", status, a)
	}
}

// C1: a settle needs a message id, which is checked before anyone is asked.
func TestSettleNeedsAReceipt(t *testing.T) {
	t.Parallel()
	for _, receipt := range []string{"", " ", "12\x1b[2J", "1\n2"} {
		var out, errs screen
		status := Main(t.Context(), Program{
			Args: []string{"review", "settle", "k", "--receipt=" + receipt, "--json", "--address", "127.0.0.1:1"},
			Out:  &out, Err: &errs, Env: func(string) (string, bool) { return "", false },
		})
		if a := out.answer(t); status != contract.ExitUsage || !strings.Contains(a.Error.Message, "is no message id") {
			t.Errorf("receipt %q: exit status %d, %q", receipt, status, a.Error.Message)
		}
	}
}

// I1: a list of reviews shows the beginning of each text, and a review that
// nobody can read now is still listed.
func TestShowReviews(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 300)
	open := []holdfast.OpenReview{
		{Key: "a", Input: contract.ReviewInput{Review: contract.Review{
			Part: 2, Text: long, Delivered: []contract.DeliveredPart{{Part: 1, Text: long}},
		}}},
		{Key: "b", Unread: errors.New("no worker")},
	}
	s, out, _ := newSession(t.Context(), Globals{})
	s.showReviews(open)
	if got := strings.Count(out.String(), strings.Repeat("ä", maxListed-1)+"…\n"); got != 2 || strings.Contains(out.String(), strings.Repeat("ä", maxListed)) {
		t.Errorf("%d texts end after %d characters, want 2:\n%s", got, maxListed, out)
	}
	if !strings.Contains(out.String(), "b  its texts cannot be read now: no worker\n") {
		t.Errorf("the second review is missing:\n%s", out)
	}
	if open[0].Input.Review.Delivered[0].Text != long {
		t.Error("the listed review itself was shortened")
	}
	s, out, _ = newSession(t.Context(), Globals{JSON: true})
	s.showReviews(open)
	if !strings.Contains(out.String(), long) || !strings.Contains(out.String(), `"unread":"no worker"`) {
		t.Errorf("JSON lacks the whole text or the reason:\n%s", out)
	}
}
