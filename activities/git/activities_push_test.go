package git

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
)

const zeros = "0000000000000000000000000000000000000000"

// pusher is a world whose checkout follows the bare repository by its path.
func pusher(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	run(t, w.checkout, "remote", "set-url", "origin", w.bare)
	return w
}

// work makes a commit in the checkout and returns its id.
func (w *world) work(text string) string {
	w.t.Helper()
	run(w.t, w.checkout, "commit", "-q", "--allow-empty", "-m", text)
	return run(w.t, w.checkout, "rev-parse", "HEAD")
}

func (w *world) remoteRef(name string) string {
	w.t.Helper()
	oid, _, _ := strings.Cut(run(w.t, w.bare, "for-each-ref", "--format=%(objectname)", name), "\n")
	return oid
}

// G6: what --ref stands for in a push, by git's rules, and what is refused.
func TestPushSpec(t *testing.T) {
	t.Parallel()
	w := pusher(t)
	c := w.checkout
	run(t, c, "branch", "topic/deep")
	head := w.work("second")
	run(t, c, "tag", "-a", "-m", "one", "v1")
	run(t, c, "tag", "light")
	run(t, c, "branch", "dual", "HEAD~")
	run(t, c, "tag", "dual")
	run(t, c, "update-ref", "refs/notes/x", head)
	run(t, c, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
	run(t, c, "tag", "tree", "HEAD^{tree}")
	first, tag := run(t, c, "rev-parse", "HEAD~"), run(t, c, "rev-parse", "refs/tags/v1")
	open := func() *checkout {
		opened, err := openCheckout(c, nil)
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	for _, tc := range []struct{ ref, dst, oid string }{
		{"", "refs/heads/main", head},
		{"HEAD", "refs/heads/main", head},
		{"@", "refs/heads/main", head},
		{"topic/deep", "refs/heads/topic/deep", first},
		{"heads/main", "refs/heads/main", head},
		{"refs/heads/dual", "refs/heads/dual", first},
		{"refs/tags/dual", "refs/tags/dual", head},
		{"tags/dual", "refs/tags/dual", head},
		{"v1", "refs/tags/v1", tag},
		{"light", "refs/tags/light", head},
		{"tree", "refs/tags/tree", run(t, c, "rev-parse", "HEAD^{tree}")},
		{"alias", "refs/heads/alias", head},
		{"refs/notes/x", "refs/notes/x", head},
		{"main:other", "refs/heads/other", head},
		{"HEAD:other", "refs/heads/other", head},
		{"main:heads/other", "refs/heads/other", head},
		{"main:refs/for/main", "refs/for/main", head},
		{"v1:v2", "refs/tags/v2", tag},
		{"v1:refs/archive/v1", "refs/archive/v1", tag},
		{"origin/main:refs/heads/copy", "refs/heads/copy", first},
		{"refs/remotes/origin/main:refs/heads/copy", "refs/heads/copy", first},
		{head + ":refs/heads/x", "refs/heads/x", head},
	} {
		got, err := open().pushSpec(tc.ref)
		if err != nil || got.dst.String() != tc.dst || got.new.String() != tc.oid {
			t.Errorf("%q: %s %s, %v; want %s %s", tc.ref, got.new, got.dst, err, tc.oid, tc.dst)
		}
	}
	for ref, want := range map[string]error{
		":main": errDelete, ":": errDelete, "main:": errManyRefs, "+main": errForce, "+main:main": errForce,
		"refs/heads/*": errManyRefs, "refs/heads/*:refs/heads/*": errManyRefs, "a:b:c": errManyRefs, "main~1": errManyRefs, "main^": errManyRefs,
		"missing": errNoSource, "refs/heads/missing": errNoSource, "missing:main": errNoSource, "refs/../config:refs/heads/x": errNoSource,
		"dual": errTwoOfIt, "dual:other": errTwoOfIt,
		"main:HEAD": errNoDest, "main:@": errNoDest, "origin/main": errNoDest, "origin/main:x": errNoDest, head + ":x": errNoDest, head: errNoDest,
		"v1:refs/heads/v1": errNoCommit, "tree:refs/heads/x": errNoCommit,
		strings.Repeat("1", 40) + ":refs/heads/x": errNoObject,
	} {
		if got, err := open().pushSpec(ref); !errors.Is(err, want) {
			t.Errorf("%q: %v, %v; want %v", ref, got, err, want)
		}
	}
	for _, ref := range []string{"main:refs/", "main:refs/main", "main:refs/heads/a..b", "main:refs/heads/x.lock", "main:refs/heads/-", "main:refs/../config", "main:a/../b"} {
		var local *localError
		if got, err := open().pushSpec(ref); !errors.As(err, &local) || local.rule != "G6/destination" {
			t.Errorf("%q: %v, %v; want it refused", ref, got, err)
		}
	}

	run(t, c, "checkout", "-q", "--detach")
	for ref, want := range map[string]error{"": errDetached, "HEAD": errDetached, "HEAD:x": errNoDest} {
		if got, err := open().pushSpec(ref); !errors.Is(err, want) {
			t.Errorf("detached, %q: %v, %v; want %v", ref, got, err, want)
		}
	}
	if got, err := open().pushSpec("HEAD:refs/heads/x"); err != nil || got.new.String() != head {
		t.Errorf("detached, to a full name: %v, %v", got, err)
	}
	run(t, c, "checkout", "-q", "--orphan", "fresh")
	if got, err := open().pushSpec(""); !errors.Is(err, errUnborn) {
		t.Errorf("unborn: %v, %v", got, err)
	}
}

// G6: a push goes to one place, which git's configuration may name apart.
func TestPushAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := func() (string, error) {
		c, err := openCheckout(w.checkout, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.pushURL()
	}
	if got, err := url(); err != nil || got != w.url() {
		t.Errorf("%s, %v; want the origin", got, err)
	}
	run(t, w.checkout, "config", "--add", "remote.origin.pushurl", "https://git.example/push.git")
	if got, err := url(); err != nil || got != "https://git.example/push.git" {
		t.Errorf("%s, %v; want the address of pushes", got, err)
	}
	run(t, w.checkout, "config", "--add", "remote.origin.pushurl", "https://git.example/second.git")
	if got, err := url(); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("%s, %v; want a word on --url", got, err)
	}
	run(t, w.checkout, "remote", "remove", "origin")
	if got, err := url(); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("no origin: %s, %v", got, err)
	}
}

