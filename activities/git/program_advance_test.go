package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// advanced is a world whose checkout has fetched a commit that changes, adds,
// deletes, links and makes executable, on top of one that it has checked out.
func advanced(t *testing.T) (w *world, from, to string) {
	t.Helper()
	w = newWorld(t)
	from = w.write(map[string]string{"changed": "old\n", "deleted": "x\n", "dir/kept": "x\n", "plain": "x\n", "becomes-dir": "x\n", ".gitignore": "*.ignored\n"})
	w.push("main")
	run(t, w.checkout, "pull", "-q")
	for _, name := range []string{"deleted", "becomes-dir"} {
		if err := os.Remove(filepath.Join(w.author, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("changed", filepath.Join(w.author, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(w.author, "plain"), 0o700); err != nil {
		t.Fatal(err)
	}
	to = w.write(map[string]string{"changed": "new\n", "added": "new\n", "dir/deep/er": "new\n", "becomes-dir/file": "new\n", "b.ignored": "ours\n"})
	run(t, w.author, "add", "-f", "b.ignored")
	run(t, w.author, "commit", "-q", "--amend", "-m", "second")
	to = run(t, w.author, "rev-parse", "HEAD")
	w.push("main")
	run(t, w.checkout, "fetch", "-q")
	return w, from, to
}

// advance runs it and checks what the checkout looks like, were its branch moved.
func (w *world) advance(from, to string) (rule string) {
	w.t.Helper()
	ctx, rec := recorded(w.t)
	err := newTestProgram(w.t, limits{}).advance(ctx, w.open(), &progress{}, advanceSpec{from: from, to: to})
	workIsEmpty(w.t, filepath.Join(w.checkout, ".git"))
	if _, err := os.Lstat(filepath.Join(w.checkout, ".git", "index.lock")); !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("index.lock: %v", err)
	}
	if got := run(w.t, w.checkout, "rev-parse", "HEAD"); got != from {
		w.t.Errorf("HEAD moved to %s", got)
	}
	return failureOf(w.t, policies.OpFetch, rec, err).Rule
}

// clean checks that files and index are those of a commit, but for untracked
// ones.
func (w *world) clean(at string, untracked ...string) {
	w.t.Helper()
	head := run(w.t, w.checkout, "symbolic-ref", "HEAD")
	was := run(w.t, w.checkout, "rev-parse", head)
	run(w.t, w.checkout, "update-ref", head, at)
	defer run(w.t, w.checkout, "update-ref", head, was)
	if got := run(w.t, w.checkout, "status", "--porcelain"); got != strings.Join(untracked, "\n") {
		w.t.Errorf("status at %.7s:\n%s", at, got)
	}
}

func (w *world) put(name, content string) {
	w.t.Helper()
	path := filepath.Join(w.checkout, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// G7: files and index go from one commit to another, and doing it again does
// nothing.
func TestProgramAdvance(t *testing.T) {
	t.Parallel()
	w, from, to := advanced(t)
	w.put("untracked", "mine\n")
	w.put("dir/a.ignored", "mine\n")
	for range 2 {
		if rule := w.advance(from, to); rule != "" {
			t.Fatal(rule)
		}
		w.clean(to, "?? untracked")
		if diff := cmp.Diff(filesIn(t, w.author), without(filesIn(t, w.checkout), "untracked", "dir/a.ignored")); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
	}
}

func without(names []string, others ...string) (kept []string) {
	for _, name := range names {
		if !strings.Contains(" "+strings.Join(others, " ")+" ", " "+name+" ") {
			kept = append(kept, name)
		}
	}
	return kept
}

// G7: a file that somebody changed, or that is in the way, ends it before
// anything is changed.
func TestProgramAdvanceKeepsLocalChanges(t *testing.T) {
	t.Parallel()
	w, from, to := advanced(t)
	for name, change := range map[string]func(){
		"changed":           func() { w.put("changed", "mine\n") },
		"changed, staged":   func() { w.put("changed", "mine\n"); run(t, w.checkout, "add", "changed") },
		"deleted":           func() { w.put("deleted", "mine\n") },
		"added":             func() { w.put("added", "mine\n") },
		"ignored":           func() { w.put("b.ignored", "mine\n") },
		"where a dir comes": func() { w.put("becomes-dir", "mine\n") },
		"below a new dir":   func() { w.put("dir/deep", "mine\n") },
	} {
		change()
		status, files := run(t, w.checkout, "status", "--porcelain", "--ignored"), filesIn(t, w.checkout)
		if rule := w.advance(from, to); rule != "G7/local_changes" {
			t.Errorf("%s: %q", name, rule)
		}
		if after := run(t, w.checkout, "status", "--porcelain", "--ignored"); after != status {
			t.Errorf("%s: status\n%s\nwas\n%s", name, after, status)
		}
		if diff := cmp.Diff(files, filesIn(t, w.checkout)); diff != "" {
			t.Errorf("%s: files:\n%s", name, diff)
		}
		run(t, w.checkout, "reset", "-q", "--hard")
		run(t, w.checkout, "clean", "-q", "-fdx")
	}
	// A change elsewhere, staged or not, is carried along.
	w.put("dir/kept", "mine\n")
	w.put("file", "mine\n")
	run(t, w.checkout, "add", "file")
	if rule := w.advance(from, to); rule != "" {
		t.Errorf("changes elsewhere: %s", rule)
	}
	w.clean(to, "M dir/kept", "M  file")
}

// G7: an attempt that was killed half-way, with some files written and the index
// as before, is finished by the next.
func TestProgramAdvanceAfterAKill(t *testing.T) {
	t.Parallel()
	w, from, to := advanced(t)
	// What git does first: it deletes, then writes, and the index comes last.
	if err := os.Remove(filepath.Join(w.checkout, "deleted")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.checkout, "becomes-dir")); err != nil {
		t.Fatal(err)
	}
	w.put("added", "new\n")
	w.put("becomes-dir/file", "new\n")
	w.put("changed", "new\n")
	w.put("b.ignored", "ours\n")
	if err := os.Symlink("changed", filepath.Join(w.checkout, "link")); err != nil {
		t.Fatal(err)
	}
	// A worker that was killed left its lock, too.
	root, err := os.OpenRoot(filepath.Join(w.checkout, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	held, err := holdLocks(root, []string{"index.lock"})
	if err != nil {
		t.Fatal(err)
	}
	if err := held.take(0, ""); err != nil {
		t.Fatal(err)
	}
	ctx, rec := recorded(t)
	g := newTestProgram(t, limits{})
	if f := failureOf(t, policies.OpFetch, rec, g.advance(ctx, w.open(), &progress{}, advanceSpec{from: from, to: to})); f.Rule != "G11/index_lock" {
		t.Errorf("with a lock: %+v", f)
	}
	if err := sweepWork(filepath.Join(w.checkout, ".git")); err != nil {
		t.Fatal(err)
	}
	if rule := w.advance(from, to); rule != "" {
		t.Fatal(rule)
	}
	w.clean(to)
}

// G7: a program that was killed in the middle of a file leaves its beginning, or
// nothing in its place; the next attempt goes on from there. What is neither stays,
// and is told.
func TestProgramAdvanceAfterAKillInAFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		changed, added string
		rule           string
	}{
		"beginning of both": {"ne", "n", ""},
		"empty":             {"", "", ""},
		"missing":           {"-", "-", ""},
		"somebody's":        {"ours\n", "-", "G7/interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, from, to := advanced(t)
			for file, content := range map[string]string{"changed": tc.changed, "added": tc.added} {
				path := filepath.Join(w.checkout, file)
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if content != "-" {
					w.put(file, content)
				}
			}
			gitDir, err := os.OpenRoot(filepath.Join(w.checkout, ".git"))
			if err != nil {
				t.Fatal(err)
			}
			defer gitDir.Close()
			run(t, w.checkout, "update-ref", "refs/remotes/origin/main", to)
			if err := writeMoving(gitDir, moving{Branch: "refs/heads/main", From: from, To: to}); err != nil {
				t.Fatal(err)
			}
			a := newActivities(t, Config{Engine: EngineGit})
			res, f := ask(t, caller{}, a.FastForward, contract.GitRequest{Dir: w.checkout, LimitMS: 60_000})
			if tc.rule != "" {
				if content, _ := os.ReadFile(filepath.Join(w.checkout, "changed")); f.Rule != tc.rule || string(content) != tc.changed {
					t.Errorf("%+v, %+v, and the file holds %q; want %s", res, f, content, tc.rule)
				}
				return
			}
			if res.Outcome != contract.OutcomeSynced {
				t.Fatalf("%+v, %+v, want synced", res, f)
			}
			w.clean(to)
		})
	}
}

// A linked worktree, a sparse checkout, and an index in parts.
func TestProgramAdvanceOddCheckouts(t *testing.T) {
	t.Parallel()
	w, from, to := advanced(t)
	linked := filepath.Join(w.root, "linked")
	run(t, w.checkout, "worktree", "add", "-q", "-b", "side", linked, from)
	g := newTestProgram(t, limits{})
	ctx, rec := recorded(t)
	if err := g.advance(ctx, openAt(t, linked), &progress{}, advanceSpec{from: from, to: to}); err != nil {
		t.Errorf("%+v", failureOf(t, policies.OpFetch, rec, err))
	}
	run(t, linked, "update-ref", "refs/heads/side", to)
	if got := run(t, linked, "status", "--porcelain"); got != "" {
		t.Errorf("the worktree:\n%s", got)
	}
	patterns, err := conePatterns([]string{"becomes-dir"})
	if err != nil {
		t.Fatal(err)
	}
	run(t, w.checkout, "config", "core.sparseCheckout", "true")
	run(t, w.checkout, "config", "core.sparseCheckoutCone", "true")
	w.put(".git/"+sparseFile, patterns)
	run(t, w.checkout, "read-tree", "-m", "-u", "HEAD")
	run(t, w.checkout, "update-index", "--split-index")
	if rule := w.advance(from, to); rule != "" {
		t.Fatalf("sparse: %s", rule)
	}
	w.clean(to)
	if diff := cmp.Diff([]string{".gitignore", "added", "b.ignored", "becomes-dir/file", "changed", "file", "link", "plain"}, filesIn(t, w.checkout)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
