package git

import (
	"context"
	"errors"
	"path/filepath"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pathlock"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// Clone makes a checkout of in.URL in in.Dir, which must not exist or be an empty
// directory; what is missing above it is made. in.Ref is a branch or a tag and
// defaults to the remote's HEAD. The clone appears when it is whole: an attempt
// that fails or dies leaves nothing in in.Dir, and what it left beside it is
// removed by the next one. A clone that an earlier attempt of the same workflow
// finished is found and not made again. It returns errors of package failure
// only.
func (a *Activities) Clone(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return perform(ctx, a, task[contract.GitResult]{operation: policies.OpClone, in: in, do: a.clone})
}

func (a *Activities) clone(ctx context.Context, in contract.GitRequest, p *progress) (contract.GitResult, error) {
	at, err := a.findTarget(ctx, in.Dir)
	if err != nil {
		return contract.GitResult{}, err
	}
	r, err := a.remote(ctx, in.URL, in.Auth, p)
	if err != nil {
		return contract.GitResult{}, err
	}
	id, err := cloneID(activity.GetInfo(ctx).WorkflowExecution.ID, in)
	if err != nil {
		return contract.GitResult{}, err
	}
	if err := at.make(); err != nil {
		return contract.GitResult{}, placeError(err)
	}
	res := contract.GitResult{Outcome: contract.OutcomeCloned}
	lock := filepath.ToSlash(filepath.Join(at.staging(), stageLock))
	err = a.locked(ctx, at.parent(), lock, p, func(ctx context.Context, lock *pathlock.Lock) error {
		s, err := openStage(at, id)
		if err != nil {
			return placeError(err)
		}
		defer s.close()
		head, err := a.cloneInto(ctx, s, r, cloneSpec{
			ref: in.Ref, depth: in.Depth, singleBranch: in.SingleBranch || in.Depth > 0, noTags: in.NoTags, sparse: in.Sparse,
			lock: lock.File(),
		})
		if err != nil && !errors.Is(context.Cause(ctx), errLockLost) {
			s.sweep() // if not all of it goes, the next attempt tries again
		}
		res.Head = &head
		return err
	})
	if err != nil {
		return contract.GitResult{}, err
	}
	return res, nil
}

// cloneInto makes a clone in its stage and brings it to its place, unless that is
// done already.
func (a *Activities) cloneInto(ctx context.Context, s *stage, r *remote, spec cloneSpec) (contract.GitHead, error) {
	if err := s.sweep(); err != nil {
		return contract.GitHead{}, placeError(err)
	}
	own, empty, err := s.look()
	if err != nil {
		return contract.GitHead{}, placeError(err)
	}
	if own != nil {
		return own.Head, nil
	}
	head, err := a.engine.clone(ctx, r, s.path(), spec)
	if err != nil {
		return contract.GitHead{}, err
	}
	// A clone whose activity has given up must not appear.
	if err := ctx.Err(); err != nil {
		return contract.GitHead{}, err
	}
	return head, placeError(s.finish(head, empty))
}
