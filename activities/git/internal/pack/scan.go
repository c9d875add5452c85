package pack

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Types of objects in a pack, as its headers have them.
const (
	typeCommit   = uint8(plumbing.CommitObject)
	typeTree     = uint8(plumbing.TreeObject)
	typeBlob     = uint8(plumbing.BlobObject)
	typeTag      = uint8(plumbing.TagObject)
	typeOfsDelta = uint8(plumbing.OFSDeltaObject)
	typeRefDelta = uint8(plumbing.REFDeltaObject)
)

// none is the index of no entry.
const none = int32(-1)

// entry is one object of a pack.
type entry struct {
	offset int64
	size   int64 // inflated, of the delta if it is one
	hash   plumbing.Hash
	crc    uint32
	// base is what a delta is applied to; first and next are the list of the
	// deltas that are applied to this object by its offset.
	base, first, next int32
	kind              uint8 // of the object; that of the delta until it is resolved
	delta             bool
}

// entries are kept in pieces, so that there may be many without a copy and none
// is paid for that a header only promises.
type entries struct{ pieces [][]entry }

const pieceBits = 12

func (e *entries) len() int {
	if len(e.pieces) == 0 {
		return 0
	}
	return (len(e.pieces)-1)<<pieceBits + len(e.pieces[len(e.pieces)-1])
}

func (e *entries) at(i int32) *entry { return &e.pieces[i>>pieceBits][i&(1<<pieceBits-1)] }

func (e *entries) add() (int32, *entry) {
	i := e.len()
	if i&(1<<pieceBits-1) == 0 {
		e.pieces = append(e.pieces, make([]entry, 0, 1<<pieceBits))
	}
	last := &e.pieces[len(e.pieces)-1]
	*last = append(*last, entry{base: none, first: none, next: none})
	return int32(i), &(*last)[len(*last)-1]
}

