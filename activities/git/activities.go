package git

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pathlock"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// Activities are the Git activities of a worker. Make them with New.
type Activities struct {
	auth  func(ctx context.Context, name string) (Credentials, error)
	judge func(*policies.Fault) policies.Verdict
	roots roots
	// shared are the roots that every host sees.
	shared roots
	host   string
	engine engine
	// heartbeat is the interval of heartbeats.
	heartbeat time.Duration
	// locks says how locks are held.
	locks pathlock.Options
	// work is what activities have begun, also after they gave it up.
	work sync.WaitGroup
}

// New checks the configuration and makes the activities. It fails when a root
// does not exist or is no directory.
func New(cfg Config) (*Activities, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	shared, err := newRoots(cfg.SharedRoots)
	if err != nil {
		return nil, err
	}
	own, err := newRoots(cfg.Roots)
	if err != nil {
		return nil, err
	}
	e, err := newEngines(cfg)
	if err != nil {
		return nil, err
	}
	return &Activities{
		auth:      cfg.Auth,
		judge:     cfg.Judge,
		roots:     slices.Concat(own, shared),
		shared:    shared,
		host:      cfg.Host,
		engine:    e,
		heartbeat: HeartbeatEvery,
	}, nil
}

// LsRemote lists the refs of in.URL, HEAD first and the others by name, peeled
// tags included. in.Ref narrows them as the pattern of "git ls-remote" does. It
// makes one request and returns errors of package failure only.
func (a *Activities) LsRemote(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return perform(ctx, a, task[contract.GitResult]{operation: policies.OpLsRemote, in: in, do: a.lsRemote})
}

func (a *Activities) lsRemote(ctx context.Context, in contract.GitRequest, p *progress) (contract.GitResult, error) {
	r, err := a.remote(ctx, in.URL, in.Auth, p)
	if err != nil {
		return contract.GitResult{}, err
	}
	refs, err := a.engine.lsRemote(ctx, r)
	if err != nil {
		return contract.GitResult{}, err
	}
	if refs, err = selectRefs(refs, in.Ref); err != nil {
		return contract.GitResult{}, err
	}
	return contract.GitResult{Outcome: contract.OutcomeListed, Refs: refs}, nil
}

// Fetch fetches into the checkout in.Dir, bare or not. in.URL defaults to the
// checkout's origin; in.Ref is a branch, a tag, a full ref name or a refspec and
// defaults to the refspecs configured for origin; tags that point at what is
// fetched follow, as with git. It makes one discovery request and at most one
// pack request, and moves all refs or none. It returns errors of package
// failure only.
func (a *Activities) Fetch(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return perform(ctx, a, task[contract.GitResult]{operation: policies.OpFetch, in: in, do: a.fetch})
}

func (a *Activities) fetch(ctx context.Context, in contract.GitRequest, p *progress) (res contract.GitResult, err error) {
	err = a.inCheckout(ctx, in.Dir, p, func(ctx context.Context, c *checkout) error {
		r, err := a.remoteOf(ctx, c.originURL, in, p)
		if err != nil {
			return err
		}
		moved, err := a.engine.fetch(ctx, r, c, in.Ref)
		if err != nil {
			return err
		}
		res = fetchResult(moved)
		return nil
	})
	return res, err
}

// maxUpdated bounds the refs that a fetch reports one by one, so that the result
// stays far below the size of a payload.
const maxUpdated = 5000

func fetchResult(moved []contract.GitUpdate) contract.GitResult {
	res := contract.GitResult{Outcome: contract.OutcomeFetched, Updated: moved}
	if len(moved) == 0 {
		res.Outcome = contract.OutcomeUpToDate
	}
	if len(moved) > maxUpdated {
		res.Updated, res.Truncated = moved[:maxUpdated], true
	}
	return res
}

// remoteOf is the remote that a request names, else that of the checkout.
func (a *Activities) remoteOf(ctx context.Context, own func() (string, error), in contract.GitRequest, p *progress) (*remote, error) {
	url := in.URL
	if url == "" {
		var err error
		if url, err = own(); err != nil {
			return nil, err
		}
	}
	return a.remote(ctx, url, in.Auth, p)
}

// remote checks the address and resolves the auth profile before anything is
// sent.
func (a *Activities) remote(ctx context.Context, raw, profile string, p *progress) (*remote, error) {
	parsed, err := policies.ParseGitURL(raw)
	if err != nil {
		return nil, refuse(policies.ReasonFormat, "G9/url", err.Error())
	}
	r := &remote{url: raw, GitURL: parsed, progress: p}
	if r.url, err = a.roots.confine(raw); err != nil {
		return nil, err
	}
	if profile == "" {
		return r, nil
	}
	if r.creds, err = a.auth(ctx, profile); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, ErrUnknownProfile) {
			return nil, refuse(policies.ReasonAuth, "G9/profile", "the auth profile named by --auth is not configured; add it under git.auth_profiles")
		}
		return nil, refuse(policies.ReasonAuth, "G9/profile", "the auth profile named by --auth could not be read; check its file, variable or command")
	}
	if err := r.creds.fits(parsed); err != nil {
		return nil, err
	}
	return r, nil
}
