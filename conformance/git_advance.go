package conformance

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
)

var gitAdvanceCases = []gitCase{
	{"fast-forward", gitAdvances},
	{"fast-forward with nothing to do", gitAdvancesNothing},
	{"fast-forward beside local edits", gitAdvancesBesideEdits},
	{"fast-forward over local edits", gitAdvanceConflicts},
	{"fast-forward of a diverged branch", gitAdvanceDiverged},
	{"fast-forward of a sparse checkout", gitAdvancesSparse},
	{"fast-forward of a linked worktree", gitAdvancesLinked},
	{"fast-forward of another branch", gitAdvancesAnother},
	{"fast-forward without a branch", gitAdvanceWithoutBranch},
	{"fast-forward that is made again", gitAdvancesAgain},
	{"fast-forward and a locked index", gitAdvanceLocked},
}

// advance fetches into a checkout and fast-forwards it, which must succeed.
func (w *gitWorld) advance(what, dir string, outcome contract.Outcome, head contract.GitHead) {
	w.t.Helper()
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	w.forward(what, contract.GitRequest{Dir: dir}, outcome, head)
}

func (w *gitWorld) forward(what string, in contract.GitRequest, outcome contract.Outcome, head contract.GitHead) {
	w.t.Helper()
	w.host.Reset()
	got := w.do(w.engine.FastForward, in).Result
	if got.Outcome != outcome || got.Head == nil || *got.Head != head {
		w.t.Errorf("%s: outcome %s, head %+v, want %s, %+v", what, got.Outcome, got.Head, outcome, head)
	}
	w.requests(what, gitSent{}) // G7: it is no network operation
	if oid := w.git(in.Dir, "rev-parse", "HEAD"); oid != head.OID {
		w.t.Errorf("%s: HEAD is %s, want %s", what, oid, head.OID)
	}
	if ref, _ := w.try(in.Dir, "symbolic-ref", "-q", "HEAD"); ref != head.Ref {
		w.t.Errorf("%s: HEAD is on %q, want %q", what, ref, head.Ref)
	}
	w.whole(what, in.Dir)
}

// clean checks that the files of a checkout are those of its HEAD, and the same
// as the author's.
func (w *gitWorld) clean(what, dir string) {
	w.t.Helper()
	if status := w.git(dir, "status", "--porcelain"); status != "" {
		w.t.Errorf("%s: git status:\n%s", what, status)
	}
	if diff := cmp.Diff(w.files(w.author), w.files(dir)); diff != "" {
		w.t.Errorf("%s: files (-want +got):\n%s", what, diff)
	}
}

// variety gives the repository files of all kinds, and then changes each.
func (w *gitWorld) variety() (change func() string) {
	w.t.Helper()
	w.write(w.author, "same", "same\n")
	w.write(w.author, "gone", "gone\n")
	w.write(w.author, "deep/er/gone", "gone\n")
	w.write(w.author, "deep/stays", "stays\n")
	w.write(w.author, "program", "#!/bin/sh\n")
	w.check(os.Chmod(filepath.Join(w.author, "program"), 0o755))
	w.write(w.author, "plain", "plain\n")
	w.check(os.Symlink("same", filepath.Join(w.author, "link")))
	w.check(os.Symlink("same", filepath.Join(w.author, "link-to-file")))
	w.write(w.author, "file-to-link", "file\n")
	w.write(w.author, "file-to-dir", "file\n")
	w.write(w.author, "dir-to-file/a", "a\n")
	w.write(w.author, "dir-to-link/a", "a\n")
	w.commitAll("all kinds")
	w.publish("main")
	return func() string {
		w.t.Helper()
		for _, name := range []string{"gone", "deep/er", "link", "link-to-file", "file-to-link", "file-to-dir", "dir-to-file", "dir-to-link"} {
			w.remove(w.author, name)
		}
		w.check(os.Chmod(filepath.Join(w.author, "program"), 0o644))
		w.check(os.Chmod(filepath.Join(w.author, "plain"), 0o755))
		w.check(os.Symlink("deep/stays", filepath.Join(w.author, "link")))
		w.write(w.author, "link-to-file", "file\n")
		w.check(os.Symlink("same", filepath.Join(w.author, "file-to-link")))
		w.write(w.author, "file-to-dir/a", "a\n")
		w.write(w.author, "dir-to-file", "file\n")
		w.check(os.Symlink("deep", filepath.Join(w.author, "dir-to-link")))
		w.write(w.author, "new/deep/file", "new\n")
		oid := w.commitAll("all changed")
		w.publish("main")
		return oid
	}
}

// G7: a fast-forward brings the files and the index to the new commit: changed,
// new and deleted ones, modes, links, files in the place of directories.
func gitAdvances(w *gitWorld) {
	change := w.variety()
	dir := w.checkout("a")
	next := change()
	w.advance("all kinds", dir, contract.OutcomeSynced, gitMain(next))
	w.clean("all kinds", dir)
	if _, err := os.Lstat(filepath.Join(dir, "deep", "er")); err == nil {
		w.t.Error("an empty directory is left")
	}
	// What git's index says of the files is current: nothing has to be read again.
	if out := w.git(dir, "diff-files", "--name-only"); out != "" {
		w.t.Errorf("the index does not know the files:\n%s", out)
	}
	if log := w.git(dir, "rev-parse", "HEAD@{upstream}"); log != next {
		w.t.Errorf("upstream is %s", log)
	}
}

