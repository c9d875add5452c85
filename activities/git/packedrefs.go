package git

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// packedRefs is the file in which git keeps many refs together. It is read line by
// line: there can be a million.
const packedRefs = "packed-refs"

// packedHeader begins it; the traits follow.
const packedHeader = "# pack-refs with:"

// refLine is a ref of packed-refs, valid until the next is read.
type refLine struct {
	name []byte
	oid  []byte
	// peeled is the line "^OID" of an annotated tag, else empty.
	peeled []byte
}

func (r refLine) hash() plumbing.Hash { return plumbing.NewHash(string(r.oid)) }

// refValue is a ref and what it is to be.
type refValue struct {
	name string
	hash plumbing.Hash
}

var errPackedRefs = errors.New("git: packed-refs is damaged")

// scanPacked calls take for each ref of packed-refs, in the order of the file. A
// file that does not exist has none.
func scanPacked(root *os.Root, take func(refLine) error) error {
	f, err := root.Open(packedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return readPacked(bufio.NewReaderSize(f, 64<<10), take)
}

func readPacked(r *bufio.Reader, take func(refLine) error) error {
	var ref refLine
	for {
		line, err := r.ReadSlice('\n')
		if err != nil && err != io.EOF {
			return errPackedRefs
		}
		text := bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case len(text) > 0 && text[0] == '^':
			ref.peeled = append(ref.peeled[:0], text...)
		case len(text) > 0 && text[0] == '#':
		case len(text) == 0 && err == nil:
			return errPackedRefs
		default:
			if len(ref.name) > 0 {
				if err := take(ref); err != nil {
					return err
				}
			}
			if len(text) == 0 {
				return nil // the end
			}
			oid, name, ok := bytes.Cut(text, []byte(" "))
			if !ok || !plumbing.IsHash(string(oid)) {
				return errPackedRefs
			}
			ref.oid, ref.name, ref.peeled = append(ref.oid[:0], oid...), append(ref.name[:0], name...), ref.peeled[:0]
		}
	}
}

// packedSorted reports whether packed-refs says that it is sorted; one that does
// not exist is.
func packedSorted(root *os.Root) (bool, error) {
	f, err := root.Open(packedRefs)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	header, err := bufio.NewReader(io.LimitReader(f, 4<<10)).ReadString('\n')
	if err != nil && err != io.EOF {
		return false, err
	}
	traits, ok := strings.CutPrefix(strings.TrimSpace(header), packedHeader)
	return ok && slices.Contains(strings.Fields(traits), "sorted"), nil
}

// mergePacked writes what packed-refs holds, with the refs of over, sorted by
// name, in place of those of the same name or besides. The result does not claim
// to know of every tag what it points at, for of the refs of over it does not.
func mergePacked(root *os.Root, to io.Writer, over []refValue) error {
	sorted, err := packedSorted(root)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(to, 64<<10)
	header := packedHeader + " \n"
	if sorted {
		header = packedHeader + " sorted \n"
	}
	w.WriteString(header)
	m := merger{w: w, rest: over, all: over, sorted: sorted}
	if err := scanPacked(root, m.take); err != nil {
		return err
	}
	for _, r := range m.rest {
		m.write(r)
	}
	return w.Flush()
}

// merger writes refs of two lists as one. Its writer keeps its first error.
type merger struct {
	w      *bufio.Writer
	rest   []refValue // what of all is not written yet
	all    []refValue
	sorted bool
}

func (m *merger) take(r refLine) error {
	for m.sorted && len(m.rest) > 0 && m.rest[0].name < string(r.name) {
		m.write(m.rest[0])
		m.rest = m.rest[1:]
	}
	_, replaced := slices.BinarySearchFunc(m.all, r.name, func(v refValue, name []byte) int {
		return -bytes.Compare(name, []byte(v.name))
	})
	if replaced {
		return nil
	}
	m.w.Write(r.oid)
	m.w.WriteByte(' ')
	m.w.Write(r.name)
	m.w.WriteByte('\n')
	if len(r.peeled) > 0 {
		m.w.Write(r.peeled)
		m.w.WriteByte('\n')
	}
	return nil
}

func (m *merger) write(r refValue) {
	m.w.WriteString(r.hash.String())
	m.w.WriteByte(' ')
	m.w.WriteString(r.name)
	m.w.WriteByte('\n')
}

// looseRefs are the refs that a git directory keeps as files, by name. Symbolic
// ones, and files that are no refs, are left out.
func looseRefs(root *os.Root) ([]refValue, error) {
	var refs []refValue
	err := fs.WalkDir(root.FS(), "refs", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process deleted it
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		content, err := root.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if text := strings.TrimSpace(string(content)); err == nil && plumbing.IsHash(text) {
			refs = append(refs, refValue{name, plumbing.NewHash(text)})
		}
		return err
	})
	slices.SortFunc(refs, func(a, b refValue) int { return strings.Compare(a.name, b.name) })
	return refs, err
}
