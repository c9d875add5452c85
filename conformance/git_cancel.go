package conformance

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/gitssh"
)

var gitCancelCases = []gitCase{
	{"cancelled", gitCancelled},
	{"cancelled over SSH", gitCancelledSSH},
	{"cancelled before it began", gitCancelledBefore},
	{"two in one checkout", gitTwoInOne},
	{"progress", gitShowsProgress},
}

// cancelled makes an attempt and cancels it once ready says so. It must end at
// once; the limit is where that becomes a failure.
func (w *gitWorld) cancelled(what string, call GitCall, in contract.GitRequest, ready func(ctx context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	done := make(chan GitAnswer, 1)
	go func() { done <- call(ctx, w.request(in)) }()
	patience, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	w.check(ready(patience))
	cancel()
	began := time.Now()
	select {
	case answer := <-done:
		if answer.Failure == nil || answer.Failure.Reason != "cancelled" {
			w.t.Errorf("%s: %+v, %+v, want cancelled", what, answer.Result, answer.Failure)
		}
	case <-patience.Done():
		w.t.Fatalf("%s: still running %s after it was cancelled", what, time.Since(began))
	}
	if took := time.Since(began); took > 5*time.Second {
		w.t.Errorf("%s: ended %s after it was cancelled", what, took)
	}
}

// G5: an attempt that is cancelled ends at once, wherever it is. Its connection
// is closed and its processes end, nothing is left, and the next attempt is not
// in its way.
func gitCancelled(w *gitWorld) {
	w.check(w.host.Create("much.git", 400))
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir("much.git"), dir)
	w.git(dir, "remote", "set-url", "origin", w.host.RepoURL("much.git"))
	old := w.git(dir, "rev-parse", "HEAD")
	w.check(w.host.Commit("much.git", "main", 200))
	theirs := w.host.Refs("much.git")["refs/heads/main"]
	ours := w.local(dir, "local", "ours")
	before, names := w.state(dir), w.beside()
	onSide := &contract.GitPushIntent{Ref: "refs/heads/side", New: ours}
	onMain := &contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: ours}
	fetch, clone := contract.GitRequest{Dir: dir}, contract.GitRequest{Dir: w.dir("b"), URL: w.host.RepoURL("much.git")}
	for _, tc := range []struct {
		name string
		call GitCall
		in   contract.GitRequest
		step simulator.Step
	}{
		{"ls-remote", w.engine.LsRemote, contract.GitRequest{URL: clone.URL}, simulator.Stall().On(githttp.OpFetchRefs)},
		{"fetch", w.engine.Fetch, fetch, simulator.Stall().On(githttp.OpFetchRefs)},
		{"fetch", w.engine.Fetch, fetch, stallBytes(3000).On(githttp.OpUploadPack)},
		{"fetch", w.engine.Fetch, fetch, simulator.Slow(200).On(githttp.OpUploadPack)},
		{"clone", w.engine.Clone, clone, simulator.Stall().On(githttp.OpFetchRefs)},
		{"clone", w.engine.Clone, clone, stallBytes(3000).On(githttp.OpUploadPack)},
		{"intent", w.engine.PushIntent, fetch, simulator.Stall().On(githttp.OpFetchRefs)},
		{"push", w.engine.Push, contract.GitRequest{Dir: dir, Intent: onSide}, simulator.Stall().On(githttp.OpPushRefs)},
		{"push", w.engine.Push, contract.GitRequest{Dir: dir, Intent: onSide}, simulator.Stall().On(githttp.OpReceivePack).WithEffect(simulator.EffectNone)},
		{"locate", w.engine.Locate, contract.GitRequest{Dir: dir, Intent: onMain}, stallBytes(3000).On(githttp.OpUploadPack)},
	} {
		what := tc.name + ": " + tc.step.Note + " at " + tc.step.Match
		w.host.Reset()
		w.host.Script(tc.step.Always()) // version 2 may negotiate in a request of its own
		w.cancelled(what, tc.call, tc.in, func(ctx context.Context) error {
			_, err := w.host.Ledger().WaitMet(ctx, tc.step.Note)
			return err
		})
		w.gone(what, tc.step)
		w.settles(what, dir, before, names)
		if n := len(w.host.Ledger().Requests(tc.step.Match)); n != 1 && tc.step.Match != githttp.OpUploadPack {
			w.t.Errorf("%s: %d requests", what, n)
		}
	}
	w.host.Reset()
	w.fetch("after all", fetch, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: old, New: theirs})
	w.do(w.engine.Clone, clone)
}

