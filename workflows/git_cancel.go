package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// gitCancelGrace is how long a cancelled operation waits to be told how an
	// activity that writes has ended. The operation ends within a second of its
	// cancellation, and the activity ends by itself soon after.
	gitCancelGrace = 700 * time.Millisecond

	// changeGitCancelGrace is the version of the workflow that has the grace;
	// before it, the activity was waited for however long it took.
	changeGitCancelGrace = "git-cancel-grace"
)

// getWithGrace is future.Get for an activity that is told of a cancellation and
// waited for. After one it waits for the grace at most.
func getWithGrace(ctx workflow.Context, future workflow.Future, into any) error {
	cancelled := false
	workflow.NewSelector(ctx).
		AddFuture(future, func(workflow.Future) {}).
		AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) { cancelled = true }).
		Select(ctx)
	if !cancelled || future.IsReady() {
		return future.Get(ctx, into)
	}
	if workflow.GetVersion(ctx, changeGitCancelGrace, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return future.Get(ctx, into)
	}
	apart, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	timer := workflow.NewTimerWithOptions(apart, gitCancelGrace, workflow.TimerOptions{
		Summary: "cancelled: wait to be told how the attempt ended",
	})
	workflow.NewSelector(apart).
		AddFuture(future, func(workflow.Future) {}).
		AddFuture(timer, func(workflow.Future) {}).
		Select(apart)
	if future.IsReady() {
		return future.Get(ctx, into)
	}
	return temporal.NewCanceledError()
}
