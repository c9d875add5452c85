package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	gogit "github.com/go-git/go-git/v5"

	"github.com/holdfast-dev/holdfast/policies"
)

// roots are the directories that checkouts must lie in, symbolic links
// resolved; none means anywhere.
type roots []string

func newRoots(dirs []string) (roots, error) {
	var r roots
	for _, dir := range dirs {
		real, err := realPath(dir)
		if err != nil {
			return nil, fmt.Errorf("git: root %q: %w", dir, err)
		}
		info, err := os.Stat(real)
		if err != nil {
			return nil, fmt.Errorf("git: root %q: %w", dir, err)
		}
		if !info.IsDir() {
			return nil, fmt.Errorf("git: root %q is not a directory", dir)
		}
		r = append(r, real)
	}
	return r, nil
}

// hold reports whether a resolved path lies in one of the roots.
func (r roots) hold(real string) bool {
	if len(r) == 0 {
		return true
	}
	for _, root := range r {
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// findGitDir is the resolved path of the directory that holds HEAD.
func findGitDir(dir string, in roots) (string, error) {
	if dir == "" {
		return "", refuse(policies.ReasonFormat, "G3/checkout", "no checkout is named; give its directory with --dir")
	}
	real, err := realPath(dir)
	if err != nil {
		if local := localFault(err); local != nil {
			return "", local
		}
		return "", refuse(policies.ReasonNotFound, "G3/checkout", "the checkout's directory does not exist; clone into it first or correct --dir")
	}
	if !in.hold(real) {
		return "", outsideRoots()
	}
	dot := filepath.Join(real, ".git")
	info, err := os.Stat(dot)
	if errors.Is(err, fs.ErrNotExist) {
		if isGitDir(real) {
			return real, nil
		}
		return "", refuse(policies.ReasonNotFound, "G3/checkout", "the directory is no Git repository; clone into it first or correct --dir")
	}
	if err == nil && !info.IsDir() {
		dot, err = pointedAt(dot, "gitdir: ")
	}
	if err == nil {
		dot, err = realPath(dot)
	}
	if err != nil {
		return "", openError(err)
	}
	if !in.hold(dot) {
		return "", outsideRoots()
	}
	return dot, nil
}

func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// commonDir is the directory that a linked worktree shares with its main one.
func commonDir(gitDir string, in roots) (string, error) {
	common, err := pointedAt(filepath.Join(gitDir, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err == nil {
		common, err = realPath(common)
	}
	if err != nil {
		return "", openError(err)
	}
	if !in.hold(common) {
		return "", outsideRoots()
	}
	return common, nil
}

// pointedAt reads a file that holds a path, relative to the file's directory.
func pointedAt(file, prefix string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	path, ok := strings.CutPrefix(strings.TrimSpace(string(content)), prefix)
	if !ok || path == "" {
		return "", gogit.ErrRepositoryNotExists
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	return path, nil
}

func outsideRoots() error {
	return refuse(policies.ReasonFormat, "G12/root", "the checkout, or a part of it, lies outside the directories that git.roots allows")
}
