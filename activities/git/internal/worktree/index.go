package worktree

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	gitindex "github.com/go-git/go-git/v5/plumbing/format/index"
)

// entry is what the index knows about a file.
type entry = gitindex.Entry

// Names of the index and its lock. What is in the work directory under the
// prefix is the same file as the lock, which says whose the lock is.
const (
	indexName   = "index"
	indexLock   = "index.lock"
	indexPrefix = "index-"
)

// lockedIndex is the index of a checkout while nobody else can change it.
type lockedIndex struct {
	dir     string
	own     string // our name of the lock
	lock    *os.File
	entries []*entry // by path
	// modTime is when the index was written: a file that changed since may look
	// as if it had not.
	modTime time.Time
}

// lockIndex takes the lock that the git program takes, and reads the index.
func lockIndex(dir, work string) (*lockedIndex, error) {
	lock, err := os.CreateTemp(work, indexPrefix)
	if err != nil {
		return nil, err
	}
	i := &lockedIndex{dir: dir, own: lock.Name(), lock: lock}
	if err := os.Link(lock.Name(), filepath.Join(dir, indexLock)); err != nil {
		lock.Close()
		os.Remove(i.own)
		if errors.Is(err, fs.ErrExist) {
			return nil, ErrLocked
		}
		return nil, err
	}
	if err := i.read(); err != nil {
		i.unlock()
		return nil, err
	}
	return i, nil
}

// unlock gives the lock back, if commit did not.
func (i *lockedIndex) unlock() {
	i.lock.Close()
	if i.own != "" {
		os.Remove(filepath.Join(i.dir, indexLock))
		os.Remove(i.own)
		i.own = ""
	}
}

func (i *lockedIndex) read() error {
	file, err := os.Open(filepath.Join(i.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	i.modTime = info.ModTime()
	var decoded gitindex.Index
	if err := gitindex.NewDecoder(bufio.NewReader(file)).Decode(&decoded); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			return err
		}
		return ErrIndex
	}
	for _, e := range decoded.Entries {
		if e.Stage != 0 {
			return ErrConflict // a merge that is not finished
		}
	}
	i.entries = decoded.Entries
	if !slices.IsSortedFunc(i.entries, byName) {
		return ErrIndex
	}
	return nil
}

func byName(a, b *entry) int { return strings.Compare(a.Name, b.Name) }

// find is the entry of a path, nil for none.
func (i *lockedIndex) find(path string) *entry {
	at, ok := slices.BinarySearchFunc(i.entries, path, func(e *entry, path string) int { return strings.Compare(e.Name, path) })
	if !ok {
		return nil
	}
	return i.entries[at]
}

// commit replaces the index.
func (i *lockedIndex) commit(entries []*entry) error {
	out := bufio.NewWriterSize(i.lock, 256<<10)
	sum := sha1.New()
	encodeIndex(io.MultiWriter(out, sum), entries)
	out.Write(sum.Sum(nil))
	if err := out.Flush(); err != nil { // it keeps the first error
		return err
	}
	if err := i.mode(); err != nil {
		return err
	}
	if err := i.lock.Sync(); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(i.dir, indexLock), filepath.Join(i.dir, indexName)); err != nil {
		return err
	}
	err := os.Remove(i.own)
	i.own = ""
	return err
}

// mode gives the lock the mode of the index that it replaces, or of any new file.
func (i *lockedIndex) mode() error {
	info, err := os.Stat(filepath.Join(i.dir, indexName))
	if err == nil {
		return i.lock.Chmod(info.Mode().Perm())
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	probe := i.own + ".mode"
	file, err := os.OpenFile(probe, os.O_CREATE|os.O_EXCL, 0o666) // as the umask has it
	if err != nil {
		return err
	}
	defer os.Remove(probe)
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return err
	}
	return i.lock.Chmod(info.Mode().Perm())
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
