package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/simulator/discord"
)

// BenchmarkRetryLateness sends messages whose first request is throttled, and
// reports how much later than the policy's own delay the second came (Q4: 50 ms
// at the 95th percentile). Run it with -benchtime 40x.
func BenchmarkRetryLateness(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkLateness(b, temporalserver.Options{Ephemeral: true}) })
	b.Run("file", func(b *testing.B) { benchmarkLateness(b, temporalserver.Options{DataDir: b.TempDir()}) })
}

func benchmarkLateness(b *testing.B, o temporalserver.Options) {
	r := newRig(b, o)
	var late []time.Duration
	for b.Loop() {
		r.discord.Reset()
		r.discord.Script(discord.RateLimited(0.6, false).On(discord.OpCreateMessage))
		h, err := r.holdfast.Send(b.Context(), "", contract.SendInput{Channel: "discord", Account: "main", To: "1", Text: "hello"})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Get(b.Context()); err != nil {
			b.Fatal(err)
		}
		requests := r.discord.Ledger().Requests(discord.OpCreateMessage)
		if len(requests) != 2 {
			b.Fatalf("%d requests, want 2", len(requests))
		}
		waited := requests[1].At.Sub(requests[0].At)
		late = append(late, waited-chosenDelay(b, r.holdfast, h.ID()))
	}
	slices.Sort(late)
	b.ReportMetric(quantile(late, 0.5), "late-p50-ms")
	b.ReportMetric(quantile(late, 0.95), "late-p95-ms")
}

// chosenDelay is the delay that the policy chose, as the failure of the first
// attempt recorded it.
func chosenDelay(b *testing.B, c *client.Client, id string) time.Duration {
	for it := c.Temporal().GetWorkflowHistory(b.Context(), id, "", false, 0); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			b.Fatal(err)
		}
		if last := e.GetActivityTaskStartedEventAttributes().GetLastFailure(); last != nil {
			return last.GetApplicationFailureInfo().GetNextRetryDelay().AsDuration()
		}
	}
	b.Fatal("no attempt failed")
	return 0
}
