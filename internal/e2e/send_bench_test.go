package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	sdkclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/workers"
)

// BenchmarkSend compares one Discord send with the bare minimum of Q4: a
// workflow with one activity that makes the same HTTP request, with the same
// SDK, server and worker options. The two take turns in one run, so that the
// ratio means something on a noisy machine. Run it with -benchtime 200x.
func BenchmarkSend(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkSend(b, temporalserver.Options{Ephemeral: true}) })
	b.Run("file", func(b *testing.B) { benchmarkSend(b, temporalserver.Options{DataDir: b.TempDir()}) })
}

// BenchmarkSendRate compares the rates at 50 in flight. Run it with
// -benchtime 4x: each iteration is 150 bare workflows, then 150 sends.
func BenchmarkSendRate(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkRate(b, temporalserver.Options{Ephemeral: true}) })
	b.Run("file", func(b *testing.B) { benchmarkRate(b, temporalserver.Options{DataDir: b.TempDir()}) })
}

// rig is a server, a Discord simulator, a Holdfast worker, and a worker of the
// bare minimum beside it.
type rig struct {
	temporal sdkclient.Client
	holdfast *client.Client
	discord  *discord.Server
	config   *config.Config
}

func newRig(b *testing.B, o temporalserver.Options) *rig {
	r := newIdleRig(b, o)
	r.work(b)
	r.bare(b, r.discord.APIURL())
	for range 30 { // past the first loads, which are faster than the rest
		r.send(b)
		r.minimum(b)
	}
	return r
}

// newIdleRig is a rig without workers.
func newIdleRig(b *testing.B, o temporalserver.Options) *rig {
	o.Listen, o.NoUI, o.SearchAttributes, o.Version = "127.0.0.1:0", true, contract.SearchAttributes(), "bench"
	s, err := temporalserver.Start(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Stop)
	d, err := discord.Start(discord.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	cfg, err := config.Parse("bench", fmt.Appendf(nil,
		"channels: {discord: {accounts: {main: {token: bench-token-bench-token, api_url: %q}}}}", d.APIURL()), os.LookupEnv)
	if err != nil {
		b.Fatal(err)
	}
	r := &rig{temporal: dial(b, s.Address()), discord: d, config: cfg}
	r.holdfast = client.New(r.temporal)
	return r
}

// work starts the Holdfast worker.
func (r *rig) work(b *testing.B) {
	w, err := workers.Start(r.temporal, workers.Options{Config: r.config, Queues: []string{"discord"}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
}

const bareQueue = "bench-bare"

func (r *rig) bare(b *testing.B, api string) {
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 4, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 32,
	})
	w := worker.New(r.temporal, bareQueue, worker.Options{WorkflowTaskPollerBehavior: pollers, ActivityTaskPollerBehavior: pollers})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, text string) (string, error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 30 * time.Second})
		var id string
		err := workflow.ExecuteActivity(ctx, "post", text).Get(ctx, &id)
		return id, err
	}, workflow.RegisterOptions{Name: "bare"})
	httpClient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	w.RegisterActivityWithOptions(func(ctx context.Context, text string) (string, error) {
		body, _ := json.Marshal(map[string]string{"content": text})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, api+"/channels/1/messages", bytes.NewReader(body))
		if err != nil {
			return "", err
		}
		req.Header.Set("Authorization", "Bot bench-token-bench-token")
		req.Header.Set("Content-Type", "application/json")
		resp, err := httpClient.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var message struct{ ID string }
		return message.ID, json.NewDecoder(resp.Body).Decode(&message)
	}, activity.RegisterOptions{Name: "post"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
}

func (r *rig) minimum(b *testing.B) time.Duration {
	began := time.Now()
	run, err := r.temporal.ExecuteWorkflow(b.Context(), sdkclient.StartWorkflowOptions{TaskQueue: bareQueue, EnableEagerStart: true}, "bare", "hello")
	if err == nil {
		err = run.Get(b.Context(), nil)
	}
	if err != nil {
		b.Error(err)
	}
	return time.Since(began)
}

