package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// advance lets git fast-forward a branch of the shadow, with the files of the
// checkout as its work tree and a copy of the checkout's index, which takes the
// index's place when all files are written. The checkout's index is locked
// meanwhile.
func (g *program) advance(ctx context.Context, c *checkout, p *progress, from, to string) error {
	if c.worktree == "" {
		return refuse(policies.ReasonFormat, "G7/bare", "the checkout has no files to advance; fetch into it instead")
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
	err = w.fastForward(ctx, to)
	if errors.Is(err, errLocalChanges) {
		// Some files may be what they are to be because an earlier attempt, that
		// did not live to say so, wrote them.
		var accepted bool
		if accepted, err = w.accept(ctx, from, to); err != nil {
			return err
		}
		if err = errLocalChanges; accepted {
			err = w.fastForward(ctx, to)
		}
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
	progress *progress
}

func (w worktree) run(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := w.shadow.checkout
	return w.program.run(ctx, job{
		args: args, gitDir: w.shadow.dir, workTree: c.worktree, index: w.index.copy, settings: worktreeSettings(c),
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
func worktreeSettings(c *checkout) []setting {
	settings := []setting{{"core.bare", "false"}, {"core.fsync", "none"}}
	for _, key := range []string{"autocrlf", "eol", "fileMode", "symlinks", "ignoreCase", "precomposeUnicode", "sparseCheckout", "sparseCheckoutCone"} {
		if value := c.config.Raw.Section("core").Option(key); value != "" {
			settings = append(settings, setting{"core." + key, value})
		}
	}
	return settings
}

// accept enters into the index what differs between two commits and is on disk
// already as the second has it. It reports whether there was any such file.
func (w worktree) accept(ctx context.Context, from, to string) (bool, error) {
	var changed bytes.Buffer
	if err := w.run(ctx, nil, &changed, "diff-tree", "-r", "-z", "--no-renames", from, to); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(w.shadow.checkout.worktree)
	if err != nil {
		return false, err
	}
	defer root.Close()
	var entries strings.Builder
	fields := strings.Split(changed.String(), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		// ":100644 100644 OLD NEW M", then the path.
		f := strings.Fields(fields[i])
		if len(f) == 5 && isWritten(root, fields[i+1], f[1], f[3]) {
			entries.WriteString(f[1] + " " + f[3] + "\t" + fields[i+1] + "\x00")
		}
	}
	if entries.Len() == 0 {
		return false, nil
	}
	if err := w.run(ctx, strings.NewReader(entries.String()), nil, "update-index", "-z", "--index-info"); err != nil {
		return false, err
	}
	// Its status says that other files differ, which the next step looks at.
	err = w.run(ctx, nil, nil, "update-index", "-q", "--refresh")
	var failed *programError
	if errors.As(err, &failed) && failed.exitCode == 1 {
		err = nil
	}
	return true, err
}

// isWritten reports whether a file of the work tree holds just what a blob does.
func isWritten(root *os.Root, name, mode, oid string) bool {
	if mode == "120000" {
		target, err := root.Readlink(name)
		return err == nil && plumbing.ComputeHash(plumbing.BlobObject, []byte(target)).String() == oid
	}
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || (info.Mode()&0o100 != 0) != (mode == "100755") {
		return false
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	h := plumbing.NewHasher(plumbing.BlobObject, info.Size())
	_, err = io.Copy(h, f)
	return err == nil && h.Sum().String() == oid
}
