package gitbench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// Engines are what git.engine can be.
var Engines = []string{"git", "go-git"}

// Forge is a Git host with one repository, and the place of its checkouts.
type Forge struct {
	// Root holds all checkouts.
	Root   string
	server *githttp.Server
	made   int
}

const repository, small = "big.git", "small.git"

// Start starts a host that ends with the benchmark.
func Start(b *testing.B) *Forge {
	b.Helper()
	s, err := githttp.Start(githttp.Options{Root: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	if err := s.Create(small, 1); err != nil {
		b.Fatal(err)
	}
	return &Forge{server: s, Root: b.TempDir()}
}

// URL is the address of the repository.
func (f *Forge) URL() string { return f.server.RepoURL(repository) }

// SmallURL is the address of a repository with one commit.
func (f *Forge) SmallURL() string { return f.server.RepoURL(small) }

// Commits makes a repository of 20,000 commits. What is measured is a clone, a
// fetch of 2,000 of the commits, a fetch of nothing, and a list of the refs (Q4).
func (f *Forge) Commits(b *testing.B) []Operation {
	b.Helper()
	const all, later = 20_000, 2000
	f.create(b, all-later)
	f.repack(b)
	behind := f.clone(b)
	f.commit(b, later)
	f.repack(b)
	return operations(behind, f.clone(b))
}

// Operation is what is measured.
type Operation struct {
	Name string
	Kind policies.Operation
	// Outcome is what it comes to.
	Outcome contract.Outcome
	// checkout is copied for each operation; empty for one that needs none.
	checkout string
}

// operations are all, with a checkout that is behind the repository and one that
// is not.
func operations(behind, level string) []Operation {
	return []Operation{
		{Name: "clone", Kind: policies.OpClone, Outcome: contract.OutcomeCloned},
		{Name: "fetch", Kind: policies.OpFetch, Outcome: contract.OutcomeFetched, checkout: behind},
		{Name: "fetch-nothing", Kind: policies.OpFetch, Outcome: contract.OutcomeUpToDate, checkout: level},
		{Name: "ls-remote", Kind: policies.OpLsRemote, Outcome: contract.OutcomeListed},
	}
}

// plain is the command that does an operation.
func (f *Forge) plain(o Operation, dir string) *exec.Cmd {
	switch o.Kind {
	case policies.OpClone:
		return git("clone", "--quiet", f.URL(), dir)
	case policies.OpFetch:
		return git("-C", dir, "fetch", "--quiet", "origin")
	}
	return git("ls-remote", "--quiet", f.URL())
}

// git is the git program, away from anyone's configuration.
func git(args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	return cmd
}

func output(b *testing.B, args ...string) string {
	b.Helper()
	cmd := git(args...)
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%v: %v", cmd.Args, err)
	}
	return string(out)
}

func (f *Forge) create(b *testing.B, commits int) {
	b.Helper()
	if err := f.server.Create(repository, commits); err != nil {
		b.Fatal(err)
	}
}

func (f *Forge) commit(b *testing.B, n int) {
	b.Helper()
	if err := f.server.Commit(repository, "main", n); err != nil {
		b.Fatal(err)
	}
}

// repack leaves the repository as a host keeps it, in one pack with a bitmap, so
// that little of the time is the host's.
func (f *Forge) repack(b *testing.B) {
	b.Helper()
	output(b, "-C", f.server.Dir(repository), "repack", "-adq", "--write-bitmap-index")
}

func (f *Forge) clone(b *testing.B) string {
	b.Helper()
	dir := f.path()
	output(b, "clone", "--quiet", f.URL(), dir)
	return dir
}

// path is one that does not exist yet.
func (f *Forge) path() string {
	f.made++
	return filepath.Join(f.Root, fmt.Sprint(f.made))
}
