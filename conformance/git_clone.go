package conformance

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitCloneCases = []gitCase{
	{"clone", gitClones},
	{"clone of a branch", gitClonesBranch},
	{"clone of a tag", gitClonesTag},
	{"clone with a depth", gitClonesShallow},
	{"clone of a single branch", gitClonesSingle},
	{"clone without tags", gitClonesNoTags},
	{"sparse clone", gitClonesSparse},
	{"clone of an empty repository", gitClonesEmpty},
	{"clone into an empty directory", gitClonesIntoEmpty},
	{"clone into what is not empty", gitClonesIntoFull},
	{"clone of a ref that is not there", gitClonesMissing},
	{"clone of links and programs", gitClonesLinks},
	{"clone of a local repository", gitClonesLocal},
	{"clone that fails half-way", gitCloneFailsHalfWay},
}

// clone makes a clone that must succeed and checks that it is a checkout as git
// makes it: at the head, clean, sound, following origin, and with nothing beside
// it.
func (w *gitWorld) clone(what string, in contract.GitRequest, head contract.GitHead) string {
	w.t.Helper()
	if in.Dir == "" {
		in.Dir = w.dir(strings.ReplaceAll(what, " ", "-"))
	}
	if in.URL == "" {
		in.URL = w.url()
	}
	before := w.beside()
	_, err := os.Lstat(in.Dir)
	w.host.Reset()
	got := w.do(w.engine.Clone, in).Result
	if got.Outcome != contract.OutcomeCloned || got.Head == nil || *got.Head != head {
		w.t.Errorf("%s: result %+v, head %+v, want cloned at %+v", what, got, got.Head, head)
	}
	if os.IsNotExist(err) {
		before = append(before, filepath.Base(in.Dir))
	}
	w.sameNames(what, before)
	if got := w.git(in.Dir, "rev-parse", "HEAD"); got != head.OID {
		w.t.Errorf("%s: HEAD is %s, want %s", what, got, head.OID)
	}
	if ref, _ := w.try(in.Dir, "symbolic-ref", "-q", "HEAD"); ref != head.Ref {
		w.t.Errorf("%s: HEAD is on %q, want %q", what, ref, head.Ref)
	}
	if status := w.git(in.Dir, "status", "--porcelain"); status != "" {
		w.t.Errorf("%s: git status:\n%s", what, status)
	}
	if url := w.git(in.Dir, "config", "remote.origin.url"); url != in.URL {
		w.t.Errorf("%s: origin is %s, want %s", what, url, in.URL)
	}
	w.whole(what, in.Dir)
	return in.Dir
}

// follows checks what the branch of a clone follows, and what later fetches will
// bring.
func (w *gitWorld) follows(what, dir, branch, refspec string) {
	w.t.Helper()
	if branch != "" {
		if got := w.git(dir, "rev-parse", "--abbrev-ref", branch+"@{upstream}"); got != "origin/"+branch {
			w.t.Errorf("%s: %s follows %s", what, branch, got)
		}
	}
	if got := w.git(dir, "config", "--get-all", "remote.origin.fetch"); got != refspec {
		w.t.Errorf("%s: fetches %s, want %s", what, got, refspec)
	}
}

const gitEverything = "+refs/heads/*:refs/remotes/origin/*"

// branches gives the repository more to clone: a branch "side" at the first
// commit, three commits on main, an annotated tag at the second of them, and a
// tag that no branch leads to.
func (w *gitWorld) branches() (first, tagged, top string) {
	w.t.Helper()
	first = w.remote("refs/heads/main")
	w.git(w.author, "branch", "side")
	w.write(w.author, "dir/a/one", "one\n")
	w.write(w.author, "dir/a/deep/two", "two\n")
	w.write(w.author, "dir/b/three", "three\n")
	w.write(w.author, "other/four", "four\n")
	tagged = w.commit("second")
	w.git(w.author, "tag", "-a", "-m", "one", "v1")
	top = w.commit("third")
	w.git(w.author, "tag", "elsewhere", w.git(w.author, "commit-tree", "-m", "elsewhere", "HEAD^{tree}"))
	w.publish("main", "side", "v1", "elsewhere")
	return first, tagged, top
}

func gitMain(oid string) contract.GitHead {
	return contract.GitHead{Ref: "refs/heads/main", OID: oid}
}

