package conformance

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
)

var gitBigCases = []gitCase{
	{"a million refs", gitMillionRefs},
	{"delta bomb", gitDeltaBomb},
	{"many deltas", gitManyDeltas},
	{"zip bomb", gitZipBomb},
	{"tree bomb", gitTreeBomb},
	{"many files", gitManyFiles},
}

const gitMillion = 1_000_000

// G12, Q4: a remote with a million refs is too much for a list; one branch of it
// is fetched and cloned, and all of them are, or end at a limit that is named.
func gitMillionRefs(w *gitWorld) {
	const name = "refs.git"
	w.check(w.host.CreateRefs(name, gitMillion))
	url := w.host.RepoURL(name)
	w.fails("ls-remote", w.engine.LsRemote, contract.GitRequest{URL: url}, gitWant{reason: "output_limit"})
	dir := w.dir("a")
	w.git(w.work, "init", "-q", "-b", "main", dir)
	w.git(dir, "remote", "add", "origin", url)
	got := w.do(w.engine.Fetch, contract.GitRequest{Dir: dir, Ref: "main", LimitMS: 600_000}).Result
	if len(got.Updated) != 1 {
		w.t.Errorf("fetch of one: %d refs", len(got.Updated))
	}
	all := w.engine.Fetch(w.t.Context(), w.request(contract.GitRequest{Dir: dir, LimitMS: 1_200_000}))
	refs := strings.Count(w.git(dir, "for-each-ref", "--format=x"), "x")
	switch {
	case all.Failure != nil:
		w.limited("fetch of all", all)
		if refs != 1 {
			w.t.Errorf("fetch of all: ended at a limit, and %d refs are here", refs)
		}
	case !all.Result.Truncated || len(all.Result.Updated) == 0 || refs != gitMillion+2:
		w.t.Errorf("fetch of all: %d refs told, truncated %v, and %d are here", len(all.Result.Updated), all.Result.Truncated, refs)
	}
	w.do(w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: url, Ref: "main", SingleBranch: true, LimitMS: 600_000})
	if left := append(w.leftovers(dir), w.leftovers(w.dir("b"))...); len(left) != 0 {
		w.t.Errorf("left behind: %v", left)
	}
}

// bomb has a repository fetched and cloned that unpacks to more than the limits
// allow: each ends as a clear failure for good, and leaves nothing but the room
// that it took.
func (w *gitWorld) bomb(name string) {
	w.t.Helper()
	url, dir := w.host.RepoURL(name), w.dir("a")
	w.git(w.work, "clone", "-q", "--branch", "good", "--single-branch", url, dir)
	before, names := w.state(dir), w.beside()
	size := w.size(dir)
	w.bounded("fetch", w.engine.Fetch, contract.GitRequest{Dir: dir, Ref: "main"})
	w.unchanged("fetch", dir, before)
	w.bounded("clone", w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: url})
	w.sameNames("clone", names)
	w.eventually("processes", w.processes)
	if more := w.size(dir) - size; more > 64<<20 {
		w.t.Errorf("%d MiB are left in the checkout", more>>20)
	}
}

// bounded makes an attempt that a limit of the engine's must end, for good, with
// a word on which limit it was.
func (w *gitWorld) bounded(what string, call GitCall, in contract.GitRequest) {
	w.t.Helper()
	in.LimitMS = 600_000
	w.limited(what, call(w.t.Context(), w.request(in)))
}

// limited checks that an attempt was ended by a limit.
func (w *gitWorld) limited(what string, answer GitAnswer) {
	w.t.Helper()
	if answer.Failure == nil || !strings.HasPrefix(answer.Failure.Rule, "G12/") {
		w.t.Fatalf("%s: %+v, %+v, want a failure by G12", what, answer.Result, answer.Failure)
	}
	w.failed(what, answer, gitWant{reason: answer.Failure.Reason, hint: "git.limits"})
}

// size is how many bytes the files below a directory have.
func (w *gitWorld) size(dir string) (total int64) {
	w.t.Helper()
	w.check(filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		total += info.Size()
		return err
	}))
	return total
}

// G12: a delta of a few bytes that makes gigabytes.
func gitDeltaBomb(w *gitWorld) {
	w.check(w.host.CreateDeltaBomb("bomb.git", 4, 4<<30-1))
	w.bomb("bomb.git")
}

// G12: deltas that are each bearable and together are not, if they are all kept.
// They are no objects that the tree names, so the attempt fails in the end, in
// bounded memory.
func gitManyDeltas(w *gitWorld) {
	w.check(w.host.CreateDeltaBomb("bomb.git", 200, 24<<20))
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "--branch", "good", "--single-branch", w.host.RepoURL("bomb.git"), dir)
	before := w.state(dir)
	answer := w.engine.Fetch(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Ref: "main", LimitMS: 600_000}))
	if answer.Failure == nil {
		w.t.Fatalf("fetched %+v", answer.Result)
	}
	w.failed("fetch", answer, gitWant{reason: answer.Failure.Reason, retry: answer.Failure.RetrySame})
	w.unchanged("fetch", dir, before)
}

// G12: a file of gigabytes of which a thousandth is sent. A client that leaves
// holes in place of zeros may write it.
func gitZipBomb(w *gitWorld) {
	w.check(w.host.CreateZipBomb("bomb.git", 3<<30))
	names, dir := w.beside(), w.dir("b")
	in := contract.GitRequest{Dir: dir, URL: w.host.RepoURL("bomb.git")}
	in.LimitMS = 600_000
	if answer := w.engine.Clone(w.t.Context(), w.request(in)); answer.Failure != nil {
		w.limited("clone", answer)
		w.sameNames("clone", names)
	} else if used := w.diskUse(dir); used > 256<<20 {
		w.t.Errorf("the clone takes %d bytes of disk", used)
	}
	w.eventually("processes", w.processes)
}

// diskUse is how many bytes of disk a directory takes.
func (w *gitWorld) diskUse(dir string) (used int64) {
	w.t.Helper()
	out, err := exec.Command("du", "-sk", dir).Output()
	w.check(err)
	_, err = fmt.Sscan(string(out), &used)
	w.check(err)
	return used << 10
}

// G12: a few trees that are a milliard files.
func gitTreeBomb(w *gitWorld) {
	w.check(w.host.CreateTreeBomb("bomb.git", 10, 9))
	url := w.host.RepoURL("bomb.git")
	names := w.beside()
	w.bounded("clone", w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: url})
	w.sameNames("clone", names)
	w.eventually("processes", w.processes)
}

// G10: an honest repository of many files is cloned.
func gitManyFiles(w *gitWorld) {
	w.check(w.host.CreateFiles("files.git", 100_000))
	dir := w.dir("a")
	w.do(w.engine.Clone, contract.GitRequest{Dir: dir, URL: w.host.RepoURL("files.git"), LimitMS: 600_000})
	if n := strings.Count(w.git(dir, "ls-files"), "\n") + 1; n != 100_001 {
		w.t.Errorf("%d files", n)
	}
	if status := w.git(dir, "status", "--porcelain"); status != "" {
		w.t.Errorf("git status: %.200s", status)
	}
	if _, err := os.Stat(filepath.Join(dir, "d000099", "f0099999")); err != nil {
		w.t.Error(err)
	}
}
