package conformance

import (
	"maps"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitListCases = []gitCase{
	{"ls-remote", gitLists},
	{"ls-remote of an empty repository", gitListsEmpty},
	{"ls-remote with too much to say", gitListsTooMuch},
}

// G1: the list is that of "git ls-remote": HEAD first, then by name, tags peeled,
// and the same patterns.
func gitLists(w *gitWorld) {
	w.git(w.author, "tag", "-a", "-m", "one", "v1")
	w.git(w.author, "branch", "topic/main")
	w.publish("v1", "topic/main")
	for _, pattern := range []string{"", "main", "heads/main", "refs/heads/*", "v?", "v1*", "ain", "(", "missing"} {
		args := []string{"ls-remote", "-q", w.host.Dir(gitRepo)}
		if pattern != "" {
			args = append(args, pattern)
		}
		var want []contract.GitRef
		for line := range strings.Lines(w.git(w.work, args...)) {
			oid, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			want = append(want, contract.GitRef{Name: name, OID: oid})
		}
		w.host.Reset()
		got := w.do(w.engine.LsRemote, contract.GitRequest{URL: w.url(), Ref: pattern}).Result
		if diff := cmp.Diff(want, got.Refs); diff != "" || got.Outcome != contract.OutcomeListed {
			w.t.Errorf("%q: outcome %s, (-git +ours):\n%s", pattern, got.Outcome, diff)
		}
		w.requests("ls-remote", gitSent{refs: 1})
	}
}

func gitListsEmpty(w *gitWorld) {
	w.check(w.host.Create("empty.git", 0))
	got := w.do(w.engine.LsRemote, contract.GitRequest{URL: w.host.RepoURL("empty.git")}).Result
	if got.Outcome != contract.OutcomeListed || len(got.Refs) != 0 {
		w.t.Errorf("%+v, want an empty list", got)
	}
	w.requests("ls-remote", gitSent{refs: 1})
}

// G3: a list above the output limit of 16 MiB, or above what a result can hold,
// ends the operation for good; a pattern makes it fit.
func gitListsTooMuch(w *gitWorld) {
	many := func(n int) {
		refs := make([]githttp.Ref, 0, n)
		for i := range n {
			refs = append(refs, githttp.Ref{ID: strings.Repeat("b", 40), Name: "refs/heads/branch-" + pad(i)})
		}
		w.host.Script(githttp.Advertise(githttp.OpFetchRefs, refs...))
	}
	list := contract.GitRequest{URL: w.url()}
	many(300_000) // about 20 MB
	w.fails("20 MB of refs", w.engine.LsRemote, list, gitWant{reason: "output_limit"})
	many(50_000)
	w.fails("50,000 refs", w.engine.LsRemote, list, gitWant{reason: "output_limit", hint: "--ref"})
	many(50_000)
	list.Ref = "branch-00000*"
	if got := w.do(w.engine.LsRemote, list).Result; len(got.Refs) != 100 {
		w.t.Errorf("narrowed: %d refs, want 100", len(got.Refs))
	}
}

func pad(n int) string {
	digits := []byte("0000000")
	for i := len(digits) - 1; n > 0; i, n = i-1, n/10 {
		digits[i] += byte(n % 10)
	}
	return string(digits)
}

var gitFetchCases = []gitCase{
	{"fetch", gitFetches},
	{"fetch of one ref", gitFetchesOne},
	{"fetch of refs that are not there", gitFetchesMissing},
	{"fetch of tags", gitFetchesTags},
	{"fetch of a branch that was forced", gitFetchesForced},
	{"fetch that must not move a ref", gitFetchConflicts},
	{"fetch into bare, linked and shallow", gitFetchesInto},
	{"fetch of an empty repository", gitFetchesEmpty},
	{"fetch of much", gitFetchesMuch},
	{"fetch of a deleted branch", gitFetchesDeleted},
	{"fetch of names that clash", gitFetchesClash},
	{"fetch and a ref that is locked", gitFetchesLocked},
}

// fetch makes a fetch that must succeed and checks what it says it moved, what
// it moved, and that the rest is as it was.
func (w *gitWorld) fetch(what string, in contract.GitRequest, moved ...contract.GitUpdate) {
	w.t.Helper()
	before := w.refs(in.Dir)
	w.host.Reset()
	got := w.do(w.engine.Fetch, in).Result
	want := contract.GitResult{Outcome: contract.OutcomeFetched, Updated: moved}
	if len(moved) == 0 {
		want.Outcome = contract.OutcomeUpToDate
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: result (-want +got):\n%s", what, diff)
	}
	refs := maps.Clone(before)
	for _, u := range moved {
		refs[u.Ref] = u.New
	}
	w.hasRefs(what, in.Dir, refs)
	w.whole(what, in.Dir)
}

// G1, G10: a fetch brings what the checkout's configuration asks for, says what
// moved, and asks once.
func gitFetches(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	second := w.commit("second")
	w.git(w.author, "branch", "side", first)
	w.publish("main", "side")
	w.fetch("fetch", contract.GitRequest{Dir: dir},
		contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: first, New: second},
		contract.GitUpdate{Ref: "refs/remotes/origin/side", New: first})
	w.requests("fetch", gitSent{refs: 1, pack: 1})
	w.fetch("nothing new", contract.GitRequest{Dir: dir})
	w.requests("nothing new", gitSent{refs: 1})
	if got := w.git(dir, "rev-parse", "HEAD"); got != first || w.git(dir, "status", "--porcelain") != "" {
		w.t.Errorf("the fetch changed what is checked out: HEAD %s", got)
	}
	third := w.commit("third")
	w.publish("main")
	w.fetch("another address", contract.GitRequest{Dir: dir, URL: "file://" + w.host.Dir(gitRepo)},
		contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: second, New: third})
}

