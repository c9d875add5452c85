package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pathlock"
	"github.com/holdfast-dev/holdfast/contract"
)

var madeHead = contract.GitHead{Ref: "refs/heads/main", OID: strings.Repeat("a", 40)}

// makeClone is a clone as an engine makes it, without Git.
func makeClone(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Error(err)
	}
	put(t, filepath.Join(dir, ".git", "HEAD"), "ref: refs/heads/main\n", filepath.Join(dir, ".git", "config"), "[core]\n",
		filepath.Join(dir, "README"), "read me", filepath.Join(dir, "src", "deep", "main.go"), "package main", filepath.Join(dir, ".hidden"), "")
}

var madeNames = []string{".git", ".hidden", "README", "src"}

// cloner makes activities whose engine makes such a clone, and counts them.
func cloner(t *testing.T, cfg Config) (*Activities, *fakeEngine, *int) {
	t.Helper()
	a, fake := newFakes(t, cfg)
	made := new(int)
	fake.engine = deadEngine{}
	fake.onClone = func(_ context.Context, dir string, _ cloneSpec) (contract.GitHead, error) {
		*made++
		makeClone(t, dir)
		return madeHead, nil
	}
	return a, fake, made
}

const anyURL = "https://git.example/repo.git"

func clone(t *testing.T, a *Activities, c caller, dir string) (contract.GitResult, contract.Failure) {
	t.Helper()
	return ask(t, c, a.Clone, contract.GitRequest{URL: anyURL, Dir: dir})
}

