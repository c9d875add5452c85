package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// kinds of change between two trees.
var kinds = map[string]struct{ from, to map[string]string }{
	"nothing":             {map[string]string{"a": "1"}, map[string]string{"a": "1"}},
	"everything goes":     {map[string]string{"a": "1", "d/e/f": "2"}, map[string]string{}},
	"add":                 {map[string]string{"a": "1"}, map[string]string{"a": "1", "d/e/f": "2", "z": "3"}},
	"modify":              {map[string]string{"a": "1", "d/b": "1"}, map[string]string{"a": "2", "d/b": "2"}},
	"delete":              {map[string]string{"a": "1", "d/e/f": "2", "d/g": "3"}, map[string]string{"a": "1", "d/g": "3"}},
	"executable":          {map[string]string{"a": "x", "b": "#!x"}, map[string]string{"a": "#!x", "b": "x"}},
	"link":                {map[string]string{"a": "1", "l": "-> a"}, map[string]string{"a": "-> l", "l": "-> ../../x"}},
	"link of what file":   {map[string]string{"l": "x"}, map[string]string{"l": "-> x"}},
	"file to directory":   {map[string]string{"a": "1", "b": "2"}, map[string]string{"a/b/c": "1", "a/d": "2", "b": "2"}},
	"directory to file":   {map[string]string{"a/b/c": "1", "a/d": "2", "b": "2"}, map[string]string{"a": "1", "b": "2"}},
	"link to directory":   {map[string]string{"a": "-> d", "d/e": "1"}, map[string]string{"a/e": "2", "d/e": "1"}},
	"directory to link":   {map[string]string{"a/e": "2", "d/e": "1"}, map[string]string{"a": "-> d", "d/e": "1"}},
	"rename of directory": {map[string]string{"a/b/c": "1", "a/b/d": "2"}, map[string]string{"z/b/c": "1", "z/b/d": "2"}},
	"odd names":           {map[string]string{"a b": "1", "a-b": "2", "a/b": "3", "a.b": "4"}, map[string]string{"a b": "5", "a-b": "6", "a/b": "7", "a.b": "8", "\"q\"": "9", "é": "10", "a\nb": "11"}},
	"empty file":          {map[string]string{"a": "1"}, map[string]string{"a": "", "b": ""}},
	"large file":          {map[string]string{"a": strings.Repeat("1", 1<<20)}, map[string]string{"a": strings.Repeat("2", 1<<20), "b": strings.Repeat("3", 1<<20)}},
	"long path":           {map[string]string{}, map[string]string{strings.Repeat("d/", 300) + "a": "1"}},
	"module":              {map[string]string{"a": "1"}, map[string]string{"a": "1", "m": "module", "d/m": "module"}},
	"module goes":         {map[string]string{"a": "1", "m": "module", "d/m": "module"}, map[string]string{"a": "1"}},
	"module to directory": {map[string]string{"m": "module"}, map[string]string{"m/a": "1"}},
	"directory to module": {map[string]string{"m/a": "1"}, map[string]string{"m": "module"}},
	"file to module":      {map[string]string{"m": "1"}, map[string]string{"m": "module"}},
	"module to file":      {map[string]string{"m": "module"}, map[string]string{"m": "1"}},
}