// G10: a clone is all branches and tags, checked out at the remote's HEAD, and
// can be fetched into.
func gitClones(w *gitWorld) {
	first, _, top := w.branches()
	dir := w.clone("clone", contract.GitRequest{}, gitMain(top))
	w.requests("clone", gitSent{refs: 1, pack: 1})
	w.follows("clone", dir, "main", gitEverything)
	w.hasRefs("clone", dir, map[string]string{
		"refs/heads/main": top, "refs/remotes/origin/main": top, "refs/remotes/origin/side": first,
		"refs/tags/v1": w.git(w.author, "rev-parse", "v1"), "refs/tags/elsewhere": w.git(w.author, "rev-parse", "elsewhere"),
	})
	if diff := cmp.Diff(w.files(w.author), w.files(dir)); diff != "" {
		w.t.Errorf("files (-want +got):\n%s", diff)
	}
	next := w.commit("fourth")
	w.publish("main")
	w.fetch("fetch after", contract.GitRequest{Dir: dir}, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: top, New: next})
}

func gitClonesBranch(w *gitWorld) {
	first, _, top := w.branches()
	head := contract.GitHead{Ref: "refs/heads/side", OID: first}
	dir := w.clone("branch", contract.GitRequest{Ref: "side"}, head)
	w.follows("branch", dir, "side", gitEverything)
	if got := w.refs(dir)["refs/remotes/origin/main"]; got != top {
		w.t.Errorf("origin/main is %q, want %s", got, top)
	}
	w.clone("full name", contract.GitRequest{Ref: "refs/heads/side"}, head)
}

// G10: a tag is checked out without a branch.
func gitClonesTag(w *gitWorld) {
	_, tagged, _ := w.branches()
	w.clone("tag", contract.GitRequest{Ref: "v1"}, contract.GitHead{OID: tagged})
	dir := w.clone("shallow tag", contract.GitRequest{Ref: "v1", Depth: 1}, contract.GitHead{OID: tagged})
	if n := w.git(dir, "rev-list", "--count", "--all"); n != "1" {
		w.t.Errorf("the shallow clone of a tag has %s commits, want 1", n)
	}
}

// G10: a depth brings so many commits of one branch, and later fetches keep the
// edge.
func gitClonesShallow(w *gitWorld) {
	_, _, top := w.branches()
	for depth, name := range map[int]string{1: "one", 2: "two"} {
		dir := w.clone("depth "+name, contract.GitRequest{Depth: depth}, gitMain(top))
		w.requests("depth "+name, gitSent{refs: 1, pack: 1})
		w.follows("depth", dir, "main", "+refs/heads/main:refs/remotes/origin/main")
		if n := w.git(dir, "rev-list", "--count", "--all"); n != map[int]string{1: "1", 2: "2"}[depth] {
			w.t.Errorf("depth %d: %s commits", depth, n)
		}
		if got := w.git(dir, "rev-parse", "--is-shallow-repository"); got != "true" {
			w.t.Errorf("depth %d: shallow is %s", depth, got)
		}
		if got := keys(w.refs(dir)); !cmp.Equal(got, map[int][]string{
			1: {"refs/heads/main", "refs/remotes/origin/main"},
			2: {"refs/heads/main", "refs/remotes/origin/main", "refs/tags/v1"},
		}[depth]) {
			w.t.Errorf("depth %d: refs %v", depth, got)
		}
	}
	next := w.commit("fourth")
	w.publish("main")
	w.fetch("fetch after", contract.GitRequest{Dir: w.dir("depth-one")}, contract.GitUpdate{Ref: "refs/remotes/origin/main", Old: top, New: next})
	if n := w.git(w.dir("depth-one"), "rev-list", "--count", "--all"); n != "2" {
		w.t.Errorf("after the fetch: %s commits, want 2", n)
	}
	// Deeper than there is history.
	dir := w.clone("depth of all", contract.GitRequest{Depth: 100}, gitMain(next))
	if n := w.git(dir, "rev-list", "--count", "--all"); n != "4" {
		w.t.Errorf("depth 100: %s commits, want 4", n)
	}
}

func gitClonesSingle(w *gitWorld) {
	first, _, top := w.branches()
	dir := w.clone("single", contract.GitRequest{SingleBranch: true}, gitMain(top))
	w.follows("single", dir, "main", "+refs/heads/main:refs/remotes/origin/main")
	if got := keys(w.refs(dir)); !cmp.Equal(got, []string{"refs/heads/main", "refs/remotes/origin/main", "refs/tags/v1"}) {
		w.t.Errorf("single branch: refs %v", got)
	}
	side := w.clone("single side", contract.GitRequest{SingleBranch: true, Ref: "side"}, contract.GitHead{Ref: "refs/heads/side", OID: first})
	w.follows("single side", side, "side", "+refs/heads/side:refs/remotes/origin/side")
	if got := keys(w.refs(side)); !cmp.Equal(got, []string{"refs/heads/side", "refs/remotes/origin/side"}) {
		w.t.Errorf("single branch side: refs %v", got)
	}
	if out, err := w.try(side, "cat-file", "-e", top); err == nil {
		w.t.Errorf("the single branch brought another one: %s", out)
	}
	w.fetch("fetch after", contract.GitRequest{Dir: side})
}

