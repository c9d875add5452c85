package starter

import (
	"context"
	"path/filepath"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// GitCmd is "git".
type GitCmd struct {
	LsRemote GitLsRemoteCmd `cmd:"" name:"ls-remote" help:"List the refs of a remote."`
	Fetch    GitFetchCmd    `cmd:"" help:"Fetch into a checkout on the worker's disk."`
}

// GitLsRemoteCmd is "git ls-remote".
type GitLsRemoteCmd struct {
	URL     string `arg:"" help:"The remote."`
	Ref     string `help:"Only refs that match this name or pattern." placeholder:"REF"`
	Auth    string `help:"Git auth profile of the configuration." placeholder:"NAME"`
	Timeout string `help:"Limit of the operation, its retry included; 120s if left out." placeholder:"DURATION"`
}

// Run lists.
func (c *GitLsRemoteCmd) Run(s *session, ctx context.Context) error {
	return s.git(ctx, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitLsRemote(ctx, s.key, contract.GitLsRemoteInput{URL: c.URL, Ref: c.Ref, Auth: c.Auth, Timeout: c.Timeout})
	})
}

// GitFetchCmd is "git fetch".
type GitFetchCmd struct {
	Dir     string `help:"The checkout." required:"" placeholder:"DIR"`
	URL     string `help:"The remote; the checkout's origin if left out." placeholder:"URL"`
	Ref     string `help:"What to fetch; the remote's own refspecs if left out." placeholder:"REF"`
	Auth    string `help:"Git auth profile of the configuration." placeholder:"NAME"`
	Timeout string `help:"Limit of the operation, its retry included; 120s if left out." placeholder:"DURATION"`
}

// Run fetches.
func (c *GitFetchCmd) Run(s *session, ctx context.Context) error {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return usagef("--dir: %w", err)
	}
	return s.git(ctx, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitFetch(ctx, s.key, contract.GitFetchInput{Dir: dir, URL: c.URL, Ref: c.Ref, Auth: c.Auth, Timeout: c.Timeout})
	})
}

func (s *session) git(ctx context.Context, start func(context.Context, *holdfast.Client) (*holdfast.Handle[contract.GitResult], error)) error {
	client, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	h, err := begin(ctx, s, func(ctx context.Context) (*holdfast.Handle[contract.GitResult], error) {
		return start(ctx, client)
	})
	if err != nil {
		return err
	}
	f, err := follow(ctx, s, h)
	if err != nil {
		return err
	}
	return conclude(s, h, f, func(r contract.GitResult) contract.Outcome { return r.Outcome }, func(r contract.GitResult) {
		s.showGit(h.ID(), r)
	})
}

func (s *session) showGit(id string, r contract.GitResult) {
	if r.Outcome.ExitStatus() != contract.ExitOK {
		s.lament(id, r.Outcome, r.Error)
		return
	}
	printf(s.Out, "%s %s\n", r.Outcome, id)
	for _, ref := range r.Refs {
		printf(s.Out, "  %s  %s\n", ref.OID, ref.Name)
	}
	for _, u := range r.Updated {
		printf(s.Out, "  %s  %s -> %s\n", u.Ref, short(u.Old), short(u.New))
	}
}

func short(oid string) string {
	if oid == "" {
		return "(none)"
	}
	return oid[:min(10, len(oid))]
}
