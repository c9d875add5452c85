package pack

import (
	"bufio"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// Source is the object store that a pack is made from.
type Source interface {
	EncodedObject(plumbing.ObjectType, plumbing.Hash) (plumbing.EncodedObject, error)
	// DeltaObject is EncodedObject for what is a plumbing.DeltaObject where it is
	// stored as one.
	DeltaObject(plumbing.ObjectType, plumbing.Hash) (plumbing.EncodedObject, error)
}

// Write makes a pack of objects. One that the store has as a delta stays one if
// deltas are allowed and its base is in the pack; nothing else is compared, so
// that no more than one object and its delta are in memory. wrote is told of
// every object.
func Write(ctx context.Context, to io.Writer, from Source, objects []plumbing.Hash, deltas bool, wrote func()) error {
	out := &sumWriter{to: bufio.NewWriterSize(to, 64<<10), sum: sha1.New()}
	w := writer{ctx: ctx, out: out, from: from, deltas: deltas, wrote: wrote, zlib: zlib.NewWriter(out), at: make(map[plumbing.Hash]int64, len(objects))}
	for _, h := range objects {
		w.at[h] = waiting
	}
	out.Write(binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(w.at))))
	for _, h := range objects {
		if err := w.object(h); err != nil {
			return err
		}
	}
	out.to.Write(out.sum.Sum(nil))
	return out.to.Flush() // it keeps the first error
}

// States of an object that is not written yet; others are offsets.
const (
	waiting int64 = -1
	begun   int64 = -2
)

type writer struct {
	ctx    context.Context
	out    *sumWriter
	from   Source
	deltas bool
	wrote  func()
	zlib   *zlib.Writer
	at     map[plumbing.Hash]int64
}

func (w *writer) object(h plumbing.Hash) error {
	if w.at[h] != waiting {
		return nil
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.at[h] = begun
	obj, base, err := w.open(h)
	if err != nil {
		return err
	}
	at := w.out.n
	w.at[h] = at
	if base.IsZero() {
		w.out.Write(entryHeader(obj.Type(), obj.Size()))
	} else {
		w.out.Write(appendBack(entryHeader(plumbing.OFSDeltaObject, obj.Size()), at-w.at[base]))
	}
	if err := w.content(obj); err != nil {
		return err
	}
	if w.wrote != nil {
		w.wrote()
	}
	return nil
}

// open reads an object, as a delta if that is how it can be sent: its base is
// written first then, unless it is itself waiting for this object.
func (w *writer) open(h plumbing.Hash) (obj plumbing.EncodedObject, base plumbing.Hash, err error) {
	if !w.deltas {
		obj, err = w.from.EncodedObject(plumbing.AnyObject, h)
		return obj, base, err
	}
	obj, err = w.from.DeltaObject(plumbing.AnyObject, h)
	delta, ok := obj.(plumbing.DeltaObject)
	if err != nil || !ok {
		return obj, base, err
	}
	base = delta.BaseHash()
	if at, sent := w.at[base]; !sent || at == begun {
		obj, err = w.from.EncodedObject(plumbing.AnyObject, h)
		return obj, plumbing.ZeroHash, err
	}
	return obj, base, w.object(base)
}

func (w *writer) content(obj plumbing.EncodedObject) (err error) {
	r, err := obj.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	w.zlib.Reset(w.out)
	n, err := io.Copy(w.zlib, r)
	if err != nil {
		return err
	}
	if n != obj.Size() {
		return ErrDamaged
	}
	return w.zlib.Close()
}

func entryHeader(kind plumbing.ObjectType, size int64) []byte {
	var out []byte
	b := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		out = append(out, b|0x80)
		b = byte(size & 0x7f)
	}
	return append(out, b)
}

// appendBack names the base of a delta by how far back it begins.
func appendBack(out []byte, distance int64) []byte {
	var digits [10]byte
	i := len(digits) - 1
	digits[i] = byte(distance & 0x7f)
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		i--
		digits[i] = 0x80 | byte(distance&0x7f)
	}
	return append(out, digits[i:]...)
}

// sumWriter counts and sums what it writes. Its errors are kept by the buffer.
type sumWriter struct {
	to  *bufio.Writer
	sum hash.Hash
	n   int64
}

func (s *sumWriter) Write(p []byte) (int, error) {
	s.sum.Write(p)
	s.n += int64(len(p))
	return s.to.Write(p)
}
