package git

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/policies"
)

// errBorrowed is an object store that leads out of the roots.
var errBorrowed = refuse(policies.ReasonFormat, "G12/root", "the repository takes objects from a place that is missing or outside the directories that git.roots allows; correct its objects/info/alternates and the links below its objects directory")

// maxAlternates bounds what is read of one list of other stores.
const maxAlternates = 1 << 20

// confineObjects checks that every object of a repository comes from within the
// roots, whatever its store links to and borrows from (G12): a push would carry
// out what lies elsewhere, and a fetch would write there.
func (r roots) confineObjects(common string) error {
	if len(r) == 0 {
		return nil
	}
	return r.confineStore(filepath.Join(common, "objects"), map[string]bool{})
}

func (r roots) confineStore(store string, seen map[string]bool) error {
	real, err := realPath(store)
	if err != nil || !r.hold(real) {
		return errBorrowed
	}
	if seen[real] {
		return nil
	}
	seen[real] = true
	if err := r.confineLinks(real, true); err != nil {
		return err
	}
	others, err := alternates(real)
	if err != nil {
		return err
	}
	for _, other := range others {
		if err := r.confineStore(other, seen); err != nil {
			return err
		}
	}
	return nil
}

// confineLinks checks the links in a directory and, if deep, in those below it.
func (r roots) confineLinks(dir string, deep bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path, isDir := filepath.Join(dir, e.Name()), e.IsDir()
		if e.Type()&fs.ModeSymlink != 0 {
			if path, err = realPath(path); err != nil || !r.hold(path) {
				return errBorrowed
			}
			isDir = true // or a file, in which there is nothing to look at
		}
		if !deep || !isDir {
			continue
		}
		err := r.confineLinks(path, false)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
	}
	return nil
}

// alternates are the stores that a store borrows from, as git reads its list.
func alternates(store string) ([]string, error) {
	f, err := os.Open(filepath.Join(store, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxAlternates+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxAlternates {
		return nil, errBorrowed
	}
	var others []string
	for line := range strings.SplitSeq(string(content), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '"' {
			if line, err = strconv.Unquote(line); err != nil {
				return nil, errBorrowed
			}
		}
		if !filepath.IsAbs(line) {
			line = filepath.Join(store, line)
		}
		others = append(others, line)
	}
	return others, nil
}
