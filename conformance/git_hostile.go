package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitHostileCases = []gitCase{
	{"clone of hostile repositories", gitClonesHostile},
	{"fast-forward to hostile commits", gitAdvancesHostile},
	{"fast-forward past a hostile commit", gitAdvancesPastHostile},
	{"hostile names of refs", gitHostileRefs},
	{"hostile lists of refs", gitHostileLists},
}

// hostile puts a hostile repository behind the host.
func (w *gitWorld) hostile(i int, h githttp.Hostile) (url string) {
	w.t.Helper()
	name := fmt.Sprintf("hostile%d.git", i)
	w.check(w.host.CreateHostile(name, h, w.outside))
	return w.host.RepoURL(name)
}

// gitDir is what a repository has beside its objects, refs and what changes with
// them: its configuration, hooks and the like.
func (w *gitWorld) gitDir(dir string) map[string]string {
	w.t.Helper()
	all := w.files(filepath.Join(dir, ".git"))
	maps.DeleteFunc(all, func(name, _ string) bool {
		top, _, _ := strings.Cut(name, "/")
		switch top {
		case "config", "hooks", "info", "description":
			return false
		}
		return true
	})
	return all
}

// honest checks a checkout of a hostile repository: what is in it lies in it, no
// link was followed, and its .git is git's.
func (w *gitWorld) honest(what, dir string, before map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.gitDir(dir)); diff != "" {
		w.t.Errorf("%s: the repository's own files changed (-before +after):\n%s", what, diff)
	}
	if diff := cmp.Diff(map[string]string{"canary": "sings\n"}, w.files(w.outside)); diff != "" {
		w.t.Errorf("%s: outside (-before +after):\n%s", what, diff)
	}
}

// G12: no hostile repository writes outside of its checkout or into its .git. What
// cannot be checked out is a clear failure that leaves nothing.
func gitClonesHostile(w *gitWorld) {
	pristine := w.pristine()
	for i, h := range githttp.Hostiles() {
		url, names := w.hostile(i, h), w.beside()
		dir := w.dir(fmt.Sprintf("hostile%d", i))
		answer := w.engine.Clone(w.t.Context(), w.request(contract.GitRequest{Dir: dir, URL: url}))
		if answer.Failure != nil {
			w.failed(h.Name, answer, gitWant{reason: "format"})
			w.sameNames(h.Name, names)
			w.unharmed()
		} else {
			w.git(dir, "config", "remote.origin.url", w.url())
			w.honest(h.Name, dir, pristine)
			if h.Refused {
				w.t.Errorf("%s: cloned with %v", h.Name, keys(w.files(dir)))
			}
		}
		w.remove(w.work, filepath.Base(dir))
		if diff := cmp.Diff(names, w.beside()); diff != "" {
			w.t.Errorf("%s: beside (-before +after):\n%s", h.Name, diff)
		}
	}
	// The innocent branch of one can be had.
	good := w.do(w.engine.Clone, contract.GitRequest{Dir: w.dir("good"), URL: w.host.RepoURL("hostile0.git"), Ref: "good"}).Result
	if good.Outcome != contract.OutcomeCloned {
		w.t.Errorf("the innocent branch: %+v", good)
	}
}

// pristine are the repository's own files after a clone of an honest one.
func (w *gitWorld) pristine() map[string]string {
	w.t.Helper()
	dir := w.dir("pristine")
	w.do(w.engine.Clone, contract.GitRequest{Dir: dir, URL: w.url()})
	w.git(dir, "config", "remote.origin.url", w.url())
	defer w.remove(w.work, "pristine")
	return w.gitDir(dir)
}

