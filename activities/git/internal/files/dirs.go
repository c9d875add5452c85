package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// dirs enters the directories of a checkout one component at a time, so that
// none of them is a symbolic link, whatever others do meanwhile. Those entered
// last stay open, for paths come in order.
type dirs struct {
	root  *os.Root
	stack []dir
}

type dir struct {
	name string
	*os.Root
}

func newDirs(root *os.Root) *dirs { return &dirs{root: root} }

// blocked is where a directory should be and something else is.
type blocked struct{ path string }

func (*blocked) Error() string { return "files: a file is in the way of a directory" }

// enter opens the directory that a path lies in. One that does not exist is made
// if create is set, and is nil otherwise. What is no directory is *blocked.
func (d *dirs) enter(path string, create bool) (*os.Root, error) {
	depth := 0
	for {
		i := strings.IndexByte(path[d.length(depth):], '/')
		if i < 0 {
			break
		}
		name := path[d.length(depth):][:i]
		if depth < len(d.stack) && d.stack[depth].name == name {
			depth++
			continue
		}
		d.leave(depth)
		sub, err := d.open(name, create)
		var in *blocked
		if errors.As(err, &in) {
			in.path = path[:d.length(depth)+i]
		}
		if sub == nil || err != nil {
			return nil, err
		}
		d.stack = append(d.stack, dir{name, sub})
		depth++
	}
	d.leave(depth)
	return d.top(), nil
}

// length is that of the path of the first directories of the stack, with its
// slash.
func (d *dirs) length(depth int) int {
	n := 0
	for _, s := range d.stack[:depth] {
		n += len(s.name) + 1
	}
	return n
}

func (d *dirs) top() *os.Root {
	if len(d.stack) == 0 {
		return d.root
	}
	return d.stack[len(d.stack)-1].Root
}

// leave closes all but the first directories.
func (d *dirs) leave(depth int) {
	for _, s := range d.stack[depth:] {
		s.Close()
	}
	d.stack = d.stack[:depth]
}

// reset forgets all, for a directory may have gone.
func (d *dirs) reset() { d.leave(0) }

func (d *dirs) open(name string, create bool) (*os.Root, error) {
	parent := d.top()
	info, err := parent.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, nil
		}
		if err = parent.Mkdir(name, 0o777); err != nil {
			return nil, err
		}
		info, err = parent.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &blocked{}
	}
	return openDir(parent, name, info)
}

// openDir opens the directory that was seen under a name, and nothing that took
// its place since.
func openDir(parent *os.Root, name string, seen fs.FileInfo) (*os.Root, error) {
	sub, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	got, err := sub.Stat(".")
	if err == nil && !os.SameFile(seen, got) {
		err = ErrConflict
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// list is what a directory holds.
func list(in *os.Root) ([]fs.DirEntry, error) {
	self, err := in.Open(".")
	if err != nil {
		return nil, err
	}
	defer self.Close()
	return self.ReadDir(-1)
}

// base is the last component of a path.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// parent is the directory of a path, "" for the top.
func parent(path string) string { return path[:max(strings.LastIndexByte(path, '/'), 0)] }
