package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/hash"
)

// check decides what becomes of each path, and changes nothing.
func (w *writer) check(changes []change) error {
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.path, b.path) })
	w.gone, w.filled = map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		if !c.new.exists() {
			w.gone[c.path] = true
			continue
		}
		for dir := parent(c.path); dir != "" && !w.filled[dir]; dir = parent(dir) {
			w.filled[dir] = true
		}
	}
	w.steps = make([]step, 0, len(changes))
	for _, c := range changes {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		s, err := w.plan(c)
		if err != nil {
			return err
		}
		if s.touched {
			w.steps = append(w.steps, s)
		}
	}
	return nil
}

// plan decides about one path. Of the index and of the file, each must be as the
// old tree or as the new one has it.
func (w *writer) plan(c change) (step, error) {
	s := step{change: c, entry: w.index.find(c.path)}
	switch e := s.entry; {
	case e != nil && is(e, c.new), e == nil && !c.new.exists():
		return s, nil // done before
	case e != nil && !is(e, c.old), e == nil && c.old.exists():
		return s, ErrConflict
	case e == nil && !w.index.free(c.path, w.gone):
		return s, ErrConflict
	}
	s.touched = true
	if skip := s.entry != nil && s.entry.SkipWorktree; skip || s.entry == nil && !w.Cone.holds(c.path) {
		s.entry = skipped(c)
		return s, w.present(c.new)
	}
	if err := w.planFile(&s); err != nil {
		return s, err
	}
	if !s.write {
		return s, nil
	}
	return s, w.present(c.new)
}

// present checks that a blob is in the store before anything is changed.
func (w *writer) present(n node) error {
	if w.Fresh || !n.blob() {
		return nil
	}
	return missing(w.Objects.HasEncodedObject(n.hash))
}

func (w *writer) planFile(s *step) error {
	old := s.entry
	if s.entry = nil; s.new.exists() {
		s.entry = newEntry(s.change, nil)
	}
	in, err := w.dirs.enter(s.path, false)
	var by *blocked
	if errors.As(err, &by) && (w.gone[by.path] || !s.new.exists()) {
		in, err = nil, nil
	} else if by != nil {
		err = ErrConflict
	}
	if err != nil {
		return err
	}
	s.write = s.new.exists()
	if in == nil {
		return nil
	}
	info, err := in.Lstat(base(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.planOver(s, in, info, old)
}

// planOver decides about a path where something is.
func (w *writer) planOver(s *step, in *os.Root, info fs.FileInfo, old *entry) error {
	if info.IsDir() {
		switch {
		case s.new.mode == modeModule:
			return nil
		case s.old.mode == modeModule && !s.new.exists() && !w.filled[s.path]:
			s.remove = true // if it is empty
			return nil
		case s.old.mode != modeModule && !s.new.exists():
			return nil // the file has gone already
		}
		return w.onlyGone(in, base(s.path), s.path)
	}
	if s.new.mode == modeModule && !s.old.blob() {
		return ErrConflict
	}
	same, err := w.matches(in, info, s.old, old)
	if err != nil {
		return err
	}
	if same {
		s.remove = !s.new.blob()
		return nil
	}
	if same, err = w.matches(in, info, s.new, nil); err != nil {
		return err
	}
	if !same {
		return ErrConflict
	}
	s.write = false
	s.entry = newEntry(s.change, info)
	return nil
}

// onlyGone checks that all files in a directory are about to go.
func (w *writer) onlyGone(in *os.Root, name, path string) error {
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	sub, err := openDir(in, name, info)
	if err != nil {
		return err
	}
	defer sub.Close()
	entries, err := list(sub)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := path + "/" + e.Name()
		if e.IsDir() {
			if err := w.onlyGone(sub, e.Name(), below); err != nil {
				return err
			}
		} else if !w.gone[below] {
			return ErrConflict
		}
	}
	return nil
}

// free reports whether the index has nothing that a new path would be a
// directory of, or a file in.
func (i *index) free(path string, gone map[string]bool) bool {
	for dir := parent(path); dir != ""; dir = parent(dir) {
		if i.find(dir) != nil && !gone[dir] {
			return false
		}
	}
	at, _ := slices.BinarySearchFunc(i.entries, path+"/", func(e *entry, path string) int { return strings.Compare(e.Name, path) })
	for ; at < len(i.entries) && strings.HasPrefix(i.entries[at].Name, path+"/"); at++ {
		if !gone[i.entries[at].Name] {
			return false
		}
	}
	return true
}

func is(e *entry, n node) bool { return uint32(e.Mode) == n.mode && e.Hash == n.hash }

// skipped is the entry of a file that is not checked out.
func skipped(c change) *entry {
	if !c.new.exists() {
		return nil
	}
	e := newEntry(c, nil)
	e.SkipWorktree = true
	return e
}

// newEntry is the entry of a file as it is on disk; info is nil for one that is
// not there, or not yet.
func newEntry(c change, info fs.FileInfo) *entry {
	e := &entry{Name: c.path, Mode: filemode.FileMode(c.new.mode), Hash: c.new.hash}
	if info != nil {
		e.ModifiedAt, e.Size = info.ModTime(), uint32(info.Size())
		stat(e, info)
	}
	return e
}

// matches reports whether a file is as a tree has it. An entry of the index that
// says the same, and that the file has not changed since, is believed: it holds
// for files that are stored in another form as well.
func (w *writer) matches(in *os.Root, info fs.FileInfo, n node, e *entry) (bool, error) {
	switch {
	case !n.blob():
		return false, nil
	case n.mode == modeSymlink && !w.NoSymlinks:
		if info.Mode().Type() != fs.ModeSymlink {
			return false, nil
		}
		target, err := in.Readlink(info.Name())
		return err == nil && plumbing.ComputeHash(plumbing.BlobObject, []byte(target)) == n.hash, err
	case !info.Mode().IsRegular():
		return false, nil
	case !w.NoFileMode && n.mode != modeSymlink && (info.Mode()&0o100 != 0) != (n.mode == modeExec):
		return false, nil
	case e != nil && is(e, n) && w.unchanged(e, info):
		return true, nil
	}
	return hashIs(in, info, n.hash)
}

// unchanged is what git takes for proof: the same times, size and place on disk,
// and not written at the same moment as the index.
func (w *writer) unchanged(e *entry, info fs.FileInfo) bool {
	now := entry{ModifiedAt: info.ModTime(), Size: uint32(info.Size())}
	stat(&now, info)
	return now.ModifiedAt.Equal(e.ModifiedAt) && now.CreatedAt.Equal(e.CreatedAt) && now.Size == e.Size &&
		now.Inode == e.Inode && e.ModifiedAt.Before(w.index.modTime)
}

// hashIs reports whether a regular file holds a blob.
func hashIs(in *os.Root, info fs.FileInfo, want plumbing.Hash) (bool, error) {
	file, err := in.OpenFile(info.Name(), os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return false, err
	}
	defer file.Close()
	if got, err := file.Stat(); err != nil || !os.SameFile(info, got) {
		return false, err
	}
	h := hash.New(hash.CryptoType)
	io.WriteString(h, "blob "+strconv.FormatInt(info.Size(), 10)+"\x00")
	if n, err := io.Copy(h, file); err != nil || n != info.Size() {
		return false, err
	}
	return plumbing.Hash(h.Sum(nil)) == want, nil
}
