package git

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pathlock"
	"github.com/holdfast-dev/holdfast/contract"
)

// checkoutActivities are those that work in a checkout, each with a request.
func checkoutActivities(a *Activities, dir string) map[string]func(t *testing.T, c caller, limit int64) contract.Failure {
	intent := &contract.GitPushIntent{Ref: "refs/heads/main", New: strings.Repeat("1", 40)}
	of := func(in contract.GitRequest, do func(*testing.T, caller, contract.GitRequest) contract.Failure) func(*testing.T, caller, int64) contract.Failure {
		return func(t *testing.T, c caller, limit int64) contract.Failure {
			t.Helper()
			in.LimitMS = limit
			return do(t, c, in)
		}
	}
	return map[string]func(*testing.T, caller, int64) contract.Failure{
		"fetch": of(contract.GitRequest{Dir: dir}, func(t *testing.T, c caller, in contract.GitRequest) contract.Failure {
			_, f := ask(t, c, a.Fetch, in)
			return f
		}),
		"push intent": of(contract.GitRequest{Dir: dir}, func(t *testing.T, c caller, in contract.GitRequest) contract.Failure {
			_, f := ask(t, c, a.PushIntent, in)
			return f
		}),
		"push": of(contract.GitRequest{Dir: dir, Intent: intent}, func(t *testing.T, c caller, in contract.GitRequest) contract.Failure {
			_, f := ask(t, c, a.Push, in)
			return f
		}),
		"locate": of(contract.GitRequest{Dir: dir, Intent: intent}, func(t *testing.T, c caller, in contract.GitRequest) contract.Failure {
			_, f := ask(t, c, a.Locate, in)
			return f
		}),
		"fast-forward": of(contract.GitRequest{Dir: dir}, func(t *testing.T, c caller, in contract.GitRequest) contract.Failure {
			_, f := ask(t, c, a.FastForward, in)
			return f
		}),
	}
}

// hold takes the lock of a checkout as another worker does.
func hold(t *testing.T, dir, name string) *pathlock.Lock {
	t.Helper()
	l, err := pathlock.Acquire(t.Context(), dir, name, pathlock.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

// G11: as long as one works in a checkout, no other does; waiting counts as time
// of the operation, and the end says what was waited for.
func TestLockedCheckoutIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := newFakes(t, Config{})
	hold(t, filepath.Join(w.checkout, ".git"), checkoutLock)
	before := w.refs()
	w.server.Reset()
	for name, do := range checkoutActivities(a, w.checkout) {
		f := do(t, caller{}, 300)
		if f.Reason != "deadline" || !strings.Contains(f.Message, "waiting for another") || f.RetrySame {
			t.Errorf("%s: %+v, want the deadline and a word on the other one", name, f)
		}
		if want := map[bool]string{true: "not_sent", false: "none"}[name == "push"]; f.Effect != want {
			t.Errorf("%s: effect %q, want %q", name, f.Effect, want)
		}
	}
	if ops := sent(w.server); len(ops) != 0 {
		t.Errorf("requests %v while the lock was another's", ops)
	}
	if after := w.refs(); len(after) != len(before) {
		t.Errorf("refs %v, want %v", after, before)
	}
}

// G11: two workers, one path: one after the other, by whichever path they come.
func TestTwoWorkersOneAfterTheOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	linked := filepath.Join(w.root, "linked")
	run(t, w.checkout, "worktree", "add", "-q", "-b", "linked", linked)
	alias := filepath.Join(w.root, "alias")
	if err := os.Symlink(w.checkout, alias); err != nil {
		t.Fatal(err)
	}
	var inside, most, fetches atomic.Int32
	var crew sync.WaitGroup
	for _, dir := range []string{w.checkout, alias, linked, w.checkout} {
		a, fake := newFakes(t, Config{})
		fake.onFetch = func(ctx context.Context, _ *remote, c *checkout) ([]contract.GitUpdate, error) {
			most.Store(max(most.Load(), inside.Add(1)))
			defer inside.Add(-1)
			fetches.Add(1)
			if c.lock == nil {
				t.Error("the engine was not given the lock")
			}
			_, err := os.ReadDir(c.common)
			return nil, err
		}
		crew.Go(func() {
			for range 5 {
				if _, f := ask(t, caller{}, a.Fetch, contract.GitRequest{Dir: dir}); f.Reason != "" {
					t.Errorf("%s: %+v", dir, f)
				}
			}
		})
	}
	crew.Wait()
	if most.Load() != 1 || fetches.Load() != 20 {
		t.Errorf("%d at once in %d fetches, want 1 in 20", most.Load(), fetches.Load())
	}
	if there(filepath.Join(w.checkout, ".git", "holdfast")) {
		t.Error("the lock's directory is left")
	}
}