// G6: what a push comes to is decided from the local object, the remote's ref and
// the lease, before anything is sent.
func TestPushIntent(t *testing.T) {
	t.Parallel()
	w := pusher(t)
	first := w.refs()["refs/heads/main"]
	second := w.work("second")
	run(t, w.checkout, "tag", "-a", "-m", "one", "v1")
	tag := run(t, w.checkout, "rev-parse", "refs/tags/v1")
	a, _ := newFakes(t, Config{})
	plan := func(ref, expect string) (contract.GitPushPlan, contract.Failure) {
		return ask(t, caller{}, a.PushIntent, contract.GitRequest{Dir: w.checkout, Ref: ref, Expect: expect})
	}
	want := func(name string, got contract.GitPushPlan, f contract.Failure, want contract.GitPushPlan, rule string) {
		t.Helper()
		if rule != "" {
			if got.Error == nil || got.Error.Rule != rule || got.Error.Reason != "conflict" || got.Error.Message == "" {
				t.Errorf("%s: error %+v, want %s", name, got.Error, rule)
			}
			got.Error = nil
		}
		if diff := cmp.Diff(want, got); diff != "" || f.Reason != "" {
			t.Errorf("%s: %+v; plan (-want +got):\n%s", name, f, diff)
		}
	}
	main := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: second}
	got, f := plan("", "")
	want("fast-forward", got, f, contract.GitPushPlan{Intent: main, Found: first}, "")
	got, f = plan("main:new", "")
	want("new branch", got, f, contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/new", New: second}}, "")
	got, f = plan("v1", "")
	want("new tag", got, f, contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/tags/v1", New: tag}}, "")
	got, f = plan("", strings.ToUpper(first))
	want("lease", got, f, contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: second, Force: true}, Found: first}, "")
	got, f = plan("main:new", zeros)
	want("lease of a new ref", got, f, contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/new", New: second, Force: true}}, "")
	got, f = plan("", second)
	want("another lease", got, f, contract.GitPushPlan{Outcome: contract.OutcomeConflict, Found: first,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: second, New: second, Force: true}}, "G6/lease")
	got, f = plan("", zeros)
	want("lease of a ref that exists", got, f, contract.GitPushPlan{Outcome: contract.OutcomeConflict, Found: first,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", New: second, Force: true}}, "G6/lease")
	got, f = plan("main:new", first)
	want("lease of a ref that is gone", got, f, contract.GitPushPlan{Outcome: contract.OutcomeConflict,
		Intent: contract.GitPushIntent{Ref: "refs/heads/new", Old: first, New: second, Force: true}}, "G6/lease")
	got, f = plan("refs/remotes/origin/main:refs/heads/main", "")
	want("up to date", got, f, contract.GitPushPlan{Outcome: contract.OutcomeUpToDate, Found: first, Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: first}}, "")

	third := w.commit("third") // somebody else, in what the checkout has not seen
	w.push("main")
	got, f = plan("", "")
	want("diverged", got, f, contract.GitPushPlan{Outcome: contract.OutcomeConflict, Found: third,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: third, New: second}}, "G6/not_fast_forward")
	got, f = plan("", third)
	want("diverged, with its lease", got, f, contract.GitPushPlan{Found: third,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: third, New: second, Force: true, Rewinds: true}}, "")
	run(t, w.checkout, "fetch", "-q", w.bare, "main")
	got, f = plan("", third)
	want("diverged from what is here", got, f, contract.GitPushPlan{Found: third,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: third, New: second, Force: true}}, "")
	got, f = plan(first+":refs/heads/main", third)
	want("rewound", got, f, contract.GitPushPlan{Found: third,
		Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: third, New: first, Force: true, Rewinds: true}}, "")

	run(t, w.author, "tag", "v1")
	w.push("v1")
	got, f = plan("v1", "")
	want("another tag", got, f, contract.GitPushPlan{Outcome: contract.OutcomeConflict, Found: third,
		Intent: contract.GitPushIntent{Ref: "refs/tags/v1", Old: third, New: tag}}, "G6/tag")

	for _, expect := range []string{"x", "0", first[:39], first + "0", strings.Repeat("g", 40)} {
		if _, f := plan("", expect); f.Rule != "G6/lease" || f.Reason != "format" {
			t.Errorf("--expect %q: %+v, want it refused", expect, f)
		}
	}
	for ref, rule := range map[string]string{":main": "G6/delete", "missing": "G6/source"} {
		if _, f := plan(ref, ""); f.Rule != rule || f.RetrySame {
			t.Errorf("--ref %s: %+v, want %s", ref, f, rule)
		}
	}
	if got := w.remoteRef("refs/heads/main"); got != third {
		t.Errorf("the remote has %s, want %s: nothing was pushed", got, third)
	}
}