func gitCancelledSSH(w *gitWorld) {
	w.check(w.host.Create("much.git", 400))
	host := w.sshHost()
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir("much.git"), dir)
	w.check(w.host.Commit("much.git", "main", 200))
	before, names := w.state(dir), w.beside()
	for _, step := range []gitssh.Step{gitssh.RefuseConnection(gitssh.Stall), gitssh.EndAtStart(gitssh.Stall), gitssh.StallBytes(3000), gitssh.Slow(200)} {
		op := gitssh.OpUploadPack
		if step.Match != "" {
			op = step.Match
		}
		for name, tc := range map[string]struct {
			call GitCall
			in   contract.GitRequest
		}{
			"fetch": {w.engine.Fetch, contract.GitRequest{Dir: dir}},
			"clone": {w.engine.Clone, contract.GitRequest{Dir: w.dir("b")}},
		} {
			what := name + ": " + step.Note
			tc.in.URL, tc.in.Auth = host.RepoURL("much.git"), "key"
			host.Reset()
			host.Script(step)
			w.cancelled(what, tc.call, tc.in, func(ctx context.Context) error {
				_, err := host.Ledger().WaitRequests(ctx, op, 1)
				return err
			})
			w.leaves(what, host)
			w.settles(what, dir, before, names)
		}
	}
}

// G5: what is cancelled already makes no request.
func gitCancelledBefore(w *gitWorld) {
	dir := w.theirs()
	before, names := w.state(dir), w.beside()
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	w.host.Reset()
	for _, op := range w.operations(dir) {
		op.in.URL = w.url()
		answer := op.call(ctx, w.request(op.in))
		if answer.Failure == nil || answer.Failure.Reason != "cancelled" {
			w.t.Errorf("%s: %+v", op.name, answer.Failure)
		}
	}
	w.settles("cancelled before", dir, before, names)
	if sent := w.sent(); sent.pack+sent.push != 0 {
		w.t.Errorf("requests %+v", sent)
	}
}

// G11: two attempts in one checkout, or at one target, are made one after the
// other.
func gitTwoInOne(w *gitWorld) {
	dir := w.checkout("a")
	old := w.remote("refs/heads/main")
	next := w.commit("second")
	w.publish("main")
	for name, tc := range map[string]struct {
		in            contract.GitRequest
		first, second GitCall
	}{
		"fetch": {contract.GitRequest{Dir: dir}, w.engine.Fetch, w.engine.Fetch},
		"clone": {contract.GitRequest{Dir: w.dir("b"), URL: w.url()}, w.engine.Clone, w.engine.Clone},
	} {
		w.host.Reset()
		w.host.Script(simulator.HoldBefore(name).On(githttp.OpUploadPack))
		first, second := make(chan GitAnswer, 1), make(chan GitAnswer, 1)
		go func() { first <- tc.first(w.t.Context(), w.request(tc.in)) }()
		w.held(name)
		impatient := tc.in
		impatient.LimitMS = 300
		w.fails(name+": the second", tc.second, impatient, gitWant{reason: "deadline", hint: "another"})
		w.requests(name, gitSent{refs: 1, pack: 1})
		go func() { second <- tc.second(w.t.Context(), w.request(tc.in)) }()
		w.host.Gate(name).Release()
		if got := <-first; got.Failure != nil {
			w.t.Errorf("%s: the first: %+v", name, *got.Failure)
		}
		got := <-second
		if name == "fetch" && (got.Failure != nil || got.Result.Outcome != contract.OutcomeUpToDate) {
			w.t.Errorf("fetch: the second: %+v, %+v", got.Result, got.Failure)
		}
	}
	if got := w.refs(dir)["refs/remotes/origin/main"]; got != next || old == next {
		w.t.Errorf("origin/main is %s, want %s", got, next)
	}
	w.whole("fetch", dir)
	w.whole("clone", w.dir("b"))
	w.sameNames("after", []string{"a", "b", "outside"})
}

// G10: what a long operation does is shown: the objects and bytes of the pack.
func gitShowsProgress(w *gitWorld) {
	w.check(w.host.Create("much.git", 1500))
	dir := w.dir("a")
	w.host.Script(simulator.Slow(100_000).On(githttp.OpUploadPack))
	answer := w.do(w.engine.Clone, contract.GitRequest{Dir: dir, URL: w.host.RepoURL("much.git")})
	received := false
	for _, p := range answer.Progress {
		received = received || p.Phase == "receiving" && p.Objects == 6000 && p.Bytes > 0
	}
	if !received {
		w.t.Errorf("progress %+v, want a word on 6000 objects that are being received", answer.Progress)
	}
}