// G10: a ref is a branch, a tag, a full name or a refspec.
func gitFetchesOne(w *gitWorld) {
	dir := w.checkout("a")
	second := w.commit("second")
	w.git(w.author, "tag", "v1")
	w.git(w.author, "update-ref", "refs/pull/7/head", second)
	w.publish("main:topic/deep", "refs/pull/7/head")
	for _, tc := range []struct{ ref, moved string }{
		{"topic/deep", "refs/remotes/origin/topic/deep"},
		{"refs/pull/7/head", "refs/remotes/origin/pull/7/head"},
		{"+refs/heads/topic/*:refs/mirror/*", "refs/mirror/deep"},
		{"topic/deep:copy", "refs/heads/copy"},
	} {
		w.fetch(tc.ref, contract.GitRequest{Dir: dir, Ref: tc.ref}, contract.GitUpdate{Ref: tc.moved, New: second})
	}
	w.publish("v1")
	w.fetch("tag", contract.GitRequest{Dir: dir, Ref: "v1"}, contract.GitUpdate{Ref: "refs/tags/v1", New: second})
	w.fetch("tag to another name", contract.GitRequest{Dir: dir, Ref: "v1:refs/tags/other"}, contract.GitUpdate{Ref: "refs/tags/other", New: second})
}

// G3: a ref that is not there, or is none, is no reason to try again, and nothing
// moves.
func gitFetchesMissing(w *gitWorld) {
	dir := w.checkout("a")
	w.commit("second")
	w.publish("main")
	before := w.state(dir)
	for _, tc := range []struct{ ref, reason, hint string }{
		{"missing", "not_found", "ls-remote"},
		{"refs/heads/missing:refs/x/y", "not_found", "ls-remote"},
		{"ain", "not_found", "ls-remote"},
		{":refs/heads/x", "format", "--ref"},
		{"a:b:c", "format", "--ref"},
		{"main:refs/../../config", "format", ""},
		{"main:refs/heads/x.lock", "format", ""},
		{"--upload-pack=touch " + w.outside + "/ran", "", ""},
		{"-q", "", ""},
	} {
		w.host.Reset()
		want := gitWant{reason: tc.reason, hint: tc.hint}
		answer := w.engine.Fetch(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Ref: tc.ref}))
		if tc.reason == "" && answer.Failure != nil {
			want.reason = answer.Failure.Reason // any, so long as it is one
		}
		w.failed(tc.ref, answer, want)
		w.unchanged(tc.ref, dir, before)
		if sent := w.sent(); sent.pack > 0 || sent.refs > 1 {
			w.t.Errorf("%s: requests %+v", tc.ref, sent)
		}
	}
}