// G6: a push that was decided is made, and what the remote has in its place read.
func TestPushAndLocate(t *testing.T) {
	t.Parallel()
	w := pusher(t)
	first, second := w.refs()["refs/heads/main"], w.work("second")
	a, _ := newFakes(t, Config{Roots: []string{w.root}})
	intent := &contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: second}
	in := contract.GitRequest{Dir: w.checkout, Intent: intent}
	located, f := ask(t, caller{}, a.Locate, in)
	if f.Reason != "" || located.Found != first || located.Contains {
		t.Errorf("before: %+v, %+v; want %s", located, f, first)
	}
	res, f := ask(t, caller{}, a.Push, in)
	want := contract.GitResult{Outcome: contract.OutcomeLanded, Push: &contract.GitPushed{Ref: intent.Ref, Old: first, New: second, Found: second}}
	if diff := cmp.Diff(want, res); diff != "" || f.Reason != "" {
		t.Errorf("%+v; result (-want +got):\n%s", f, diff)
	}
	if located, f = ask(t, caller{}, a.Locate, in); f.Reason != "" || located.Found != second || !located.Contains {
		t.Errorf("after: %+v, %+v; want %s", located, f, second)
	}
	if got := w.remoteRef("refs/heads/main"); got != second {
		t.Errorf("the remote has %s, want %s", got, second)
	}
	w.whole()
	if there(filepath.Join(w.checkout, ".git", "holdfast")) {
		t.Error("something is left in the checkout")
	}
}

