package client_test

import (
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// I1: one review that no worker can read does not hide the others.
func TestReviewsListsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	temporal := &mocks.Client{}
	list := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, key := range []string{"a", "b"} {
		list.Executions = append(list.Executions, &workflowpb.WorkflowExecutionInfo{
			Execution: &commonpb.WorkflowExecution{WorkflowId: contract.PrefixReview + key},
		})
	}
	value := &mocks.Value{}
	value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		args.Get(0).(*contract.ReviewInput).Review.Text = "hello"
	}).Return(nil)
	temporal.On("ListWorkflow", mock.Anything, mock.Anything).Return(list, nil)
	temporal.On("QueryWorkflow", mock.Anything, contract.PrefixReview+"a", "", contract.QueryState).
		Return(nil, serviceerror.NewDeadlineExceeded("no worker"))
	temporal.On("QueryWorkflow", mock.Anything, contract.PrefixReview+"b", "", contract.QueryState).Return(value, nil)
	open, err := client.New(temporal).Reviews(t.Context())
	if err != nil || len(open) != 2 {
		t.Fatalf("%d reviews, %v, want both", len(open), err)
	}
	if open[0].Key != "a" || open[0].Unread == nil {
		t.Errorf("the unread review is %+v", open[0])
	}
	if open[1].Key != "b" || open[1].Unread != nil || open[1].Input.Review.Text != "hello" {
		t.Errorf("the other review is %+v", open[1])
	}
}
