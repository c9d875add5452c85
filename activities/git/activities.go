package git

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// HeartbeatEvery is the time between two heartbeats of a Git activity.
const HeartbeatEvery = 500 * time.Millisecond

// LsRemote lists the refs of in.URL, HEAD first and the others by name, peeled
// tags included. in.Ref narrows them as the pattern of "git ls-remote" does. It
// makes one request and returns errors of package failure only.
func (a *Activities) LsRemote(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return a.run(ctx, policies.OpLsRemote, in, func(ctx context.Context, p *progress) (contract.GitResult, error) {
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
	})
}

// Fetch fetches into the checkout in.Dir, bare or not. in.URL defaults to the
// checkout's origin; in.Ref is a branch, a tag, a full ref name or a refspec and
// defaults to the refspecs configured for origin; tags that point at what is
// fetched follow, as with git. It makes one discovery request and at most one
// pack request, and moves all refs or none. It returns errors of package
// failure only.
func (a *Activities) Fetch(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return a.run(ctx, policies.OpFetch, in, func(ctx context.Context, p *progress) (contract.GitResult, error) {
		c, err := openCheckout(in.Dir, a.roots)
		if err != nil {
			return contract.GitResult{}, err
		}
		defer c.sweep()
		url := in.URL
		if url == "" {
			if url, err = c.originURL(); err != nil {
				return contract.GitResult{}, err
			}
		}
		r, err := a.remote(ctx, url, in.Auth, p)
		if err != nil {
			return contract.GitResult{}, err
		}
		moved, err := a.engine.fetch(ctx, r, c, in.Ref)
		if err != nil {
			return contract.GitResult{}, err
		}
		return fetchResult(moved), nil
	})
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
	if err := r.creds.fits(parsed.Transport); err != nil {
		return nil, err
	}
	return r, nil
}

// outcome is what the work of one activity came to.
type outcome struct {
	result contract.GitResult
	err    error
}

// run does the work within the request's limit, with heartbeats, and returns at
// once when the limit passes or the activity is cancelled. Work left behind then
// ends by itself: its connection is closed, and it moves no ref once its context
// is done.
func (a *Activities) run(ctx context.Context, op policies.Operation, in contract.GitRequest,
	work func(context.Context, *progress) (contract.GitResult, error),
) (contract.GitResult, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.LimitMS)*time.Millisecond)
	defer cancel()
	rec := attempt.New()
	p := &progress{}
	p.enter(phaseConnect)
	done := make(chan outcome, 1)
	go func() {
		res, err := work(attempt.With(ctx, rec), p)
		done <- outcome{res, err}
	}()

	ticker := time.NewTicker(a.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case out := <-done:
			if out.err == nil {
				return out.result, nil
			}
			if ctx.Err() != nil {
				return contract.GitResult{}, a.interrupted(ctx, op)
			}
			return contract.GitResult{}, a.fail(op, rec, out.err)
		case <-ctx.Done():
			return contract.GitResult{}, a.interrupted(ctx, op)
		case <-ticker.C:
			activity.RecordHeartbeat(ctx, p.snapshot())
		}
	}
}

// interrupted says why the context ended the work: the operation's time is
// spent, the worker is stopping, or the work was cancelled.
func (a *Activities) interrupted(ctx context.Context, op policies.Operation) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		fault := policies.Fault{Surface: policies.SurfaceGit, Operation: op, Termination: "timeout"}
		return report(failure.FromVerdict(&fault, a.judge(&fault), "the operation's time was spent; give it more with --timeout"))
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return report((&localError{
			reason: policies.ReasonWorkerLost, rule: "G3/worker_lost", retry: true,
			message: "the worker stopped before the operation ended",
		}).failure())
	default:
		return temporal.NewCanceledError()
	}
}
