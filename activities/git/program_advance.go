package git

import (
	"bufio"
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
func (g *program) advance(ctx context.Context, c *checkout, p *progress, m advanceSpec) error {
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
	if err := s.branchAt(m.from); err != nil {
		return checkoutError(err)
	}
	p.enter(phaseFiles)
	w := worktree{program: g, shadow: s, index: index, progress: p}
	if w.settings, err = worktreeSettings(c); err != nil {
		return checkoutError(err)
	}
	changes, err := w.changes(ctx, m.from, m.to)
	if err != nil {
		return &untouchedError{err}
	}
	err = w.fastForward(ctx, m.to)
	if errors.Is(err, errLocalChanges) {
		// Some files may be what they are to be because an earlier attempt, that
		// did not live to say so, wrote them.
		err = w.goOn(ctx, m, changes)
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

// changedFile is a file that differs between two commits: what it becomes, and the
// id that it had. Its mode is that of a tree entry, and "000000" for a file that
// goes.
type changedFile struct{ mode, oid, path, old string }

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
		changes = append(changes, changedFile{mode: f[1], oid: f[3], path: fields[i+1], old: f[2]})
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

// Modes of what is no file in a tree.
const (
	modeSymlink   = "120000"
	modeSubmodule = "160000"
)

// goOn fast-forwards from where an earlier attempt came to: to git, that is a
// commit of its own between the two, which has those of the changes that are on
// disk already.
func (w worktree) goOn(ctx context.Context, m advanceSpec, changes []changedFile) error {
	done, left, err := w.done(changes)
	if err != nil {
		return err
	}
	if m.again {
		if err := w.clear(ctx, left); err != nil {
			return err
		}
	} else if done == "" {
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
	tree, err := between.write(ctx, done, m.from)
	if err != nil {
		return err
	}
	start, err := w.commit(ctx, tree, m.from)
	if err != nil {
		return err
	}
	end, err := w.commit(ctx, m.to+"^{tree}", start)
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

// done are those of the changes that are on disk already, as index entries, and
// left the files that are to be written still.
func (w worktree) done(changes []changedFile) (entries string, left []changedFile, err error) {
	root, err := os.OpenRoot(w.shadow.checkout.worktree)
	if err != nil {
		return "", nil, err
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
		case !f.goes():
			left = append(left, f)
		}
	}
	return gone.String() + written.String(), left, nil
}

// clear removes the files that an earlier attempt wrote in part, for it was ended
// meanwhile: each is a beginning of what it is to be. What is missing git takes
// for a file that it may write.
func (w worktree) clear(ctx context.Context, left []changedFile) error {
	root, err := os.OpenRoot(w.shadow.checkout.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range left {
		if f.mode == modeSymlink || f.mode == modeSubmodule {
			continue
		}
		if _, oid := blobOf(root, f.path); oid == "" || oid == f.old {
			continue
		}
		part, err := w.isPart(ctx, root, f)
		if err != nil {
			return err
		}
		if !part {
			continue
		}
		if err := root.Remove(f.path); err != nil {
			return checkoutError(err)
		}
	}
	return nil
}

// isPart reports whether a file holds the beginning of a blob.
func (w worktree) isPart(ctx context.Context, root *os.Root, f changedFile) (bool, error) {
	file, err := root.Open(f.path)
	if err != nil {
		return false, nil // nobody can tell
	}
	defer file.Close()
	b := &beginning{of: bufio.NewReader(file)}
	err = w.run(ctx, nil, b, "cat-file", "blob", f.oid)
	switch {
	case b.differs, b.ended:
		return b.ended, nil // git could not write on
	case err != nil:
		return false, err
	}
	_, err = b.of.ReadByte()
	return err == io.EOF, nil
}

// beginning compares what is written to it with what a file holds, as far as the
// file goes.
type beginning struct {
	of             *bufio.Reader
	differs, ended bool
}

var errCompared = errors.New("git: enough is known of a file")

func (b *beginning) Write(p []byte) (int, error) {
	for _, want := range p {
		got, err := b.of.ReadByte()
		if err != nil {
			b.ended = true
			return 0, errCompared
		}
		if got != want {
			b.differs = true
			return 0, errCompared
		}
	}
	return len(p), nil
}

// isGone reports whether no file has a name, though a directory may.
func isGone(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && info.IsDir()
}

// isWritten reports whether a file of the work tree is just what it is to be.
func isWritten(root *os.Root, want changedFile) bool {
	if want.mode == modeSymlink {
		target, err := root.Readlink(want.path)
		return err == nil && plumbing.ComputeHash(plumbing.BlobObject, []byte(target)).String() == want.oid
	}
	info, oid := blobOf(root, want.path)
	return oid == want.oid && (info.Mode()&0o100 != 0) == (want.mode == "100755")
}

// blobOf is the id of the blob that a regular file holds, empty for anything else.
func blobOf(root *os.Root, name string) (info fs.FileInfo, oid string) {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, ""
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, ""
	}
	defer f.Close()
	h := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	if n, err := io.Copy(h, f); err != nil || n != info.Size() {
		return nil, ""
	}
	return info, h.Sum().String()
}
