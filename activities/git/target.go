package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
)

// target is where a clone is to be: a name in a directory that is there or is
// still to be made.
type target struct {
	// top is the deepest directory that exists, resolved; below are those between
	// it and the target.
	top   string
	below string
	base  string
}

// parent is the directory of the target.
func (t target) parent() string { return filepath.Join(t.top, t.below) }

// staging is the name, beside the target, of the directory with the clone's lock
// and what is not finished.
func (t target) staging() string { return "." + t.base + stagingSuffix }

const stagingSuffix = ".holdfast"

// maxBase bounds the last part of a target's path, so that names made from it fit
// on any file system.
const maxBase = 200

// findTarget says where a clone into dir would be. Nothing is made.
func (a *Activities) findTarget(ctx context.Context, dir string) (target, error) {
	if dir == "" {
		return target{}, refuse(policies.ReasonFormat, "G3/checkout", "no directory is named that the clone is to be in")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return target{}, err
	}
	t, err := resolveTarget(abs)
	if err != nil {
		return target{}, err
	}
	if err := t.check(); err != nil {
		return target{}, err
	}
	if !a.roots.hold(t.parent()) {
		return target{}, outsideRoots()
	}
	return t, a.onHost(ctx, t.parent())
}

// resolveTarget resolves what exists of a path. A target that exists is resolved
// itself, as a link to a directory may be named too.
func resolveTarget(abs string) (target, error) {
	rest := ""
	for path := abs; ; path = filepath.Dir(path) {
		real, err := realPath(path)
		if err == nil && rest == "" {
			return target{top: filepath.Dir(real), base: filepath.Base(real)}, nil
		}
		if err == nil {
			info, err := os.Stat(real)
			if err != nil {
				return target{}, err
			}
			if !info.IsDir() {
				return target{}, errNoDirectory
			}
			return target{top: real, below: filepath.Dir(rest), base: filepath.Base(rest)}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			if local := localFault(err); local != nil {
				return target{}, local
			}
			return target{}, errNoDirectory
		}
		if _, err := os.Lstat(path); err == nil {
			return target{}, refuse(policies.ReasonFormat, "G2/target", "the path of the clone holds a link that leads nowhere; remove it or name another directory")
		}
		rest = filepath.Join(filepath.Base(path), rest)
	}
}

var errNoDirectory = refuse(policies.ReasonFormat, "G2/target", "the path of the clone leads through something that is no directory; name another")

// check refuses names that cannot have a staging directory beside them, or that
// are one.
func (t target) check() error {
	switch {
	case t.base == string(filepath.Separator) || t.base == ".":
		return refuse(policies.ReasonFormat, "G2/target", "the root of the file system cannot be a clone; name a directory below it")
	case len(t.base) > maxBase:
		return refuse(policies.ReasonFormat, "G2/target", "the name of the clone's directory is too long; use at most 200 bytes")
	}
	for part := range strings.SplitSeq(filepath.Join(t.parent(), t.base), string(filepath.Separator)) {
		if strings.EqualFold(part, ".git") {
			return refuse(policies.ReasonFormat, "G2/target", "the directory lies in the .git directory of another checkout; name another")
		}
		// ".holdfast" itself stages nothing: it is the usual data directory.
		if strings.HasPrefix(part, ".") && strings.HasSuffix(part, stagingSuffix) && part != stagingSuffix {
			return refuse(policies.ReasonFormat, "G2/target", "names that begin with a dot and end with .holdfast are kept for unfinished clones; name another directory")
		}
	}
	return nil
}

// make makes the directories that are missing above the target, as git does.
func (t target) make() error {
	if t.below == "" || t.below == "." {
		return nil
	}
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(t.below, 0o777)
}
