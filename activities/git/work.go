package git

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// workDir is where, below the common directory of a checkout, an operation keeps
// what is unfinished: nothing of it is elsewhere when a worker is killed, and who
// locks the checkout next removes it.
const workDir = "holdfast/work"

// newWork makes a directory for one piece of work and returns its path in root.
func newWork(root *os.Root) (string, error) {
	if err := root.MkdirAll(workDir, 0o777); err != nil {
		return "", err
	}
	dir := path.Join(workDir, strings.ToLower(rand.Text()))
	return dir, root.Mkdir(dir, 0o777)
}

// sweepWork removes what the workers before left in a checkout, the locks of
// killed ones included. The caller holds the lock of the checkout.
func sweepWork(common string) error {
	root, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), workDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		dir := path.Join(workDir, entry.Name())
		if err := releaseDead(root, dir); err != nil {
			return err
		}
		if err := root.RemoveAll(dir); err != nil {
			return err
		}
	}
	root.Remove(workDir) // empty now; if it stays, that harms nobody
	return err
}

// heldLocks are lock files of git's that we hold, ref.lock and the like. Each is a
// hard link to a file in the work directory, so that those of a killed worker can
// be told from those of a git that runs.
type heldLocks struct {
	root  *os.Root
	dir   string // in the work directory
	paths []string
	taken []bool
}

// lockList is the file in a work directory that names its locks, one a line.
const lockList = "locks"

// holdLocks prepares to take locks, whose paths in root are given.
func holdLocks(root *os.Root, paths []string) (*heldLocks, error) {
	dir, err := newWork(root)
	if err != nil {
		return nil, err
	}
	h := &heldLocks{root: root, dir: dir, paths: paths, taken: make([]bool, len(paths))}
	if err := root.WriteFile(path.Join(dir, lockList), []byte(strings.Join(paths, "\n")), 0o666); err != nil {
		h.release()
		return nil, err
	}
	return h, nil
}

// file is the other name of a lock.
func lockFile(dir string, i int) string { return path.Join(dir, "lock-"+strconv.Itoa(i)) }

// take makes a lock with a content. The error is fs.ErrExist if somebody has it.
func (h *heldLocks) take(i int, content string) error {
	ours := lockFile(h.dir, i)
	if err := writeSynced(h.root, ours, content); err != nil {
		return err
	}
	err := h.root.Link(ours, h.paths[i])
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without hard links: a lock that a killed worker leaves
		// there has to be removed by hand.
		err = writeSynced(h.root, h.paths[i], content)
	}
	h.taken[i] = err == nil
	return err
}

// move makes a lock the file that it locks, and so lets it go.
func (h *heldLocks) move(i int, to string) error {
	err := h.root.Rename(h.paths[i], to)
	if err == nil {
		h.taken[i] = false
	}
	return err
}

// release lets all locks go.
func (h *heldLocks) release() {
	for i, path := range h.paths {
		if h.taken[i] {
			h.root.Remove(path)
		}
	}
	h.root.RemoveAll(h.dir)
}

func writeSynced(root *os.Root, name, content string) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err == nil && content != "" {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// releaseDead removes the locks that a work directory of a dead worker holds.
func releaseDead(root *os.Root, dir string) error {
	list, err := root.ReadFile(path.Join(dir, lockList))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return nil
	}
	if err != nil {
		return err
	}
	for i, name := range strings.Split(string(list), "\n") {
		ours, err := root.Lstat(lockFile(dir, i))
		if err != nil {
			continue
		}
		if there, err := root.Lstat(name); err == nil && os.SameFile(ours, there) {
			if err := root.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}
