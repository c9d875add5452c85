package client

import (
	"context"
	"fmt"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
)

func (c *Client) decide(ctx context.Context, key, update string, d contract.ReviewDecision) (contract.ReviewResult, error) {
	var result contract.ReviewResult
	handle, err := c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID:   contract.PrefixReview + key,
		UpdateName:   update,
		Args:         []any{d},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return result, err
	}
	err = handle.Get(ctx, &result)
	return result, err
}

// OpenReview is a review that waits for an operator.
type OpenReview struct {
	Key   string
	Input contract.ReviewInput
}

// Reviews lists the reviews that are open, newest first.
func (c *Client) Reviews(ctx context.Context) ([]OpenReview, error) {
	var open []OpenReview
	var page []byte
	for {
		list, err := c.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query:         fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = 'Running'", contract.WorkflowReview),
			NextPageToken: page,
		})
		if err != nil {
			return nil, err
		}
		for _, e := range list.GetExecutions() {
			id := e.GetExecution().GetWorkflowId()
			value, err := c.temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
			if err != nil {
				return nil, err
			}
			r := OpenReview{Key: id[len(contract.PrefixReview):]}
			if err := value.Get(&r.Input); err != nil {
				return nil, err
			}
			open = append(open, r)
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return open, nil
		}
	}
}
