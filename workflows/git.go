package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// States that the "state" query of a Git operation answers until it has ended.
const (
	gitRunning     = "running"
	gitWaiting     = "waiting"
	gitReconciling = "reconciling"
)

// GitLsRemote lists the refs of a remote. A transient failure is retried once
// (G1). How it went is in the result, failures included.
func GitLsRemote(ctx workflow.Context, in contract.GitLsRemoteInput) (contract.GitResult, error) {
	g := newGit(policies.OpLsRemote, in.Timeout, in.Admission)
	return g.execute(ctx, gitProblem(in.Validate(), in.URL, true), func(ctx workflow.Context) contract.GitResult {
		return g.read(ctx, gitStep{
			activity: contract.ActivityGitLsRemote,
			request:  contract.GitRequest{URL: in.URL, Ref: in.Ref, Auth: in.Auth},
		})
	})
}

// GitFetch fetches into a checkout that exists. A transient failure is retried
// once (G1). How it went is in the result, failures included.
func GitFetch(ctx workflow.Context, in contract.GitFetchInput) (contract.GitResult, error) {
	g := newGit(policies.OpFetch, in.Timeout, in.Admission)
	return g.execute(ctx, gitProblem(in.Validate(), in.URL, false), func(ctx workflow.Context) contract.GitResult {
		return g.read(ctx, fetchStep(contract.GitRequest{Dir: in.Dir, URL: in.URL, Ref: in.Ref, Auth: in.Auth}))
	})
}

// GitClone makes a checkout. A transient failure is retried once; each attempt
// removes what it made itself when it fails, and nothing else (G2). How it went
// is in the result, failures included.
func GitClone(ctx workflow.Context, in contract.GitCloneInput) (contract.GitResult, error) {
	g := newGit(policies.OpClone, in.Timeout, in.Admission)
	return g.execute(ctx, gitProblem(in.Validate(), in.URL, true), func(ctx workflow.Context) contract.GitResult {
		return g.read(ctx, gitStep{
			activity: contract.ActivityGitClone,
			request: contract.GitRequest{
				URL: in.URL, Dir: in.Dir, Ref: in.Ref, Auth: in.Auth,
				Depth: in.Depth, SingleBranch: in.SingleBranch, NoTags: in.NoTags, Sparse: in.Sparse,
			},
			awaited: true,
		})
	})
}

// GitSync fetches as GitFetch does, and then fast-forwards the branch that is
// checked out and its files, which touches nothing outside (G7). Whatever
// becomes of that, the refs that the fetch moved are in the result.
func GitSync(ctx workflow.Context, in contract.GitSyncInput) (contract.GitResult, error) {
	g := newGit(policies.OpFetch, in.Timeout, in.Admission)
	return g.execute(ctx, gitProblem(in.Validate(), in.URL, false), func(ctx workflow.Context) contract.GitResult {
		fetched := g.read(ctx, fetchStep(contract.GitRequest{Dir: in.Dir, URL: in.URL, Ref: branchOf(in.Ref), Auth: in.Auth}))
		if fetched.Error != nil {
			return fetched
		}
		res := g.read(ctx, gitStep{
			activity: contract.ActivityGitFastForward,
			said:     "fast-forward",
			request:  contract.GitRequest{Dir: in.Dir, URL: in.URL, Ref: in.Ref},
			local:    true,
			awaited:  true,
		})
		if res.Outcome == contract.OutcomeDiverged && res.Error == nil {
			res.Error = diverged()
		}
		res.Updated, res.Truncated = fetched.Updated, fetched.Truncated
		return res
	})
}

func fetchStep(request contract.GitRequest) gitStep {
	return gitStep{activity: contract.ActivityGitFetch, request: request, awaited: true}
}

func diverged() *contract.Error {
	return &contract.Error{
		Reason: string(policies.ReasonConflict), Rule: "G7/diverged", Attempts: 1,
		Message: "the branch that is checked out has commits that the remote's has not; merge or rebase them, then sync again",
	}
}

// gitProblem is what is wrong with an input, before anything is sent. The
// address may be left out where the checkout's own is meant.
func gitProblem(problem *contract.Error, url string, needed bool) *contract.Error {
	if problem != nil || (url == "" && !needed) {
		return problem
	}
	if _, err := policies.ParseGitURL(url); err != nil {
		return &contract.Error{Reason: string(policies.ReasonFormat), Rule: "G3/input", Message: err.Error()}
	}
	return nil
}

// gitOperation is what every Git workflow has: a limit that its retries share, an
// admission, and what the UI is shown.
type gitOperation struct {
	operation policies.Operation
	admission *contract.GitAdmission
	limit     time.Duration
	started   time.Time
	state     contract.GitState
}

