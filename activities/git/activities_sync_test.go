package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
)

// behind is a world whose checkout has fetched a commit that it is behind.
func behind(t *testing.T) (w *world, first, second string) {
	t.Helper()
	w = pusher(t)
	first, second = w.refs()["refs/heads/main"], w.commit("second")
	w.push("main")
	run(t, w.checkout, "fetch", "-q")
	return w, first, second
}

func (w *world) content() string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.checkout, "file"))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content[:len(content)/50-1])
}

// at checks that the checkout is clean and at a commit.
func (w *world) at(oid, content string) {
	w.t.Helper()
	if got := run(w.t, w.checkout, "rev-parse", "HEAD"); got != oid {
		w.t.Errorf("HEAD is %s, want %s", got, oid)
	}
	if got := run(w.t, w.checkout, "status", "--porcelain"); got != "" || w.content() != content {
		w.t.Errorf("the file holds %q, want %q; status %q", w.content(), content, got)
	}
	if there(filepath.Join(w.checkout, ".git", "holdfast")) {
		w.t.Error("something is left in the checkout")
	}
}

func forwardTo(t *testing.T, a *Activities, w *world, ref string) (contract.GitResult, contract.Failure) {
	t.Helper()
	return ask(t, caller{}, a.FastForward, contract.GitRequest{Dir: w.checkout, Ref: ref})
}

func synced(from, to string) contract.GitResult {
	return contract.GitResult{Outcome: contract.OutcomeSynced, Head: &contract.GitHead{Ref: "refs/heads/main", OID: to},
		Updated: []contract.GitUpdate{{Ref: "refs/heads/main", Old: from, New: to}}}
}

func isResult(t *testing.T, name string, want, got contract.GitResult, f contract.Failure) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" || f.Reason != "" {
		t.Errorf("%s: %+v; result (-want +got):\n%s", name, f, diff)
	}
}

// G7: a branch that is behind the one that it follows is brought forward, with its
// files; the next time there is nothing to do.
func TestFastForward(t *testing.T) {
	t.Parallel()
	w, first, second := behind(t)
	a, _ := newFakes(t, Config{Roots: []string{w.root}})
	res, f := forwardTo(t, a, w, "")
	isResult(t, "behind", synced(first, second), res, f)
	w.at(second, "second")
	res, f = forwardTo(t, a, w, "")
	isResult(t, "again", contract.GitResult{Outcome: contract.OutcomeUpToDate, Head: &contract.GitHead{Ref: "refs/heads/main", OID: second}}, res, f)
	third := w.work("third")
	res, f = forwardTo(t, a, w, "")
	isResult(t, "ahead", contract.GitResult{Outcome: contract.OutcomeUpToDate, Head: &contract.GitHead{Ref: "refs/heads/main", OID: third}}, res, f)
	w.whole()
}

// G7: a diverged branch is a clear result, and nothing is changed.
func TestFastForwardDiverged(t *testing.T) {
	t.Parallel()
	w, _, _ := behind(t)
	own := w.work("own")
	a, _ := newFakes(t, Config{})
	res, f := forwardTo(t, a, w, "")
	if f.Reason != "" || res.Outcome != contract.OutcomeDiverged || res.Error == nil || res.Error.Rule != "G7/diverged" || res.Error.Attempts != 1 || res.Head.OID != own || res.Updated != nil {
		t.Errorf("%+v, %+v; want diverged", res, f)
	}
	w.at(own, "first")
}

// G7: files that were changed are left as they are, and so is the branch.
func TestFastForwardSparesChanges(t *testing.T) {
	t.Parallel()
	w, first, _ := behind(t)
	put(t, filepath.Join(w.checkout, "file"), "mine")
	a, _ := newFakes(t, Config{})
	if res, f := forwardTo(t, a, w, ""); f.Reason != "conflict" || f.RetrySame {
		t.Errorf("%+v, %+v; want a conflict", res, f)
	}
	if got := run(t, w.checkout, "rev-parse", "HEAD"); got != first {
		t.Errorf("HEAD is %s, want %s", got, first)
	}
	if content, err := os.ReadFile(filepath.Join(w.checkout, "file")); err != nil || string(content) != "mine" {
		t.Errorf("the user's file: %q, %v", content, err)
	}
	if there(filepath.Join(w.checkout, ".git", "holdfast")) {
		t.Error("something is left in the checkout")
	}
}

