package pack

import (
	"bytes"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// resolve applies the deltas of a scanned pack, so that every object has its
// hash. Bases are expanded from their roots outwards; those on the way stay in
// memory as far as the share allows and are expanded anew otherwise.
func (x *indexer) resolve(file *os.File) error {
	if x.deltas == 0 {
		return nil
	}
	if x.Resolving != nil {
		x.Resolving(x.deltas)
	}
	slices.SortFunc(x.refs, func(a, b refDelta) int { return bytes.Compare(a.base[:], b.base[:]) })
	r := resolver{indexer: x, file: file, source: &fileSource{file: file}, left: x.deltas}
	for i := range int32(x.entries.len()) {
		if e := x.entries.at(i); e.delta || !r.isBase(i) {
			continue
		}
		if err := r.tree(i); err != nil {
			return err
		}
	}
	if r.left > 0 {
		return ErrDamaged // a base that is not in the pack, or deltas of each other
	}
	return nil
}

type resolver struct {
	*indexer
	file   *os.File
	source *fileSource
	stack  []frame
	held   int64  // bytes of data on the stack
	left   int    // deltas without a hash
	delta  []byte // room for a delta
	spare  []byte // room for an object that is nobody's base
}

// maxRoom is the largest room that is kept.
const maxRoom = 1 << 20

// room is b, to be written anew, unless it is too large to be kept.
func room(b []byte) []byte {
	if cap(b) > maxRoom {
		return nil
	}
	return b[:0]
}

// frame is a base of which some deltas are still to be applied.
type frame struct {
	at   int32
	data []byte // nil if it had to go
	ofs  int32  // next delta by offset
	ref  int    // next delta by hash
}

// refsOf is where the deltas by the hash of an object begin.
func (r *resolver) refsOf(h plumbing.Hash) int {
	if len(r.refs) == 0 {
		return 0
	}
	at, _ := slices.BinarySearchFunc(r.refs, h, func(d refDelta, h plumbing.Hash) int { return bytes.Compare(d.base[:], h[:]) })
	return at
}

func (r *resolver) isBase(i int32) bool {
	e := r.entries.at(i)
	if e.first != none {
		return true
	}
	at := r.refsOf(e.hash)
	return at < len(r.refs) && r.refs[at].base == e.hash
}

// next takes the next delta of the top of the stack, none if there is no more.
func (r *resolver) next() int32 {
	f := &r.stack[len(r.stack)-1]
	if f.ofs != none {
		at := f.ofs
		f.ofs = r.entries.at(at).next
		return at
	}
	for f.ref < len(r.refs) && r.refs[f.ref].base == r.entries.at(f.at).hash {
		at := r.refs[f.ref].at
		f.ref++
		if e := r.entries.at(at); e.base == none { // else an object that is in the pack twice brought it
			e.base = f.at
			return at
		}
	}
	return none
}

// tree resolves all deltas that stem from one object.
func (r *resolver) tree(root int32) error {
	data, err := r.expand(root)
	if err != nil {
		return err
	}
	r.push(root, data)
	for len(r.stack) > 0 {
		at := r.next()
		if at == none {
			r.pop()
			continue
		}
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.apply(at); err != nil {
			return err
		}
	}
	return nil
}

// apply expands one delta on top of the stack.
func (r *resolver) apply(at int32) error {
	f := &r.stack[len(r.stack)-1]
	if f.data == nil {
		data, err := r.expand(f.at)
		if err != nil {
			return err
		}
		f.data = data
		r.held += int64(len(data))
	}
	base := f.data
	delta, err := r.read(at, &r.delta)
	if err != nil {
		return err
	}
	e := r.entries.at(at)
	e.kind = r.entries.at(f.at).kind
	size, err := targetSize(base, delta)
	if err != nil {
		return err
	}
	if size > r.object() {
		return &LimitError{LimitMemory}
	}
	data, err := patch(room(r.spare), base, delta, size)
	if err != nil {
		return err
	}
	r.hasher.begin(e.kind, size)
	r.hasher.Write(data)
	e.hash = r.hasher.end()
	if err := r.links.of(e.kind, e.hash, data); err != nil {
		return err
	}
	r.left--
	if r.Resolved != nil {
		r.Resolved()
	}
	if r.spare = data; r.isBase(at) {
		r.spare = nil
		r.push(at, data)
	}
	return nil
}

// push adds a base, and lets go of the oldest data if that is too much.
func (r *resolver) push(at int32, data []byte) {
	r.stack = append(r.stack, frame{at: at, data: data, ofs: r.entries.at(at).first, ref: r.refsOf(r.entries.at(at).hash)})
	r.held += int64(len(data))
	for i := 0; i < len(r.stack)-1 && r.held > r.object(); i++ {
		r.held -= int64(len(r.stack[i].data))
		r.stack[i].data = nil
	}
}

func (r *resolver) pop() {
	top := len(r.stack) - 1
	r.held -= int64(len(r.stack[top].data))
	r.stack[top] = frame{}
	r.stack = r.stack[:top]
}

// expand reads an object whose bases are all known.
func (r *resolver) expand(at int32) ([]byte, error) {
	var chain []int32
	for ; r.entries.at(at).delta; at = r.entries.at(at).base {
		chain = append(chain, at)
	}
	data, err := r.read(at, new([]byte))
	if err != nil {
		return nil, err
	}
	for _, at := range slices.Backward(chain) {
		delta, err := r.read(at, &r.delta)
		if err != nil {
			return nil, err
		}
		size, err := targetSize(data, delta)
		if err != nil {
			return nil, err
		}
		if data, err = patch(nil, data, delta, size); err != nil {
			return nil, err
		}
	}
	return data, nil
}

// read inflates an entry. What it returns is not to be changed, and is lost when
// its buffer is used again.
func (r *resolver) read(at int32, buffer *[]byte) ([]byte, error) {
	e := r.entries.at(at)
	if data, ok := r.cache.get(at); ok {
		return data, nil
	}
	if e.size > r.object() {
		return nil, &LimitError{LimitMemory}
	}
	r.source.seek(e.offset)
	if err := skipHeader(r.source); err != nil {
		return nil, err
	}
	into := room(*buffer)
	if int64(cap(into)) < e.size {
		into = make([]byte, 0, e.size)
	}
	err := r.inflate(r.source, e.size, func(b []byte) { into = append(into, b...) })
	*buffer = into
	return into, err
}

// skipHeader skips all of an entry that stands before its zlib stream.
func skipHeader(r zlibSource) error {
	kind, _, err := objectHeader(r)
	switch {
	case err != nil:
		return err
	case kind == typeOfsDelta:
		_, err = deltaOffset(r)
	case kind == typeRefDelta:
		var base plumbing.Hash
		_, err = io.ReadFull(r, base[:])
	}
	return err
}

// fileSource reads a file from an offset on.
type fileSource struct {
	file   *os.File
	offset int64
	buf    [8 << 10]byte
	pos, n int
}

func (s *fileSource) seek(offset int64) { s.offset, s.pos, s.n = offset, 0, 0 }

func (s *fileSource) fill() error {
	n, err := s.file.ReadAt(s.buf[:], s.offset)
	s.pos, s.n = 0, n
	s.offset += int64(n)
	if n > 0 {
		return nil
	}
	return err
}

func (s *fileSource) ReadByte() (byte, error) {
	if s.pos == s.n {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	b := s.buf[s.pos]
	s.pos++
	return b, nil
}

func (s *fileSource) Read(p []byte) (int, error) {
	if s.pos == s.n {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.pos:s.n])
	s.pos += n
	return n, nil
}

// inflated keeps what was inflated while the pack was scanned, as far as there is
// room, so that it is not inflated twice.
type inflated struct {
	left int64
	data map[int32][]byte
}

// cachedObject is the most that one object may take of the cache.
const cachedObject = 1 << 20

func (c *inflated) takes(size int64) bool { return size <= min(c.left, cachedObject) }

func (c *inflated) put(at int32, data []byte) {
	if c.takes(int64(len(data))) {
		c.left -= int64(len(data)) + 64
		c.data[at] = bytes.Clone(data)
	}
}

func (c *inflated) get(at int32) ([]byte, bool) {
	data, ok := c.data[at]
	return data, ok
}
