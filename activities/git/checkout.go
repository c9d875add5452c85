package git

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"

	"github.com/holdfast-dev/holdfast/policies"
)

// remoteName is the remote that a managed checkout follows.
const remoteName = "origin"

// checkout is an opened repository.
type checkout struct {
	// common is the directory that holds the refs, objects and configuration;
	// for a linked worktree it differs from the directory of its HEAD.
	common string
	// gitDir holds HEAD and the index.
	gitDir string
	// worktree is the directory of the files; empty for a bare repository, and
	// for one that was named by its git directory.
	worktree string
	// lock is held by us and given to every process that works here.
	lock *os.File

	files   *trackedFiles
	storage *filesystem.Storage
	config  *config.Config
}

// openCheckout opens a repository, bare or not, that lies in the roots with all
// of its parts.
func openCheckout(dir string, in roots) (*checkout, error) {
	gitDir, err := findGitDir(dir, in)
	if err != nil {
		return nil, err
	}
	common, err := commonDir(gitDir, in)
	if err != nil {
		return nil, err
	}
	if err := in.confineObjects(common); err != nil {
		return nil, err
	}
	var disk billy.Filesystem = osfs.New(gitDir)
	if common != gitDir {
		disk = dotgit.NewRepositoryFilesystem(disk, osfs.New(common))
	}
	files := &trackedFiles{Filesystem: disk, common: common}
	storage := filesystem.NewStorage(files, cache.NewObjectLRUDefault())
	repo, err := gogit.Open(storage, nil)
	if err != nil {
		return nil, openError(err)
	}
	cfg, err := repo.Config()
	if err != nil {
		return nil, openError(err)
	}
	c := &checkout{common: common, gitDir: gitDir, files: files, storage: storage, config: cfg}
	top, err := realPath(dir)
	if err != nil {
		return nil, openError(err)
	}
	if !cfg.Core.IsBare && top != gitDir {
		c.worktree = top
	}
	return c, nil
}

func openError(err error) error {
	if local := localFault(err); local != nil {
		return local
	}
	switch {
	case errors.Is(err, gogit.ErrRepositoryNotExists):
		return refuse(policies.ReasonNotFound, "G3/checkout", "the checkout has no HEAD, so it is no Git repository; clone it first")
	case errors.Is(err, gogit.ErrUnsupportedRepositoryFormatVersion),
		errors.Is(err, gogit.ErrUnsupportedExtensionRepositoryFormatVersion),
		errors.Is(err, gogit.ErrUnknownExtension):
		return refuse(policies.ReasonFormat, "G3/checkout", "the checkout uses a repository format that this engine does not know")
	}
	return refuse(policies.ReasonFormat, "G3/checkout", "the checkout's configuration or HEAD cannot be read; run \"git fsck\" in it")
}

// originURL is where the checkout was cloned from.
func (c *checkout) originURL() (string, error) {
	if r, ok := c.config.Remotes[remoteName]; ok && len(r.URLs) > 0 {
		return r.URLs[0], nil
	}
	return "", refuse(policies.ReasonFormat, "G3/checkout", "the checkout has no remote named origin; give the remote's URL with --url")
}

// tagOption is the checkout's remote.origin.tagOpt: "", "--tags" or "--no-tags".
func (c *checkout) tagOption() string {
	return c.config.Raw.Section("remote").Subsection(remoteName).Option("tagOpt")
}

// sweep removes what an unfinished fetch of ours left behind, and nothing that
// is of another process (G12).
func (c *checkout) sweep() { c.files.sweep() }

// trackedFiles remembers the temporary files made through it, and makes sure
// that a pack is on disk before a ref can name what is in it.
type trackedFiles struct {
	billy.Filesystem
	common string

	mu   sync.Mutex
	temp []billy.File
}

func (t *trackedFiles) TempFile(dir, prefix string) (billy.File, error) {
	f, err := t.Filesystem.TempFile(dir, prefix)
	if err == nil {
		t.mu.Lock()
		t.temp = append(t.temp, f)
		t.mu.Unlock()
	}
	return f, err
}

func (t *trackedFiles) Rename(from, to string) error {
	if err := t.Filesystem.Rename(from, to); err != nil {
		return err
	}
	if !strings.HasSuffix(to, ".pack") {
		return nil
	}
	pack := filepath.Join(t.common, to)
	return syncAll(pack, strings.TrimSuffix(pack, ".pack")+".idx", filepath.Dir(pack))
}

// ReadDir hides the locks of refs, which go-git would take for refs.
func (t *trackedFiles) ReadDir(dir string) ([]os.FileInfo, error) {
	entries, err := t.Filesystem.ReadDir(dir)
	if first, _, _ := strings.Cut(filepath.ToSlash(dir), "/"); first != "refs" {
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e os.FileInfo) bool { return strings.HasSuffix(e.Name(), ".lock") }), err
}

// Chmod lets go-git make its packs read-only, as git's are.
func (t *trackedFiles) Chmod(name string, mode os.FileMode) error {
	return os.Chmod(filepath.Join(t.common, name), mode)
}

func (t *trackedFiles) sweep() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.temp {
		f.Close()
		t.Filesystem.Remove(f.Name())
	}
	t.temp = nil
}

// syncAll makes files and directories outlast a loss of power.
func syncAll(paths ...string) error {
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = f.Sync()
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	return nil
}
