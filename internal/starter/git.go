package starter

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// GitCmd is "git".
type GitCmd struct {
	LsRemote GitLsRemoteCmd `cmd:"" name:"ls-remote" help:"List the refs of a remote."`
	Clone    GitCloneCmd    `cmd:"" help:"Make a checkout on a worker's disk."`
	Fetch    GitFetchCmd    `cmd:"" help:"Fetch into a checkout."`
	Push     GitPushCmd     `cmd:"" help:"Push one ref of a checkout, once."`
	Sync     GitSyncCmd     `cmd:"" help:"Fetch, then fast-forward the checked-out branch and its files."`
}

// GitLimits are the flags that every Git verb takes.
type GitLimits struct {
	Auth    string `help:"Git auth profile of the configuration." placeholder:"NAME"`
	Timeout string `help:"Limit of the operation, its retry included; 120s if left out." placeholder:"DURATION"`
}

// GitHost is the flag of the verbs that work in a checkout.
type GitHost struct {
	Host *string `help:"Host whose disk the checkout is on: this one if left out, empty for a shared root." placeholder:"NAME"`
}

// GitCheckout are the flags of the verbs that work in a checkout that exists.
type GitCheckout struct {
	Dir string `help:"The checkout." required:"" placeholder:"DIR"`
	URL string `help:"Another address of the checkout's origin; what is fetched from it is filed as origin's. Its own if left out." placeholder:"URL"`
	GitHost
}

// GitLsRemoteCmd is "git ls-remote".
type GitLsRemoteCmd struct {
	URL string `arg:"" help:"The remote."`
	Ref string `help:"Only refs that match this name or pattern." placeholder:"REF"`
	GitLimits
}

// Run lists.
func (c *GitLsRemoteCmd) Run(s *session, ctx context.Context) error {
	url, err := remote(c.URL)
	if err != nil {
		return err
	}
	return s.git(ctx, "", func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitLsRemote(ctx, s.key, contract.GitLsRemoteInput{URL: url, Ref: c.Ref, Auth: c.Auth, Timeout: c.Timeout})
	})
}

// GitCloneCmd is "git clone".
type GitCloneCmd struct {
	URL          string   `arg:"" help:"The remote."`
	Dir          string   `arg:"" help:"Where the checkout is to be: a new directory, or an empty one."`
	Ref          string   `help:"Branch or tag to check out; the remote's own choice if left out." placeholder:"REF"`
	Depth        int      `help:"Bring this many commits only; implies --single-branch." placeholder:"N"`
	SingleBranch bool     `help:"Bring only the branch that is checked out, now and later."`
	NoTags       bool     `help:"Bring no tags, now and later."`
	Sparse       []string `help:"Check out this directory only, beside the files at the top; repeatable." sep:"none" placeholder:"DIR"`
	GitHost
	GitLimits
}

// Run clones.
func (c *GitCloneCmd) Run(s *session, ctx context.Context) error {
	url, err := remote(c.URL)
	if err != nil {
		return err
	}
	dir, host, err := s.place(c.Dir, c.Host)
	if err != nil {
		return err
	}
	return s.git(ctx, host, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitClone(ctx, s.key, contract.GitCloneInput{
			URL: url, Dir: dir, Host: host, Ref: c.Ref, Depth: c.Depth, SingleBranch: c.SingleBranch, NoTags: c.NoTags,
			Sparse: c.Sparse, Auth: c.Auth, Timeout: c.Timeout,
		})
	})
}

// GitFetchCmd is "git fetch".
type GitFetchCmd struct {
	GitCheckout
	Ref string `help:"What to fetch; the remote's own refspecs if left out." placeholder:"REF"`
	GitLimits
}

// Run fetches.
func (c *GitFetchCmd) Run(s *session, ctx context.Context) error {
	dir, url, host, err := c.resolve(s)
	if err != nil {
		return err
	}
	return s.git(ctx, host, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitFetch(ctx, s.key, contract.GitFetchInput{Dir: dir, Host: host, URL: url, Ref: c.Ref, Auth: c.Auth, Timeout: c.Timeout})
	})
}

// GitPushCmd is "git push".
type GitPushCmd struct {
	GitCheckout
	Ref    string `help:"Branch, tag or SRC:DST to push; the branch that is checked out if left out." placeholder:"REF"`
	Expect string `help:"Object id that the remote ref must have, all zeros for none; with it the push may replace commits." placeholder:"OID"`
	GitLimits
}

// Run pushes.
func (c *GitPushCmd) Run(s *session, ctx context.Context) error {
	dir, url, host, err := c.resolve(s)
	if err != nil {
		return err
	}
	return s.git(ctx, host, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitPush(ctx, s.key, contract.GitPushInput{
			Dir: dir, Host: host, URL: url, Ref: c.Ref, Expect: c.Expect, Auth: c.Auth, Timeout: c.Timeout,
		})
	})
}

