package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
)

// lockedIndex is the index of a checkout under its lock, and a copy to work on.
type lockedIndex struct {
	held *heldLocks
	// name is the index and copyName the copy, in the root; copy is its path.
	name, copyName, copy string
	root                 *os.Root
}

// lockIndex takes index.lock as git does, and copies the index with its time:
// git takes files that are younger than the index for changed.
func lockIndex(s *shadow) (*lockedIndex, error) {
	rel, err := filepath.Rel(s.checkout.common, s.checkout.gitDir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, refuse(policies.ReasonFormat, "G3/checkout", "the worktree's git directory is not in its main repository; add the worktree anew with \"git worktree add\"")
	}
	name := path.Join(filepath.ToSlash(rel), "index")
	held, err := holdLocks(s.root, []string{name + ".lock"})
	if err != nil {
		return nil, err
	}
	x := &lockedIndex{held: held, name: name, copyName: path.Join(s.name, "index"), copy: filepath.Join(s.dir, "index"), root: s.root}
	if err = held.take(0, ""); errors.Is(err, fs.ErrExist) {
		err = errIndexLocked
	}
	if err == nil {
		err = x.copyIndex()
	}
	if err == nil {
		err = copyBeside(s, path.Dir(name))
	}
	if err != nil {
		held.release()
		return nil, err
	}
	return x, nil
}

func (x *lockedIndex) copyIndex() error {
	err := copyFile(x.root, x.name, x.copyName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := x.root.Stat(x.name)
	if err != nil {
		return err
	}
	return x.root.Chtimes(x.copyName, info.ModTime(), info.ModTime())
}

// copyBeside copies what belongs to an index: the patterns of a sparse checkout,
// and the files that a split index shares.
func copyBeside(s *shadow, gitDir string) error {
	names, err := fs.Glob(s.root.FS(), path.Join(gitDir, "sharedindex.*"))
	if err != nil {
		return err
	}
	for _, name := range append(names, path.Join(gitDir, sparseFile)) {
		err := copyFile(s.root, name, path.Join(s.name, strings.TrimPrefix(name, gitDir+"/")))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func copyFile(root *os.Root, from, to string) error {
	in, err := root.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}

// commit puts the copy in the place of the index.
func (x *lockedIndex) commit() error {
	if err := syncAll(x.copy); err != nil {
		return err
	}
	return x.root.Rename(x.copyName, x.name)
}
