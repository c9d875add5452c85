package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// GitPush pushes one ref of a checkout (G6). What is to be pushed is decided by a
// reading of the remote and recorded; then it is pushed once, whatever happens;
// and if that does not say that it landed, the remote is read until it is known,
// or until the time is spent and a person has to look. How it went is in the
// result, failures included.
func GitPush(ctx workflow.Context, in contract.GitPushInput) (contract.GitResult, error) {
	p := &gitPush{in: in, gitOperation: newGit(policies.OpPush, in.Timeout, in.Admission)}
	return p.execute(ctx, gitProblem(in.Validate(), in.URL, false), p.run)
}

type gitPush struct {
	*gitOperation
	in   contract.GitPushInput
	plan contract.GitPushPlan
}

func (p *gitPush) run(ctx workflow.Context) contract.GitResult {
	before := &gitAttempts{gitOperation: p.gitOperation, gitStep: gitStep{
		activity: contract.ActivityGitPushIntent,
		said:     "push: read what the remote has",
		request:  contract.GitRequest{Dir: p.in.Dir, URL: p.in.URL, Ref: p.in.Ref, Auth: p.in.Auth, Expect: p.in.Expect},
	}}
	if fault := before.run(ctx, &p.plan); fault != nil {
		return gitEnd(ctx, *fault, before.made())
	}
	if p.plan.Outcome != "" {
		return p.unneeded(before.made())
	}
	// Authority may have been revoked since the remote was read.
	if refused := p.admit(ctx, before.made()+1); refused != nil {
		return gitEnd(ctx, *refused, 0)
	}
	left, spent := p.timeLeft(ctx)
	if spent != nil {
		return gitEnd(ctx, *spent, 0)
	}
	if ctx.Err() != nil {
		return gitEnd(ctx, contract.Failure{}, 0)
	}
	fault := p.once(ctx, policies.PushShare(left))
	if fault == nil {
		return p.landed(p.plan.Intent.New)
	}
	return p.locate(ctx, *fault)
}

// once makes the one push there is. Its time is short of the operation's, so
// that the remote can still be read if its answer is lost.
func (p *gitPush) once(ctx workflow.Context, limit time.Duration) *contract.Failure {
	p.state.Attempt = 1
	p.show(gitRunning, "")
	return p.call(ctx, gitCall{
		activity: contract.ActivityGitPush,
		request:  p.request(),
		summary:  summary("git push %s, the only attempt", p.plan.Intent.Ref),
		limit:    limit,
		awaited:  true,
	}, nil)
}

// request is that of the push and of every reading after it.
func (p *gitPush) request() contract.GitRequest {
	return contract.GitRequest{Dir: p.in.Dir, URL: p.in.URL, Ref: p.in.Ref, Auth: p.in.Auth, Intent: &p.plan.Intent}
}

// unneeded is the end of a push that the remote has already, or that may not be
// made.
func (p *gitPush) unneeded(attempts int) contract.GitResult {
	res := contract.GitResult{Outcome: p.plan.Outcome, Push: p.pushed(p.plan.Found)}
	if res.Outcome != contract.OutcomeConflict {
		return res
	}
	res.Error = &contract.Error{
		Reason: string(policies.ReasonConflict), Rule: "G6/lease",
		Message: "the remote's ref is not what this push may replace; fetch and look at it, then push again",
	}
	if said := p.plan.Error; said != nil {
		*res.Error = *said
	}
	res.Error.Attempts = attempts
	return res
}

func (p *gitPush) landed(found string) contract.GitResult {
	return contract.GitResult{Outcome: contract.OutcomeLanded, Push: p.pushed(found)}
}

func (p *gitPush) pushed(found string) *contract.GitPushed {
	intent := p.plan.Intent
	return &contract.GitPushed{Ref: intent.Ref, Old: intent.Old, New: intent.New, Found: found}
}
