package git

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
)

func (g *program) clone(ctx context.Context, r *remote, dir string, s cloneSpec) (contract.GitHead, error) {
	patterns := ""
	if len(s.sparse) > 0 {
		var err error
		if patterns, err = conePatterns(s.sparse); err != nil {
			return contract.GitHead{}, err
		}
	}
	url, err := address(r)
	if err != nil {
		return contract.GitHead{}, err
	}
	r.progress.enter(phaseListing)
	err = g.run(ctx, job{
		args: cloneArgs(s, url, dir), remote: r, lock: s.lock, grows: dir, patience: readPatience,
	})
	if err != nil {
		return contract.GitHead{}, err
	}
	gitDir := filepath.Join(dir, ".git")
	ref, head, err := headOf(gitDir)
	if err != nil {
		return contract.GitHead{}, err
	}
	if patterns != "" && !head.IsZero() {
		if err := g.checkoutCone(ctx, r, dir, s, patterns); err != nil {
			return contract.GitHead{}, err
		}
	}
	return contract.GitHead{Ref: ref.String(), OID: oid(head)}, nil
}

// cloneArgs is the command line of a clone. Nothing of a template is copied, and
// submodules stay where they are.
func cloneArgs(s cloneSpec, url, dir string) []string {
	args := []string{"clone", "--template=", "--no-recurse-submodules", "--progress"}
	if s.ref != "" {
		// git wants the short name here, of a branch or of a tag.
		short := strings.TrimPrefix(strings.TrimPrefix(s.ref, "refs/heads/"), "refs/tags/")
		args = append(args, "--branch="+short)
	}
	if s.depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(s.depth))
	}
	if s.singleBranch {
		args = append(args, "--single-branch")
	}
	if s.noTags {
		args = append(args, "--no-tags")
	}
	if len(s.sparse) > 0 {
		args = append(args, "--no-checkout", "--config", "core.sparseCheckout=true", "--config", "core.sparseCheckoutCone=true")
	}
	return append(args, "--", url, dir)
}

// checkoutCone writes the files of a sparse clone. The patterns are written here
// and not by "git sparse-checkout", which would make the repository one of a
// format that other programs refuse.
func (g *program) checkoutCone(ctx context.Context, r *remote, dir string, s cloneSpec, patterns string) error {
	gitDir := filepath.Join(dir, ".git")
	file := filepath.Join(gitDir, filepath.FromSlash(sparseFile))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(patterns), 0o666); err != nil {
		return err
	}
	return g.run(ctx, job{
		args: []string{"read-tree", "-m", "-u", "-v", "HEAD"}, gitDir: gitDir,
		workTree: dir, index: filepath.Join(gitDir, "index"), progress: r.progress, lock: s.lock, grows: dir,
	})
}
