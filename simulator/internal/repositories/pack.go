package repositories

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Pack is a pack in the making. What git sends of it, it copies, so that nobody
// on this side unpacks what is in it.
type Pack struct {
	content bytes.Buffer
	objects []packed
}

type packed struct {
	id     [sha1.Size]byte
	crc    uint32
	offset uint32
}

// Types of pack entries.
const (
	packBlob     = 3
	packRefDelta = 7
)

// Blob adds a blob of size bytes, which are read twice.
func (p *Pack) Blob(size int64, content func() io.Reader) (id string, err error) {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", size)
	if _, err := io.Copy(h, content()); err != nil {
		return "", err
	}
	return p.add(packBlob, size, nil, content(), [sha1.Size]byte(h.Sum(nil)))
}

// Delta adds a blob as a delta of size bytes against a base. Its id is made up: to
// know the true one, the delta would have to be applied.
func (p *Pack) Delta(base string, size int64, delta []byte, made string) (id string, err error) {
	raw, err := hex.DecodeString(base)
	if err != nil {
		return "", err
	}
	return p.add(packRefDelta, size, raw, bytes.NewReader(delta), sha1.Sum([]byte(made)))
}

func (p *Pack) add(kind byte, size int64, base []byte, content io.Reader, id [sha1.Size]byte) (string, error) {
	if p.content.Len() == 0 {
		p.content.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00") // the count is set at the end
	}
	start := p.content.Len()
	b := kind<<4 | byte(size&0xf)
	for size >>= 4; size > 0; size >>= 7 {
		p.content.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.content.WriteByte(b)
	p.content.Write(base)
	w, err := zlib.NewWriterLevel(&p.content, zlib.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(w, content); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	crc := crc32.ChecksumIEEE(p.content.Bytes()[start:])
	p.objects = append(p.objects, packed{id, crc, uint32(start)})
	return hex.EncodeToString(id[:]), nil
}

// WritePack puts a pack and its index, which says what the pack says, into a
// repository.
func (d *Dir) WritePack(name string, p *Pack) error {
	pack := p.content.Bytes()
	binary.BigEndian.PutUint32(pack[8:], uint32(len(p.objects)))
	sum := sha1.Sum(pack)
	pack = append(pack, sum[:]...)
	base := filepath.Join(d.Path(name), "objects", "pack", "pack-"+hex.EncodeToString(sum[:]))
	if err := os.WriteFile(base+".pack", pack, 0o444); err != nil {
		return err
	}
	return os.WriteFile(base+".idx", index(p.objects, sum), 0o444)
}

// index is version 2 of the index of a pack.
func index(objects []packed, pack [sha1.Size]byte) []byte {
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b packed) int { return bytes.Compare(a.id[:], b.id[:]) })
	out := []byte("\xfftOc\x00\x00\x00\x02")
	for first := range 256 {
		n := 0
		for _, o := range objects {
			if int(o.id[0]) <= first {
				n++
			}
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, o := range objects {
		out = append(out, o.id[:]...)
	}
	for _, o := range objects {
		out = binary.BigEndian.AppendUint32(out, o.crc)
	}
	for _, o := range objects {
		out = binary.BigEndian.AppendUint32(out, o.offset)
	}
	out = append(out, pack[:]...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// Repeat is a delta that makes a result of size bytes by copying the beginning of
// its base again and again, of baseSize bytes; the result begins with head.
func Repeat(baseSize, size int64, head string) []byte {
	const most = 0xffffff // that one instruction copies
	out := binary.AppendUvarint(nil, uint64(baseSize))
	out = binary.AppendUvarint(out, uint64(size))
	out = append(out, byte(len(head)))
	out = append(out, head...)
	for left := size - int64(len(head)); left > 0; {
		n := min(left, most, baseSize)
		out = append(out, 0xf0, byte(n), byte(n>>8), byte(n>>16)) // offset 0, three bytes of size
		left -= n
	}
	return out
}