// newGit takes a timeout that is yet to be checked.
func newGit(op policies.Operation, timeout string, admission *contract.GitAdmission) *gitOperation {
	limit := policies.DefaultGitTimeout
	if d, err := time.ParseDuration(timeout); err == nil {
		limit = d
	}
	return &gitOperation{
		operation: op, admission: admission, limit: limit,
		state: contract.GitState{State: gitRunning, Attempt: 1},
	}
}

// execute tells the story of an operation whose input has no problem, and makes
// its end known.
func (g *gitOperation) execute(ctx workflow.Context, problem *contract.Error, story func(workflow.Context) contract.GitResult) (contract.GitResult, error) {
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryState,
		func() (contract.GitState, error) { return g.state, nil },
		workflow.QueryHandlerOptions{Description: "Where the operation is: attempt, notice"})
	if err != nil {
		return contract.GitResult{}, err
	}
	g.started = workflow.Now(ctx)
	res := contract.GitResult{Outcome: contract.OutcomeFailed, Error: problem}
	if problem == nil {
		res = story(ctx)
	}
	g.show(string(res.Outcome), "")
	workflow.SetCurrentDetails(ctx, gitDetails(res))
	return res, recordEnd(ctx, res.Outcome, res.Error)
}

// show is what the "state" query answers from now on.
func (g *gitOperation) show(state, notice string) {
	g.state.State, g.state.Notice = state, notice
}

// left is what is left of the operation's original timeout.
func (g *gitOperation) left(ctx workflow.Context) time.Duration {
	return g.limit - workflow.Now(ctx).Sub(g.started)
}

// timeLeft is what is left, or the failure of an operation whose time is spent.
func (g *gitOperation) timeLeft(ctx workflow.Context) (time.Duration, *contract.Failure) {
	left := g.left(ctx)
	if left >= time.Millisecond {
		return left, nil
	}
	return 0, &contract.Failure{
		Reason: string(policies.ReasonDeadline), Rule: "G1/timeout", Permanent: true,
		Message: "the operation's time was spent; give it more with --timeout",
	}
}

// read makes the attempts of a step that ends in a result.
func (g *gitOperation) read(ctx workflow.Context, step gitStep) contract.GitResult {
	var res contract.GitResult
	a := &gitAttempts{gitOperation: g, gitStep: step}
	if fault := a.run(ctx, &res); fault != nil {
		return gitEnd(ctx, *fault, a.made())
	}
	return res
}

// gitEnd is the end by a failure. A time that the other side named is passed on.
func gitEnd(ctx workflow.Context, fault contract.Failure, attempts int) contract.GitResult {
	if ctx.Err() != nil {
		return contract.GitResult{Outcome: contract.OutcomeCancelled, Error: &contract.Error{
			Reason: string(policies.ReasonCancelled), Message: "the operation was cancelled", Rule: "G5/cancelled", Attempts: attempts,
		}}
	}
	return contract.GitResult{Outcome: contract.OutcomeFailed, Error: &contract.Error{
		Reason: fault.Reason, Message: fault.Message, Rule: fault.Rule, Attempts: attempts, ResetAt: resetAt(ctx, fault),
	}}
}

// gitDetails is the end as the UI shows it.
func gitDetails(res contract.GitResult) string {
	d := fmt.Sprintf("**%s**", res.Outcome)
	if n := len(res.Refs); n > 0 {
		d += fmt.Sprintf(" – refs: %d", n)
	}
	if n := len(res.Updated); n > 0 {
		d += fmt.Sprintf(" – refs moved: %d", n)
	}
	if h := res.Head; h != nil {
		d += fmt.Sprintf("\n\nchecked out: `%s` `%s`", cut(h.Ref, 1000), cut(h.OID, 100))
	}
	if p := res.Push; p != nil {
		d += fmt.Sprintf("\n\n| ref | was | ours | last seen |\n| --- | --- | --- | --- |\n| `%s` | `%s` | `%s` | `%s` |",
			cut(p.Ref, 1000), cut(p.Old, 100), cut(p.New, 100), cut(p.Found, 100))
	}
	if res.Error != nil {
		d += "\n\n" + cut(res.Error.Message, 1000)
	}
	return d
}

// branchOf is the full name of the branch that a sync follows: a tag of the same
// name must not be fetched in its place.
func branchOf(ref string) string {
	if ref == "" || strings.HasPrefix(ref, "refs/") {
		return ref
	}
	return "refs/heads/" + ref
}
