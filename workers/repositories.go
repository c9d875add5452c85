package workers

import (
	"context"
	"fmt"
	"os"
	"slices"

	"go.temporal.io/sdk/worker"

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

func (w *Workers) git(one worker.Registry, o Options) error {
	roots := slices.Concat(o.Config.Git.Roots, o.Config.Git.SharedRoots)
	for _, root := range roots {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return fmt.Errorf("git.roots: %w", err)
		}
	}
	g, err := git.New(git.Config{Auth: gitAuth(o.Config), Roots: roots})
	if err != nil {
		return err
	}
	add(one, map[string]any{
		contract.ActivityGitLsRemote: g.LsRemote,
		contract.ActivityGitFetch:    g.Fetch,
	})
	return nil
}

// gitAuth resolves a Git auth profile anew for each attempt.
func gitAuth(c *config.Config) func(context.Context, string) (git.Credentials, error) {
	return func(ctx context.Context, name string) (git.Credentials, error) {
		p, ok := c.Git.AuthProfiles[name]
		if !ok {
			return git.Credentials{}, git.ErrUnknownProfile
		}
		cred := git.Credentials{Kind: git.CredentialKind(p.Kind), Username: p.Username}
		if p.KnownHosts != "" {
			cred.KnownHosts = []string{p.KnownHosts}
		}
		if p.Kind == config.GitAuthSSHKey {
			cred.KeyFile = p.File
			return cred, nil
		}
		secret, err := p.Resolve(ctx)
		if err != nil {
			return git.Credentials{}, err
		}
		redact.Add(secret)
		cred.Secret = secret
		return cred, nil
	}
}