// find is the entry that begins at an offset.
func (e *entries) find(offset int64) int32 {
	low, high := int32(0), int32(e.len())
	for low < high {
		middle := low + (high-low)/2
		if e.at(middle).offset < offset {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if int(low) < e.len() && e.at(low).offset == offset {
		return low
	}
	return none
}

// refDelta is a delta whose base is named by its hash.
type refDelta struct {
	base plumbing.Hash
	at   int32
}

// indexer knows the objects of one pack.
type indexer struct {
	Options
	ctx     context.Context
	entries entries
	refs    []refDelta
	deltas  int
	links   links
	hasher  hasher
	zlib    io.ReadCloser
	buffer  []byte
	whole   bytes.Buffer // of the object at hand, if it may name others
	cache   inflated
}

func newIndexer(ctx context.Context, o Options) *indexer {
	return &indexer{
		Options: o, ctx: ctx,
		links:  links{has: o.Has, shallow: o.Shallow, named: map[uint64]bool{}},
		hasher: newHasher(),
		buffer: make([]byte, 32<<10),
		cache:  inflated{left: o.object() / 2, data: map[int32][]byte{}},
	}
}

// entryMemory is what an object of a pack costs while it is indexed: its entry,
// its place in the order, and its name among the links.
const entryMemory = 56 + 4 + 24

// scan reads a pack to its end and writes it to out. Objects that are no deltas
// have their hash then.
func (x *indexer) scan(r io.Reader, out io.Writer) (sum plumbing.Hash, size int64, err error) {
	file := bufio.NewWriterSize(out, 256<<10)
	s := newStream(x.ctx, r, file, x.Disk)
	err = x.scanStream(s)
	if err == nil {
		sum, err = s.end()
	}
	if err == nil {
		err = file.Flush()
	}
	switch {
	case err == nil:
	case s.err == io.EOF:
		err = io.ErrUnexpectedEOF // a pack that ends too early may look damaged
	case s.err != nil:
		err = s.err
	}
	return sum, s.offset(), err
}

func (x *indexer) scanStream(s *stream) error {
	var header [12]byte
	if _, err := io.ReadFull(s, header[:]); err != nil {
		return err
	}
	version, count := binary.BigEndian.Uint32(header[4:]), int64(binary.BigEndian.Uint32(header[8:]))
	if string(header[:4]) != "PACK" || version != 2 && version != 3 {
		return ErrDamaged
	}
	switch {
	case x.Objects > 0 && count > x.Objects:
		return &LimitError{LimitObjects}
	case x.Memory > 0 && count*entryMemory > x.Memory/4*3, count > 1<<31-1:
		return &LimitError{LimitMemory}
	}
	if x.Counted != nil {
		x.Counted(int(count))
	}
	for range count {
		if err := x.scanObject(s); err != nil {
			return err
		}
		if x.Scanned != nil {
			x.Scanned()
		}
	}
	return nil
}

func (x *indexer) scanObject(s *stream) error {
	if err := s.begin(); err != nil {
		return err
	}
	at, e := x.entries.add()
	e.offset = s.offset()
	var err error
	if e.kind, e.size, err = objectHeader(s); err != nil {
		return err
	}
	switch e.kind {
	case typeCommit, typeTree, typeTag, typeBlob:
		err = x.scanWhole(s, at, e)
	case typeOfsDelta, typeRefDelta:
		err = x.scanDelta(s, at, e)
	default:
		err = ErrDamaged
	}
	if err != nil {
		return err
	}
	e.crc, err = s.objectSum()
	return err
}

// scanWhole reads an object that is no delta. A blob is not kept.
func (x *indexer) scanWhole(s *stream, at int32, e *entry) error {
	named := e.kind != typeBlob
	switch {
	case named && e.size > x.object():
		return &LimitError{LimitMemory}
	case x.Disk > 0 && e.size > x.Disk:
		return &LimitError{LimitDisk}
	}
	x.fresh()
	x.hasher.begin(e.kind, e.size)
	keep := named || x.cache.takes(e.size)
	err := x.inflate(s, e.size, func(b []byte) {
		x.hasher.Write(b)
		if keep {
			x.whole.Write(b)
		}
	})
	if err != nil {
		return err
	}
	e.hash = x.hasher.end()
	if keep {
		x.cache.put(at, x.whole.Bytes())
	}
	if !named {
		return nil
	}
	return x.links.of(e.kind, e.hash, x.whole.Bytes())
}

// fresh empties the buffer of the object at hand, and lets a large one go.
func (x *indexer) fresh() {
	if x.whole.Cap() > maxRoom {
		x.whole = bytes.Buffer{}
	}
	x.whole.Reset()
}

// maxDeltaHeader is the most bytes that the two sizes at the beginning of a delta
// have.
const maxDeltaHeader = 20

func (x *indexer) scanDelta(s *stream, at int32, e *entry) error {
	e.delta = true
	x.deltas++
	if e.kind == typeOfsDelta {
		back, err := deltaOffset(s)
		if err != nil {
			return err
		}
		if e.base = x.entries.find(e.offset - back); e.base == none || e.base == at {
			return ErrDamaged
		}
		base := x.entries.at(e.base)
		e.next, base.first = base.first, at
	} else {
		ref := refDelta{at: at}
		if _, err := io.ReadFull(s, ref.base[:]); err != nil {
			return err
		}
		x.refs = append(x.refs, ref)
	}
	if e.size > x.object() {
		return &LimitError{LimitMemory}
	}
	keep := x.cache.takes(e.size)
	x.fresh()
	err := x.inflate(s, e.size, func(b []byte) {
		if keep {
			x.whole.Write(b)
		} else if left := maxDeltaHeader - x.whole.Len(); left > 0 {
			x.whole.Write(b[:min(left, len(b))])
		}
	})
	if err != nil {
		return err
	}
	if keep {
		x.cache.put(at, x.whole.Bytes())
	}
	source, rest, ok := deltaSize(x.whole.Bytes())
	if !ok {
		return ErrDamaged
	}
	target, _, ok := deltaSize(rest)
	switch {
	case !ok:
		return ErrDamaged
	case source > x.object(), target > x.object():
		return &LimitError{LimitMemory}
	}
	return nil
}

// inflate reads one zlib stream, which must hold size bytes.
func (x *indexer) inflate(r zlibSource, size int64, take func([]byte)) error {
	var err error
	if x.zlib == nil {
		x.zlib, err = zlib.NewReader(r)
	} else {
		err = x.zlib.(zlib.Resetter).Reset(r, nil)
	}
	if err != nil {
		return damage(err)
	}
	for left := size; ; {
		n, err := x.zlib.Read(x.buffer)
		if int64(n) > left {
			return ErrDamaged
		}
		left -= int64(n)
		take(x.buffer[:n])
		if err == io.EOF && left == 0 {
			return nil
		}
		if err != nil {
			return damage(err)
		}
	}
}

// damage is the error of data that cannot be inflated, unless it is that of the
// file which holds them. What ended a stream, the stream knows itself.
func damage(err error) error {
	var file *fs.PathError
	if errors.As(err, &file) {
		return err
	}
	return ErrDamaged
}

// zlibSource is read by the byte, so that no byte behind a zlib stream is taken.
type zlibSource interface {
	io.Reader
	io.ByteReader
}

func objectHeader(r io.ByteReader) (kind uint8, size int64, err error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size = b>>4&7, int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = r.ReadByte(); err != nil {
			return 0, 0, err
		}
		if shift > 55 {
			return 0, 0, ErrDamaged
		}
		size |= int64(b&0x7f) << shift
	}
	return kind, size, nil
}

// deltaOffset is how far back the base of a delta begins.
func deltaOffset(r io.ByteReader) (int64, error) {
	b, err := r.ReadByte()
	if err != nil {
		return 0, err
	}
	offset := int64(b & 0x7f)
	for b&0x80 != 0 {
		if b, err = r.ReadByte(); err != nil {
			return 0, err
		}
		if offset >= 1<<55 {
			return 0, ErrDamaged
		}
		offset = (offset+1)<<7 | int64(b&0x7f)
	}
	return offset, nil
}

// stream is a pack on its way to disk.
type stream struct {
	ctx   context.Context
	from  io.Reader
	out   io.Writer
	limit int64

	buf           []byte
	start, pos, n int   // buf[start:pos] is read and not written, buf[pos:n] is not read
	before        int64 // bytes of the pack before buf
	sum           hash.Hash
	crc           uint32
	// err ended the stream: that of the source, of out or of the context.
	err error
}

func newStream(ctx context.Context, from io.Reader, out io.Writer, limit int64) *stream {
	return &stream{ctx: ctx, from: from, out: out, limit: limit, buf: make([]byte, 64<<10), sum: sha1.New()}
}

func (s *stream) offset() int64 { return s.before + int64(s.pos) }

// flush writes what has been read.
func (s *stream) flush() error {
	done := s.buf[s.start:s.pos]
	if len(done) == 0 {
		return s.err
	}
	s.sum.Write(done)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, done)
	s.start = s.pos
	if _, err := s.out.Write(done); err != nil && s.err == nil {
		s.err = err
	}
	return s.err
}