// GitSyncCmd is "git sync".
type GitSyncCmd struct {
	GitCheckout
	Ref string `help:"Remote branch to follow; the one that the checked-out branch tracks if left out." placeholder:"REF"`
	GitLimits
}

// Run syncs.
func (c *GitSyncCmd) Run(s *session, ctx context.Context) error {
	dir, url, host, err := c.resolve(s)
	if err != nil {
		return err
	}
	return s.git(ctx, host, func(ctx context.Context, h *holdfast.Client) (*holdfast.Handle[contract.GitResult], error) {
		return h.GitSync(ctx, s.key, contract.GitSyncInput{Dir: dir, Host: host, URL: url, Ref: c.Ref, Auth: c.Auth, Timeout: c.Timeout})
	})
}

func (c *GitCheckout) resolve(s *session) (dir, url, host string, err error) {
	if c.URL != "" {
		if url, err = remote(c.URL); err != nil {
			return "", "", "", err
		}
	}
	dir, host, err = s.place(c.Dir, c.Host)
	return dir, url, host, err
}

// remote is the address of a remote as a worker can read it: a path is relative
// to where the starter runs, not to where the worker does.
func remote(url string) (string, error) {
	parsed, err := policies.ParseGitURL(url)
	if err != nil {
		return "", &usageError{err}
	}
	if parsed.Transport != policies.GitFile || strings.HasPrefix(url, "file:") {
		return url, nil
	}
	path, err := filepath.Abs(url)
	if err != nil {
		return "", usagef("the remote's path: %w", err)
	}
	return path, nil
}

// git starts work in a checkout of a host, follows it and says how it ended.
func (s *session) git(ctx context.Context, host string, start func(context.Context, *holdfast.Client) (*holdfast.Handle[contract.GitResult], error)) error {
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
	if s.globals.Wait {
		defer s.attend(ctx, client.Temporal(), host)()
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
	if r.Outcome.ExitStatus() == contract.ExitOK {
		printf(s.Out, "%s %s\n", r.Outcome, id)
	} else {
		s.lament(id, r.Outcome, r.Error)
	}
	for _, ref := range r.Refs {
		printf(s.Out, "  %s  %s\n", ref.OID, ref.Name)
	}
	for _, u := range r.Updated {
		printf(s.Out, "  %s\n", movement(u.Ref, u.Old, u.New))
	}
	if r.Truncated {
		printf(s.Out, "  and more refs than one result can hold\n")
	}
	if r.Head != nil {
		printf(s.Out, "  %s\n", checkedOut(*r.Head))
	}
	if r.Push != nil {
		s.showPush(r.Outcome, *r.Push)
	}
}

// showPush says what a push did, and what an operator does about one that has
// no clear end.
func (s *session) showPush(o contract.Outcome, p contract.GitPushed) {
	switch o {
	case contract.OutcomeConflict:
		printf(s.Out, "  %s  wanted %s -> %s, found %s\n", p.Ref, short(p.Old), short(p.New), short(p.Found))
	case contract.OutcomeNotLanded:
		printf(s.Out, "  %s is still at %s; the same push again, under a new key: --expect %s\n", p.Ref, short(p.Old), p.Lease())
	case contract.OutcomeNeedsReview:
		printf(s.Out, "  %s  %s -> %s is in doubt; read the remote: starter git ls-remote URL --ref %s\n", p.Ref, short(p.Old), short(p.New), p.Ref)
		printf(s.Out, "    %s, or a commit that has it as an ancestor: it landed, and nothing is left to do\n", p.New)
		printf(s.Out, "    %s: it did not; push again, under a new key, with --expect %s\n", named(p.Old), p.Lease())
		printf(s.Out, "    anything else: someone else has pushed; fetch, and decide anew\n")
	case contract.OutcomeLanded:
		printf(s.Out, "  %s\n", movement(p.Ref, p.Old, p.New))
	case contract.OutcomeUpToDate:
		printf(s.Out, "  %s at %s\n", p.Ref, short(p.New))
	default:
		printf(s.Out, "  %s  wanted %s -> %s\n", p.Ref, short(p.Old), short(p.New))
	}
}

func named(oid string) string {
	if oid == "" {
		return "no such ref"
	}
	return oid
}

func movement(ref, from, to string) string {
	return fmt.Sprintf("%s  %s -> %s", ref, short(from), short(to))
}

func checkedOut(h contract.GitHead) string {
	if h.Ref == "" {
		return fmt.Sprintf("checked out %s, on no branch", short(h.OID))
	}
	return fmt.Sprintf("checked out %s at %s", h.Ref, short(h.OID))
}

func short(oid string) string {
	if oid == "" {
		return "(none)"
	}
	return oid[:min(10, len(oid))]
}