func isCloned(t *testing.T, dir string, res contract.GitResult, f contract.Failure) {
	t.Helper()
	if diff := cmp.Diff(contract.GitResult{Outcome: contract.OutcomeCloned, Head: &madeHead}, res); diff != "" || f.Reason != "" {
		t.Errorf("%+v; result (-want +got):\n%s", f, diff)
	}
	if got := names(t, dir); !slices.Equal(got, madeNames) {
		t.Errorf("%s holds %v, want %v", dir, got, madeNames)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "src", "deep", "main.go")); err != nil || string(content) != "package main" {
		t.Errorf("a file of the clone: %q, %v", content, err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func stat(t *testing.T, path string) fs.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// G2: a clone appears where nothing was, with the directories above it, and in an
// empty directory of the user's, which stays the same one.
func TestCloneTargets(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	empty := filepath.Join(root, "empty")
	put(t, filepath.Join(root, "linked", "x"), "")
	if err := errors.Join(os.Mkdir(empty, 0o750), os.Remove(filepath.Join(root, "linked", "x")), os.Symlink("linked", filepath.Join(root, "link"))); err != nil {
		t.Fatal(err)
	}
	before := map[string]fs.FileInfo{"empty": stat(t, empty), "link": stat(t, filepath.Join(root, "linked"))}
	a, _, made := cloner(t, Config{Roots: []string{root}})
	for i, dir := range []string{"new", "a/b/c", "empty", "link", "new/inner/deeper"} {
		path := filepath.Join(root, dir)
		res, f := clone(t, a, caller{}, path)
		if dir != "new/inner/deeper" {
			isCloned(t, path, res, f)
		} else if f.Reason != "" {
			t.Errorf("%s: %+v", dir, f)
		}
		if *made != i+1 {
			t.Errorf("%d clones were made, want %d", *made, i+1)
		}
		if info := before[dir]; info != nil && (!os.SameFile(info, stat(t, path)) || info.Mode() != stat(t, path).Mode()) {
			t.Errorf("%s is another directory now", dir)
		}
		// A second attempt of the same workflow finds its clone.
		again, f := clone(t, a, caller{}, path)
		if diff := cmp.Diff(res, again); diff != "" || f.Reason != "" || *made != i+1 {
			t.Errorf("%s again: %+v, %d clones (-first +second):\n%s", dir, f, *made, diff)
		}
	}
	if got := names(t, root); !slices.Equal(got, []string{"a", "empty", "link", "linked", "new"}) {
		t.Errorf("the root holds %v", got)
	}
}

// G2: what is there already is left as it is, a good clone of another workflow, or
// of another request, too.
func TestCloneRefusesWhatIsThere(t *testing.T) {
	t.Parallel()
	root, outside := t.TempDir(), t.TempDir()
	a, fake, made := cloner(t, Config{Roots: []string{root}})
	good := filepath.Join(root, "good")
	res, f := clone(t, a, caller{}, good)
	isCloned(t, good, res, f)
	fake.onClone = func(context.Context, string, cloneSpec) (contract.GitHead, error) {
		t.Error("a clone was begun")
		return contract.GitHead{}, errNotGit
	}
	put(t, filepath.Join(root, "full", "file"), "mine", filepath.Join(root, "file"), "mine", filepath.Join(root, "git", ".git", "config"), "",
		filepath.Join(root, "hidden", ".x"), "")
	for link, target := range map[string]string{"nowhere": "missing", "away": outside, "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ dir, rule string }{
		{"full", "G2/not_empty"}, {"git", "G2/not_empty"}, {"hidden", "G2/not_empty"},
		{"file", "G2/target"}, {"file/x", "G2/target"}, {"nowhere", "G2/target"}, {"nowhere/x", "G2/target"}, {"loop", "G2/target"}, {"loop/x", "G2/target"},
		{"away", "G12/root"}, {"away/x", "G12/root"}, {"..", "G12/root"}, {"../x", "G12/root"}, {".", "G12/root"},
		{".x.holdfast", "G2/target"}, {".x.holdfast/y", "G2/target"}, {strings.Repeat("n", 201), "G2/target"},
	} {
		if _, f := clone(t, a, caller{}, filepath.Join(root, tc.dir)); f.Rule != tc.rule || f.RetrySame || !f.Permanent {
			t.Errorf("%s: %+v, want %s", tc.dir, f, tc.rule)
		}
	}
	if _, f := clone(t, a, caller{}, ""); f.Reason != "format" {
		t.Errorf("no directory: %+v", f)
	}
	if _, f := clone(t, a, caller{workflow: "git-clone/other"}, good); f.Rule != "G2/not_empty" {
		t.Errorf("another workflow: %+v", f)
	}
	if _, f := ask(t, caller{}, a.Clone, contract.GitRequest{URL: anyURL, Dir: good, Ref: "v1"}); f.Rule != "G2/not_empty" {
		t.Errorf("another request: %+v", f)
	}
	if got := names(t, outside); len(got) != 0 || *made != 1 {
		t.Errorf("outside: %v; %d clones", got, *made)
	}
	if content, err := os.ReadFile(filepath.Join(root, "full", "file")); err != nil || string(content) != "mine" {
		t.Errorf("the user's file: %q, %v", content, err)
	}
	for _, name := range names(t, root) {
		if strings.HasSuffix(name, stagingSuffix) {
			t.Errorf("%s is left", name)
		}
	}
}

// G2, G3: a clone that fails half-way leaves nothing but the user's directory.
func TestFailedCloneLeavesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, fake, _ := cloner(t, Config{})
	fake.onClone = func(_ context.Context, dir string, _ cloneSpec) (contract.GitHead, error) {
		makeClone(t, dir)
		return contract.GitHead{}, errEarlyEOF
	}
	empty := filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	before := stat(t, empty)
	for _, dir := range []string{"new", "empty"} {
		if _, f := clone(t, a, caller{}, filepath.Join(root, dir)); f.Reason != "timeout" || !f.RetrySame {
			t.Errorf("%s: %+v, want the cause, which is tried again", dir, f)
		}
	}
	if got := names(t, root); !slices.Equal(got, []string{"empty"}) || len(names(t, empty)) != 0 || !os.SameFile(before, stat(t, empty)) {
		t.Errorf("left: %v and %v", got, names(t, empty))
	}
}

// G2: a clone that was given up does not appear.
func TestCancelledCloneDoesNotAppear(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	a, fake, _ := cloner(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	fake.onClone = func(ctx context.Context, dir string, _ cloneSpec) (contract.GitHead, error) {
		makeClone(t, dir)
		cancel()
		<-ctx.Done()
		return madeHead, nil // too late
	}
	if _, f := clone(t, a, caller{ctx: ctx}, filepath.Join(root, "new")); f.Reason != "cancelled" {
		t.Errorf("%+v, want cancelled", f)
	}
	soon(t, "everything is removed", func() bool { return len(names(t, root)) == 0 })
}

// steps makes a clone up to its nth step, as a worker does that is killed then. It
// reports false if there are not so many.
func killedAfter(t *testing.T, at target, id string, n int, empty bool) bool {
	t.Helper()
	put(t, filepath.Join(at.parent(), at.staging(), stageLock), `{"owner":"dead","boot":"`+pathlock.BootID()+`","token":"t","expires":"2999-01-01T00:00:00Z"}`)
	s, err := openStage(at, id)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	makeClone(t, s.path())
	steps, err := s.publish(madeHead, empty)
	if err != nil {
		t.Fatal(err)
	}
	if n > len(steps) {
		return false
	}
	for _, step := range steps[:n] {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return true
}

// idOf is what an attempt to clone into dir, by the test environment, is named.
func idOf(t *testing.T, dir string) string {
	t.Helper()
	id, err := cloneID("default-test-workflow-id", contract.GitRequest{URL: anyURL, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// G2: at whatever step a worker is killed, the next attempt finds a whole clone or
// makes one, and the user's directory stays the same one.
func TestCloneSurvivesAKillAtEachStep(t *testing.T) {
	t.Parallel()
	for _, empty := range []bool{false, true} {
		for n := 0; ; n++ {
			root := t.TempDir()
			dir := filepath.Join(root, "dir")
			at := target{top: root, base: "dir"}
			var before fs.FileInfo
			if empty {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				before = stat(t, dir)
			}
			if !killedAfter(t, at, idOf(t, dir), n, empty) {
				break
			}
			appeared := there(filepath.Join(dir, ".git"))
			a, _, made := cloner(t, Config{Roots: []string{root}})
			res, f := clone(t, a, caller{}, dir)
			isCloned(t, dir, res, f)
			if want := map[bool]int{true: 0, false: 1}[appeared]; *made != want {
				t.Errorf("empty %v, step %d: %d clones were made, want %d", empty, n, *made, want)
			}
			if got := names(t, root); !slices.Equal(got, []string{"dir"}) {
				t.Errorf("empty %v, step %d: left: %v", empty, n, got)
			}
			if before != nil && !os.SameFile(before, stat(t, dir)) {
				t.Errorf("step %d: the user's directory is another one", n)
			}
		}
	}
}

// G2: another workflow, after a kill at any step, has the directory to itself or
// finds the whole clone in it.
func TestAnotherCloneAfterAKill(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		root := t.TempDir()
		dir := filepath.Join(root, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if !killedAfter(t, target{top: root, base: "dir"}, idOf(t, dir), n, true) {
			break
		}
		appeared := there(filepath.Join(dir, ".git"))
		a, _, made := cloner(t, Config{})
		res, f := clone(t, a, caller{workflow: "git-clone/other"}, dir)
		if appeared {
			if f.Rule != "G2/not_empty" || *made != 0 || !slices.Equal(names(t, dir), madeNames) {
				t.Errorf("step %d: %+v, %v; want the first clone untouched", n, f, names(t, dir))
			}
		} else {
			isCloned(t, dir, res, f)
		}
		if got := names(t, root); !slices.Equal(got, []string{"dir"}) {
			t.Errorf("step %d: left: %v", n, got)
		}
	}
}

// G2: what the user put, or made, into a directory in which a killed worker's
// clone is half there is not removed with it.
func TestTakingBackSparesTheUsers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		user func(t *testing.T, dir string)
		kept []string
	}{
		"a new file":      {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "mine"), "mine") }, []string{"mine"}},
		"a changed file":  {func(t *testing.T, dir string) { change(t, filepath.Join(dir, "README")) }, []string{"README"}},
		"a file in ours":  {func(t *testing.T, dir string) { put(t, filepath.Join(dir, "src", "mine"), "mine") }, []string{"src"}},
		"a replaced file": {func(t *testing.T, dir string) { replace(t, filepath.Join(dir, "README")) }, []string{"README"}},
		"a repository": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(dir, "README"), "mine", filepath.Join(dir, ".git", "HEAD"), "mine")
		}, []string{".git", "README"}},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		// The mark, the journal, and all entries but .git.
		if !killedAfter(t, target{top: root, base: "dir"}, idOf(t, dir), 1+len(madeNames), true) {
			t.Fatal("there are not so many steps")
		}
		if got := names(t, dir); !slices.Equal(got, madeNames[1:]) {
			t.Fatalf("%s: half of a clone is %v", name, got)
		}
		tc.user(t, dir)
		a, _, made := cloner(t, Config{})
		if _, f := clone(t, a, caller{}, dir); f.Rule != "G2/not_empty" || *made != 0 {
			t.Errorf("%s: %+v, want it refused", name, f)
		}
		if got := names(t, dir); !slices.Equal(got, tc.kept) {
			t.Errorf("%s: the directory holds %v, want %v", name, got, tc.kept)
		}
	}
}

