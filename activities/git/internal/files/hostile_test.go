package files

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/activities/git/internal/packtest"
)

// G12: a tree cannot write outside the checkout nor into its .git directory,
// whatever it calls its entries, and nothing is written of one that tries.
func TestHostileTrees(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file, link := p.blob("escaped"), p.blob("../outside")
	inner := p.raw(packtest.Entry{Mode: "100644", Name: "config", Hash: file})
	good := packtest.Entry{Mode: "100644", Name: "AAA", Hash: file}
	trees := map[string]struct {
		entries []packtest.Entry
		want    error
	}{
		"name is a path":     {[]packtest.Entry{{Mode: "100644", Name: "a/../../x", Hash: file}}, ErrHostile},
		"name is absolute":   {[]packtest.Entry{{Mode: "100644", Name: "/tmp/x", Hash: file}}, ErrHostile},
		"long name":          {[]packtest.Entry{{Mode: "100644", Name: strings.Repeat("n", 256), Hash: file}}, ErrHostile},
		"no name":            {[]packtest.Entry{{Mode: "100644", Name: "", Hash: file}}, ErrDamaged},
		"link of submodules": {[]packtest.Entry{{Mode: "120000", Name: ".gitmodules", Hash: file}}, ErrHostile},
		"link and directory": {[]packtest.Entry{{Mode: "120000", Name: "d", Hash: link}, {Mode: "40000", Name: "d", Hash: inner}}, ErrDamaged},
		"twice, apart":       {[]packtest.Entry{{Mode: "120000", Name: "d", Hash: link}, {Mode: "100644", Name: "d.x", Hash: file}, {Mode: "40000", Name: "d", Hash: inner}}, ErrDamaged},
		"out of order":       {[]packtest.Entry{{Mode: "40000", Name: "z", Hash: inner}, {Mode: "120000", Name: "d", Hash: link}, {Mode: "40000", Name: "d", Hash: inner}}, ErrDamaged},
		"no mode":            {[]packtest.Entry{{Mode: "", Name: "x", Hash: file}}, ErrDamaged},
		"odd mode":           {[]packtest.Entry{{Mode: "010644", Name: "x", Hash: file}}, ErrDamaged},
		"empty link":         {[]packtest.Entry{{Mode: "120000", Name: "x", Hash: p.blob("")}}, ErrImpossible},
		"long link":          {[]packtest.Entry{{Mode: "120000", Name: "x", Hash: p.blob(strings.Repeat("x", 5000))}}, ErrImpossible},
		"link with zero":     {[]packtest.Entry{{Mode: "120000", Name: "x", Hash: p.blob("a\x00b")}}, ErrImpossible},
	}
	for _, name := range []string{"..", ".", ".git", ".GIT", ".git ", ".git.", "git~1", "GIT~1", ".git::$INDEX_ALLOCATION", ".g\u200cit", "\ufeff.git", `..\x`, `a\.git\config`} {
		for _, mode := range []string{"100644", "40000", "120000", "160000"} {
			h := map[string]plumbing.Hash{"40000": inner, "120000": link}[mode]
			if h.IsZero() {
				h = file
			}
			trees[mode+" "+name] = struct {
				entries []packtest.Entry
				want    error
			}{[]packtest.Entry{{Mode: mode, Name: name, Hash: h}}, ErrHostile}
		}
	}
	before, around := snapshot(t, p.dir), entriesOf(t, filepath.Dir(p.dir))
	for name, tc := range trees {
		for depth := range 2 {
			to := p.raw(append([]packtest.Entry{good}, tc.entries...)...)
			if depth == 1 {
				to = p.raw(packtest.Entry{Mode: "40000", Name: "deep", Hash: to})
			}
			if err := p.advance(plumbing.ZeroHash, to); !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", name, err, tc.want)
			}
			if tc.want == ErrImpossible { // a link is only read when it is made
				p.remove("AAA")
				p.remove("deep")
			}
		}
	}
	if diff := cmp.Diff(before, snapshot(t, p.dir)); diff != "" {
		t.Errorf("written (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(around, entriesOf(t, filepath.Dir(p.dir))); diff != "" {
		t.Errorf("written outside (-before +after):\n%s", diff)
	}
	p.nothingLeft()
}

func entriesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// G12: nothing is written through a symbolic link: neither one that an earlier
// tree has put there, nor one of the user's.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	outside := t.TempDir()
	withLink := p.tree(map[string]string{"d": "-> " + outside, "g": "-> .git"})
	withFiles := p.tree(map[string]string{"d/x": "1", "g/config": "1"})
	p.must(plumbing.ZeroHash, withLink)
	p.must(withLink, withFiles)
	if left := entriesOf(t, outside); len(left) > 0 {
		t.Errorf("written through the link: %v", left)
	}
	if content := p.git("config", "core.bare"); content != "false\n" {
		t.Errorf("the configuration was written through a link: %q", content)
	}
	// The user has put links where directories were: nothing goes, nothing comes.
	p.put("../"+filepath.Base(p.dir)+"-x/x", "1")
	p.remove("d")
	p.put("d", "-> "+p.dir+"-x")
	for _, to := range []plumbing.Hash{p.tree(map[string]string{"d/x": "2"}), p.tree(map[string]string{"d/x": "1", "d/y": "1", "g/config": "1"})} {
		if err := p.advance(withFiles, to); !errors.Is(err, ErrConflict) {
			t.Errorf("through the user's link: %v", err)
		}
	}
	if err := p.advance(withFiles, p.tree(map[string]string{"g/config": "1"})); err != nil {
		t.Errorf("what is behind the user's link goes from the index only: %v", err)
	}
	if got := entriesOf(t, p.dir+"-x"); len(got) != 1 || got[0] != "x" {
		t.Errorf("behind the user's link: %v", got)
	}
}

// Paths that are not safe, of a tree that was never written, do not keep a
// checkout from leaving it.
func TestUnsafePathsAreLeftBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := p.blob("1")
	bad := packtest.Entry{Mode: "100644", Name: ".git", Hash: file}
	from := p.raw(bad, packtest.Entry{Mode: "100644", Name: "a", Hash: file})
	p.must(plumbing.ZeroHash, p.tree(map[string]string{"a": "1"}))
	p.must(from, p.tree(map[string]string{"a": "2"}))
	if _, err := os.Stat(filepath.Join(p.dir, ".git", "HEAD")); err != nil {
		t.Errorf("the repository: %v", err)
	}
}

// G12: few objects can stand for more files, or directories, than there is room
// for; many bytes, for more than the disk may hold.
func TestTreeBombs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	bomb := func(bottom plumbing.Hash, mode string) plumbing.Hash {
		at := bottom
		for range 10 {
			var entries []packtest.Entry
			for i := range 10 {
				entries = append(entries, packtest.Entry{Mode: mode, Name: "d" + strconv.Itoa(i), Hash: at})
			}
			at, mode = p.raw(entries...), "40000"
		}
		return at
	}
	large := p.blob(strings.Repeat("x", 1<<20))
	for name, tc := range map[string]struct {
		to   plumbing.Hash
		want error
	}{
		"files":       {bomb(p.blob("x"), "100644"), ErrMemory},
		"directories": {bomb(p.raw(), "40000"), ErrMemory},
		"modules":     {bomb(plumbing.Hash{1}, "160000"), ErrMemory},
		"bytes":       {p.raw(packtest.Entry{Mode: "100644", Name: "a", Hash: large}, packtest.Entry{Mode: "100644", Name: "b", Hash: large}), ErrDisk},
	} {
		o := p.options()
		o.Memory, o.Disk = 8<<20, 1<<20+1<<19
		if err := Advance(t.Context(), o, plumbing.ZeroHash, tc.to); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	p.nothingLeft()
}

// An object that is not there is found out before anything is changed.
func TestMissingObjects(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	from := p.tree(map[string]string{"a": "1"})
	p.must(plumbing.ZeroHash, from)
	for name, e := range map[string]packtest.Entry{
		"blob": {Mode: "100644", Name: "z", Hash: plumbing.Hash{1}}, "tree": {Mode: "40000", Name: "z", Hash: plumbing.Hash{1}},
		"wrong kind": {Mode: "40000", Name: "z", Hash: p.blob("1")},
	} {
		to := p.raw(packtest.Entry{Mode: "100644", Name: "a", Hash: p.blob("2")}, e)
		if err := p.advance(from, to); !errors.Is(err, ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p.clean(from)
}

// No content of a tree makes the reader panic, and what it accepts is in order.
func FuzzParseTree(f *testing.F) {
	f.Add(packtest.Tree(packtest.Entry{Mode: "100644", Name: "b"}, packtest.Entry{Mode: "40000", Name: "a"}))
	f.Add([]byte("100644 a\x00short"))
	f.Fuzz(func(t *testing.T, content []byte) {
		list, err := parseTree(content)
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("error %v", err)
		}
		for i, n := range list {
			if n.name == "" || n.mode == 0 || i > 0 && list[i-1].name >= n.name {
				t.Errorf("entry %d of %v", i, list)
			}
		}
	})
}
