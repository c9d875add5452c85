package git

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// G12: where roots are configured, all objects of a checkout, and of a local
// remote, come from within them, whatever its store borrows from and links to.
func TestObjectsStayInRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.git")
	run(t, outside, "clone", "-q", "--bare", w.bare, secret)
	store := filepath.Join(secret, "objects")
	relative, err := filepath.Rel(filepath.Join(w.root, "x", ".git", "objects"), store)
	if err != nil {
		t.Fatal(err)
	}
	between := filepath.Join(w.root, "between.git")
	run(t, w.root, "clone", "-q", "--bare", w.bare, between)
	put(t, filepath.Join(between, "objects", "info", "alternates"), store+"\n")
	inside := filepath.Join(w.root, "inside.git")
	run(t, w.root, "clone", "-q", "--bare", w.bare, inside)
	put(t, filepath.Join(inside, "objects", "info", "alternates"), "../../repeated.git/objects\n") // a ring
	run(t, w.root, "clone", "-q", "--bare", w.bare, filepath.Join(w.root, "repeated.git"))
	put(t, filepath.Join(w.root, "repeated.git", "objects", "info", "alternates"), filepath.Join(inside, "objects")+"\n")
	if err := os.Symlink(store, filepath.Join(w.root, "link")); err != nil {
		t.Fatal(err)
	}

	borrow := func(text string) func(objects string) error {
		return func(objects string) error {
			return os.WriteFile(filepath.Join(objects, "info", "alternates"), []byte(text), 0o600)
		}
	}
	link := func(name, target string) func(objects string) error {
		return func(objects string) error {
			path := filepath.Join(objects, name)
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			return os.Symlink(target, path)
		}
	}
	a := newActivities(t, Config{Roots: []string{w.root}})
	free := newActivities(t, Config{})
	for name, tc := range map[string]struct {
		spoil   func(objects string) error
		refused bool
	}{
		"absolute":         {borrow(store + "\n"), true},
		"relative":         {borrow(relative + "\n"), true},
		"second line":      {borrow("# stores\n\n" + filepath.Join(inside, "objects") + "\n" + store), true},
		"quoted":           {borrow(strconv.Quote(store) + "\n"), true},
		"badly quoted":     {borrow(`"` + store + "\n"), true},
		"through a link":   {borrow(filepath.Join(w.root, "link") + "\n"), true},
		"through another":  {borrow(filepath.Join(between, "objects") + "\n"), true},
		"missing":          {borrow(filepath.Join(w.root, "missing") + "\n"), true},
		"endless":          {borrow(strings.Repeat("# x\n", maxAlternates/4+1)), true},
		"linked store":     {link("../objects", store), true},
		"linked packs":     {link("pack", filepath.Join(store, "pack")), true},
		"linked directory": {link("ab", filepath.Join(store, "info")), true},
		"linked pack":      {link("pack/pack-x.pack", filepath.Join(secret, "HEAD")), true},
		"linked nowhere":   {link("pack/pack-x.pack", filepath.Join(w.root, "missing")), true},
		"inside":           {borrow(filepath.Join(inside, "objects") + "\n"), false},
		"linked inside":    {link("ab", filepath.Join(inside, "objects", "info")), false},
	} {
		dir := filepath.Join(w.root, "x")
		run(t, w.root, "clone", "-q", w.url(), dir)
		if err := tc.spoil(filepath.Join(dir, ".git", "objects")); err != nil {
			t.Fatal(err)
		}
		_, f := fetch(t, a, contract.GitRequest{Dir: dir, URL: w.url()})
		if refused := f.Rule == "G12/root"; refused != tc.refused || !tc.refused && f.Reason != "" {
			t.Errorf("%s: %+v, want refused: %v", name, f, tc.refused)
		}
		_, f = lsRemote(t, a, contract.GitRequest{URL: dir})
		if refused := f.Rule == "G12/root"; refused != tc.refused {
			t.Errorf("%s: as a remote: %+v, want refused: %v", name, f, tc.refused)
		}
		if _, f = fetch(t, free, contract.GitRequest{Dir: dir, URL: w.url()}); f.Rule == "G12/root" {
			t.Errorf("%s: without roots: %+v", name, f)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}
