package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// checkout makes a repository at the Git simulator and a checkout of it below
// root, one that has what the repository has so far.
func checkout(ctx context.Context, world *githttp.Server, root, name string) (dir string, err error) {
	if err := world.Create(repository, 3); err != nil {
		return "", err
	}
	if root, err = filepath.Abs(root); err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make the directory of the checkouts: %w", err)
	}
	dir = filepath.Join(root, name)
	if _, err := git(ctx, root, "clone", "--quiet", world.Dir(repository), dir); err != nil {
		return "", err
	}
	_, err = git(ctx, dir, "remote", "set-url", "origin", world.RepoURL(repository))
	return dir, err
}

func refOf(ctx context.Context, dir, ref string) (string, error) {
	out, err := git(ctx, dir, "rev-parse", "--verify", ref)
	return strings.TrimSpace(out), err
}

// removeCheckout is called when the process ends; a checkout that cannot be
// removed is left for the next cleaning of the data directory.
func removeCheckout(dir string) { _ = os.RemoveAll(dir) }

// git runs the git program without the user's own settings.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
