package pack

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-git/go-git/v5/plumbing"
)

// links are the objects that the objects of a pack name. They are remembered by
// the beginning of their hashes: that is enough to see that one is missing, and
// a third of the memory.
type links struct {
	has     func(plumbing.Hash) (bool, error)
	shallow map[plumbing.Hash]bool
	// named tells of each whether it must be in the pack, for it is not here.
	named map[uint64]bool
}

func beginning(h plumbing.Hash) uint64 { return binary.BigEndian.Uint64(h[:]) }

func (l *links) add(h plumbing.Hash) error {
	key := beginning(h)
	if _, known := l.named[key]; known {
		return nil
	}
	here := false
	if l.has != nil {
		var err error
		if here, err = l.has(h); err != nil {
			return err
		}
	}
	l.named[key] = !here
	return nil
}

// of adds what an object names.
func (l *links) of(kind uint8, h plumbing.Hash, content []byte) error {
	switch kind {
	case typeCommit:
		return l.ofCommit(h, content)
	case typeTree:
		return l.ofTree(content)
	case typeTag:
		target, _, ok := line(content, "object ")
		if !ok {
			return ErrDamaged
		}
		return l.add(target)
	}
	return nil
}

func (l *links) ofCommit(h plumbing.Hash, content []byte) error {
	tree, rest, ok := line(content, "tree ")
	if !ok {
		return ErrDamaged
	}
	if err := l.add(tree); err != nil || l.shallow[h] {
		return err
	}
	for {
		parent, after, ok := line(rest, "parent ")
		if !ok {
			return nil
		}
		if err := l.add(parent); err != nil {
			return err
		}
		rest = after
	}
}

// line reads a line of a keyword and a hash.
func line(content []byte, keyword string) (h plumbing.Hash, rest []byte, ok bool) {
	const digits = 2 * len(h)
	content, ok = bytes.CutPrefix(content, []byte(keyword))
	if !ok || len(content) <= digits || content[digits] != '\n' {
		return h, nil, false
	}
	if _, err := hex.Decode(h[:], content[:digits]); err != nil {
		return h, nil, false
	}
	return h, content[digits+1:], true
}

func (l *links) ofTree(content []byte) error {
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte(" "))
		if !ok {
			return ErrDamaged
		}
		_, rest, ok = bytes.Cut(rest, []byte{0})
		var h plumbing.Hash
		if !ok || len(rest) < len(h) {
			return ErrDamaged
		}
		content = rest[copy(h[:], rest):]
		if string(mode) == "160000" {
			continue // a commit of another repository
		}
		if err := l.add(h); err != nil {
			return err
		}
	}
	return nil
}

// complete reports an object that is named and neither here nor in the pack.
func (l *links) complete(e *entries) error {
	for _, piece := range e.pieces {
		for i := range piece {
			delete(l.named, beginning(piece[i].hash))
		}
	}
	for _, missing := range l.named {
		if missing {
			return ErrIncomplete
		}
	}
	return nil
}