// G7, G10: a checkout goes from one tree to another, first from nothing; git
// finds nothing to say about it, and doing it again changes nothing.
func TestAdvance(t *testing.T) {
	t.Parallel()
	for name, tc := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			from, to := p.tree(tc.from), p.tree(tc.to)
			fresh := p.options()
			fresh.Fresh = true
			if err := Advance(t.Context(), fresh, plumbing.ZeroHash, from); err != nil {
				t.Fatal(err)
			}
			p.clean(from)
			p.must(from, to)
			before := snapshot(t, p.dir)
			p.must(from, to)
			if diff := cmp.Diff(before, snapshot(t, p.dir)); diff != "" {
				t.Errorf("the second time changed something (-before +after):\n%s", diff)
			}
			p.must(to, from)
			p.must(from, plumbing.ZeroHash)
			if left := snapshot(t, p.dir); len(left) > len(before) {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// The same for trees of any shape, one after the other, as git makes them.
func TestAdvanceThroughAnyTrees(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	at := plumbing.ZeroHash
	names := []string{"a", "b", "a-", "a.b", "c"}
	contents := []string{"1", "2", "", "#!1", "#!2", "-> a", "-> ../x", "-> b/a", "module"}
	rapid.Check(t, func(r *rapid.T) {
		files := map[string]string{}
		var fill func(prefix string, depth int)
		fill = func(prefix string, depth int) {
			for _, name := range names {
				switch rapid.IntRange(0, 3).Draw(r, "kind") {
				case 0:
					files[prefix+name] = rapid.SampledFrom(contents).Draw(r, "content")
				case 1:
					if depth < 2 {
						fill(prefix+name+"/", depth+1)
					}
				}
			}
		}
		fill("", 0)
		to := p.tree(files)
		if err := p.advance(at, to); err != nil {
			r.Fatalf("advance to %v: %v", files, err)
		}
		if diff := cmp.Diff(files, p.files()); diff != "" {
			r.Fatalf("files (-want +got):\n%s", diff)
		}
		if at = to; rapid.IntRange(0, 9).Draw(r, "ask git") == 0 {
			p.clean(to)
		}
	})
}

// conflicts are states of a checkout at {a: 1, b: 1, d/e: 1, l -> a} that cannot
// go on to the tree given.
var conflicts = map[string]struct {
	set func(p *place)
	to  map[string]string
}{
	"modified":                 {func(p *place) { p.put("a", "mine") }, map[string]string{"a": "2"}},
	"modified, goes":           {func(p *place) { p.put("a", "mine") }, map[string]string{}},
	"modified, same size":      {func(p *place) { p.put("a", "3") }, map[string]string{"a": "2"}},
	"staged":                   {func(p *place) { p.put("a", "mine"); p.git("add", "a") }, map[string]string{"a": "2"}},
	"staged, file as it was":   {func(p *place) { p.put("a", "mine"); p.git("add", "a"); p.put("a", "1") }, map[string]string{"a": "2"}},
	"not in the index":         {func(p *place) { p.git("rm", "-q", "--cached", "a") }, map[string]string{"a": "2"}},
	"mode":                     {func(p *place) { os.Chmod(filepath.Join(p.dir, "a"), 0o755) }, map[string]string{"a": "2"}},
	"file is a link":           {func(p *place) { p.remove("a"); p.put("a", "-> b") }, map[string]string{"a": "2"}},
	"file is a link, goes":     {func(p *place) { p.remove("a"); p.put("a", "-> b") }, map[string]string{}},
	"file is a directory":      {func(p *place) { p.remove("a"); p.put("a/x", "mine") }, map[string]string{"a": "2"}},
	"link leads elsewhere":     {func(p *place) { p.remove("l"); p.put("l", "-> b") }, map[string]string{"l": "-> d"}},
	"link is a file":           {func(p *place) { p.remove("l"); p.put("l", "a") }, map[string]string{"l": "-> d"}},
	"untracked":                {func(p *place) { p.put("n", "mine") }, map[string]string{"n": "1"}},
	"untracked directory":      {func(p *place) { p.put("n/x", "mine") }, map[string]string{"n": "1"}},
	"untracked below":          {func(p *place) { p.put("d/mine", "mine") }, map[string]string{"d": "1"}},
	"untracked in the way":     {func(p *place) { p.put("n", "mine") }, map[string]string{"n/x": "1"}},
	"link in the way":          {func(p *place) { p.put("n", "-> d") }, map[string]string{"n/e": "1"}},
	"link for a directory":     {func(p *place) { p.remove("d"); p.put("x/e", "1"); p.put("d", "-> x") }, map[string]string{"d/e": "2"}},
	"staged in the way":        {func(p *place) { p.put("n", "mine"); p.git("add", "n"); p.remove("n") }, map[string]string{"n/x": "1"}},
	"staged below":             {func(p *place) { p.put("n/x", "mine"); p.git("add", "n/x"); p.remove("n") }, map[string]string{"n": "1"}},
	"module's files":           {func(p *place) { p.put("m/x", "mine") }, map[string]string{"m/y": "1"}},
	"module's files, to file":  {func(p *place) { p.put("m/x", "mine") }, map[string]string{"m": "1"}},
	"fifo":                     {func(p *place) { p.remove("a"); fifo(p, "a") }, map[string]string{"a": "2"}},
	"merge that is unfinished": {unmerged, map[string]string{"z": "1"}},
}

// unmerged leaves the index as a merge does that is not finished.
func unmerged(p *place) {
	at := p.blob("other").String()
	p.git("update-index", "--force-remove", "b")
	p.index(fmt.Sprintf("100644 %s 2\tb\n100644 %s 3\tb\n", at, at))
}

// G7: what differs from both trees is a conflict, and then nothing has changed.
func TestConflictsChangeNothing(t *testing.T) {
	t.Parallel()
	base := map[string]string{"a": "1", "b": "1", "d/e": "1", "l": "-> a", "m": "module"}
	for name, tc := range conflicts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			from, to := p.tree(base), p.tree(tc.to)
			p.must(plumbing.ZeroHash, from)
			tc.set(p)
			before := snapshot(t, p.dir)
			if err := p.advance(from, to); !errors.Is(err, ErrConflict) {
				t.Errorf("error %v, want a conflict", err)
			}
			if diff := cmp.Diff(before, snapshot(t, p.dir)); diff != "" {
				t.Errorf("changed (-before +after):\n%s", diff)
			}
			p.nothingLeft()
		})
	}
}