// G12: neither does a hostile commit that comes later, over links and directories
// that are here already.
func gitAdvancesHostile(w *gitWorld) {
	for i, h := range githttp.Hostiles() {
		url := w.hostile(i, h)
		dir := w.dir(fmt.Sprintf("hostile%d", i))
		w.git(w.work, "-c", "core.protectHFS=true", "-c", "core.protectNTFS=true", "clone", "-q", "--branch", "good", url, dir)
		w.git(dir, "branch", "-q", "--set-upstream-to", "origin/main")
		own, before := w.gitDir(dir), w.state(dir)
		// Of a path that the file system does not take, the beginning may be made.
		long := strings.Contains(h.Name, "too ")
		answer := w.engine.FastForward(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
		w.honest(h.Name, dir, own)
		switch {
		case answer.Failure != nil:
			w.failed(h.Name, answer, gitWant{reason: "format"})
			if head := w.git(dir, "rev-parse", "HEAD"); head != before.Refs["refs/heads/good"] {
				w.t.Errorf("%s: HEAD is %s", h.Name, head)
			}
			if !long && !cmp.Equal(before, w.state(dir)) {
				w.t.Errorf("%s: the checkout changed (-before +after):\n%s", h.Name, cmp.Diff(before, w.state(dir)))
			}
			// Of the others an engine may refuse what is no name elsewhere, and two
			// entries of one name.
			if !h.Refused && !strings.Contains(h.Name, "backslash") && !strings.Contains(h.Name, "of one name") {
				w.t.Errorf("%s: %+v, want what is harmless to be checked out", h.Name, *answer.Failure)
			}
		case h.Refused:
			w.t.Errorf("%s: checked out with %v", h.Name, keys(w.files(dir)))
		default:
			// Git's own view of two entries of one name is not clean.
			status := w.git(dir, "status", "--porcelain", "--ignore-submodules=all")
			if status != "" && !strings.Contains(h.Name, "submodules") && !strings.Contains(h.Name, "of one name") {
				w.t.Errorf("%s: git status:\n%s", h.Name, status)
			}
		}
		if left := w.leftovers(dir); len(left) != 0 {
			w.t.Errorf("%s: left behind: %v", h.Name, left)
		}
		w.remove(w.work, filepath.Base(dir))
	}
}

// G12, G7: a hostile commit that was refused is in nobody's way once the remote
// has got rid of what was hostile.
func gitAdvancesPastHostile(w *gitWorld) {
	h := githttp.Hostiles()[0]
	url, dir := w.hostile(0, h), w.dir("a")
	w.git(w.work, "clone", "-q", "--branch", "good", url, dir)
	w.git(dir, "branch", "-q", "--set-upstream-to", "origin/main")
	w.git(dir, "config", "fsck.hasDotgit", "ignore") // it stays in the history
	w.fails(h.Name, w.engine.FastForward, contract.GitRequest{Dir: dir}, gitWant{reason: "format"})
	bare := w.host.Dir("hostile0.git")
	mended := w.git(bare, "commit-tree", "-p", "main", "-m", "mended", "good^{tree}")
	w.git(bare, "update-ref", "refs/heads/main", mended)
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	got := w.do(w.engine.FastForward, contract.GitRequest{Dir: dir}).Result
	if got.Outcome != contract.OutcomeSynced || got.Head == nil || got.Head.OID != mended || w.git(dir, "rev-parse", "HEAD") != mended {
		w.t.Errorf("mended: %+v, head %+v, want %s", got, got.Head, mended)
	}
	if left := w.leftovers(dir); len(left) != 0 {
		w.t.Errorf("mended: left behind: %v", left)
	}
}

// G12: a remote cannot choose a path outside the refs by the names of its refs.
func gitHostileRefs(w *gitWorld) {
	dir := w.checkout("a")
	oid := w.remote("refs/heads/main")
	refs := []githttp.Ref{{ID: oid, Name: "refs/heads/good"}}
	for _, name := range []string{
		"refs/heads/../../../../config", "refs/heads/../../../../../escaped", "refs/heads/a/../../../../../hooks/post-checkout", "refs/tags/../../config",
		"refs/heads/.hidden", "refs/heads/x.lock", "refs/heads/a//b", "refs/heads/a\\b", "refs/tags/.git", "HEADER", "../escaped", "/escaped",
		"refs/heads/-x", "refs/heads/a b", "refs/heads/a..b", "refs/heads/a@{b", "refs/heads/@",
	} {
		refs = append(refs, githttp.Ref{ID: oid, Name: name})
	}
	own, before := w.gitDir(dir), w.state(dir)
	w.host.Script(githttp.Advertise(githttp.OpFetchRefs, refs...))
	answer := w.engine.Fetch(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
	w.honest("fetch", dir, own)
	if answer.Failure != nil {
		w.failed("fetch", answer, gitWant{reason: answer.Failure.Reason, retry: answer.Failure.RetrySame})
		w.unchanged("fetch", dir, before)
	} else {
		for _, u := range answer.Result.Updated {
			if u.Ref != "refs/remotes/origin/good" && u.Ref != "refs/remotes/origin/-x" && u.Ref != "refs/remotes/origin/@" {
				w.t.Errorf("moved %s", u.Ref)
			}
		}
		w.whole("fetch", dir)
	}
	names := w.beside()
	w.host.Script(githttp.Advertise(githttp.OpFetchRefs, refs...))
	answer = w.engine.Clone(w.t.Context(), w.request(contract.GitRequest{Dir: w.dir("b"), URL: w.url(), Ref: "good"}))
	if answer.Failure != nil {
		w.failed("clone", answer, gitWant{reason: answer.Failure.Reason, retry: answer.Failure.RetrySame})
		w.sameNames("clone", names)
	} else {
		w.whole("clone", w.dir("b"))
		w.sameNames("clone", append(names, "b"))
	}
	for _, name := range []string{"escaped", "hooks/post-checkout"} {
		for _, where := range []string{w.engine.Root, w.work, dir, filepath.Join(dir, ".git")} {
			if _, err := os.Lstat(filepath.Join(where, name)); err == nil {
				w.t.Errorf("%s was written in %s", name, where)
			}
		}
	}
}

// G12: lists of refs that are no lists end in a clear failure.
func gitHostileLists(w *gitWorld) {
	dir := w.checkout("a")
	before := w.state(dir)
	head := "001e# service=git-upload-pack\n0000"
	for what, body := range map[string]string{
		"not in lines":      gitPlanted,
		"endless line":      head + "ffff" + strings.Repeat("x", 100),
		"line too short":    head + "0001",
		"no id":             head + "0020" + strings.Repeat("z", 27) + "\n0000",
		"error of the host": head + fmt.Sprintf("%04xERR %s", len(gitPlanted)+8, gitPlanted) + "0000",
	} {
		w.host.Reset()
		w.host.Script(githttp.Says(githttp.OpFetchRefs, body).Times(2))
		for name, tc := range map[string]struct {
			call GitCall
			in   contract.GitRequest
		}{
			"ls-remote": {w.engine.LsRemote, contract.GitRequest{URL: w.url()}},
			"fetch":     {w.engine.Fetch, contract.GitRequest{Dir: dir}},
		} {
			what := name + ": " + what
			answer := tc.call(w.t.Context(), w.request(tc.in))
			if answer.Failure == nil {
				w.t.Errorf("%s: succeeded with %+v", what, answer.Result)
				continue
			}
			w.failed(what, answer, gitWant{reason: answer.Failure.Reason, retry: answer.Failure.RetrySame})
			w.unchanged(what, dir, before)
		}
	}
}
