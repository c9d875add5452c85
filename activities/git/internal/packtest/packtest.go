// Package packtest makes packs for tests, such as no honest program would send.
package packtest

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
)

// Pack is a pack that is being made.
type Pack struct {
	body    bytes.Buffer
	objects uint32
}

// Whole adds an object that is no delta and returns where it begins.
func (p *Pack) Whole(kind plumbing.ObjectType, content []byte) (offset int64) {
	return p.Add(kind, int64(len(content)), nil, bytes.NewReader(content))
}

// Delta adds a delta on the object that begins at base.
func (p *Pack) Delta(base int64, delta []byte) (offset int64) {
	return p.LongDelta(base, int64(len(delta)), bytes.NewReader(delta))
}

// LongDelta is Delta for a delta of size bytes that is read.
func (p *Pack) LongDelta(base, size int64, delta io.Reader) (offset int64) {
	return p.Add(plumbing.OFSDeltaObject, size, back(p.next()-base), delta)
}

// Add adds an object with a size that need not be that of its content. Between
// stands before the content: nothing, or the name of a base.
func (p *Pack) Add(kind plumbing.ObjectType, size int64, between []byte, content io.Reader) (offset int64) {
	offset = p.next()
	p.objects++
	b := byte(kind)<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.body.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.body.WriteByte(b)
	p.body.Write(between)
	z := zlib.NewWriter(&p.body)
	if _, err := io.Copy(z, content); err != nil {
		panic(err) // a buffer takes everything
	}
	z.Close()
	return offset
}

const header = 12

func (p *Pack) next() int64 { return header + int64(p.body.Len()) }

// Bytes is the pack.
func (p *Pack) Bytes() []byte { return p.Claiming(p.objects) }

// Claiming is the pack with a header that says how many objects it has.
func (p *Pack) Claiming(objects uint32) []byte {
	out := append([]byte("PACK"), 0, 0, 0, 2)
	out = binary.BigEndian.AppendUint32(out, objects)
	out = append(out, p.body.Bytes()...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// back names the base of a delta by how far back it begins.
func back(distance int64) []byte {
	out := []byte{byte(distance & 0x7f)}
	for distance >>= 7; distance > 0; distance >>= 7 {
		distance--
		out = append([]byte{0x80 | byte(distance&0x7f)}, out...)
	}
	return out
}

// Size is one of the two sizes that a delta begins with.
func Size(n int64) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, 0x80|byte(n&0x7f))
	}
	return append(out, byte(n))
}

// Copies is a delta that makes n copies of all of a base of size bytes.
func Copies(size int64, n int) []byte {
	out := append(Size(size), Size(size*int64(n))...)
	for range n {
		out = append(out, 0xf0, byte(size), byte(size>>8), byte(size>>16))
	}
	return out
}

// Entry is one of a tree.
type Entry struct {
	Mode, Name string
	Hash       plumbing.Hash
}

// Tree is the content of a tree, its entries in the order given.
func Tree(entries ...Entry) []byte {
	var out []byte
	for _, e := range entries {
		out = append(out, e.Mode+" "+e.Name+"\x00"...)
		out = append(out, e.Hash[:]...)
	}
	return out
}

// Commit is the content of a commit.
func Commit(tree plumbing.Hash, parents ...plumbing.Hash) []byte {
	out := []byte("tree " + tree.String() + "\n")
	for _, p := range parents {
		out = append(out, "parent "+p.String()+"\n"...)
	}
	return append(out, "author A <a@example.invalid> 1700000000 +0000\ncommitter A <a@example.invalid> 1700000000 +0000\n\nx\n"...)
}

// Zeros reads as n zero bytes.
func Zeros(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
