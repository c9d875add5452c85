package git

import (
	"errors"
	"io/fs"
	"os"
	"path"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// moveRefs moves all refs of a fetch or none. It takes the locks that the git
// program takes, ref.lock beside each ref, looks under the locks whether the
// refs are still what the plan was made from, and only then renames the locks
// into place. A disk that fails, or a worker that dies, between two renames
// leaves some refs moved; each of them names an object that is stored.
func moveRefs(c *checkout, updates []update) (err error) {
	if len(updates) == 0 {
		return nil
	}
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()

	if err := writeRefJournal(root, updates); err != nil {
		return err
	}
	locked := make([]string, 0, len(updates))
	defer func() {
		for _, name := range locked {
			root.Remove(name + ".lock")
		}
		root.Remove(refJournal)
	}()
	for _, u := range updates {
		name := u.name.String()
		if err := lockRef(root, name, u.new); err != nil {
			return err
		}
		locked = append(locked, name)
	}
	for _, u := range updates {
		if err := unchanged(c, u); err != nil {
			return err
		}
		if err := clearEmptyDirs(root, u.name.String()); err != nil {
			return err
		}
	}
	for len(locked) > 0 {
		if err := root.Rename(locked[0]+".lock", locked[0]); err != nil {
			return err
		}
		locked = locked[1:]
	}
	return nil
}

// lockRef makes the lock of a ref, with the ref's new content.
func lockRef(root *os.Root, name string, to plumbing.Hash) error {
	if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
		return err
	}
	f, err := root.OpenFile(name+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return errRefLocked
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(to.String() + "\n")
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		root.Remove(name + ".lock")
	}
	return err
}

// unchanged checks that a ref is still what it was when the fetch began.
func unchanged(c *checkout, u update) error {
	now := plumbing.ZeroHash
	ref, err := c.storage.Reference(u.name)
	if err == nil {
		now = ref.Hash()
	} else if !errors.Is(err, plumbing.ErrReferenceNotFound) {
		return err
	}
	if now != u.old || err == nil && ref.Type() != plumbing.HashReference {
		return refuse(policies.ReasonConflict, "G11/changed", "another process moved a ref of the checkout meanwhile; try again")
	}
	return nil
}

// clearEmptyDirs removes the empty directory that a deleted ref may have left
// where a ref is to be.
func clearEmptyDirs(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return err
	}
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() {
			break // Remove says that it is not empty
		}
		if err := clearEmptyDirs(root, path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return root.Remove(name)
}
