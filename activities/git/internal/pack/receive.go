// Package pack takes packs in from senders that nobody trusts, and makes packs
// to send.
//
// A pack on its way in is written to disk while it is read, and nothing of it is
// expanded before its declared size was looked at: blobs pass through a small
// buffer whatever their size, and everything else that must be in memory as a
// whole, deltas and what they are applied to included, is bounded by a share of
// the memory that may be used. What a pack says is checked by its checksums; that
// it is complete, by looking for every object that one of its objects names.
package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// Limits bound what a pack may take. A limit of 0 is none.
type Limits struct {
	// Memory in bytes.
	Memory int64
	// Disk is how many bytes the pack may have, and each object of it.
	Disk int64
	// Objects is how many objects the pack may hold.
	Objects int64
}

// Kinds of a [LimitError].
const (
	LimitMemory  = "memory"
	LimitDisk    = "disk"
	LimitObjects = "objects"
)

// LimitError says that a pack would exceed one of the [Limits].
type LimitError struct{ Limit string }

func (e *LimitError) Error() string {
	return fmt.Sprintf("pack: it takes more than the limit of %s allows", e.Limit)
}

var (
	// ErrDamaged is the error of a pack that cannot be what its sender has.
	ErrDamaged = errors.New("pack: damaged")
	// ErrIncomplete is the error of a pack in which an object names one that is
	// neither in the pack nor here.
	ErrIncomplete = errors.New("pack: an object is missing")
)

// Options of a pack that is received.
type Options struct {
	Limits
	// Dir is where the pack is kept until it is installed.
	Dir string
	// Has reports whether an object is here already. Nil says that none is.
	Has func(plumbing.Hash) (bool, error)
	// Shallow are commits whose parents need not be here.
	Shallow map[plumbing.Hash]bool
	// Counted is told how many objects the pack says it holds, Scanned that one
	// more was received, Resolving how many of them are deltas, and Resolved that
	// one more of these was expanded. Each may be nil.
	Counted, Resolving func(int)
	Scanned, Resolved  func()
}

// object is the share of the memory that one object may take that has to be in
// memory as a whole.
func (o *Options) object() int64 {
	if o.Memory == 0 {
		return 1 << 30
	}
	return o.Memory / 5
}

// Pack is a pack that was received whole and is not installed yet.
type Pack struct {
	// Objects is how many it holds.
	Objects int
	// Bytes is its size.
	Bytes int64

	pack, index string // paths
	sum         plumbing.Hash
}

// Receive reads one pack and checks it. Errors of r are returned as they are; an
// end of r before that of the pack is io.ErrUnexpectedEOF. What is left of a pack
// that could not be received is removed.
func Receive(ctx context.Context, r io.Reader, o Options) (p *Pack, err error) {
	file, err := os.CreateTemp(o.Dir, "pack-*.pack")
	if err != nil {
		return nil, err
	}
	p = &Pack{pack: file.Name()}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			p.Discard()
			p = nil
		}
	}()
	x := newIndexer(ctx, o)
	if p.sum, p.Bytes, err = x.scan(r, file); err != nil {
		return p, err
	}
	if err = x.resolve(file); err != nil {
		return p, err
	}
	if err = x.links.complete(&x.entries); err != nil {
		return p, err
	}
	p.Objects = x.entries.len()
	if err = file.Sync(); err != nil {
		return p, err
	}
	p.index, err = x.writeIndex(o.Dir, p.sum)
	return p, err
}

// Install moves the pack into an object store, whose directory of packs is dir.
// The index comes last, for with it the pack is seen.
func (p *Pack) Install(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	base := filepath.Join(dir, "pack-"+p.sum.String())
	for _, move := range [][2]string{{p.pack, base + ".pack"}, {p.index, base + ".idx"}} {
		if err := os.Chmod(move[0], 0o444); err != nil {
			return err
		}
		if err := os.Rename(move[0], move[1]); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Discard removes a pack that was not installed.
func (p *Pack) Discard() {
	for _, path := range []string{p.pack, p.index} {
		if path != "" {
			os.Remove(path)
		}
	}
}