func gitAdvancesNothing(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	w.advance("equal", dir, contract.OutcomeUpToDate, gitMain(first))
	ahead := w.local(dir, "local", "ahead")
	before := w.state(dir)
	w.advance("ahead", dir, contract.OutcomeUpToDate, gitMain(ahead))
	w.unchanged("ahead", dir, before)
}

// G7: local edits that the new commit does not touch stay: changed, staged, new
// and deleted files.
func gitAdvancesBesideEdits(w *gitWorld) {
	for _, name := range []string{"changed", "staged", "deleted"} {
		w.write(w.author, name, name+"\n")
	}
	w.commitAll("more files")
	w.publish("main")
	dir := w.checkout("a")
	w.write(dir, "changed", "edited\n")
	w.write(dir, "staged", "edited\n")
	w.write(dir, "added", "added\n")
	w.git(dir, "add", "staged", "added")
	w.write(dir, "untracked", "untracked\n")
	w.write(dir, "new-dir/untracked", "untracked\n")
	w.remove(dir, "deleted")
	status := w.git(dir, "status", "--porcelain", "-uall")
	w.write(w.author, "new-dir/file", "new\n")
	next := w.commit("second")
	w.publish("main")
	w.advance("beside", dir, contract.OutcomeSynced, gitMain(next))
	if got := w.git(dir, "status", "--porcelain", "-uall"); got != status {
		w.t.Errorf("git status:\n%s\nwant\n%s", got, status)
	}
	files := w.files(dir)
	for name, content := range map[string]string{"changed": "edited\n", "staged": "edited\n", "added": "added\n", "untracked": "untracked\n", "new-dir/untracked": "untracked\n", "new-dir/file": "new\n"} {
		if files[name] != content {
			w.t.Errorf("%s has %q, want %q", name, files[name], content)
		}
	}
	if files["file"] != w.files(w.author)["file"] {
		w.t.Error("the file that the commit changed was not changed")
	}
}

// G7: an edit of what the new commit changes, and a file where it makes one, is a
// conflict, and nothing at all is changed.
func gitAdvanceConflicts(w *gitWorld) {
	w.write(w.author, "gone", "gone\n")
	w.write(w.author, "mode", "mode\n")
	w.write(w.author, ".gitignore", "ignored\n")
	w.commitAll("more files")
	w.publish("main")
	edits := map[string]func(dir string){
		"changed": func(dir string) { w.write(dir, "file", "edited\n") },
		"staged": func(dir string) {
			w.write(dir, "file", "edited\n")
			w.git(dir, "add", "file")
		},
		"staged and changed back": func(dir string) {
			old := w.read(dir, "file")
			w.write(dir, "file", "edited\n")
			w.git(dir, "add", "file")
			w.write(dir, "file", old)
		},
		"edit of what is deleted": func(dir string) { w.write(dir, "gone", "edited\n") },
		"untracked file":          func(dir string) { w.write(dir, "new/file", "mine\n") },
		"untracked in its place":  func(dir string) { w.write(dir, "new", "mine\n") },
		"untracked directory":     func(dir string) { w.write(dir, "another/mine", "mine\n") },
		"untracked link": func(dir string) {
			w.check(os.Symlink("../outside", filepath.Join(dir, "new")))
		},
		"staged new file": func(dir string) {
			w.write(dir, "new/file", "mine\n")
			w.git(dir, "add", "new/file")
		},
		"link in the place of a file": func(dir string) {
			w.remove(dir, "file")
			w.check(os.Symlink("../outside/canary", filepath.Join(dir, "file")))
		},
	}
	dirs := map[string]string{}
	for _, name := range keys(edits) {
		dirs[name] = w.checkout(strings.ReplaceAll(name, " ", "-"))
	}
	w.remove(w.author, "gone")
	w.write(w.author, "new/file", "new\n")
	w.write(w.author, "another", "new\n")
	w.commit("second")
	w.publish("main")
	for _, name := range keys(edits) {
		dir := dirs[name]
		edits[name](dir)
		w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
		before := w.state(dir)
		w.fails(name, w.engine.FastForward, contract.GitRequest{Dir: dir}, gitWant{reason: "conflict"})
		w.unchanged(name, dir, before)
	}
}

// G7: a diverged branch is a clear result, and no failure.
func gitAdvanceDiverged(w *gitWorld) {
	dir := w.checkout("a")
	ours := w.local(dir, "local", "ours")
	w.commit("theirs")
	w.publish("main")
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	before := w.state(dir)
	w.forward("diverged", contract.GitRequest{Dir: dir}, contract.OutcomeDiverged, gitMain(ours))
	w.unchanged("diverged", dir, before)
}

