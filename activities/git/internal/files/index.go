package files

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	gitindex "github.com/go-git/go-git/v5/plumbing/format/index"
)

// entry is what the index knows about a file.
type entry = gitindex.Entry

// indexName is the name of the index, and of the one that takes its place.
const indexName = "index"

// index is what the index of a checkout holds.
type index struct {
	entries []*entry // by path
	// modTime is when it was written: a file that changed since may look as if it
	// had not.
	modTime time.Time
}

// readIndex reads the index in a directory. One that does not exist is empty.
func readIndex(dir *os.Root) (*index, error) {
	file, err := dir.Open(indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return &index{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var decoded gitindex.Index
	if err := gitindex.NewDecoder(bufio.NewReader(file)).Decode(&decoded); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return nil, err
		}
		return nil, ErrIndex
	}
	for _, e := range decoded.Entries {
		if e.Stage != 0 {
			return nil, ErrConflict // a merge that is not finished
		}
	}
	if !slices.IsSortedFunc(decoded.Entries, byName) {
		return nil, ErrIndex
	}
	return &index{decoded.Entries, info.ModTime()}, nil
}

func byName(a, b *entry) int { return strings.Compare(a.Name, b.Name) }

// find is the entry of a path, nil for none.
func (i *index) find(path string) *entry {
	at, ok := slices.BinarySearchFunc(i.entries, path, func(e *entry, path string) int { return strings.Compare(e.Name, path) })
	if !ok {
		return nil
	}
	return i.entries[at]
}

// writeIndex replaces the index in a directory.
func writeIndex(dir, work *os.Root, entries []*entry) (err error) {
	file, err := work.OpenFile(indexName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := file.Close(); err == nil {
			err = closeErr
		}
		if err == nil {
			err = rename(work, indexName, dir, indexName)
		}
		if err != nil {
			work.Remove(indexName)
		}
	}()
	old, err := dir.Stat(indexName)
	if err == nil {
		err = file.Chmod(old.Mode().Perm())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out := bufio.NewWriterSize(file, 256<<10)
	sum := sha1.New()
	encodeIndex(io.MultiWriter(out, sum), entries)
	out.Write(sum.Sum(nil))
	if err := out.Flush(); err != nil { // it keeps the first error
		return err
	}
	return file.Sync()
}

// Flags of an entry: the length of its name, and that more flags follow.
const (
	nameLength   = 0xfff
	extended     = 1 << 14
	skipWorktree = 1 << 14
	intentToAdd  = 1 << 13
)

// encodeIndex writes an index of version 2, or 3 where an entry needs it, but for
// its checksum.
func encodeIndex(w io.Writer, entries []*entry) {
	version := uint32(2)
	if slices.ContainsFunc(entries, func(e *entry) bool { return e.SkipWorktree || e.IntentToAdd }) {
		version = 3
	}
	header := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	w.Write(binary.BigEndian.AppendUint32(header, uint32(len(entries))))
	var b []byte
	for _, e := range entries {
		b = b[:0]
		for _, v := range []uint32{
			seconds(e.CreatedAt), nanoseconds(e.CreatedAt), seconds(e.ModifiedAt), nanoseconds(e.ModifiedAt),
			e.Dev, e.Inode, uint32(e.Mode), e.UID, e.GID, e.Size,
		} {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		b = append(b, e.Hash[:]...)
		flags, more := uint16(min(len(e.Name), nameLength)), uint16(0)
		if e.SkipWorktree {
			more |= skipWorktree
		}
		if e.IntentToAdd {
			more |= intentToAdd
		}
		if more != 0 {
			b = binary.BigEndian.AppendUint16(b, flags|extended)
			flags = more
		}
		b = binary.BigEndian.AppendUint16(b, flags)
		b = append(b, e.Name...)
		w.Write(append(b, bytes.Repeat([]byte{0}, 8-len(b)%8)...))
	}
}

// seconds is 0 for what is not known.
func seconds(t time.Time) uint32 {
	if t.IsZero() {
		return 0
	}
	return uint32(t.Unix())
}

func nanoseconds(t time.Time) uint32 { return uint32(t.Nanosecond()) }
