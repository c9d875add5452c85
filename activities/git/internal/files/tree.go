package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// Modes of entries.
const (
	modeTree    uint32 = 0o040000
	modeFile    uint32 = 0o100644
	modeExec    uint32 = 0o100755
	modeSymlink uint32 = 0o120000
	modeModule  uint32 = 0o160000
)

// node is what a tree has under a name. The zero node is nothing.
type node struct {
	mode uint32
	hash plumbing.Hash
}

func (n node) exists() bool { return n.mode != 0 }

// blob reports whether the node is a file or a symbolic link.
func (n node) blob() bool { return n.mode == modeFile || n.mode == modeExec || n.mode == modeSymlink }

type named struct {
	name string
	node
}

// change is a path that differs between two trees, trees themselves excepted.
type change struct {
	path     string
	old, new node
}

// differ finds the changes between two trees. The old tree may hold paths that
// are not safe: these were never written, and are passed over.
type differ struct {
	Options
	ctx     context.Context
	changes []change
	used    int64 // bytes of memory
}

// What a change, with its entry in the index, and a visit of a tree cost. Trees
// are counted, for few of them can stand for endless visits.
const (
	changeMemory = 300
	treeMemory   = 60
)

func (d *differ) charge(n int) error {
	d.used += int64(n)
	if d.Memory > 0 && d.used > d.Memory/2 {
		return ErrMemory
	}
	return nil
}

func (d *differ) trees(prefix string, old, new plumbing.Hash) error {
	if old == new {
		return nil
	}
	if err := d.ctx.Err(); err != nil {
		return err
	}
	before, err := d.read(old)
	if err != nil {
		return err
	}
	after, err := d.read(new)
	if err != nil {
		return err
	}
	for len(before) > 0 || len(after) > 0 {
		var a, b named
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].name < after[0].name:
			a, before = before[0], before[1:]
		case len(before) == 0 || after[0].name < before[0].name:
			b, after = after[0], after[1:]
		default:
			a, before, b, after = before[0], before[1:], after[0], after[1:]
		}
		if a == b {
			continue
		}
		if err := d.pair(prefix, a, b); err != nil {
			return err
		}
	}
	return nil
}

// pair compares what two trees have under one name.
func (d *differ) pair(prefix string, a, b named) error {
	if b.exists() && !safe(prefix, b) {
		return ErrHostile
	}
	if a.exists() && !policies.SafeTreeName(a.name) {
		a.node = node{}
	}
	path := prefix + max(a.name, b.name)
	if err := d.charge(len(path)); err != nil {
		return err
	}
	if a.mode == modeTree || b.mode == modeTree {
		var old, new plumbing.Hash
		if a.mode == modeTree {
			old, a.node = a.hash, node{}
		}
		if b.mode == modeTree {
			new, b.node = b.hash, node{}
		}
		if err := d.trees(path+"/", old, new); err != nil {
			return err
		}
	}
	if !a.exists() && !b.exists() {
		return nil
	}
	d.changes = append(d.changes, change{path, a.node, b.node})
	return d.charge(changeMemory)
}

// maxName is the longest name that file systems hold, in bytes.
const maxName = 255

func safe(prefix string, n named) bool {
	return len(prefix)+len(n.name) <= policies.MaxTreePath && len(n.name) <= maxName && policies.SafeTreeName(n.name) && (n.mode != modeSymlink || policies.SafeTreeLink(n.name))
}

// read lists a tree by name. Nothing may have a name twice.
func (d *differ) read(h plumbing.Hash) ([]named, error) {
	if h.IsZero() {
		return nil, nil
	}
	if err := d.charge(treeMemory); err != nil {
		return nil, err
	}
	obj, err := d.Objects.EncodedObject(plumbing.TreeObject, h)
	if err != nil {
		return nil, missing(err)
	}
	if d.Memory > 0 && obj.Size() > d.Memory/5 {
		return nil, ErrMemory
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(io.LimitReader(r, obj.Size()))
	if err != nil {
		return nil, err
	}
	return parseTree(content)
}

func missing(err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return ErrMissing
	}
	return err
}

func parseTree(content []byte) ([]named, error) {
	var out []named
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte(" "))
		if !ok {
			return nil, ErrDamaged
		}
		name, rest, ok := bytes.Cut(rest, []byte{0})
		n := named{name: string(name)}
		if n.mode, ok = canonical(string(mode)), ok && len(rest) >= len(n.hash); !ok || n.mode == 0 || n.name == "" {
			return nil, ErrDamaged
		}
		content = rest[copy(n.hash[:], rest):]
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b named) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, ErrDamaged
		}
	}
	return out, nil
}

// canonical is the mode that git makes of the one in a tree, 0 for none.
func canonical(octal string) uint32 {
	mode, err := strconv.ParseUint(octal, 8, 32)
	if err != nil {
		return 0
	}
	switch mode & 0o170000 {
	case 0o040000:
		return modeTree
	case 0o100000:
		if mode&0o100 != 0 {
			return modeExec
		}
		return modeFile
	case 0o120000:
		return modeSymlink
	case 0o160000:
		return modeModule
	}
	return 0
}
