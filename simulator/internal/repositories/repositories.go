// Package repositories keeps the bare repositories that the simulated Git hosts
// serve: githttp and gitssh, which may stand in front of the same directory.
package repositories

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Dir is a directory of repositories, each named by its path in it.
type Dir struct {
	Root string
	// Git is the git program.
	Git string
}

// Open finds the git program for a directory of repositories.
func Open(root string) (*Dir, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("the git program is needed: %w", err)
	}
	if root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	return &Dir{Root: root, Git: git}, nil
}

// Path is the directory of a repository.
func (d *Dir) Path(name string) string { return filepath.Join(d.Root, filepath.FromSlash(name)) }

// locks are those of all repositories of the process, by path: two hosts may
// serve the same one.
var locks sync.Map

// Lock keeps the pushes to a repository apart, so that the refs before and after
// one of them are its own doing.
func (d *Dir) Lock(name string) (unlock func()) {
	lock, _ := locks.LoadOrStore(d.Path(name), &sync.Mutex{})
	mu := lock.(*sync.Mutex)
	mu.Lock()
	return mu.Unlock
}

// Refs reads a repository's refs; a repository that cannot be read has none.
func (d *Dir) Refs(name string) map[string]string {
	refs := map[string]string{}
	out, err := d.Run(name, nil, "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return refs
	}
	for line := range strings.Lines(out) {
		if ref, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[ref] = id
		}
	}
	return refs
}

// None is the id that stands for no object.
const None = "0000000000000000000000000000000000000000"

// Change is a ref that has moved; Old or New is None for a ref that was made or
// deleted.
type Change struct{ Ref, Old, New string }

func (c Change) String() string { return c.Ref + " " + c.Old + " " + c.New }

// Changes are the differences between two states of a repository, by ref.
func Changes(before, after map[string]string) []Change {
	var changes []Change
	for ref, id := range after {
		if old, ok := before[ref]; !ok {
			changes = append(changes, Change{ref, None, id})
		} else if old != id {
			changes = append(changes, Change{ref, old, id})
		}
	}
	for ref, old := range before {
		if _, ok := after[ref]; !ok {
			changes = append(changes, Change{ref, old, None})
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Ref, b.Ref) })
	return changes
}

// Environment is what a program that works on the repositories is given: nothing
// of the caller's own Git set-up may reach them.
func Environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			env = append(env, v)
		}
	}
	return append(env, "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		// The repositories may belong to another user than the server's.
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
		// A push must leave no process behind.
		"GIT_CONFIG_KEY_1=receive.autogc", "GIT_CONFIG_VALUE_1=false")
}

// Run runs git in a repository and returns what it printed.
func (d *Dir) Run(name string, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.Command(d.Git, args...)
	cmd.Dir = d.Path(name)
	cmd.Stdin = stdin
	cmd.Env = Environment()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], name, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