// G10: tags that point at what is fetched come along, others not; the checkout's
// own setting counts; a tag that is here is never moved.
func gitFetchesTags(w *gitWorld) {
	dir, none, all := w.checkout("a"), w.checkout("none"), w.checkout("all")
	w.git(none, "config", "remote.origin.tagOpt", "--no-tags")
	w.git(all, "config", "remote.origin.tagOpt", "--tags")
	first := w.remote("refs/heads/main")
	w.git(dir, "tag", "here")
	second := w.commit("second")
	w.git(w.author, "tag", "-a", "-m", "one", "v1")
	w.git(w.author, "tag", "light")
	w.git(w.author, "tag", "here")
	w.git(w.author, "tag", "old", first)
	elsewhere := w.git(w.author, "commit-tree", "-m", "elsewhere", "HEAD^{tree}")
	w.git(w.author, "tag", "elsewhere", elsewhere)
	w.publish("main", "v1", "light", "here", "old", "elsewhere")
	v1 := w.git(w.author, "rev-parse", "v1")
	main := contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: first, New: second}
	tag := func(name, oid string) contract.GitUpdate {
		return contract.GitUpdate{Ref: "refs/tags/" + name, New: oid}
	}
	w.fetch("tags follow", contract.GitRequest{Dir: dir}, main, tag("light", second), tag("old", first), tag("v1", v1))
	w.requests("tags follow", gitSent{refs: 1, pack: 1})
	w.fetch("no tags", contract.GitRequest{Dir: none}, main)
	w.fetch("all tags", contract.GitRequest{Dir: all}, main,
		tag("elsewhere", elsewhere), tag("here", second), tag("light", second), tag("old", first), tag("v1", v1))

	// A tag of what is here already is brought too.
	w.git(w.author, "tag", "-a", "-m", "late", "late", second)
	w.publish("late")
	w.fetch("late tag", contract.GitRequest{Dir: dir}, tag("late", w.git(w.author, "rev-parse", "late")))
}

// G1: the configured refspec follows a branch that was rewritten.
func gitFetchesForced(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	w.git(w.author, "commit", "-q", "--amend", "-m", "rewritten")
	rewritten := w.git(w.author, "rev-parse", "HEAD")
	w.publish("main")
	w.fetch("forced", contract.GitRequest{Dir: dir}, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: first, New: rewritten})
	w.git(dir, "update-ref", "refs/local/main", first)
	w.fetch("forced by +", contract.GitRequest{Dir: dir, Ref: "+refs/heads/main:refs/local/main"},
		contract.GitUpdate{Ref: "refs/local/main", Old: first, New: rewritten})
}

// G1: a ref that git itself would not move is a conflict, and then no other ref
// moves either.
func gitFetchConflicts(w *gitWorld) {
	w.commit("second")
	w.git(w.author, "tag", "v1")
	w.publish("v1")
	for _, tc := range []struct {
		name, ref string
		set       func(dir string)
	}{
		{"diverged", "refs/heads/main:refs/local/main", func(dir string) {
			other := w.git(dir, "commit-tree", "-m", "other", "HEAD^{tree}")
			w.git(dir, "update-ref", "refs/local/main", other)
		}},
		{"checked out", "+refs/heads/main:refs/heads/main", func(string) {}},
		{"checked out in a linked worktree", "+refs/heads/main:refs/heads/linked", func(dir string) {
			w.git(dir, "worktree", "add", "-q", "-b", "linked", dir+"-linked")
		}},
		{"tag differs", "refs/tags/v1:refs/tags/v1", func(dir string) { w.git(dir, "tag", "-f", "v1") }},
		{"name is a directory", "refs/heads/main:refs/local/main", func(dir string) {
			w.git(dir, "update-ref", "refs/local/main/deep", "HEAD")
		}},
		{"name is below a ref", "refs/heads/main:refs/local/main/deep", func(dir string) {
			w.git(dir, "update-ref", "refs/local/main", "HEAD")
		}},
		{"all or none", "refs/heads/*:refs/local/*", func(dir string) {
			other := w.git(dir, "commit-tree", "-m", "other", "HEAD^{tree}")
			w.git(dir, "update-ref", "refs/local/zebra", other)
		}},
	} {
		dir := w.checkout(strings.ReplaceAll(tc.name, " ", "-"))
		tc.set(dir)
		w.publish("main", "main:zebra")
		before := w.state(dir)
		w.fails(tc.name, w.engine.Fetch, contract.GitRequest{Dir: dir, Ref: tc.ref}, gitWant{reason: "conflict"})
		w.unchanged(tc.name, dir, before)
		w.publish(":zebra", w.git(w.author, "rev-parse", "HEAD~1")+":refs/heads/main")
	}
}

