package git

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// shadow is a bare repository that stands for a checkout: it has the objects of
// the checkout, and its refs if they are asked for, but no configuration of its
// own, no hooks and no files. The git program works in it, and what came of that
// is then moved into the checkout.
type shadow struct {
	checkout *checkout
	root     *os.Root // of the checkout's common directory
	// name is the shadow's directory in root, dir its path.
	name, dir string
}

const shadowConfig = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"

// newShadow makes a shadow without refs.
func newShadow(c *checkout) (s *shadow, err error) {
	if strings.ContainsAny(c.common, "\n\r") {
		return nil, refuse(policies.ReasonFormat, "G3/checkout", "the checkout's path holds a line break, which git cannot take here; move it")
	}
	s = &shadow{checkout: c}
	if s.root, err = os.OpenRoot(c.common); err != nil {
		return nil, err
	}
	if s.name, err = newWork(s.root); err == nil {
		s.dir = filepath.Join(c.common, filepath.FromSlash(s.name))
		err = s.fill()
	}
	if err != nil {
		s.remove()
		return nil, checkoutError(err)
	}
	return s, nil
}

func (s *shadow) fill() error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs", "info"} {
		if err := s.root.MkdirAll(path.Join(s.name, dir), 0o777); err != nil {
			return err
		}
	}
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/holdfast\n",
		"config":                  shadowConfig,
		"objects/info/alternates": filepath.Join(s.checkout.common, "objects") + "\n",
	}
	for name, content := range files {
		if err := s.write(name, content); err != nil {
			return err
		}
	}
	shallow, err := readIfThere(s.root, shallowFile)
	if err != nil || shallow == "" {
		return err
	}
	return s.write(shallowFile, shallow)
}

// shallowFile lists the commits whose parents a shallow checkout does not have.
const shallowFile = "shallow"

func (s *shadow) write(name, content string) error {
	return s.root.WriteFile(path.Join(s.name, name), []byte(content), 0o666)
}

// remove deletes the shadow. What it cannot delete now, the next holder of the
// checkout's lock does.
func (s *shadow) remove() {
	if s.name != "" {
		s.root.RemoveAll(s.name)
	}
	s.root.Close()
}

// copyRefs gives the shadow the refs of the checkout, all of them in packed-refs,
// so that whatever is a file of its own later is what has moved.
func (s *shadow) copyRefs() error {
	loose, err := looseRefs(s.root)
	if err != nil {
		return checkoutError(err)
	}
	f, err := s.root.Create(path.Join(s.name, packedRefs))
	if err != nil {
		return checkoutError(err)
	}
	err = mergePacked(s.root, f, loose)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return checkoutError(err)
	}
	// A commit that no ref names is told of too when it is checked out.
	head, err := os.ReadFile(filepath.Join(s.checkout.gitDir, "HEAD"))
	if text := strings.TrimSpace(string(head)); err == nil && plumbing.IsHash(text) {
		err = s.write("HEAD", text+"\n")
	}
	return checkoutError(err)
}

// moved are the refs that have moved in the shadow since copyRefs, by name.
func (s *shadow) moved() ([]update, error) {
	own, err := s.root.OpenRoot(s.name)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	refs, err := looseRefs(own)
	if err != nil {
		return nil, err
	}
	updates := make([]update, len(refs))
	for i, r := range refs {
		updates[i] = update{name: plumbing.ReferenceName(r.name), new: r.hash, force: true}
	}
	err = scanPacked(own, func(r refLine) error {
		if i, ok := findUpdate(updates, r.name); ok {
			updates[i].old = r.hash()
		}
		return nil
	})
	return slices.DeleteFunc(updates, func(u update) bool { return u.old == u.new }), err
}

// moveObjects moves the packs of the shadow into the checkout, each with its
// index last, for that is where git looks first. They are on disk when it
// returns.
func (s *shadow) moveObjects() error {
	from := path.Join(s.name, "objects", "pack")
	entries, err := fs.ReadDir(s.root.FS(), from)
	if err != nil {
		return checkoutError(err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "pack-") && !strings.HasSuffix(entry.Name(), ".keep") {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.SortStableFunc(names, func(a, b string) int { return indexRank(a) - indexRank(b) })
	to := path.Join("objects", "pack")
	if err := s.root.MkdirAll(to, 0o777); err != nil {
		return checkoutError(err)
	}
	for _, name := range names {
		if err := syncAll(filepath.Join(s.dir, "objects", "pack", name)); err != nil {
			return checkoutError(err)
		}
		if err := s.root.Rename(path.Join(from, name), path.Join(to, name)); err != nil {
			return checkoutError(err)
		}
	}
	return checkoutError(syncAll(filepath.Join(s.checkout.common, "objects", "pack")))
}

func indexRank(name string) int {
	if strings.HasSuffix(name, ".idx") {
		return 1
	}
	return 0
}

// moveShallow moves the edge of a shallow checkout if the git program moved it.
func (s *shadow) moveShallow() error {
	old, err := readIfThere(s.root, shallowFile)
	if err != nil {
		return checkoutError(err)
	}
	edge, err := readIfThere(s.root, path.Join(s.name, shallowFile))
	if err != nil || sameLines(old, edge) {
		return checkoutError(err)
	}
	held, err := holdLocks(s.root, []string{shallowFile + ".lock"})
	if err != nil {
		return checkoutError(err)
	}
	defer held.release()
	if err := held.take(0, edge); err != nil {
		return lockError(err)
	}
	if edge == "" {
		return s.root.Remove(shallowFile) // the checkout is whole now
	}
	return held.move(0, shallowFile)
}

// readIfThere reads a file; one that does not exist is empty.
func readIfThere(root *os.Root, name string) (string, error) {
	content, err := root.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(content), err
}

func sameLines(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// headOf reads what a repository has checked out, in a git directory of our own.
func headOf(gitDir string) (ref plumbing.ReferenceName, oid plumbing.Hash, err error) {
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return "", oid, err
	}
	defer root.Close()
	content, err := root.ReadFile("HEAD")
	if err != nil {
		return "", oid, err
	}
	text := strings.TrimSpace(string(content))
	target, symbolic := strings.CutPrefix(text, "ref:")
	if !symbolic {
		return "", plumbing.NewHash(text), nil
	}
	ref = plumbing.ReferenceName(strings.TrimSpace(target))
	if content, err = root.ReadFile(ref.String()); err == nil {
		return ref, plumbing.NewHash(strings.TrimSpace(string(content))), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return ref, oid, err
	}
	err = scanPacked(root, func(r refLine) error {
		if string(r.name) == ref.String() {
			oid = r.hash()
		}
		return nil
	})
	return ref, oid, err
}
