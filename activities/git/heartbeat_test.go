package git

import (
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// G10: progress is heartbeated by a timer, also while the other side is silent.
// (The test environment passes on one heartbeat in 24 s, so it is the first.)
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Reset()
	w.server.Script(simulator.HoldBefore("list").On(githttp.OpFetchRefs))
	a := newActivities(t, Config{})
	a.heartbeat = time.Millisecond

	env := environment(a)
	var beats []Progress
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var p Progress
		if err := details.Get(&p); err != nil {
			t.Error(err)
		}
		beats = append(beats, p)
		w.server.Gate("list").Release()
	})
	_, err := env.ExecuteActivity(a.Fetch, contract.GitRequest{Dir: w.checkout, LimitMS: 60_000})
	if f := failure.From(err); f.Reason != "" {
		t.Fatalf("fetch failed: %+v", f)
	}
	if len(beats) == 0 || beats[0].Phase != "connect" && beats[0].Phase != "listing" {
		t.Errorf("heartbeats %+v, want one before the list of refs was in", beats)
	}
}

func TestProgressCountsThePack(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{EngineGoGit, EngineGit} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			next := w.commit("second")
			w.push("main")
			a := newActivities(t, Config{Engine: engine})
			c, err := openCheckout(w.checkout, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			p := &progress{}
			r, err := a.remote(t.Context(), w.url(), "", p)
			if err != nil {
				t.Fatal(err)
			}
			moved, err := a.engine.fetch(t.Context(), r, c, "")
			if err != nil || len(moved) != 1 || moved[0].New != next {
				t.Fatalf("fetch: %v, %v", moved, err)
			}
			// A commit, its tree and its file.
			if got := p.snapshot(); got.Phase != "refs" || got.Objects != 3 || got.Bytes < 100 {
				t.Errorf("progress %+v, want refs, 3 objects and their bytes", got)
			}
		})
	}
}
