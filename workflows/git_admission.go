package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// admit asks the gateway whether the coming attempt may still be made (G5), and
// says why not. Any error refuses, one that comes of nobody answering too.
func (g *gitOperation) admit(ctx workflow.Context, coming int) *contract.Failure {
	left := g.left(ctx)
	if g.admission == nil || left < time.Millisecond {
		return nil
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:              g.admission.TaskQueue,
		ScheduleToCloseTimeout: left,
		StartToCloseTimeout:    left,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary("may git %s be made? attempt %d", g.operation, coming),
	})
	err := workflow.ExecuteActivity(ctx, g.admission.Activity, contract.GitAdmissionRequest{
		Operation: string(g.operation), Attempt: coming,
	}).Get(ctx, nil)
	if err == nil {
		return nil
	}
	return &contract.Failure{
		Surface: string(policies.SurfaceGit), Reason: string(policies.ReasonPermission), Rule: "G5/refused", Permanent: true,
		Effect:  string(policies.EffectNotSent),
		Message: fmt.Sprintf("the gateway did not admit attempt %d: %s", coming, failure.From(err).Message),
	}
}