// G5, G11: a cancelled activity returns at once; the lock is held until its work
// has ended, and the next attempt waits for that.
func TestCancelledWorkKeepsTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, fake := newFakes(t, Config{})
	work := filepath.Join(w.checkout, ".git", "holdfast", "work", "x")
	began, dies := make(chan struct{}), make(chan struct{})
	fake.onFetch = func(ctx context.Context, _ *remote, _ *checkout) ([]contract.GitUpdate, error) {
		put(t, filepath.Join(work, "pack"), "half")
		close(began)
		<-ctx.Done()
		<-dies // a child that takes its time to die
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan contract.Failure, 1)
	go func() {
		_, f := ask(t, caller{ctx: ctx}, a.Fetch, contract.GitRequest{Dir: w.checkout})
		ended <- f
	}()
	<-began
	cancel()
	if f := <-ended; f.Reason != "cancelled" {
		t.Errorf("%+v, want cancelled", f)
	}

	next, second := newFakes(t, Config{})
	second.onFetch = func(context.Context, *remote, *checkout) ([]contract.GitUpdate, error) {
		if there(work) {
			t.Error("the next attempt found what the one before left")
		}
		return nil, nil
	}
	p := &progress{}
	_, f := ask(t, caller{}, func(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
		done := make(chan error, 1)
		go func() {
			_, err := next.fetch(ctx, in, p)
			done <- err
		}()
		soon(t, "waiting for the lock", func() bool { return p.snapshot().Phase == "waiting for the lock" })
		if !there(work) {
			t.Error("the work was swept while it went on")
		}
		close(dies)
		return contract.GitResult{}, <-done
	}, contract.GitRequest{Dir: w.checkout})
	if f.Reason != "" {
		t.Errorf("the next attempt: %+v", f)
	}
	if got := p.snapshot().Phase; got == "waiting for the lock" {
		t.Errorf("the phase is still %q", got)
	}
}

// G11: what a killed worker left in a checkout is removed before anything else is
// done there, its ref locks too; those of others stay.
func TestLeftoversOfAKilledWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.commit("second")
	w.push("main")
	dot := filepath.Join(w.checkout, ".git")
	work := filepath.Join(dot, "holdfast", "work", "k")
	put(t, filepath.Join(dot, "holdfast", "lock"), `{"owner":"dead","boot":"`+pathlock.BootID()+`","token":"t","expires":"2999-01-01T00:00:00Z"}`,
		filepath.Join(work, "pack"), "half", filepath.Join(work, "locks"), "refs/remotes/origin/main.lock", filepath.Join(work, "lock-0"), next+"\n")
	lock := filepath.Join(dot, "refs", "remotes", "origin", "main.lock")
	if err := os.Link(filepath.Join(work, "lock-0"), lock); err != nil {
		t.Fatal(err)
	}
	a, _ := newFakes(t, Config{})
	res, f := ask(t, caller{}, a.Fetch, contract.GitRequest{Dir: w.checkout})
	if f.Reason != "" || len(res.Updated) != 1 || res.Updated[0].New != next {
		t.Errorf("%+v, %+v; want the fetch of %s", res, f, next)
	}
	w.whole()
	if there(filepath.Join(dot, "holdfast")) {
		t.Error("something of the dead worker is left")
	}

	put(t, lock, "")
	w.commit("third")
	w.push("main")
	if _, f := ask(t, caller{}, a.Fetch, contract.GitRequest{Dir: w.checkout}); f.Rule != "G3/lock_exists" || !f.RetrySame {
		t.Errorf("a ref that another git has locked: %+v", f)
	}
	if !there(lock) {
		t.Error("the lock of another git was removed")
	}
}

