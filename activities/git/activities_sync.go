package git

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// Failures of a fast-forward (G7).
var (
	errBare       = refuse(policies.ReasonFormat, "G7/bare", "the repository has no files to bring forward; name a checkout that is not bare, and not its .git directory, with --dir")
	errOffBranch  = refuse(policies.ReasonFormat, "G7/detached", "the checkout is on no branch, so there is none to bring forward; check one out first")
	errUnbornSync = refuse(policies.ReasonFormat, "G7/unborn", "the branch that is checked out has no commit yet; clone the repository anew, or check out a branch that has one")
	errNoUpstream = refuse(policies.ReasonNotFound, "G7/upstream", "the checkout has no remote-tracking branch for what is to be followed; fetch it first, or name a branch of the remote with --ref")
	errNotABranch = refuse(policies.ReasonFormat, "G7/ref", "--ref is no branch of the remote; use its name, as in main, or refs/heads/main")
	errSwitched   = refuse(policies.ReasonConflict, "G11/changed", "another process checked out another branch meanwhile; try again")
)

// FastForward brings the branch that is checked out in in.Dir, and its files, to
// the remote-tracking branch that it follows, or to that of the remote branch
// in.Ref. It asks nobody: what is to be followed was fetched before. The outcome
// is synced, up_to_date, or diverged if the branch has commits of its own that
// are not on the other, in which case nothing is changed (G7). It returns errors
// of package failure only.
func (a *Activities) FastForward(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	return perform(ctx, a, task[contract.GitResult]{operation: policies.OpRead, in: in, do: a.fastForward})
}

func (a *Activities) fastForward(ctx context.Context, in contract.GitRequest, p *progress) (res contract.GitResult, err error) {
	err = a.inCheckout(ctx, in.Dir, p, func(ctx context.Context, c *checkout) error {
		s, err := newForward(c, in.Ref)
		if err != nil {
			return err
		}
		p.enter(phaseFiles)
		if err := a.resume(ctx, s, p); err != nil {
			return err
		}
		res, err = a.forward(ctx, s, p)
		return err
	})
	return res, err
}

// forward is one fast-forward.
type forward struct {
	c      *checkout
	branch plumbing.ReferenceName
	// from is where the branch is, and began where it was at first.
	from, began, to plumbing.Hash
}

func newForward(c *checkout, ref string) (*forward, error) {
	if c.worktree == "" {
		return nil, errBare
	}
	branch, from, err := c.head()
	switch {
	case errors.Is(err, errUnborn):
		return nil, errUnbornSync
	case err != nil:
		return nil, err
	case branch == "":
		return nil, errOffBranch
	}
	upstream, err := c.upstream(branch, ref)
	if err != nil {
		return nil, err
	}
	found, err := c.storage.Reference(upstream)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return nil, errNoUpstream
	}
	if err != nil {
		return nil, err
	}
	_, err = object.GetCommit(c.storage, found.Hash())
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, errNoUpstream
	}
	return &forward{c: c, branch: branch, from: from, began: from, to: found.Hash()}, err
}

// upstream is the local ref that stands for the remote branch which a branch
// follows: the one asked for, else the configured one, else the one of the same
// name.
func (c *checkout) upstream(branch plumbing.ReferenceName, ref string) (plumbing.ReferenceName, error) {
	remote, merge := remoteName, branch
	switch follows := c.config.Branches[branch.Short()]; {
	case ref != "":
		merge = plumbing.NewBranchReferenceName(strings.TrimPrefix(ref, "refs/heads/"))
		if strings.HasPrefix(ref, "refs/") && !strings.HasPrefix(ref, "refs/heads/") || merge.Validate() != nil {
			return "", errNotABranch
		}
	case follows == nil || follows.Merge == "":
	case follows.Remote == ".":
		return follows.Merge, nil
	default:
		merge = follows.Merge
		if follows.Remote != "" {
			remote = follows.Remote
		}
	}
	name := tracking(merge, false, c.fetched(remote)).Dst(merge)
	if !strings.HasPrefix(name.String(), "refs/") || name.Validate() != nil {
		return "", errNoUpstream
	}
	return name, nil
}

// fetched are the refspecs by which a remote is fetched.
func (c *checkout) fetched(remote string) []config.RefSpec {
	if r, ok := c.config.Remotes[remote]; ok && len(r.Fetch) > 0 {
		return r.Fetch
	}
	return nil
}

// forward decides and moves.
func (a *Activities) forward(ctx context.Context, s *forward, p *progress) (contract.GitResult, error) {
	if s.from == s.to {
		return s.result(), nil
	}
	ahead, err := a.engine.descends(ctx, s.c, s.to.String(), s.from.String())
	if err != nil {
		return contract.GitResult{}, err
	}
	if !ahead {
		behind, err := a.engine.descends(ctx, s.c, s.from.String(), s.to.String())
		if err != nil {
			return contract.GitResult{}, err
		}
		res := s.result()
		if !behind {
			res.Outcome = contract.OutcomeDiverged
			res.Error = &contract.Error{
				Reason: string(policies.ReasonConflict), Rule: "G7/diverged", Attempts: 1,
				Message: "the checkout's branch and the remote's both have commits that the other has not; bring them together by hand, or push yours elsewhere",
			}
		}
		return res, nil
	}
	if err := a.move(ctx, s, p); err != nil {
		return contract.GitResult{}, err
	}
	return s.result(), nil
}

// result is what a fast-forward came to.
func (s *forward) result() contract.GitResult {
	res := contract.GitResult{
		Outcome: contract.OutcomeUpToDate,
		Head:    &contract.GitHead{Ref: s.branch.String(), OID: s.from.String()},
	}
	if s.from != s.began {
		res.Outcome = contract.OutcomeSynced
		res.Updated = []contract.GitUpdate{{Ref: res.Head.Ref, Old: s.began.String(), New: res.Head.OID}}
	}
	return res
}

// move moves the files first and then the branch, so that a branch never says
// more than the files have. A worker that dies on the way leaves a note of what it
// was at, for the files may be of neither commit then.
func (a *Activities) move(ctx context.Context, s *forward, p *progress) error {
	root, err := os.OpenRoot(s.c.gitDir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := writeMoving(root, moving{Branch: s.branch.String(), From: s.from.String(), To: s.to.String()}); err != nil {
		return err
	}
	if err := a.engine.advance(ctx, s.c, p, advanceSpec{from: s.from.String(), to: s.to.String()}); err != nil {
		if isConflict(err) || isRefused(err) {
			forgetMoving(root) // nothing was changed
		}
		return err
	}
	return s.land(ctx, root)
}

// land has the branch follow the files. It does so even if the activity has given
// up meanwhile, unless the checkout is another worker's by then.
func (s *forward) land(ctx context.Context, root *os.Root) error {
	if errors.Is(context.Cause(ctx), errLockLost) {
		return errLockLost
	}
	now, err := s.c.storage.Reference(plumbing.HEAD)
	if err != nil {
		return err
	}
	if now.Target() != s.branch {
		return errSwitched
	}
	if err := moveRefs(s.c, []update{{name: s.branch, old: s.from, new: s.to}}); err != nil {
		return err
	}
	s.from = s.to
	forgetMoving(root)
	return nil
}

// isRefused reports whether an engine did not begin to bring files forward.
func isRefused(err error) bool {
	var untouched *untouchedError
	return errors.As(err, &untouched) || errors.Is(err, errHostilePath) || errors.Is(err, errIndexLocked)
}

// isConflict reports whether files stood in the way.
func isConflict(err error) bool {
	var local *localError
	return errors.As(err, &local) && local.reason == policies.ReasonConflict
}
