package git

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// packAbove is how many new refs are written one file each. More of them go into
// packed-refs together, as git does it for a clone: a million files take minutes.
const packAbove = 1000

// moveRefs moves all refs of a fetch or none, and sorts updates by name. It takes
// the locks that the git program takes, ref.lock beside each ref, looks under the
// locks whether the refs are still what the plan was made from, and only then
// renames the locks into place. A disk that fails, or a worker that dies, between
// two renames leaves some refs moved; each of them names an object that is stored.
//
// Many new refs are written into packed-refs, under its lock. git makes a ref
// without that lock, so one that it makes at this very moment wins over ours.
func moveRefs(c *checkout, updates []update) error {
	if len(updates) == 0 {
		return nil
	}
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()
	sortUpdates(updates)
	loose, packed := splitUpdates(updates)
	locks := make([]string, 0, len(loose)+1)
	for _, u := range loose {
		locks = append(locks, u.name.String()+".lock")
	}
	if len(packed) > 0 {
		locks = append(locks, packedRefs+".lock")
	}
	held, err := holdLocks(root, locks)
	if err != nil {
		return err
	}
	defer held.release()
	for i, u := range loose {
		if err := root.MkdirAll(path.Dir(u.name.String()), 0o777); err != nil {
			return namesError(err)
		}
		if err := held.take(i, u.new.String()+"\n"); err != nil {
			return lockError(err)
		}
	}
	if len(packed) > 0 {
		if err := held.take(len(loose), ""); err != nil {
			return lockError(err)
		}
	}
	if err := unchanged(root, updates); err != nil {
		return err
	}
	return commitRefs(root, held, loose, packed)
}

func sortUpdates(updates []update) {
	slices.SortFunc(updates, func(a, b update) int { return strings.Compare(string(a.name), string(b.name)) })
}

// splitUpdates says which refs are written as files and which into packed-refs.
func splitUpdates(updates []update) (loose, packed []update) {
	fresh := 0
	for _, u := range updates {
		if u.old.IsZero() {
			fresh++
		}
	}
	if fresh <= packAbove {
		return updates, nil
	}
	packed = make([]update, 0, fresh)
	for _, u := range updates {
		if u.old.IsZero() {
			packed = append(packed, u)
		} else {
			loose = append(loose, u)
		}
	}
	return loose, packed
}

func lockError(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return errRefLocked
	}
	return err
}

// namesError is what it means that a file stands where a directory is to be.
func namesError(err error) error {
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrExist) {
		return errRefNames
	}
	return err
}

// commitRefs puts the new values into place.
func commitRefs(root *os.Root, held *heldLocks, loose, packed []update) error {
	for _, u := range loose {
		if err := clearEmptyDirs(root, u.name.String()); err != nil {
			return err
		}
	}
	if len(packed) > 0 {
		name := path.Join(held.dir, packedRefs)
		if err := writePacked(root, name, packed); err != nil {
			return err
		}
		if err := root.Rename(name, packedRefs); err != nil {
			return err
		}
	}
	for i, u := range loose {
		if err := held.move(i, u.name.String()); err != nil {
			return err
		}
	}
	return nil
}

// writePacked writes a file with what packed-refs holds and new refs besides.
func writePacked(root *os.Root, name string, fresh []update) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	refs := make([]refValue, len(fresh))
	for i, u := range fresh {
		refs[i] = refValue{string(u.name), u.new}
	}
	err = mergePacked(root, f, refs)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// unchanged checks that refs, sorted by name, are still what they were when the
// fetch began.
func unchanged(root *os.Root, updates []update) error {
	now := make([]plumbing.Hash, len(updates))
	loose := make([]bool, len(updates))
	missing := "" // a directory in which there is nothing
	for i, u := range updates {
		dir := path.Dir(u.name.String())
		if dir == missing {
			continue
		}
		content, err := root.ReadFile(u.name.String())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if _, err := root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
				missing = dir
			}
			continue
		case err != nil && isDirectory(root, u.name.String()):
			continue
		case err != nil:
			return namesError(err)
		}
		text := strings.TrimSpace(string(content))
		if !plumbing.IsHash(text) {
			return errChanged // a symbolic ref has taken its place
		}
		now[i], loose[i] = plumbing.NewHash(text), true
	}
	err := scanPacked(root, func(r refLine) error {
		if i, ok := findUpdate(updates, r.name); ok && !loose[i] {
			now[i] = r.hash()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i, u := range updates {
		if now[i] != u.old {
			return errChanged
		}
	}
	return nil
}

// findUpdate looks a name up in sorted updates.
func findUpdate(updates []update, name []byte) (int, bool) {
	return slices.BinarySearchFunc(updates, name, func(u update, name []byte) int {
		return -bytes.Compare(name, []byte(u.name))
	})
}

func isDirectory(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.IsDir()
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

// checkedOut are the branches that a checkout and its other worktrees have
// checked out.
func checkedOut(c *checkout) (map[plumbing.ReferenceName]bool, error) {
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	heads, err := fs.Glob(root.FS(), "worktrees/*/HEAD")
	if err != nil {
		return nil, err
	}
	if !c.config.Core.IsBare {
		heads = append(heads, "HEAD")
	}
	branches := map[plumbing.ReferenceName]bool{}
	for _, name := range heads {
		content, err := root.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if target, ok := strings.CutPrefix(string(content), "ref:"); ok {
			branches[plumbing.ReferenceName(strings.TrimSpace(target))] = true
		}
	}
	return branches, nil
}

// refuseCheckedOut refuses updates that would move a branch from under its files.
func refuseCheckedOut(c *checkout, updates []update) error {
	branches, err := checkedOut(c)
	if err != nil {
		return err
	}
	for _, u := range updates {
		if branches[u.name] && !u.old.IsZero() {
			return errCheckedOut
		}
	}
	return nil
}

// checkoutError says of an error met while writing into a checkout that it was
// there that it was met.
func checkoutError(err error) error {
	var local *localError
	if err == nil || errors.As(err, &local) || localFault(err) != nil {
		return err
	}
	return refuse(policies.ReasonFormat, "G3/checkout", "the checkout could not be read or written; see whether its .git directory, its objects and its refs are directories inside it, and run \"git fsck\" in it")
}