// G7: which branch is followed: the one asked for, the configured one, or the one
// of the same name.
func TestFollowedBranch(t *testing.T) {
	t.Parallel()
	w, _, second := behind(t)
	run(t, w.author, "branch", "side")
	w.push("side")
	run(t, w.checkout, "fetch", "-q")
	file := filepath.Join(w.checkout, ".git", "config")
	config, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		ref      string
		set      [][]string
		followed string // empty for none
	}{
		"configured":           {"", nil, "refs/remotes/origin/main"},
		"asked for":            {"side", nil, "refs/remotes/origin/side"},
		"asked for in full":    {"refs/heads/side", nil, "refs/remotes/origin/side"},
		"of the same name":     {"", [][]string{{"config", "--remove-section", "branch.main"}}, "refs/remotes/origin/main"},
		"another one":          {"", [][]string{{"config", "branch.main.merge", "refs/heads/side"}}, "refs/remotes/origin/side"},
		"a local one":          {"", [][]string{{"config", "branch.main.remote", "."}, {"config", "branch.main.merge", "refs/heads/side"}, {"update-ref", "refs/heads/side", "origin/side"}}, "refs/heads/side"},
		"of another remote":    {"", [][]string{{"remote", "add", "up", "../author"}, {"fetch", "-q", "up"}, {"config", "branch.main.remote", "up"}}, "refs/remotes/up/main"},
		"by other refspecs":    {"", [][]string{{"config", "remote.origin.fetch", "+refs/heads/*:refs/up/*"}, {"update-ref", "refs/up/main", "origin/main"}}, "refs/up/main"},
		"beside the refspecs":  {"side", [][]string{{"config", "remote.origin.fetch", "+refs/heads/main:refs/remotes/origin/main"}}, "refs/remotes/origin/side"},
		"not fetched":          {"missing", nil, ""},
		"a tag":                {"refs/tags/v1", nil, ""},
		"no name":              {"a..b", nil, ""},
		"leading out":          {"../../config", nil, ""},
		"configured and wrong": {"", [][]string{{"config", "branch.main.merge", "refs/heads/missing"}}, ""},
	} {
		put(t, file, string(config))
		for _, args := range tc.set {
			run(t, w.checkout, args...)
		}
		c, err := openCheckout(w.checkout, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newForward(c, tc.ref)
		switch {
		case tc.followed == "" && !errors.Is(err, errNoUpstream) && !errors.Is(err, errNotABranch):
			t.Errorf("%s: %+v, %v; want it refused", name, s, err)
		case tc.followed != "":
			if got, upErr := c.upstream("refs/heads/main", tc.ref); err != nil || upErr != nil || got.String() != tc.followed || s.to.String() != second {
				t.Errorf("%s: %s, %v, %v; want %s", name, got, err, upErr, tc.followed)
			}
		}
	}
}

// G7: where there is no branch with files to bring forward, that is said.
func TestNothingToFastForward(t *testing.T) {
	t.Parallel()
	w, _, _ := behind(t)
	a, _ := newFakes(t, Config{})
	rule := func(name, dir, want string) {
		t.Helper()
		if _, f := ask(t, caller{}, a.FastForward, contract.GitRequest{Dir: dir}); f.Rule != want || f.RetrySame || f.Message == "" {
			t.Errorf("%s: %+v, want %s", name, f, want)
		}
	}
	rule("bare", w.bare, "G7/bare")
	rule("the git directory", filepath.Join(w.checkout, ".git"), "G7/bare")
	run(t, w.checkout, "checkout", "-q", "--detach")
	rule("detached", w.checkout, "G7/detached")
	run(t, w.checkout, "checkout", "-q", "--orphan", "fresh")
	rule("unborn", w.checkout, "G7/unborn")
	rule("missing", filepath.Join(w.root, "missing"), "G3/checkout")
}

// errKilled stands for a worker that is killed at this point.
var errKilled = errors.New("killed")

