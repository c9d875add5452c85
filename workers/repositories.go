package workers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/redact"
)

// GitError says why this process cannot serve managed Git: its configuration, or
// the machine, lacks what is asked for.
type GitError struct{ Err error }

func (e *GitError) Error() string { return "managed Git cannot be served: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *GitError) Unwrap() error { return e.Err }

func (w *Workers) gitActivities(o Options) (map[string]any, error) {
	c := o.Config.Git
	for _, root := range slices.Concat(c.Roots, c.SharedRoots) {
		if err := os.MkdirAll(root, 0o755); err != nil {
			return nil, &GitError{fmt.Errorf("make a directory of git.roots or git.shared_roots: %w", err)}
		}
	}
	g, err := git.New(git.Config{
		Auth: gitAuth(o.Config), Engine: c.Engine, Host: c.Host, Roots: c.Roots, SharedRoots: c.SharedRoots,
		Limits: git.Limits{Memory: int64(c.Limits.Memory), Disk: int64(c.Limits.Disk), Objects: c.Limits.Objects},
	})
	if err != nil {
		return nil, &GitError{err}
	}
	where := "host " + c.Host
	if contract.ValidateGitHost(c.Host) != nil {
		where = "shared roots alone"
	}
	w.git = where + ", " + g.Engines()
	o.Logger.Info("managed Git is served", "host", c.Host, "engine", c.Engine, "engines", g.Engines())
	w.close = append(w.close, func() {
		ctx, cancel := context.WithTimeout(context.Background(), gitLeave)
		defer cancel()
		if err := g.Wait(ctx); err != nil {
			o.Logger.Warn("work in a checkout has not ended with the worker; its processes are killed")
		}
	})
	return map[string]any{
		contract.ActivityGitLsRemote:    g.LsRemote,
		contract.ActivityGitFetch:       g.Fetch,
		contract.ActivityGitClone:       g.Clone,
		contract.ActivityGitPushIntent:  g.PushIntent,
		contract.ActivityGitPush:        g.Push,
		contract.ActivityGitLocate:      g.Locate,
		contract.ActivityGitFastForward: g.FastForward,
	}, nil
}

// gitLeave is how long work that an activity left behind may take to end, its
// processes included, when the process stops (G5).
const gitLeave = 5 * time.Second

// gitAuth resolves a Git auth profile anew for each attempt.
func gitAuth(c *config.Config) func(context.Context, string) (git.Credentials, error) {
	return func(ctx context.Context, name string) (git.Credentials, error) {
		p, ok := c.Git.AuthProfiles[name]
		if !ok {
			return git.Credentials{}, git.ErrUnknownProfile
		}
		cred := git.Credentials{Kind: git.CredentialKind(p.Kind), Username: p.Username, Hosts: p.Hosts, PlainHTTP: p.PlainHTTP}
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
