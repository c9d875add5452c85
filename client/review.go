package client

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	Input contract.ReviewInput // empty if Unread is set
	// Unread is why the review could not be asked for its texts, for instance
	// because no worker answers.
	Unread error
}

// queryPatience is how long one review is waited for.
const queryPatience = 5 * time.Second

// Reviews lists the reviews that are open, newest first. One that cannot be
// asked for its texts is listed without them.
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
			r := OpenReview{Key: strings.TrimPrefix(id, contract.PrefixReview)}
			r.Input, r.Unread = c.reviewInput(ctx, id)
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			open = append(open, r)
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return open, nil
		}
	}
}

func (c *Client) reviewInput(ctx context.Context, id string) (contract.ReviewInput, error) {
	ctx, cancel := context.WithTimeout(ctx, queryPatience)
	defer cancel()
	value, err := c.temporal.QueryWorkflow(ctx, id, "", contract.QueryState)
	if err != nil {
		return contract.ReviewInput{}, err
	}
	var in contract.ReviewInput
	err = value.Get(&in)
	return in, err
}
