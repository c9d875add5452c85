package pack

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"hash"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/go-git/go-git/v5/plumbing"
	githash "github.com/go-git/go-git/v5/plumbing/hash"
)

// hasher makes the names of objects, by a hash that finds attacks on SHA-1.
type hasher struct{ hash.Hash }

func newHasher() hasher { return hasher{githash.New(githash.CryptoType)} }

func (h hasher) begin(kind uint8, size int64) {
	h.Reset()
	var header [32]byte
	b := append(header[:0], plumbing.ObjectType(kind).Bytes()...)
	b = append(b, ' ')
	h.Write(append(strconv.AppendInt(b, size, 10), 0))
}

func (h hasher) end() (sum plumbing.Hash) {
	h.Sum(sum[:0])
	return sum
}

// writeIndex writes the index of a pack, version 2, and returns its path.
func (x *indexer) writeIndex(dir string, sum plumbing.Hash) (path string, err error) {
	order := make([]int32, x.entries.len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return bytes.Compare(x.entries.at(a).hash[:], x.entries.at(b).hash[:]) })
	file, err := os.CreateTemp(dir, "pack-*.idx")
	if err != nil {
		return "", err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	out := bufio.NewWriterSize(file, 64<<10)
	whole := sha1.New()
	x.encode(io.MultiWriter(out, whole), order, sum)
	out.Write(whole.Sum(nil))
	if err := out.Flush(); err != nil { // it keeps the first error
		return "", err
	}
	return file.Name(), file.Sync()
}

// large is the mark of an offset that stands in the table of large ones.
const large = 1 << 31

// encode writes the index but its own checksum. Errors are the writer's, which
// keeps them.
func (x *indexer) encode(w io.Writer, order []int32, sum plumbing.Hash) {
	word := func(v uint32) { w.Write(binary.BigEndian.AppendUint32(nil, v)) }
	w.Write([]byte("\xfftOc"))
	word(2)
	next := 0
	for first := range 256 {
		for next < len(order) && int(x.entries.at(order[next]).hash[0]) == first {
			next++
		}
		word(uint32(next))
	}
	for _, i := range order {
		w.Write(x.entries.at(i).hash[:])
	}
	for _, i := range order {
		word(x.entries.at(i).crc)
	}
	var far []int64
	for _, i := range order {
		if offset := x.entries.at(i).offset; offset < large {
			word(uint32(offset))
		} else {
			word(large | uint32(len(far)))
			far = append(far, offset)
		}
	}
	for _, offset := range far {
		w.Write(binary.BigEndian.AppendUint64(nil, uint64(offset)))
	}
	w.Write(sum[:])
}