func (s *stream) fill() error {
	if err := s.flush(); err != nil {
		return err
	}
	if err := s.ctx.Err(); err != nil {
		s.err = err
		return err
	}
	s.before += int64(s.pos)
	s.start, s.pos, s.n = 0, 0, 0
	for s.n == 0 {
		n, err := s.from.Read(s.buf)
		s.n = n
		if s.limit > 0 && s.before+int64(n) > s.limit {
			err = &LimitError{LimitDisk}
			s.n = 0
		}
		if s.n == 0 && err != nil {
			s.err = err
			return err
		}
	}
	return nil
}

func (s *stream) ReadByte() (byte, error) {
	if s.pos == s.n {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.buf[s.pos]
	s.pos++
	return b, nil
}

func (s *stream) Read(p []byte) (int, error) {
	if s.pos == s.n {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.pos:s.n])
	s.pos += n
	return n, nil
}

// begin starts the checksum of an object.
func (s *stream) begin() error {
	err := s.flush()
	s.crc = 0
	return err
}

func (s *stream) objectSum() (uint32, error) {
	err := s.flush()
	return s.crc, err
}

// end reads the checksum of the whole and compares it.
func (s *stream) end() (plumbing.Hash, error) {
	var want, got plumbing.Hash
	if err := s.flush(); err != nil {
		return want, err
	}
	s.sum.Sum(want[:0])
	if _, err := io.ReadFull(s, got[:]); err != nil {
		return want, err
	}
	if err := s.flush(); err != nil {
		return want, err
	}
	if got != want {
		return want, ErrDamaged
	}
	return want, nil
}