// G7: a worker that is killed before, amid or after the files have moved leaves a
// checkout that the next attempt brings forward, also if the remote has moved on
// meanwhile.
func TestFastForwardSurvivesAKill(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(t *testing.T, w *world, g engine) func(ctx context.Context, from, to string) error{
		"before the files": func(*testing.T, *world, engine) func(context.Context, string, string) error {
			return func(context.Context, string, string) error { return errKilled }
		},
		"amid the files": func(t *testing.T, w *world, _ engine) func(context.Context, string, string) error {
			return func(_ context.Context, _, to string) error {
				put(t, filepath.Join(w.checkout, "file"), run(t, w.checkout, "show", to+":file")+"\n")
				return errKilled
			}
		},
		"after the files": func(t *testing.T, w *world, g engine) func(context.Context, string, string) error {
			return func(ctx context.Context, from, to string) error {
				c, err := openCheckout(w.checkout, nil)
				if err == nil {
					err = g.advance(ctx, c, &progress{}, advanceSpec{from: from, to: to})
				}
				return errors.Join(errKilled, err)
			}
		},
	} {
		for _, movedOn := range []bool{false, true} {
			w, first, second := behind(t)
			a, fake := newFakes(t, Config{})
			fake.onAdvance = kill(t, w, fake.engine)
			if _, f := forwardTo(t, a, w, ""); f.Reason == "" {
				t.Fatalf("%s: the attempt was not killed", name)
			}
			if got := run(t, w.checkout, "rev-parse", "HEAD"); got != first {
				t.Errorf("%s: the branch moved before the files had", name)
			}
			fake.onAdvance = nil
			want, content := second, "second"
			if movedOn {
				want, content = w.commit("third"), "third"
				w.push("main")
				run(t, w.checkout, "fetch", "-q")
			}
			res, f := forwardTo(t, a, w, "")
			isResult(t, name, synced(first, want), res, f)
			w.at(want, content)
		}
	}
}

// G7: the note of an attempt that died is not followed where it does not fit.
func TestNotesThatDoNotFit(t *testing.T) {
	t.Parallel()
	w, first, second := behind(t)
	side := run(t, w.checkout, "commit-tree", "-m", "side", "HEAD^{tree}")
	note := filepath.Join(w.checkout, ".git", "holdfast", "moving")
	a, _ := newFakes(t, Config{})
	for _, content := range []string{
		"", "{", `{"branch":"refs/heads/other","from":"` + first + `","to":"` + side + `"}`,
		`{"branch":"refs/heads/main","from":"` + second + `","to":"` + side + `"}`,
		`{"branch":"refs/heads/main","from":"` + first + `","to":"` + side + `"}`,
		`{"branch":"refs/heads/main","from":"` + first + `","to":"main"}`,
	} {
		put(t, note, content)
		run(t, w.checkout, "reset", "-q", "--hard", first)
		res, f := forwardTo(t, a, w, "")
		isResult(t, content, synced(first, second), res, f)
		w.at(second, "second")
	}
}

// G11: a branch that another process moves, or leaves, meanwhile is not moved.
func TestFastForwardMovesNoOtherBranch(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, w *world){
		"moved":    func(t *testing.T, w *world) { run(t, w.checkout, "update-ref", "refs/heads/main", w.otherCommit()) },
		"switched": func(t *testing.T, w *world) { run(t, w.checkout, "symbolic-ref", "HEAD", "refs/heads/other") },
	} {
		w, _, _ := behind(t)
		a, fake := newFakes(t, Config{})
		run(t, w.checkout, "branch", "other")
		other := run(t, w.checkout, "rev-parse", "other")
		fake.onAdvance = func(context.Context, string, string) error {
			meanwhile(t, w)
			return nil
		}
		if _, f := forwardTo(t, a, w, ""); f.Rule != "G11/changed" || f.RetrySame {
			t.Errorf("%s: %+v, want G11/changed", name, f)
		}
		if got := w.refs()["refs/heads/other"]; got != other {
			t.Errorf("%s: the other branch is %s, want %s", name, got, other)
		}
	}
}

func (w *world) otherCommit() string {
	return run(w.t, w.checkout, "commit-tree", "-m", "other", "HEAD^{tree}")
}