// G10: a mirror, a linked worktree and a shallow checkout are fetched into; what
// the edge of the shallow one cut off is not taken for granted.
func gitFetchesInto(w *gitWorld) {
	dir := w.checkout("a")
	for _, text := range []string{"b", "c", "d"} {
		w.commit(text)
	}
	w.publish("main")
	top := w.remote("refs/heads/main")
	bare, linked, shallow := w.dir("bare.git"), w.dir("linked"), w.dir("shallow")
	w.git(w.work, "clone", "-q", "--mirror", w.url(), bare)
	w.git(dir, "worktree", "add", "-q", "-b", "linked", linked)
	w.git(w.work, "clone", "-q", "--depth", "1", w.url(), shallow)
	first := w.git(dir, "rev-parse", "origin/main")
	// Bring back what only the history beyond the shallow edge holds. With a
	// bitmap the remote knows exactly what a full history would have.
	w.git(w.host.Dir(gitRepo), "repack", "-adbq")
	w.git(w.author, "checkout", "-q", "HEAD~3", "--", "file")
	next := w.commitIn(w.author, "revert")
	w.publish("main")
	w.fetch("bare", contract.GitRequest{Dir: bare}, contract.GitUpdate{Ref: "refs/heads/main", Old: top, New: next})
	w.fetch("linked", contract.GitRequest{Dir: linked}, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: first, New: next})
	w.fetch("shallow", contract.GitRequest{Dir: shallow}, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: top, New: next})
	for _, d := range []string{bare, linked, shallow} {
		w.git(d, "rev-list", "--objects", next)
	}
	if n := w.git(shallow, "rev-list", "--count", next); n != "2" {
		w.t.Errorf("the shallow checkout has %s commits, want 2", n)
	}
	w.git(w.work, "-C", dir, "fsck", "--strict")
}

func gitFetchesEmpty(w *gitWorld) {
	dir := w.checkout("a")
	w.check(w.host.Create("empty.git", 0))
	w.fetch("empty", contract.GitRequest{Dir: dir, URL: w.host.RepoURL("empty.git")})

	// And the other way round.
	empty := w.dir("empty")
	w.git(w.work, "init", "-q", "-b", "main", empty)
	w.git(empty, "remote", "add", "origin", w.url())
	w.fetch("into empty", contract.GitRequest{Dir: empty}, contract.GitUpdate{Ref: "refs/remotes/origin/main", New: w.remote("refs/heads/main")})
}

// G1: a fetch of many commits takes one pack and little of what is here.
func gitFetchesMuch(w *gitWorld) {
	const name = "much.git"
	w.check(w.host.Create(name, 1500))
	dir := w.dir("much")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir(name), dir)
	w.git(dir, "remote", "set-url", "origin", w.host.RepoURL(name))
	old := w.host.Refs(name)["refs/heads/main"]
	w.check(w.host.Commit(name, "main", 300))
	w.check(w.host.Commit(name, "side", 20))
	refs := w.host.Refs(name)
	w.fetch("much", contract.GitRequest{Dir: dir},
		contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: old, New: refs["refs/heads/main"]},
		contract.GitUpdate{Ref: "refs/remotes/origin/side", New: refs["refs/heads/side"]})
	if got := len(w.host.Ledger().Requests(githttp.OpFetchRefs)); got != 1 {
		w.t.Errorf("%d lists of refs", got)
	}
	if n := w.git(dir, "rev-list", "--count", "origin/side"); n != "1820" {
		w.t.Errorf("side has %s commits, want 1820", n)
	}
}

// G1: what is gone at the remote stays here: nothing is pruned.
func gitFetchesDeleted(w *gitWorld) {
	w.git(w.author, "branch", "side")
	w.publish("side")
	dir := w.checkout("a")
	w.publish(":side")
	w.fetch("deleted", contract.GitRequest{Dir: dir})
}

// G1: a branch in whose place the remote has a directory of branches now cannot
// be followed while the old one is here.
func gitFetchesClash(w *gitWorld) {
	w.git(w.author, "branch", "topic")
	w.publish("topic")
	dir := w.checkout("a")
	w.commit("second")
	w.publish(":topic")
	w.publish("main:topic/deep", "main")
	before := w.state(dir)
	w.fails("clash", w.engine.Fetch, contract.GitRequest{Dir: dir}, gitWant{reason: "conflict"})
	w.unchanged("clash", dir, before)
}

// G3: a ref whose .lock file exists may be tried once more; no ref moves, and the
// lock, which is another's, stays.
func gitFetchesLocked(w *gitWorld) {
	dir := w.checkout("a")
	w.commit("second")
	w.publish("main", "main:zebra")
	before := w.state(dir)
	lock := filepath.Join(".git", "refs", "remotes", "origin", "zebra.lock")
	w.write(dir, lock, "")
	w.fails("locked", w.engine.Fetch, contract.GitRequest{Dir: dir}, gitWant{reason: "lock", retry: true, hint: ".lock"})
	if diff := cmp.Diff(before, w.state(dir)); diff != "" {
		w.t.Errorf("the checkout changed (-before +after):\n%s", diff)
	}
	w.read(dir, lock)
	w.remove(dir, lock)
	w.whole("locked", dir)
	if got := w.do(w.engine.Fetch, contract.GitRequest{Dir: dir}).Result; len(got.Updated) != 2 {
		w.t.Errorf("without the lock: %+v", got)
	}
}
