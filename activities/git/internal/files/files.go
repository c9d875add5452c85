// Package files brings the files and the index of a checkout from one tree to
// another, where nothing about the trees is trusted.
//
// Everything is looked at before anything is changed: paths that could lead out
// of the checkout or into its .git directory are refused, and files that differ
// from both trees are a conflict. A directory is entered component by component
// and never through a symbolic link. The index is written last, and each file
// takes its place at once, so that the same may be done again after a crash.
package files

import (
	"context"
	"errors"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
)

var (
	// ErrConflict is the error of files, or of an index, that differ from both
	// trees, and of untracked files where tracked ones are to be.
	ErrConflict = errors.New("files: files differ from both trees")
	// ErrHostile is the error of a path that may not be written, found before
	// anything is changed.
	ErrHostile = errors.New("files: a path is not safe")
	// ErrImpossible is the error of a symbolic link that leads to what can be no
	// path.
	ErrImpossible = errors.New("files: a link leads to no path")
	// ErrDamaged is the error of a tree that cannot be read, found before anything
	// is changed.
	ErrDamaged = errors.New("files: a tree is damaged")
	// ErrMissing is the error of an object that is not in the store, or not whole.
	ErrMissing = errors.New("files: an object is missing")
	// ErrMemory and ErrDisk are the errors of trees that would take more than
	// the limits allow.
	ErrMemory = errors.New("files: more files than the memory allows")
	ErrDisk   = errors.New("files: more bytes than the disk limit allows")
	// ErrIndex is the error of an index that cannot be read.
	ErrIndex = errors.New("files: the index cannot be read")
	// ErrSparse is the error of a sparse checkout whose patterns are not those of
	// cone mode.
	ErrSparse = errors.New("files: the sparse patterns are not those of cone mode")
)

// Objects is the store of trees and blobs.
type Objects interface {
	EncodedObject(plumbing.ObjectType, plumbing.Hash) (plumbing.EncodedObject, error)
	HasEncodedObject(plumbing.Hash) error
}

// Options say where and how files are written.
type Options struct {
	// Files is the directory of the files, Git that of the index, whose lock the
	// caller holds.
	Files, Git *os.Root
	// Work is an empty directory for what is unfinished.
	Work    *os.Root
	Objects Objects
	// Fresh says that nobody else has files here and that all of them are thrown
	// away after an error.
	Fresh bool
	// Cone are the directories that are checked out beside the files at the top;
	// nil for all.
	Cone *Cone
	// NoFileMode and NoSymlinks are for file systems without them: core.fileMode
	// and core.symlinks.
	NoFileMode, NoSymlinks bool
	// Memory and Disk bound what the files take, in bytes. 0 is no limit.
	Memory, Disk int64
	// Planned is told how many files change, when nothing has changed yet; Wrote,
	// that one more has. Each may be nil.
	Planned func(int)
	Wrote   func()
}

// Advance brings files and index from the tree from to the tree to. A zero hash
// is the empty tree. What was done already is not done again.
func Advance(ctx context.Context, o Options, from, to plumbing.Hash) error {
	d := differ{ctx: ctx, Options: o}
	if err := d.trees("", from, to); err != nil {
		return err
	}
	index, err := readIndex(o.Git)
	if err != nil {
		return err
	}
	w := &writer{ctx: ctx, Options: o, index: index, dirs: newDirs(o.Files)}
	defer w.dirs.reset()
	if err := w.check(d.changes); err != nil {
		return err
	}
	if err := w.apply(); err != nil {
		return err
	}
	return writeIndex(o.Git, o.Work, w.entries())
}

// writer does one Advance.
type writer struct {
	Options
	ctx   context.Context
	index *index
	dirs  *dirs
	steps []step
	// gone are the paths that the new tree does not have, filled the directories
	// that something new comes into.
	gone, filled map[string]bool
	spent        int64 // bytes written
}

// step is what becomes of one path.
type step struct {
	change
	// remove the old file, write the new one.
	remove, write bool
	// entry is that of the index; nil for none. It is replaced when the file is
	// written.
	entry *entry
	// touched says that entry takes the place of what the index has.
	touched bool
}