func gitClonesNoTags(w *gitWorld) {
	_, _, top := w.branches()
	dir := w.clone("no tags", contract.GitRequest{NoTags: true}, gitMain(top))
	if got := keys(w.refs(dir)); !cmp.Equal(got, []string{"refs/heads/main", "refs/remotes/origin/main", "refs/remotes/origin/side"}) {
		w.t.Errorf("no tags: refs %v", got)
	}
	if got := w.git(dir, "config", "remote.origin.tagOpt"); got != "--no-tags" {
		w.t.Errorf("later fetches: tagOpt %s", got)
	}
	w.fetch("fetch after", contract.GitRequest{Dir: dir})
}

// G10: of a sparse clone the directories that were named are checked out, and the
// files at the top and beside the way to them; git knows that the rest is left
// out.
func gitClonesSparse(w *gitWorld) {
	w.branches()
	w.write(w.author, "dir/beside", "beside\n")
	top := w.commitAll("beside")
	w.publish("main")
	dir := w.clone("sparse", contract.GitRequest{Sparse: []string{"dir/a"}}, gitMain(top))
	if diff := cmp.Diff([]string{"dir/a/deep/two", "dir/a/one", "dir/beside", "file"}, keys(w.files(dir))); diff != "" {
		w.t.Errorf("sparse files (-want +got):\n%s", diff)
	}
	if got := w.git(dir, "sparse-checkout", "list"); got != "dir/a" {
		w.t.Errorf("git sees the directories %q", got)
	}
	w.git(dir, "sparse-checkout", "add", "other")
	if diff := cmp.Diff([]string{"dir/a/deep/two", "dir/a/one", "dir/beside", "file", "other/four"}, keys(w.files(dir))); diff != "" {
		w.t.Errorf("files with one directory more (-want +got):\n%s", diff)
	}
	two := w.clone("two directories", contract.GitRequest{Sparse: []string{"other", "dir/b"}, Depth: 1}, gitMain(top))
	if diff := cmp.Diff([]string{"dir/b/three", "dir/beside", "file", "other/four"}, keys(w.files(two))); diff != "" {
		w.t.Errorf("files of two directories (-want +got):\n%s", diff)
	}
}

// G10: an empty repository is cloned as one, and its first commit can be fetched.
func gitClonesEmpty(w *gitWorld) {
	w.check(w.host.Create("empty.git", 0))
	dir := w.dir("empty")
	got := w.do(w.engine.Clone, contract.GitRequest{Dir: dir, URL: w.host.RepoURL("empty.git")}).Result
	if got.Outcome != contract.OutcomeCloned || got.Head != nil && got.Head.OID != "" {
		w.t.Errorf("result %+v, head %+v, want cloned without a commit", got, got.Head)
	}
	w.sameNames("empty", []string{"empty", "outside"})
	w.whole("empty", dir)
	w.git(w.author, "push", "-q", w.host.Dir("empty.git"), "main")
	w.fetch("first commit", contract.GitRequest{Dir: dir}, contract.GitUpdate{Ref: "refs/remotes/origin/main", New: w.remote("refs/heads/main")})
}

// G2: a directory of the user's that is empty is filled and stays the directory
// that it was.
func gitClonesIntoEmpty(w *gitWorld) {
	_, _, top := w.branches()
	dir := w.dir("mine")
	w.check(os.Mkdir(dir, 0o750))
	before, err := os.Stat(dir)
	w.check(err)
	w.clone("into empty", contract.GitRequest{Dir: dir}, gitMain(top))
	after, err := os.Stat(dir)
	w.check(err)
	if !os.SameFile(before, after) || after.Mode() != before.Mode() {
		w.t.Errorf("the directory is another one, or has another mode: %v, was %v", after.Mode(), before.Mode())
	}
}

// G2: what is there already is refused before anything is asked, and is not
// touched.
func gitClonesIntoFull(w *gitWorld) {
	full, file, clone := w.dir("full"), w.dir("file"), w.checkout("clone")
	w.write(full, "mine", "mine\n")
	w.write(w.work, "file", "mine\n")
	w.check(os.Symlink(w.outside, w.dir("link")))
	before, names, state := w.files(w.work), w.beside(), w.state(clone)
	for _, dir := range []string{full, file, clone, w.dir("link"), w.dir("missing/dir/deep")} {
		w.host.Reset()
		answer := w.engine.Clone(w.t.Context(), w.request(contract.GitRequest{Dir: dir, URL: w.url()}))
		if strings.Contains(dir, "missing") && answer.Failure == nil {
			w.remove(w.work, "missing") // parents may be made
			continue
		}
		if answer.Failure == nil {
			w.t.Fatalf("cloned into %s", dir)
		}
		w.failed(dir, answer, gitWant{reason: answer.Failure.Reason})
		if !answer.Failure.Permanent {
			w.t.Errorf("%s: %+v, want a permanent failure", dir, *answer.Failure)
		}
		w.requests(dir, gitSent{})
	}
	if diff := cmp.Diff(before, w.files(w.work)); diff != "" {
		w.t.Errorf("files (-before +after):\n%s", diff)
	}
	w.sameNames("after", names)
	w.unchanged("the clone that was there", clone, state)
}

