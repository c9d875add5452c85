package e2e

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Q4: a short wait is not put off: with stock settings every timer below a second
// took a second. The least of several is taken, so that a busy machine does not
// matter.
func TestShortTimers(t *testing.T) {
	t.Parallel()
	const wait, late = 200 * time.Millisecond, 400 * time.Millisecond
	c := dial(t, shared(t).Address())
	queue := unique(t)
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) (time.Duration, error) {
		least := time.Hour
		for range 5 {
			began := workflow.Now(ctx)
			if err := workflow.Sleep(ctx, wait); err != nil {
				return 0, err
			}
			least = min(least, workflow.Now(ctx).Sub(began))
		}
		return least, nil
	}, workflow.RegisterOptions{Name: "shortTimers"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "shortTimers")
	if err != nil {
		t.Fatal(err)
	}
	var least time.Duration
	if err := run.Get(t.Context(), &least); err != nil {
		t.Fatal(err)
	}
	if least < wait || least > wait+late {
		t.Errorf("a timer of %s took %s at the least, want at most %s more", wait, least, late)
	}
}
