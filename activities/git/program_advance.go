package git

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// advance lets git fast-forward a branch of the shadow, with the files of the
// checkout as its work tree and a copy of the checkout's index, which takes the
// index's place when all files are written. The checkout's index is locked
// meanwhile.
func (g *program) advance(ctx context.Context, c *checkout, p *progress, from, to string) error {
	if c.worktree == "" {
		return errBare
	}
	s, err := newShadow(c)
	if err != nil {
		return err
	}
	defer s.remove()
	index, err := lockIndex(s)
	if err != nil {
		return checkoutError(err)
	}
	defer index.held.release()
	if err := s.branchAt(from); err != nil {
		return checkoutError(err)
	}
	p.enter(phaseFiles)
	w := worktree{program: g, shadow: s, index: index, progress: p}
	if w.settings, err = worktreeSettings(c); err != nil {
		return checkoutError(err)
	}
	changes, err := w.changes(ctx, from, to)
	if err != nil {
		return &untouchedError{err}
	}
	err = w.fastForward(ctx, to)
	if errors.Is(err, errLocalChanges) {
		// Some files may be what they are to be because an earlier attempt, that
		// did not live to say so, wrote them.
		err = w.goOn(ctx, from, to, changes)
	}
	if err != nil {
		return err
	}
	return checkoutError(index.commit())
}

// branchAt makes the shadow's branch point at a commit.
func (s *shadow) branchAt(oid string) error {
	if err := s.root.MkdirAll(path.Join(s.name, "refs", "heads"), 0o777); err != nil {
		return err
	}
	return s.write("refs/heads/holdfast", oid+"\n")
}

// worktree is the files of a checkout, and what git needs to change them.
type worktree struct {
	*program
	shadow   *shadow
	index    *lockedIndex
	settings []setting
	progress *progress
}

func (w worktree) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := w.shadow.checkout
	return w.program.run(ctx, job{
		args: args, gitDir: w.shadow.dir, workTree: c.worktree, index: w.index.copy, settings: w.settings,
		stdin: stdin, stdout: stdout, progress: w.progress, lock: c.lock, grows: c.worktree,
	})
}

// fastForward refuses to touch a file that differs from what was checked out,
// ignored ones included.
func (w worktree) fastForward(ctx context.Context, to string) error {
	return w.run(ctx, nil, nil, "merge", "--ff-only", "--no-stat", "--no-autostash", "--no-overwrite-ignore", "--no-verify-signatures", "--progress", to)
}

// worktreeSettings are those of the checkout that say how its files look on
// disk. None of them names a program.
func worktreeSettings(c *checkout) ([]setting, error) {
	own, err := c.worktreeConfig()
	if err != nil {
		return nil, err
	}
	settings := []setting{{"core.bare", "false"}, {"core.fsync", "none"}}
	for _, key := range []string{"autocrlf", "eol", "fileMode", "symlinks", "ignoreCase", "precomposeUnicode", "sparseCheckout", "sparseCheckoutCone"} {
		value := c.config.Raw.Section("core").Option(key)
		if section := own.Section("core"); section.HasOption(key) {
			value = section.Option(key)
		}
		if value != "" {
			settings = append(settings, setting{"core." + key, value})
		}
	}
	return settings, nil
}

// changedFile is a file that differs between two commits: what it becomes. Its
// mode is that of a tree entry, and "000000" for a file that goes.
type changedFile struct{ mode, oid, path string }

func (f changedFile) goes() bool { return f.mode == "000000" }

