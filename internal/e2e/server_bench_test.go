package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

// BenchmarkWorkflow runs workflows of one activity that does nothing, one after
// the other: what a durable step costs before it does anything (Q4). With stock
// settings the median is above 98 ms after the first twenty. Run it with
// -benchtime 200x.
func BenchmarkWorkflow(b *testing.B) {
	b.Run("memory", func(b *testing.B) {
		benchmarkWorkflow(b, temporalserver.Options{Ephemeral: true})
	})
	b.Run("file", func(b *testing.B) {
		benchmarkWorkflow(b, temporalserver.Options{DataDir: b.TempDir()})
	})
}

func noop(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	return workflow.ExecuteActivity(ctx, "noop").Get(ctx, nil)
}

func benchmarkWorkflow(b *testing.B, o temporalserver.Options) {
	o.Listen, o.NoUI, o.SearchAttributes, o.Version = "127.0.0.1:0", true, contract.SearchAttributes(), "bench"
	s, err := temporalserver.Start(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Stop()
	c := dial(b, s.Address())
	w := worker.New(c, "bench", worker.Options{MaxConcurrentWorkflowTaskPollers: 8, MaxConcurrentActivityTaskPollers: 8})
	w.RegisterWorkflowWithOptions(noop, workflow.RegisterOptions{Name: "noop"})
	w.RegisterActivityWithOptions(func(context.Context) error { return nil }, activity.RegisterOptions{Name: "noop"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		run, err := c.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{TaskQueue: "bench", EnableEagerStart: true}, "noop")
		if err != nil {
			b.Fatal(err)
		}
		if err := run.Get(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	for name, q := range map[string]float64{"p50-ms": 0.50, "p95-ms": 0.95, "max-ms": 1} {
		at := took[int(q*float64(len(took)-1))]
		b.ReportMetric(float64(at)/float64(time.Millisecond), name)
	}
}