func (r *rig) send(b *testing.B) time.Duration {
	began := time.Now()
	h, err := r.holdfast.Send(b.Context(), "", contract.SendInput{Channel: "discord", Account: "main", To: "1", Text: "hello"})
	if err != nil {
		b.Error(err)
		return 0
	}
	result, err := h.Get(b.Context())
	if err != nil || result.Outcome != contract.OutcomeDelivered {
		b.Errorf("send ended %q: %v", result.Outcome, err)
	}
	return time.Since(began)
}

func benchmarkSend(b *testing.B, o temporalserver.Options) {
	r := newRig(b, o)
	var bare, send []time.Duration
	for b.Loop() {
		bare = append(bare, r.minimum(b))
		send = append(send, r.send(b))
	}
	for _, q := range []struct {
		name string
		at   float64
	}{{"p50", 0.50}, {"p95", 0.95}} {
		x, y := quantile(bare, q.at), quantile(send, q.at)
		b.ReportMetric(x, "bare-"+q.name+"-ms")
		b.ReportMetric(y, "send-"+q.name+"-ms")
		b.ReportMetric(y/x, q.name+"-ratio")
	}
	b.ReportMetric(float64(r.events(b)), "more-events")
}

func quantile(d []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(d))
	return float64(sorted[int(q*float64(len(sorted)-1))]) / float64(time.Millisecond)
}

// events is how many history events a send has beyond the bare minimum.
func (r *rig) events(b *testing.B) int {
	count := func(id, runID string) (n int) {
		for it := r.temporal.GetWorkflowHistory(b.Context(), id, runID, false, 0); it.HasNext(); n++ {
			if _, err := it.Next(); err != nil {
				b.Fatal(err)
			}
		}
		return n
	}
	run, err := r.temporal.ExecuteWorkflow(b.Context(), sdkclient.StartWorkflowOptions{TaskQueue: bareQueue}, "bare", "hello")
	if err != nil || run.Get(b.Context(), nil) != nil {
		b.Fatal("the bare workflow failed", err)
	}
	h, err := r.holdfast.Send(b.Context(), "", contract.SendInput{Channel: "discord", Account: "main", To: "1", Text: "hello"})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := h.Get(b.Context()); err != nil {
		b.Fatal(err)
	}
	return count(h.ID(), h.RunID()) - count(run.GetID(), run.GetRunID())
}

func benchmarkRate(b *testing.B, o temporalserver.Options) {
	const batch, inFlight = 150, 50
	r := newRig(b, o)
	var bare, send time.Duration
	for b.Loop() {
		bare += flood(batch, inFlight, func() { r.minimum(b) })
		send += flood(batch, inFlight, func() { r.send(b) })
	}
	n := float64(b.N * batch)
	b.ReportMetric(n/bare.Seconds(), "bare/s")
	b.ReportMetric(n/send.Seconds(), "send/s")
	b.ReportMetric(bare.Seconds()/send.Seconds(), "rate-ratio")
}

// BenchmarkDrain lets sends pile up without a worker, then starts one and
// reports how fast it drains them (Q4). Run it with -benchtime 1x.
func BenchmarkDrain(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkDrain(b, temporalserver.Options{Ephemeral: true}) })
	b.Run("file", func(b *testing.B) { benchmarkDrain(b, temporalserver.Options{DataDir: b.TempDir()}) })
}

func benchmarkDrain(b *testing.B, o temporalserver.Options) {
	const backlog = 500
	r := newIdleRig(b, o)
	var took time.Duration
	for b.Loop() {
		for i := range backlog {
			_, err := r.holdfast.Send(b.Context(), fmt.Sprint("backlog-", b.N, "-", i), contract.SendInput{Channel: "discord", Account: "main", To: "1", Text: "hello"})
			if err != nil {
				b.Fatal(err)
			}
		}
		before := len(r.discord.Ledger().Effects(discord.EffectMessage))
		began := time.Now()
		r.work(b)
		if _, err := r.discord.Ledger().WaitEffects(b.Context(), discord.EffectMessage, before+backlog); err != nil {
			b.Fatal(err)
		}
		took += time.Since(began)
	}
	b.ReportMetric(float64(b.N*backlog)/took.Seconds(), "drained/s")
}

// flood runs f n times, at most so many at once, and returns how long it took.
func flood(n, atOnce int, f func()) time.Duration {
	began := time.Now()
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for range n {
		slots <- struct{}{}
		wg.Go(func() {
			f()
			<-slots
		})
	}
	wg.Wait()
	return time.Since(began)
}
