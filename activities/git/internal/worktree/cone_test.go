package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

var coneFiles = map[string]string{
	"top": "1", "a/file": "1", "a/b/file": "1", "a/b/c/file": "1", "a/x/file": "1", "d/file": "1", "d/e/file": "1", "f/file": "1",
	"s [1]/file": "1", "s [1]/*/file": "1", "ab/file": "1",
}

// G10: a sparse checkout has the directories that were named, the files above
// them, and knows of the others; the patterns are those that git writes.
func TestSparse(t *testing.T) {
	t.Parallel()
	for name, dirs := range map[string][]string{
		"one": {"a/b"}, "nested": {"a", "a/b/c"}, "several": {"a/b/c", "d", "f/"}, "special": {"s [1]/*"}, "missing": {"nowhere/at/all"}, "slashes": {"/d/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, theirs := newPlace(t), newPlace(t)
			to := p.tree(coneFiles)
			cone, err := NewCone(dirs)
			if err != nil {
				t.Fatal(err)
			}
			o := p.options()
			o.Cone, o.Fresh = cone, true
			if err := Advance(t.Context(), o, plumbing.ZeroHash, to); err != nil {
				t.Fatal(err)
			}
			p.nothingLeft()

			theirs.tree(coneFiles)
			theirs.git("read-tree", to.String())
			theirs.git("sparse-checkout", "init", "--cone")
			theirs.git(append([]string{"sparse-checkout", "set", "--skip-checks"}, trim(dirs)...)...)
			theirs.git("checkout-index", "-a")
			if diff := cmp.Diff(theirs.files(), p.files()); diff != "" {
				t.Errorf("files (-git +ours):\n%s", diff)
			}
			if diff := cmp.Diff(theirs.git("ls-files", "-t"), p.git("ls-files", "-t")); diff != "" {
				t.Errorf("index (-git +ours):\n%s", diff)
			}
			patterns, err := os.ReadFile(filepath.Join(theirs.dir, ".git", "info", "sparse-checkout"))
			if err != nil {
				t.Fatal(err)
			}
			if name != "nested" { // where git names less
				if diff := cmp.Diff(string(patterns), cone.Patterns()); diff != "" {
					t.Errorf("patterns (-git +ours):\n%s", diff)
				}
			}
			for _, text := range []string{string(patterns), cone.Patterns()} {
				read, err := ReadCone(text)
				if err != nil {
					t.Fatal(err)
				}
				for path := range coneFiles {
					if read.holds(path) != cone.holds(path) {
						t.Errorf("%s: %v as read, %v as made", path, read.holds(path), cone.holds(path))
					}
				}
			}
		})
	}
}

func trim(dirs []string) (out []string) {
	for _, dir := range dirs {
		out = append(out, strings.Trim(dir, "/"))
	}
	return out
}

// G7, G10: a sparse checkout stays one when it goes on.
func TestAdvanceOfSparse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cone, err := NewCone([]string{"a/b"})
	if err != nil {
		t.Fatal(err)
	}
	o := p.options()
	o.Cone = cone
	from := p.tree(coneFiles)
	if err := Advance(t.Context(), o, plumbing.ZeroHash, from); err != nil {
		t.Fatal(err)
	}
	to := p.tree(map[string]string{"top": "2", "a/file": "2", "a/b/new": "2", "d/file": "2", "n/file": "2"})
	if err := Advance(t.Context(), o, from, to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"top": "2", "a/file": "2", "a/b/new": "2"}, p.files()); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got, want := p.git("ls-files", "-t"), "H a/b/new\nH a/file\nS d/file\nS n/file\nH top\n"; got != want {
		t.Errorf("index:\n%s", got)
	}
	if out := p.git("diff-index", "--cached", "--raw", to.String()); out != "" {
		t.Errorf("the index differs from the tree:\n%s", out)
	}
}

func TestConesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, dirs := range [][]string{{""}, {"/"}, {".."}, {"a/../b"}, {".git"}, {"a\nb"}, {"a//b"}} {
		if _, err := NewCone(dirs); !errors.Is(err, ErrSparse) {
			t.Errorf("%q: %v", dirs, err)
		}
	}
	for _, patterns := range []string{
		"", "/*\n", "*.go\n", "/*\n!/*/\n*.go\n", "/*\n!/*/\n/a\n", "/*\n!/*/\na/\n", "/*\n!/*/\n!/a/*/\n", "/*\n!/*/\n/a*/\n", "/*\n!/*/\n!/a/\n", "/*\n!/*/\n//\n", "/*\n!/*/\n/a\\x/\n",
	} {
		if _, err := ReadCone(patterns); !errors.Is(err, ErrSparse) {
			t.Errorf("%q: %v", patterns, err)
		}
	}
}

// What is read is what is written.
func FuzzReadCone(f *testing.F) {
	f.Add("/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n")
	f.Add("/*\n!/*/\n/s \\[1]/\n")
	f.Fuzz(func(t *testing.T, patterns string) {
		c, err := ReadCone(patterns)
		if err != nil {
			return
		}
		again, err := ReadCone(c.Patterns())
		if err != nil {
			t.Fatalf("%q, written as %q: %v", patterns, c.Patterns(), err)
		}
		for _, set := range []map[string]bool{c.whole, c.above} {
			for dir := range set {
				for _, path := range []string{dir, dir + "/x", dir + "/x/y"} {
					if c.holds(path) != again.holds(path) {
						t.Errorf("%q of %q: %v, then %v", path, patterns, c.holds(path), again.holds(path))
					}
				}
			}
		}
	})
}
