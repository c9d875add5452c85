package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

// many are n new refs.
func many(n int, oid string) (updates []update) {
	for i := range n {
		updates = append(updates, update{name: plumbing.ReferenceName(fmt.Sprintf("refs/many/%d/r%05d", i%7, i)), new: plumbing.NewHash(oid)})
	}
	return updates
}

// Many new refs go into packed-refs, beside what is there, whatever its order.
func TestMoveManyRefs(t *testing.T) {
	t.Parallel()
	for _, layout := range []string{"none", "loose", "sorted", "unsorted"} {
		t.Run(layout, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.refs()["refs/heads/main"]
			gitDir := filepath.Join(w.checkout, ".git")
			run(t, w.checkout, "tag", "-a", "-m", "x", "v1")
			run(t, w.checkout, "update-ref", "refs/many/3/between", first)
			if layout == "sorted" || layout == "unsorted" {
				run(t, w.checkout, "pack-refs", "--all")
				run(t, w.checkout, "update-ref", "refs/zz/loose", first)
			}
			packed := filepath.Join(gitDir, packedRefs)
			if layout == "unsorted" {
				content, err := os.ReadFile(packed)
				if err != nil {
					t.Fatal(err)
				}
				_, lines, _ := strings.Cut(string(content), "\n")
				if err := os.WriteFile(packed, []byte(first+" refs/zzz/last\n"+lines), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if layout == "none" {
				run(t, w.checkout, "update-ref", "-d", "refs/many/3/between")
			}
			second := w.ours(first, "second")
			updates := append(many(packAbove+500, first), update{name: "refs/heads/main", old: plumbing.NewHash(first), new: plumbing.NewHash(second)})
			want := w.refs()
			for _, u := range updates {
				want[u.name.String()] = u.new.String()
			}
			if err := moveRefs(w.open(), updates); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, w.refs()); diff != "" {
				t.Errorf("refs (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(gitDir, "refs", "many", "0")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("new refs are files: %v", err)
			}
			if got := run(t, w.checkout, "rev-parse", "v1^{commit}"); got != first {
				t.Errorf("the tag points at %s", got)
			}
			run(t, w.checkout, "update-ref", "-d", "refs/many/0/r00000")
			run(t, w.checkout, "pack-refs", "--all")
			if got := len(w.refs()); got != len(want)-1 {
				t.Errorf("%d refs after git packed them, want %d", got, len(want)-1)
			}
			w.whole()
			workIsEmpty(t, gitDir)
		})
	}
}

// All refs move or none, many or few: with a lock in the way, or a ref that is not
// what it was.
func TestMoveRefsAllOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.refs()["refs/heads/main"]
	second := w.ours(first, "second")
	gitDir := filepath.Join(w.checkout, ".git")
	run(t, w.checkout, "update-ref", "refs/a/loose", first)
	run(t, w.checkout, "update-ref", "refs/a/packed", first)
	run(t, w.checkout, "pack-refs", "--all")
	run(t, w.checkout, "update-ref", "refs/a/loose", second)
	run(t, w.checkout, "symbolic-ref", "refs/a/symbolic", "refs/heads/main")
	before := w.refs()
	move := func(name, old string) update {
		u := update{name: plumbing.ReferenceName(name), new: plumbing.NewHash(second)}
		if old != "" {
			u.old = plumbing.NewHash(old)
		}
		return u
	}
	for _, n := range []int{1, packAbove + 1} {
		for name, tc := range map[string]struct {
			extra update
			lock  string
			err   error
		}{
			"a lock":                {move("refs/heads/main", first), "refs/heads/main.lock", errRefLocked},
			"lost a packed ref":     {move("refs/a/packed", second), "", errChanged},
			"lost a loose ref":      {move("refs/a/loose", first), "", errChanged},
			"made meanwhile":        {move("refs/a/packed", ""), "", errChanged},
			"deleted meanwhile":     {move("refs/a/gone", first), "", errChanged},
			"symbolic":              {move("refs/a/symbolic", first), "", errChanged},
			"below another":         {move("refs/a/loose/x", ""), "", errRefNames},
			"packed-refs' own lock": {move("refs/heads/main", first), "packed-refs.lock", errRefLocked},
		} {
			if tc.lock == "packed-refs.lock" && n == 1 {
				continue
			}
			if tc.lock != "" {
				if err := os.WriteFile(filepath.Join(gitDir, tc.lock), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := moveRefs(w.open(), append(many(n, first), tc.extra))
			if !errors.Is(err, tc.err) {
				t.Errorf("%s, %d: %v, want %v", name, n, err, tc.err)
			}
			if tc.lock != "" {
				if err := os.Remove(filepath.Join(gitDir, tc.lock)); err != nil {
					t.Errorf("%s, %d: somebody's lock is gone: %v", name, n, err)
				}
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Fatalf("%s, %d: refs moved:\n%s", name, n, diff)
			}
			w.whole()
			workIsEmpty(t, gitDir)
		}
	}
}

// G11: the locks of a killed worker are removed by the next holder of the
// checkout, and nobody else's.
func TestSweepWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gitDir := filepath.Join(w.checkout, ".git")
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	locks := []string{"refs/heads/main.lock", "index.lock", "refs/heads/theirs.lock", "packed-refs.lock"}
	if err := os.WriteFile(filepath.Join(gitDir, locks[2]), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := holdLocks(root, locks)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // and is killed before the fourth
		if err := held.take(i, ""); (err != nil) != (i == 2) {
			t.Fatal(i, err)
		}
	}
	// One of the locks has become git's since.
	if err := os.Remove(filepath.Join(gitDir, "index.lock")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(gitDir, "index.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := newShadow(w.open())
	if err != nil {
		t.Fatal(err)
	}
	defer s.root.Close()
	if err := sweepWork(gitDir); err != nil {
		t.Fatal(err)
	}
	workIsEmpty(t, gitDir)
	var left []string
	for _, name := range locks {
		if exists(filepath.Join(gitDir, name)) {
			left = append(left, name)
		}
	}
	if diff := cmp.Diff([]string{"index.lock", "refs/heads/theirs.lock"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if err := sweepWork(t.TempDir()); err != nil {
		t.Errorf("nothing to sweep: %v", err)
	}
}

// G12: a work directory that leads out of the checkout is not followed.
func TestWorkStaysInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := filepath.Join(w.root, "outside")
	for _, dir := range []string{outside, filepath.Join(outside, "work", "x")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(w.checkout, ".git", "holdfast")); err != nil {
		t.Fatal(err)
	}
	if _, err := newShadow(w.open()); err == nil {
		t.Error("a shadow was made outside")
	}
	if err := sweepWork(filepath.Join(w.checkout, ".git")); err == nil {
		t.Error("what is outside was swept")
	}
	if !exists(filepath.Join(outside, "work", "x")) {
		t.Error("what was outside is gone")
	}
}

// A damaged packed-refs is an error, never a list that ends early.
func TestDamagedPackedRefs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	oid := strings.Repeat("a", 40)
	for content, ok := range map[string]bool{
		"": true, "# pack-refs with: sorted\n": true, oid + " refs/x\n^" + oid + "\n": true, oid + " refs/x": true,
		"refs/x\n": false, oid + "\n": false, "xyz refs/x\n": false, oid + " refs/" + strings.Repeat("x", 1<<17) + "\n": false,
		oid + " refs/x\n\n" + oid + " refs/y\n": false,
	} {
		if err := os.WriteFile(filepath.Join(dir, packedRefs), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := scanPacked(root, func(refLine) error { n++; return nil }); (err == nil) != ok {
			t.Errorf("%.80q: %v after %d", content, err, n)
		}
	}
}

// G12: many refs are copied, looked up and added to in memory that grows little
// with them; a million are seen by TestGitConformanceBig.
func TestManyRefs(t *testing.T) {
	w := newWorld(t)
	first := w.refs()["refs/heads/main"]
	if err := moveRefs(w.open(), many(100_000, first)); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, err := newShadow(w.open())
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	if err := s.copyRefs(); err != nil {
		t.Fatal(err)
	}
	if got, err := s.moved(); err != nil || len(got) != 0 {
		t.Errorf("%d refs moved, %v", len(got), err)
	}
	if err := moveRefs(w.open(), []update{{name: "refs/new", new: plumbing.NewHash(first)}}); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 40<<20 {
		t.Errorf("%d MiB were allocated", used>>20)
	}
	if got := run(t, w.checkout, "rev-parse", "refs/new", "refs/many/0/r00000"); got != first+"\n"+first {
		t.Errorf("git reads %s", got)
	}
}