// G10: of a sparse checkout only what belongs to it is brought.
func gitAdvancesSparse(w *gitWorld) {
	w.branches()
	dir := w.checkout("a", "--sparse")
	w.git(dir, "sparse-checkout", "set", "dir/a")
	w.write(w.author, "dir/a/one", "changed\n")
	w.write(w.author, "dir/a/new", "new\n")
	w.write(w.author, "dir/b/three", "changed\n")
	w.write(w.author, "other/new", "new\n")
	w.remove(w.author, "other/four")
	next := w.commitAll("changed")
	w.publish("main")
	w.advance("sparse", dir, contract.OutcomeSynced, gitMain(next))
	want := map[string]string{"dir/a/one": "changed\n", "dir/a/new": "new\n", "dir/a/deep/two": "two\n", "file": w.read(w.author, "file")}
	if diff := cmp.Diff(want, w.files(dir)); diff != "" {
		w.t.Errorf("files (-want +got):\n%s", diff)
	}
	if status := w.git(dir, "status", "--porcelain"); status != "" {
		w.t.Errorf("git status:\n%s", status)
	}
	w.git(dir, "sparse-checkout", "disable")
	w.clean("all of it", dir)
}

func gitAdvancesLinked(w *gitWorld) {
	main := w.checkout("a")
	dir := w.dir("linked")
	w.git(main, "worktree", "add", "-q", "-b", "topic", dir)
	w.git(dir, "branch", "-q", "--set-upstream-to", "origin/main")
	before := w.state(main)
	next := w.commit("second")
	w.publish("main")
	w.advance("linked", dir, contract.OutcomeSynced, contract.GitHead{Ref: "refs/heads/topic", OID: next})
	w.clean("linked", dir)
	after := w.state(main)
	if before.Head != after.Head || before.Refs["refs/heads/main"] != after.Refs["refs/heads/main"] || !cmp.Equal(before.Files, after.Files) || after.Status != "" {
		w.t.Errorf("the main worktree changed (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// G7: the branch to follow can be named.
func gitAdvancesAnother(w *gitWorld) {
	dir := w.checkout("a")
	next := w.commit("second")
	w.publish("main:side")
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	w.forward("named", contract.GitRequest{Dir: dir, Ref: "side"}, contract.OutcomeSynced, gitMain(next))
	before := w.state(dir)
	w.fails("missing", w.engine.FastForward, contract.GitRequest{Dir: dir, Ref: "missing"}, gitWant{reason: "not_found"})
	w.unchanged("missing", dir, before)
}

// G7: without a branch, or without files, there is nothing to fast-forward.
func gitAdvanceWithoutBranch(w *gitWorld) {
	detached, bare, lone := w.checkout("a"), w.dir("bare.git"), w.checkout("lone")
	w.git(detached, "checkout", "-q", "--detach")
	w.git(w.work, "clone", "-q", "--mirror", w.url(), bare)
	w.git(lone, "checkout", "-q", "-b", "lone", "--no-track")
	w.commit("second")
	w.publish("main")
	for _, dir := range []string{detached, bare, lone} {
		w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
		before := w.state(dir)
		answer := w.engine.FastForward(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
		if answer.Failure == nil || !answer.Failure.Permanent {
			w.t.Errorf("%s: %+v, %+v, want a permanent failure", filepath.Base(dir), answer.Result, answer.Failure)
			continue
		}
		w.failed(filepath.Base(dir), answer, gitWant{reason: answer.Failure.Reason})
		w.unchanged(filepath.Base(dir), dir, before)
	}
}

// G3: an attempt that was lost after it had changed the files, some or all of
// them, is made again without harm.
func gitAdvancesAgain(w *gitWorld) {
	change := w.variety()
	dirs := map[string]string{"some files": w.checkout("some"), "all files": w.checkout("all"), "files and index": w.checkout("index")}
	next := change()
	for name, dir := range dirs {
		w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
		switch name {
		case "some files":
			w.write(dir, "new/deep/file", "new\n")
			w.check(os.Chmod(filepath.Join(dir, "plain"), 0o755))
			w.remove(dir, "gone")
		case "all files":
			index := w.read(dir, ".git/index")
			w.git(dir, "read-tree", "-m", "-u", "HEAD", "origin/main")
			w.write(dir, ".git/index", index)
		default:
			w.git(dir, "read-tree", "-m", "-u", "HEAD", "origin/main")
		}
		w.forward(name, contract.GitRequest{Dir: dir}, contract.OutcomeSynced, gitMain(next))
		w.clean(name, dir)
	}
}

// G3: an index that another process holds may be tried once more; it stays
// locked, and nothing is changed.
func gitAdvanceLocked(w *gitWorld) {
	dir := w.checkout("a")
	w.commit("second")
	w.publish("main")
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	before := w.state(dir)
	w.write(dir, ".git/index.lock", "")
	answer := w.engine.FastForward(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
	if answer.Failure == nil || answer.Failure.Reason != "lock" {
		w.t.Errorf("%+v, %+v, want lock", answer.Result, answer.Failure)
	}
	w.read(dir, ".git/index.lock")
	w.remove(dir, ".git/index.lock")
	w.unchanged("locked", dir, before)
}
