package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

	storage *filesystem.Storage
	config  *config.Config
	// borrows says that some objects may be in other stores.
	borrows bool
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
	c, err := openDirs(common, gitDir, defaultLimits.memory)
	if err != nil {
		return nil, err
	}
	top, err := realPath(dir)
	if err != nil {
		return nil, openError(err)
	}
	if !c.config.Core.IsBare && top != gitDir {
		c.worktree = top
	}
	return c, nil
}

// openDirs opens a repository by its directories, within a limit of memory.
func openDirs(common, gitDir string, memory int64) (*checkout, error) {
	if _, err := os.Stat(filepath.Join(gitDir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		return nil, openError(gogit.ErrRepositoryNotExists)
	} else if err != nil {
		return nil, openError(err)
	}
	var disk billy.Filesystem = osfs.New(gitDir)
	if common != gitDir {
		disk = dotgit.NewRepositoryFilesystem(disk, osfs.New(common))
	}
	storage := filesystem.NewStorageWithOptions(withoutLocks{disk}, cache.NewObjectLRU(cache.FileSize(memory/8)), filesystem.Options{
		KeepDescriptors:      true,
		LargeObjectThreshold: memory / 32,
		AlternatesFS:         osfs.New("/"),
	})
	cfg, err := storage.Config()
	if err != nil {
		return nil, openError(err)
	}
	if err := checkFormat(cfg); err != nil {
		return nil, err
	}
	takeLiterally(cfg)
	_, err = os.Lstat(filepath.Join(common, "objects", "info", "alternates"))
	return &checkout{common: common, gitDir: gitDir, storage: storage, config: cfg, borrows: err == nil}, nil
}

// takeLiterally undoes the rules by which a configuration has other addresses
// stand for those that it names: a checkout does not decide where a credential
// goes (G9).
func takeLiterally(cfg *config.Config) {
	for name, r := range cfg.Remotes {
		raw := cfg.Raw.Section("remote").Subsection(name)
		r.URLs = slices.Concat(raw.Options.GetAll("url"), raw.Options.GetAll("pushurl"))
	}
}

// knownExtensions are those of repositories that are the same to us with or
// without them.
var knownExtensions = []string{"noop", "noop-v1", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees"}

// checkFormat refuses a repository that is stored in a way that we do not know.
func checkFormat(cfg *config.Config) error {
	switch cfg.Raw.Section("core").Option("repositoryFormatVersion") {
	case "", "0", "1":
	default:
		return errFormat
	}
	for _, o := range cfg.Raw.Section("extensions").Options {
		switch key, value := strings.ToLower(o.Key), strings.ToLower(o.Value); {
		case slices.Contains(knownExtensions, key), key == "objectformat" && value == "sha1", key == "refstorage" && value == "files":
		default:
			return errFormat
		}
	}
	return nil
}

// partial reports whether the checkout may lack objects that its remote promised
// to send when they are needed.
func (c *checkout) partial() bool {
	return c.config.Raw.Section("extensions").Option("partialClone") != ""
}

var errFormat = refuse(policies.ReasonFormat, "G3/checkout", "the checkout uses a repository format that is not known here; clone it again with the default formats of objects and refs")

func openError(err error) error {
	if local := localFault(err); local != nil {
		return local
	}
	switch {
	case errors.Is(err, gogit.ErrRepositoryNotExists):
		return refuse(policies.ReasonNotFound, "G3/checkout", "the checkout has no HEAD, so it is no Git repository; clone it first")
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

// close lets go of the files that are kept open. The checkout can be read after
// it all the same.
func (c *checkout) close() { c.storage.Close() }

// withoutLocks hides the locks of refs, which go-git would take for refs.
type withoutLocks struct{ billy.Filesystem }

func (w withoutLocks) ReadDir(dir string) ([]os.FileInfo, error) {
	entries, err := w.Filesystem.ReadDir(dir)
	if first, _, _ := strings.Cut(filepath.ToSlash(dir), "/"); first != "refs" {
		return entries, err
	}
	return slices.DeleteFunc(entries, func(e os.FileInfo) bool { return strings.HasSuffix(e.Name(), ".lock") }), err
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