// change writes to a file that is there, and sees to it that its time differs.
func change(t *testing.T, path string) {
	t.Helper()
	put(t, path, "changed")
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
}

func replace(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	change(t, path)
}

// G2: what comes into the target's place while a clone is made is never replaced.
func TestCloneReplacesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		empty bool
		user  func(t *testing.T, dir string)
		kept  []string
	}{
		"a directory": {false, func(t *testing.T, dir string) { put(t, filepath.Join(dir, "mine"), "mine") }, []string{"mine"}},
		"an empty directory": {false, func(t *testing.T, dir string) {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Error(err)
			}
		}, nil},
		"a file among the entries": {true, func(t *testing.T, dir string) { put(t, filepath.Join(dir, "README"), "mine") }, []string{"README"}},
		"a repository":             {true, func(t *testing.T, dir string) { put(t, filepath.Join(dir, ".git", "HEAD"), "mine") }, []string{".git"}},
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "dir")
		if tc.empty {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		a, fake, _ := cloner(t, Config{})
		fake.onClone = func(_ context.Context, stage string, _ cloneSpec) (contract.GitHead, error) {
			makeClone(t, stage)
			tc.user(t, dir)
			return madeHead, nil
		}
		if _, f := clone(t, a, caller{}, dir); f.Rule != "G2/not_empty" {
			t.Errorf("%s: %+v, want it refused", name, f)
		}
		if got := names(t, dir); !slices.Equal(got, tc.kept) {
			t.Errorf("%s: the directory holds %v, want %v", name, got, tc.kept)
		}
		if got := names(t, root); !slices.Equal(got, []string{"dir"}) {
			t.Errorf("%s: left: %v", name, got)
		}
	}
}

