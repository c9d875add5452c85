package git

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	format "github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/holdfast-dev/holdfast/activities/git/internal/files"
	"github.com/holdfast-dev/holdfast/policies"
)

// advance writes files and index itself, from the difference of the two trees,
// under the lock that git takes on the index.
func (g *goGit) advance(ctx context.Context, c *checkout, p *progress, m advanceSpec) error {
	begun := false
	err := g.advanceBegun(ctx, c, p, m.from, m.to, func() { begun = true })
	if err != nil && !begun {
		return &untouchedError{err}
	}
	return err
}

// advanceBegun is advance, and says when it is about to change something.
func (g *goGit) advanceBegun(ctx context.Context, c *checkout, p *progress, from, to string, begins func()) error {
	if c.worktree == "" {
		return errBare
	}
	old, err := c.treeOf(plumbing.NewHash(from))
	if err != nil {
		return err
	}
	next, err := c.treeOf(plumbing.NewHash(to))
	if err != nil {
		return err
	}
	cone, err := c.cone()
	if err != nil {
		return err
	}
	p.enter(phaseFiles)
	return g.write(ctx, c, p, files.Options{Cone: cone, Disk: g.limits.disk}, old, next, begins)
}

// write brings the files of a checkout from one tree to another, and says when it
// is about to change something.
func (g *goGit) write(ctx context.Context, c *checkout, p *progress, o files.Options, from, to plumbing.Hash, begins func()) error {
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()
	rel, err := filepath.Rel(c.common, c.gitDir)
	if err != nil || !filepath.IsLocal(rel) {
		return refuse(policies.ReasonFormat, "G3/checkout", "the worktree's git directory is not in its main repository; add the worktree anew with \"git worktree add\"")
	}
	held, err := holdLocks(root, []string{path.Join(filepath.ToSlash(rel), "index.lock")})
	if err != nil {
		return checkoutError(err)
	}
	defer held.release()
	if err := held.take(0, ""); errors.Is(err, fs.ErrExist) {
		return errIndexLocked
	} else if err != nil {
		return checkoutError(err)
	}
	work, err := newWork(root)
	if err != nil {
		return checkoutError(err)
	}
	defer root.RemoveAll(work)
	for _, open := range []struct {
		in   **os.Root
		path string
	}{{&o.Files, c.worktree}, {&o.Git, c.gitDir}, {&o.Work, filepath.Join(c.common, filepath.FromSlash(work))}} {
		dir, err := os.OpenRoot(open.path)
		if err != nil {
			return err
		}
		defer dir.Close()
		*open.in = dir
	}
	o.Objects, o.Memory = c.storage, g.limits.memory
	core := c.config.Raw.Section("core")
	o.NoFileMode, o.NoSymlinks = isFalse(core.Option("fileMode")), isFalse(core.Option("symlinks"))
	o.Planned = func(n int) {
		p.done.Store(0)
		p.objects.Store(int64(n))
		begins()
	}
	o.Wrote = func() { p.done.Add(1) }
	return filesError(files.Advance(ctx, o, from, to))
}

// isFalse reads a value of git's configuration.
func isFalse(value string) bool {
	switch strings.ToLower(value) {
	case "false", "no", "off", "0":
		return true
	}
	return false
}

// treeOf is the tree of a commit that has to be here.
func (c *checkout) treeOf(commit plumbing.Hash) (plumbing.Hash, error) {
	got, err := c.commit(commit)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if got == nil {
		return plumbing.ZeroHash, errHistory
	}
	return got.TreeHash, nil
}

// cone is what a sparse checkout holds, nil if it is none.
func (c *checkout) cone() (*files.Cone, error) {
	core := c.config.Raw.Section("core")
	sparse, inCone := core.Option("sparseCheckout"), core.Option("sparseCheckoutCone")
	own, err := c.worktreeConfig()
	if err != nil {
		return nil, err
	}
	if section := own.Section("core"); section.HasOption("sparseCheckout") {
		sparse, inCone = section.Option("sparseCheckout"), section.Option("sparseCheckoutCone")
	}
	if !isTrue(sparse) {
		return nil, nil
	}
	patterns, err := os.ReadFile(filepath.Join(c.gitDir, filepath.FromSlash(sparseFile)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // as git has it
	}
	if err != nil {
		return nil, err
	}
	if !isTrue(inCone) {
		return nil, errNoCone
	}
	cone, err := files.ReadCone(string(patterns))
	if err != nil {
		return nil, errNoCone
	}
	return cone, nil
}

func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// worktreeConfig is the configuration that a worktree has for itself, which git
// keeps in a file of its own if the repository says so.
func (c *checkout) worktreeConfig() (*format.Config, error) {
	own := format.New()
	if !isTrue(c.config.Raw.Section("extensions").Option("worktreeConfig")) {
		return own, nil
	}
	file, err := os.Open(filepath.Join(c.gitDir, "config.worktree"))
	if errors.Is(err, fs.ErrNotExist) {
		return own, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := format.NewDecoder(file).Decode(own); err != nil {
		return nil, openError(err)
	}
	return own, nil
}

var (
	errNoCone    = refuse(policies.ReasonFormat, "G10/sparse", "the checkout's sparse patterns are not those of cone mode, which only the git program can follow; install it, or run \"git sparse-checkout set --cone\" in the checkout")
	errIndexForm = refuse(policies.ReasonFormat, "G3/checkout", "the index of the checkout is damaged or has a form that only the git program can read; install it, or run \"git reset\" in the checkout")
	errBadTree   = refuse(policies.ReasonFormat, "G3/bad_object", "a tree of the repository is damaged; have its owner check the repository with \"git fsck\"")
	errOddPath   = refuse(policies.ReasonFormat, "G12/path", "the repository holds a path that this file system cannot hold; have its owner remove that path, or work on another file system")
)

// filesError says in our words why files could not be written.
func filesError(err error) error {
	for _, known := range []struct{ is, means error }{
		{files.ErrConflict, errLocalChanges}, {files.ErrHostile, errHostilePath}, {files.ErrDamaged, errBadTree}, {files.ErrMissing, errLostObject},
		{files.ErrMemory, errMemoryLimit}, {files.ErrDisk, errDiskLimit}, {files.ErrIndex, errIndexForm}, {files.ErrSparse, errNoCone},
		{files.ErrImpossible, errOddPath}, {syscall.ENAMETOOLONG, errOddPath}, {syscall.EILSEQ, errOddPath}, {syscall.EINVAL, errOddPath},
	} {
		if errors.Is(err, known.is) {
			return known.means
		}
	}
	return err
}