// G6: a push that could not begin is known not to be sent; of one that has begun
// nothing is claimed.
func TestEffectOfAFailedPush(t *testing.T) {
	t.Parallel()
	w := pusher(t)
	first, second := w.refs()["refs/heads/main"], w.work("second")
	a, fake := newFakes(t, Config{})
	pushes := 0
	var fails error
	fake.onPush = func(context.Context, contract.GitPushIntent) error {
		pushes++
		return fails
	}
	good := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: second}
	push := func(change func(*contract.GitRequest, *contract.GitPushIntent)) contract.Failure {
		intent := good
		in := contract.GitRequest{Dir: w.checkout, Intent: &intent}
		change(&in, &intent)
		_, f := ask(t, caller{}, a.Push, in)
		return f
	}
	for name, change := range map[string]func(*contract.GitRequest, *contract.GitPushIntent){
		"no intent":       func(in *contract.GitRequest, _ *contract.GitPushIntent) { in.Intent = nil },
		"no full ref":     func(_ *contract.GitRequest, i *contract.GitPushIntent) { i.Ref = "main" },
		"bad ref":         func(_ *contract.GitRequest, i *contract.GitPushIntent) { i.Ref = "refs/heads/a b" },
		"bad object":      func(_ *contract.GitRequest, i *contract.GitPushIntent) { i.New = "HEAD" },
		"bad lease":       func(_ *contract.GitRequest, i *contract.GitPushIntent) { i.Old = "HEAD" },
		"missing object":  func(_ *contract.GitRequest, i *contract.GitPushIntent) { i.New = strings.Repeat("1", 40) },
		"no checkout":     func(in *contract.GitRequest, _ *contract.GitPushIntent) { in.Dir += "-missing" },
		"bad address":     func(in *contract.GitRequest, _ *contract.GitPushIntent) { in.URL = "ftp://x/y" },
		"unknown profile": func(in *contract.GitRequest, _ *contract.GitPushIntent) { in.Auth = "nobody" },
	} {
		if f := push(change); f.Effect != "not_sent" || !f.Permanent {
			t.Errorf("%s: %+v, want not_sent", name, f)
		}
	}
	if pushes != 0 {
		t.Errorf("%d pushes were begun, want none", pushes)
	}
	same := func(*contract.GitRequest, *contract.GitPushIntent) {}
	for name, tc := range map[string]struct {
		err    error
		effect string
	}{
		"cut answer":   {errEarlyEOF, "unknown"},
		"our own side": {errOutputLimit, "unknown"},
		"proved":       {&unsentError{errLeaseLost}, "not_sent"},
	} {
		fails = tc.err
		if f := push(same); f.Effect != tc.effect || f.RetrySame {
			t.Errorf("%s: %+v, want %s", name, f, tc.effect)
		}
	}

	// Out of time once it has begun.
	fake.onPush = func(ctx context.Context, _ contract.GitPushIntent) error {
		<-ctx.Done()
		return ctx.Err()
	}
	if f := push(func(in *contract.GitRequest, _ *contract.GitPushIntent) { in.LimitMS = 3000 }); f.Reason != "deadline" || f.Effect != "unknown" {
		t.Errorf("out of time: %+v, want the deadline and nothing claimed", f)
	}
}
