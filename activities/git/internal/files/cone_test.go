package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
)

var coneFiles = map[string]string{
	"top": "1", "a/file": "1", "a/b/file": "1", "a/b/c/file": "1", "a/x/file": "1", "d/file": "1", "d/e/file": "1", "f/file": "1",
	"s [1]/file": "1", "s [1]/*/file": "1", "ab/file": "1",
}

// G10: a sparse checkout has the directories that git's patterns name, the files
// above them, and knows of the others.
func TestSparse(t *testing.T) {
	t.Parallel()
	for name, dirs := range map[string][]string{
		"one": {"a/b"}, "nested": {"a", "a/b/c"}, "several": {"a/b/c", "d", "f"}, "special": {"s [1]/*"}, "missing": {"nowhere/at/all"}, "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, theirs := newPlace(t), newPlace(t)
			to := p.tree(coneFiles)
			theirs.tree(coneFiles)
			theirs.git("read-tree", to.String())
			theirs.git("sparse-checkout", "init", "--cone")
			theirs.git(append([]string{"sparse-checkout", "set", "--skip-checks"}, dirs...)...)
			theirs.git("checkout-index", "-a")
			patterns, err := os.ReadFile(filepath.Join(theirs.dir, ".git", "info", "sparse-checkout"))
			if err != nil {
				t.Fatal(err)
			}

			o := p.options()
			o.Fresh = true
			if o.Cone, err = ReadCone(string(patterns)); err != nil {
				t.Fatal(err)
			}
			if err := Advance(t.Context(), o, plumbing.ZeroHash, to); err != nil {
				t.Fatal(err)
			}
			p.nothingLeft()
			if diff := cmp.Diff(theirs.files(), p.files()); diff != "" {
				t.Errorf("files (-git +ours):\n%s", diff)
			}
			if diff := cmp.Diff(theirs.git("ls-files", "-t"), p.git("ls-files", "-t")); diff != "" {
				t.Errorf("index (-git +ours):\n%s", diff)
			}
		})
	}
}

// G7, G10: a sparse checkout stays one when it goes on.
func TestAdvanceOfSparse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	o := p.options()
	var err error
	if o.Cone, err = ReadCone("/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n"); err != nil {
		t.Fatal(err)
	}
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

func TestPatternsThatAreNoCone(t *testing.T) {
	t.Parallel()
	for _, patterns := range []string{
		"", "/*\n", "*.go\n", "/*\n!/*/\n*.go\n", "/*\n!/*/\n/a\n", "/*\n!/*/\na/\n", "/*\n!/*/\n!/a/*/\n", "/*\n!/*/\n/a*/\n", "/*\n!/*/\n!/a/\n", "/*\n!/*/\n//\n", "/*\n!/*/\n/a\\x/\n",
	} {
		if _, err := ReadCone(patterns); !errors.Is(err, ErrSparse) {
			t.Errorf("%q: %v", patterns, err)
		}
	}
}

// A cone, whatever made it, holds what is in a directory that it names, the files
// above it, and the top.
func FuzzReadCone(f *testing.F) {
	f.Add("/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n")
	f.Add("/*\n!/*/\n/s \\[1]/\n")
	f.Fuzz(func(t *testing.T, patterns string) {
		c, err := ReadCone(patterns)
		if err != nil {
			return
		}
		if !c.holds("top") {
			t.Error("a file at the top is left out")
		}
		for dir := range c.whole {
			if !c.holds(dir+"/x") || !c.holds(dir+"/x/y") || !c.holds(parent(dir)+"/x") && parent(dir) != "" {
				t.Errorf("%q of %q is left out", dir, patterns)
			}
		}
	})
}