func gitClonesMissing(w *gitWorld) {
	names := w.beside()
	for _, ref := range []string{"missing", "refs/tags/missing", "ain"} {
		w.host.Reset()
		w.fails(ref, w.engine.Clone, contract.GitRequest{Dir: w.dir("a"), URL: w.url(), Ref: ref}, gitWant{reason: "not_found", hint: "ls-remote"})
		w.requests(ref, gitSent{refs: 1})
		w.sameNames(ref, names)
	}
}

// G12: an honest repository with symbolic links inside is checked out as it is.
func gitClonesLinks(w *gitWorld) {
	w.check(w.host.CreateSymlinks("links.git"))
	top := w.host.Refs("links.git")["refs/heads/main"]
	dir := w.clone("links", contract.GitRequest{URL: w.host.RepoURL("links.git")}, gitMain(top))
	want := map[string]string{
		"README": "hello\n", "link": "link to README", "linkdir": "link to sub", "dangling": "link to nothing",
		"sub/run": "executable: #!/bin/sh\n", "sub/up": "link to ../README",
	}
	if diff := cmp.Diff(want, w.files(dir)); diff != "" {
		w.t.Errorf("files (-want +got):\n%s", diff)
	}
}

// G12: local repositories are cloned by path and by URL, and share nothing with
// the clone.
func gitClonesLocal(w *gitWorld) {
	_, _, top := w.branches()
	bare := w.host.Dir(gitRepo)
	for what, url := range map[string]string{"path": bare, "file": "file://" + bare} {
		dir := w.dir(what)
		got := w.do(w.engine.Clone, contract.GitRequest{Dir: dir, URL: url}).Result
		if got.Outcome != contract.OutcomeCloned || got.Head == nil || *got.Head != gitMain(top) {
			w.t.Errorf("%s: %+v, head %+v", what, got, got.Head)
		}
		w.whole(what, dir)
		if _, err := os.Lstat(filepath.Join(dir, ".git", "objects", "info", "alternates")); err == nil {
			w.t.Errorf("%s: the clone borrows the objects of its remote", what)
		}
		if diff := cmp.Diff(w.files(w.author), w.files(dir)); diff != "" {
			w.t.Errorf("%s: files (-want +got):\n%s", what, diff)
		}
	}
	// An engine that is confined to directories tells of nothing that it may not see.
	answer := w.engine.Clone(w.t.Context(), w.request(contract.GitRequest{Dir: w.dir("c"), URL: filepath.Join(w.engine.Root, "nothing")}))
	want := gitWant{reason: "not_found"}
	if answer.Failure != nil && answer.Failure.Rule == "G12/root" {
		want.reason = "permission"
	}
	w.failed("no repository", answer, want)
	w.sameNames("no repository", []string{"file", "outside", "path"})
}

// G2: of a clone that fails in the middle nothing is left, whether the directory
// was there before or not, and the next attempt is not in its way.
func gitCloneFailsHalfWay(w *gitWorld) {
	_, _, top := w.branches()
	mine := w.dir("mine")
	w.check(os.Mkdir(mine, 0o750))
	for what, step := range map[string]simulator.Step{
		"cut":   githttp.CutPack(200),
		"reset": simulator.Reset().On(githttp.OpUploadPack),
		"empty": githttp.EmptyPack(),
	} {
		for _, dir := range []string{mine, w.dir("new")} {
			w.host.Reset()
			w.host.Script(step)
			w.fails(what, w.engine.Clone, contract.GitRequest{Dir: dir, URL: w.url()}, gitWant{reason: "timeout", retry: true})
			w.requests(what, gitSent{refs: 1, pack: 1})
			w.sameNames(what, []string{"mine", "outside"})
			if entries, err := os.ReadDir(mine); err != nil || len(entries) != 0 {
				w.t.Errorf("%s: the user's directory: %v, %v", what, entries, err)
			}
		}
	}
	w.clone("after into mine", contract.GitRequest{Dir: mine}, gitMain(top))
	w.clone("after", contract.GitRequest{Dir: w.dir("new")}, gitMain(top))
}