// What the user did to other files stays; a file that is gone, or is already
// what it is to be, is no conflict; an untracked file that is just what comes is
// taken over.
func TestOtherChangesStay(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	from := p.tree(map[string]string{"a": "1", "b": "1", "c": "1", "d/e": "1", "f": "1", "g": "1"})
	to := p.tree(map[string]string{"a": "2", "b": "1", "c": "1", "d/e": "2", "f": "2", "n/x": "new", "m/y": "new"})
	p.must(plumbing.ZeroHash, from)
	p.put("b", "mine")
	p.put("c", "staged")
	p.git("add", "c")
	p.put("untracked", "mine")
	p.put("n/x", "new")
	p.put("m/mine", "mine")
	p.remove("d/e")
	p.put("f", "2")
	p.remove("g")
	if err := p.advance(from, to); err != nil {
		t.Fatal(err)
	}
	want := "c\n" // the only difference between the index and the tree
	if got := p.git("diff-index", "--cached", "--name-only", to.String()); got != want {
		t.Errorf("staged: %q, want %q", got, want)
	}
	if got := p.git("diff-files", "--name-only"); got != "b\n" {
		t.Errorf("modified: %q, want b", got)
	}
	if got := p.git("ls-files", "--others"); got != "m/mine\nuntracked\n" {
		t.Errorf("untracked: %q", got)
	}
	p.nothingLeft()
}

// Files that are stored in another form are as they were, as long as they have
// not changed since the index was written.
func TestUnchangedFilesAreBelieved(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	from, to := p.tree(map[string]string{"a": "1\n", ".gitattributes": "* text eol=crlf\n"}), p.tree(map[string]string{"a": "2\n", ".gitattributes": "* text eol=crlf\n"})
	p.git("read-tree", from.String())
	p.git("checkout-index", "-a")
	// git trusts a file that is older than the index.
	past := time.Now().Add(-time.Hour)
	for _, name := range []string{"a", ".gitattributes"} {
		if err := os.Chtimes(filepath.Join(p.dir, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	p.git("update-index", "--refresh")
	if content, err := os.ReadFile(filepath.Join(p.dir, "a")); err != nil || string(content) != "1\r\n" {
		t.Fatalf("git wrote %q, %v", content, err)
	}
	if err := p.advance(from, to); err != nil {
		t.Errorf("a file that is as git wrote it: %v", err)
	}
	p.git("read-tree", from.String())
	p.git("checkout-index", "-a", "-f")
	p.put("a", "1\r\nmine\r\n")
	if err := p.advance(from, to); !errors.Is(err, ErrConflict) {
		t.Errorf("a file that changed: %v", err)
	}
}

// A checkout whose advance is broken off, wherever that is, comes to its end the
// next time.
func TestAdvanceGoesOnAfterABreak(t *testing.T) {
	t.Parallel()
	for name, tc := range kinds {
		p := newPlace(t)
		from, to := p.tree(tc.from), p.tree(tc.to)
		p.must(plumbing.ZeroHash, from)
		for at := range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			o := p.options()
			o.Planned = func(int) {
				if at == 0 {
					cancel()
				}
			}
			left := at
			o.Wrote = func() {
				if left--; left == 0 {
					cancel()
				}
			}
			err := Advance(ctx, o, from, to)
			if done := ctx.Err() == nil; done != (err == nil) && left > 0 {
				t.Errorf("%s: broken off after %d steps: %v", name, at, err)
			}
			cancel()
			if err := p.advance(from, to); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.to, p.files()); diff != "" {
				t.Errorf("%s, after a break (-want +got):\n%s", name, diff)
			}
			if at == 1 {
				p.clean(to)
			}
			if err := p.advance(to, from); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// An index that is not what we can read is left as it is.
func TestUnreadableIndex(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	from, to := p.tree(map[string]string{"a": "1"}), p.tree(map[string]string{"a": "2"})
	p.must(plumbing.ZeroHash, from)
	p.git("update-index", "--split-index")
	if err := p.advance(from, to); !errors.Is(err, ErrIndex) {
		t.Errorf("a split index: %v", err)
	}
	p.git("update-index", "--no-split-index")
	p.must(from, to)
	p.git("update-index", "--index-version", "4")
	p.git("update-index", "--untracked-cache")
	p.must(to, from)
	if err := os.WriteFile(filepath.Join(p.dir, ".git", "index"), []byte("DIRC"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.advance(from, to); !errors.Is(err, ErrIndex) {
		t.Errorf("a cut index: %v", err)
	}
	p.nothingLeft()
}