// G11: two clones into one directory are made one after the other; the second
// finds the first.
func TestTwoClonesIntoOneDirectory(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "dir")
	first, fake, _ := cloner(t, Config{})
	second, _, _ := cloner(t, Config{})
	began, goOn := make(chan struct{}), make(chan struct{})
	fake.onClone = func(_ context.Context, dir string, _ cloneSpec) (contract.GitHead, error) {
		close(began)
		<-goOn
		makeClone(t, dir)
		return madeHead, nil
	}
	done := make(chan contract.Failure, 1)
	go func() {
		_, f := clone(t, first, caller{}, dir)
		done <- f
	}()
	<-began
	p := &progress{}
	_, f := ask(t, caller{workflow: "git-clone/other"}, func(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
		ended := make(chan error, 1)
		go func() {
			_, err := second.clone(ctx, in, p)
			ended <- err
		}()
		soon(t, "waiting for the lock", func() bool { return p.snapshot().Phase == "waiting for the lock" })
		close(goOn)
		err := <-ended
		if !errors.Is(err, errNotEmpty) {
			t.Errorf("the second: %v, want that the directory is not empty", err)
		}
		return contract.GitResult{}, nil
	}, contract.GitRequest{URL: anyURL, Dir: dir})
	if f.Reason != "" {
		t.Errorf("%+v", f)
	}
	if f := <-done; f.Reason != "" {
		t.Errorf("the first: %+v", f)
	}
	if got := names(t, dir); !slices.Equal(got, madeNames) {
		t.Errorf("the directory holds %v", got)
	}
}

// G2: a whole clone by the git program, moved into place, is sound.
func TestCloneIsWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, _ := newFakes(t, Config{Roots: []string{w.root}})
	empty := filepath.Join(w.root, "empty")
	if err := os.Mkdir(empty, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(w.root, "new"), empty} {
		res, f := ask(t, caller{}, a.Clone, contract.GitRequest{URL: w.url(), Dir: dir})
		if f.Reason != "" || res.Head == nil || res.Head.Ref != "refs/heads/main" {
			t.Fatalf("%s: %+v, %+v", dir, res, f)
		}
		run(t, dir, "fsck", "--strict")
		if status := run(t, dir, "status", "--porcelain"); status != "" {
			t.Errorf("%s: status %s", dir, status)
		}
		if head := run(t, dir, "rev-parse", "HEAD"); head != res.Head.OID {
			t.Errorf("%s: HEAD is %s, want %s", dir, head, res.Head.OID)
		}
		if _, f := ask(t, caller{}, a.Fetch, contract.GitRequest{Dir: dir}); f.Reason != "" {
			t.Errorf("%s: a fetch in the clone: %+v", dir, f)
		}
	}
}

// G2: a clone below a directory named as the usual data directory is none of an
// unfinished clone; below a real staging directory it is refused.
func TestTargetBelowDataDirectory(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{".holdfast/checkouts/a": false, ".a.holdfast/b": true, ".a.holdfast": true} {
		dir := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		to := target{top: filepath.Dir(dir), base: filepath.Base(dir)}
		if err := to.check(); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