// changes lists what differs between two commits. A path that must not be written
// is refused here, before any file is changed (G12).
func (w worktree) changes(ctx context.Context, from, to string) ([]changedFile, error) {
	list := &limitedBuffer{limit: int(w.limits.memory / 4), full: errMemoryLimit}
	if err := w.run(ctx, nil, list, "diff-tree", "-r", "-z", "--no-renames", from, to); err != nil {
		return nil, err
	}
	var changes []changedFile
	fields := strings.Split(string(list.kept), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		// ":100644 100644 OLD NEW M", then the path.
		f := strings.Fields(fields[i])
		if len(f) != 5 {
			return nil, errBadTree
		}
		changes = append(changes, changedFile{mode: f[1], oid: f[3], path: fields[i+1]})
	}
	for _, f := range changes {
		if f.goes() {
			continue
		}
		if err := w.refused(f); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// The longest name and path of a file that Linux takes, in bytes, the latter with
// its end.
const (
	maxFileName = 255
	maxFilePath = 4096
)

func (w worktree) refused(f changedFile) error {
	name := path.Base(f.path)
	switch {
	case len(w.shadow.checkout.worktree)+1+len(f.path) >= maxFilePath, slices.ContainsFunc(strings.Split(f.path, "/"), func(s string) bool { return len(s) > maxFileName }):
		return errOddPath
	case !policies.SafeTreePath(f.path), f.mode == modeSymlink && !policies.SafeTreeLink(name):
		return errHostilePath
	}
	return nil
}

// modeSymlink is the mode of a symbolic link in a tree.
const modeSymlink = "120000"

// goOn fast-forwards from where an earlier attempt came to: to git, that is a
// commit of its own between the two, which has those of the changes that are on
// disk already.
func (w worktree) goOn(ctx context.Context, from, to string, changes []changedFile) error {
	done, err := w.done(changes)
	if err != nil {
		return err
	}
	if done == "" {
		return errLocalChanges
	}
	if err := w.run(ctx, strings.NewReader(done), nil, "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	// Its status says that other files differ, which the next step looks at.
	err = w.run(ctx, nil, nil, "update-index", "-q", "--refresh")
	var failed *programError
	if err != nil && !(errors.As(err, &failed) && failed.exitCode == 1) {
		return err
	}
	between := w
	between.index = &lockedIndex{copy: filepath.Join(w.shadow.dir, "between")}
	tree, err := between.write(ctx, done, from)
	if err != nil {
		return err
	}
	start, err := w.commit(ctx, tree, from)
	if err != nil {
		return err
	}
	end, err := w.commit(ctx, to+"^{tree}", start)
	if err != nil {
		return err
	}
	if err := w.shadow.branchAt(start); err != nil {
		return checkoutError(err)
	}
	return w.fastForward(ctx, end)
}

// write makes a tree of that of a commit, with index entries put over it.
func (w worktree) write(ctx context.Context, entries, commit string) (tree string, err error) {
	if err := w.run(ctx, nil, nil, "read-tree", commit); err != nil {
		return "", err
	}
	if err := w.run(ctx, strings.NewReader(entries), nil, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return w.id(ctx, "write-tree")
}

// commit makes a commit that nobody sees.
func (w worktree) commit(ctx context.Context, tree, parent string) (string, error) {
	w.settings = append(slices.Clip(w.settings), setting{"user.name", "holdfast"}, setting{"user.email", "holdfast@localhost"})
	return w.id(ctx, "commit-tree", "-m", "between", "-p", parent, tree)
}

// id runs a command that writes the id of an object.
func (w worktree) id(ctx context.Context, args ...string) (string, error) {
	out := &limitedBuffer{limit: 1 << 10, full: errOutputLimit}
	err := w.run(ctx, nil, out, args...)
	return strings.TrimSpace(string(out.kept)), err
}

// done are those of the changes that are on disk already, as index entries.
func (w worktree) done(changes []changedFile) (string, error) {
	root, err := os.OpenRoot(w.shadow.checkout.worktree)
	if err != nil {
		return "", err
	}
	defer root.Close()
	// What goes is entered first, for its name may be that of a directory of what
	// comes, or the other way round.
	var gone, written strings.Builder
	for _, f := range changes {
		switch {
		case f.goes() && isGone(root, f.path):
			gone.WriteString("0 " + f.oid + "\t" + f.path + "\x00")
		case !f.goes() && isWritten(root, f):
			written.WriteString(f.mode + " " + f.oid + "\t" + f.path + "\x00")
		}
	}
	return gone.String() + written.String(), nil
}

// isGone reports whether no file has a name, though a directory may.
func isGone(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir()
}

// isWritten reports whether a file of the work tree holds just what a blob does.
func isWritten(root *os.Root, want changedFile) bool {
	if want.mode == modeSymlink {
		target, err := root.Readlink(want.path)
		return err == nil && plumbing.ComputeHash(plumbing.BlobObject, []byte(target)).String() == want.oid
	}
	info, err := root.Lstat(want.path)
	if err != nil || !info.Mode().IsRegular() || (info.Mode()&0o100 != 0) != (want.mode == "100755") {
		return false
	}
	f, err := root.Open(want.path)
	if err != nil {
		return false
	}
	defer f.Close()
	h := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	_, err = io.Copy(h, f)
	return err == nil && h.Sum().String() == want.oid
}
