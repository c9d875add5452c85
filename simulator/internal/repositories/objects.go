package repositories

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Modes of tree entries.
const (
	ModeFile       = "100644"
	ModeExecutable = "100755"
	ModeSymlink    = "120000"
	ModeTree       = "40000"
	ModeSubmodule  = "160000"
)

// Entry is an entry of a tree: an object by its id, or else a blob or a subtree
// that is written with it.
type Entry struct {
	Mode, Name string
	ID         string
	Content    string
	Tree       []Entry
}

// Write writes a loose object as it is: git's own tools would check it first.
func (d *Dir) Write(name, kind string, content []byte) (id string, err error) {
	object := append(fmt.Appendf(nil, "%s %d\x00", kind, len(content)), content...)
	sum := sha1.Sum(object)
	id = hex.EncodeToString(sum[:])
	file := filepath.Join(d.Path(name), "objects", id[:2], id[2:])
	if _, err := os.Stat(file); err == nil {
		return id, nil
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(object); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return id, os.WriteFile(file, packed.Bytes(), 0o444)
}

// WriteTree writes a tree with the entries in the order they are given, whatever
// they are called.
func (d *Dir) WriteTree(name string, entries []Entry) (id string, err error) {
	var content bytes.Buffer
	for _, e := range entries {
		switch {
		case e.ID != "":
		case e.Mode == ModeTree:
			e.ID, err = d.WriteTree(name, e.Tree)
		default:
			e.ID, err = d.Write(name, "blob", []byte(e.Content))
		}
		if err != nil {
			return "", err
		}
		raw, err := hex.DecodeString(e.ID)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&content, "%s %s\x00%s", e.Mode, e.Name, raw)
	}
	return d.Write(name, "tree", content.Bytes())
}

// WriteCommit writes a commit of a tree; parent is empty for a first one.
func (d *Dir) WriteCommit(name, tree, parent, message string) (id string, err error) {
	const who = "Simulator <simulator@example.com> 1700000000 +0000"
	if parent != "" {
		parent = "parent " + parent + "\n"
	}
	return d.Write(name, "commit", fmt.Appendf(nil, "tree %s\n%sauthor %s\ncommitter %s\n\n%s\n", tree, parent, who, who, message))
}

// PointAt writes a loose ref to an object, without a look at the object.
func (d *Dir) PointAt(name, ref, id string) error {
	file := filepath.Join(d.Path(name), filepath.FromSlash(ref))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(id+"\n"), 0o644)
}

// Zeros reads n zero bytes.
func Zeros(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