// G11: a worker whose lock was taken over ends its work, and leaves what is in the
// checkout to the new holder.
func TestLostLockEndsTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, fake := newFakes(t, Config{})
	a.locks.Renew = time.Millisecond
	dot := filepath.Join(w.checkout, ".git")
	theirs := filepath.Join(dot, "holdfast", "work", "theirs")
	fake.onFetch = func(ctx context.Context, _ *remote, _ *checkout) ([]contract.GitUpdate, error) {
		content, err := json.Marshal(map[string]string{"owner": "another", "boot": "x", "token": "y", "expires": "2999-01-01T00:00:00Z"})
		if err != nil {
			t.Error(err)
		}
		put(t, filepath.Join(theirs, "pack"), "half")
		// A renewal that is under way may write over it.
		again := time.NewTicker(20 * time.Millisecond)
		defer again.Stop()
		for {
			put(t, filepath.Join(dot, checkoutLock), string(content))
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-again.C:
			}
		}
	}
	_, f := ask(t, caller{}, a.Fetch, contract.GitRequest{Dir: w.checkout})
	if f.Rule != "G11/lost" || f.Reason != "lock" || !f.RetrySame {
		t.Errorf("%+v, want G11/lost, which is tried again", f)
	}
	if !there(theirs) || !there(filepath.Join(dot, checkoutLock)) {
		t.Error("what is the new holder's was removed")
	}
}

// G11: on the task queue that all hosts serve, only checkouts in a shared root
// are worked in; on a host's own, all of its.
func TestCheckoutsOfOneHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := filepath.Join(w.root, "shared")
	run(t, w.root, "clone", "-q", w.url(), filepath.Join(shared, "good"))
	run(t, w.checkout, "worktree", "add", "-q", "-b", "linked", filepath.Join(shared, "linked"))
	for link, target := range map[string]string{filepath.Join(w.root, "in"): filepath.Join(shared, "good"), filepath.Join(shared, "out"): w.checkout} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	all, host := caller{queue: contract.QueueGit}, caller{queue: contract.QueueGitHost("web1")}
	for name, cfg := range map[string]Config{
		"shared roots":    {Roots: []string{w.root}, SharedRoots: []string{shared}},
		"no shared roots": {Roots: []string{w.root}},
		"no roots":        {},
	} {
		a, fake := newFakes(t, cfg)
		fake.engine = deadEngine{}
		fake.onClone = func(_ context.Context, dir string, _ cloneSpec) (contract.GitHead, error) {
			return contract.GitHead{}, os.MkdirAll(filepath.Join(dir, ".git"), 0o700)
		}
		for dir, isShared := range map[string]bool{
			w.checkout: false, filepath.Join(shared, "good"): true, filepath.Join(shared, "linked"): false,
			filepath.Join(w.root, "in"): true, filepath.Join(shared, "out"): false,
		} {
			served := isShared && len(cfg.SharedRoots) > 0
			for activity, do := range checkoutActivities(a, dir) {
				if f := do(t, all, 60_000); (f.Rule == "G11/host") == served || !served && !strings.Contains(f.Message, "--host") {
					t.Errorf("%s: %s in %s on the shared queue: %+v", name, activity, dir, f)
				}
				if f := do(t, host, 60_000); f.Rule == "G11/host" || f.Rule == "G12/root" {
					t.Errorf("%s: %s in %s on the host's queue: %+v", name, activity, dir, f)
				}
			}
		}
		missing := filepath.Join(w.root, "missing")
		for activity, do := range checkoutActivities(a, missing) {
			if f := do(t, all, 60_000); f.Rule != "G11/host" {
				t.Errorf("%s: %s in a directory of another host: %+v", name, activity, f)
			}
		}
		for i, dir := range []string{filepath.Join(w.root, "clone"), filepath.Join(shared, "clone")} {
			at := dir + strings.ReplaceAll(name, " ", "")
			served := i == 1 && len(cfg.SharedRoots) > 0
			in := contract.GitRequest{URL: w.url(), Dir: at}
			if _, f := ask(t, all, a.Clone, in); (f.Rule == "G11/host") == served || f.Rule == "" && !served {
				t.Errorf("%s: clone to %s on the shared queue: %+v", name, at, f)
			}
			if !served && there(at) {
				t.Errorf("%s: a refused clone made %s", name, at)
			}
			in.Dir += "-host"
			if _, f := ask(t, host, a.Clone, in); f.Rule != "" {
				t.Errorf("%s: clone to %s on the host's queue: %+v", name, in.Dir, f)
			}
		}
	}
}
