package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// apply does what was planned: first what goes, the deepest first, then what
// comes.
func (w *writer) apply() error {
	if w.Planned != nil {
		w.Planned(len(w.steps))
	}
	emptied := map[string]bool{}
	for _, s := range slices.Backward(w.steps) {
		if !s.remove {
			continue
		}
		if err := w.remove(&s, emptied); err != nil {
			return err
		}
	}
	if err := w.prune(emptied); err != nil {
		return err
	}
	for i := range w.steps {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if s := &w.steps[i]; s.write {
			if err := w.write(s); err != nil {
				return err
			}
		}
		if w.Wrote != nil {
			w.Wrote()
		}
	}
	return nil
}

func (w *writer) remove(s *step, emptied map[string]bool) error {
	in, err := w.dirs.enter(s.path, false)
	if in == nil || err != nil {
		return conflictIfBlocked(err)
	}
	err = in.Remove(base(s.path))
	switch {
	case err == nil:
		emptied[parent(s.path)] = true
	case errors.Is(err, fs.ErrNotExist), s.old.mode == modeModule:
		return nil // the files of another repository stay
	}
	return err
}

// prune removes directories that are empty now, and those above them.
func (w *writer) prune(emptied map[string]bool) error {
	w.dirs.reset()
	paths := make([]string, 0, len(emptied))
	for path := range emptied {
		paths = append(paths, path)
	}
	slices.SortFunc(paths, func(a, b string) int { return strings.Compare(b, a) })
	for _, path := range paths {
		for ; path != ""; path = parent(path) {
			in, err := w.dirs.enter(path, false)
			if err != nil {
				return conflictIfBlocked(err)
			}
			if in == nil {
				continue
			}
			if err := in.Remove(base(path)); errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				break // not empty, or not ours to remove
			}
		}
	}
	return nil
}

// conflictIfBlocked is the error of a file that appeared where a directory was.
func conflictIfBlocked(err error) error {
	var in *blocked
	if errors.As(err, &in) {
		return ErrConflict
	}
	return err
}

// write writes one file and notes in its entry what is on disk then.
func (w *writer) write(s *step) error {
	in, err := w.dirs.enter(s.path, true)
	if err != nil {
		return conflictIfBlocked(err)
	}
	name := base(s.path)
	info, err := in.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir() && s.new.blob():
		if err := removeEmpty(in, name, info); err != nil {
			return err
		}
	}
	if s.new.mode == modeModule {
		if err := in.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil // git keeps nothing of a repository in another
	}
	if err := w.place(s.new, in, name); err != nil {
		return err
	}
	if info, err = in.Lstat(name); err != nil {
		return err
	}
	s.entry = newEntry(s.change, info)
	return nil
}

// removeEmpty removes a directory in which there are directories only.
func removeEmpty(in *os.Root, name string, info fs.FileInfo) error {
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
		info, err := sub.Lstat(e.Name())
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return ErrConflict
		}
		if err := removeEmpty(sub, e.Name(), info); err != nil {
			return err
		}
	}
	return in.Remove(name)
}

// Names of a file that is not finished: in the work directory, and beside its
// place where the work directory is on another disk.
const (
	unfinished     = "file"
	unfinishedHere = ".holdfast-unfinished"
)

// place puts a file or a link into its place, at once.
func (w *writer) place(n node, in *os.Root, name string) error {
	if w.Fresh {
		return w.create(n, in, name)
	}
	if err := w.create(n, w.Work, unfinished); err != nil {
		return err
	}
	err := rename(w.Work, unfinished, in, name)
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	w.Work.Remove(unfinished)
	if err := in.Remove(unfinishedHere); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := w.create(n, in, unfinishedHere); err != nil {
		return err
	}
	return in.Rename(unfinishedHere, name)
}

// create makes a file or a link where nothing is.
func (w *writer) create(n node, in *os.Root, name string) (err error) {
	obj, err := w.Objects.EncodedObject(plumbing.BlobObject, n.hash)
	if err != nil {
		return missing(err)
	}
	if w.spent += obj.Size(); w.Disk > 0 && w.spent > w.Disk {
		return ErrDisk
	}
	r, err := obj.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	if n.mode == modeSymlink && !w.NoSymlinks {
		return link(r, obj.Size(), in, name)
	}
	perm := fs.FileMode(0o666)
	if n.mode == modeExec {
		perm = 0o777
	}
	file, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return ErrConflict
	}
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			in.Remove(name)
		}
	}()
	written, err := io.Copy(file, r)
	if err == nil && written != obj.Size() {
		err = ErrMissing
	}
	return err
}

// link makes a symbolic link. Where it leads is its own affair: nothing is ever
// written through it.
func link(r io.Reader, size int64, in *os.Root, name string) error {
	if size == 0 || size > policies.MaxTreePath {
		return ErrImpossible
	}
	target, err := io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return err
	}
	if strings.ContainsRune(string(target), 0) {
		return ErrImpossible
	}
	return in.Symlink(string(target), name)
}

// entries is the index with what was done.
func (w *writer) entries() []*entry {
	old, out := w.index.entries, make([]*entry, 0, len(w.index.entries)+len(w.steps))
	for _, s := range w.steps {
		for len(old) > 0 && old[0].Name < s.path {
			out, old = append(out, old[0]), old[1:]
		}
		if len(old) > 0 && old[0].Name == s.path {
			old = old[1:]
		}
		if s.entry != nil {
			out = append(out, s.entry)
		}
	}
	return append(out, old...)
}
