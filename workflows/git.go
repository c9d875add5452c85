package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

const (
	// gitTimeout is the limit of a Git operation, retry included (G1).
	gitTimeout = 120 * time.Second
	// gitAttempts is how many attempts a Git read has (P1.8).
	gitAttempts = 2
	// gitGrace is how much longer than its own limit an activity may take before
	// its worker counts as lost.
	gitGrace = 10 * time.Second
	// gitHeartbeat is after how long without a heartbeat a worker counts as lost.
	gitHeartbeat = 15 * time.Second
	// gitExitCode is what the warning about a retry shows: an engine that is no
	// program has none (G8).
	gitExitCode = 1
)

// States that the "state" query of a Git operation answers.
const (
	gitRunning = "running"
	gitWaiting = "waiting"
)

// GitLsRemote lists the refs of a remote. A transient failure is retried once
// (G1). How it went is in the result, failures included.
func GitLsRemote(ctx workflow.Context, in contract.GitLsRemoteInput) (contract.GitResult, error) {
	g := newGit(policies.OpLsRemote, contract.ActivityGitLsRemote, in.Timeout,
		contract.GitRequest{URL: in.URL, Ref: in.Ref, Auth: in.Auth})
	g.needURL, g.admission = true, in.Admission
	return g.execute(ctx)
}

// GitFetch fetches into a checkout that exists. A transient failure is retried
// once (G1). How it went is in the result, failures included.
func GitFetch(ctx workflow.Context, in contract.GitFetchInput) (contract.GitResult, error) {
	g := newGit(policies.OpFetch, contract.ActivityGitFetch, in.Timeout,
		contract.GitRequest{Dir: in.Dir, URL: in.URL, Ref: in.Ref, Auth: in.Auth})
	g.needDir, g.admission = true, in.Admission
	return g.execute(ctx)
}

// gitRead is one Git read: its attempts, and the wait between them.
type gitRead struct {
	operation policies.Operation
	activity  string
	timeout   string
	request   contract.GitRequest
	needURL   bool
	needDir   bool
	admission *contract.GitAdmission

	limit   time.Duration
	started time.Time
	// charged counts the attempts of the envelope, lost the attempts whose
	// worker was lost, which are not charged.
	charged, lost int
	state         contract.GitState
}

func newGit(op policies.Operation, activity, timeout string, req contract.GitRequest) *gitRead {
	return &gitRead{
		operation: op, activity: activity, timeout: timeout, request: req,
		state: contract.GitState{State: gitRunning, Attempt: 1},
	}
}

func (g *gitRead) execute(ctx workflow.Context) (contract.GitResult, error) {
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryState,
		func() (contract.GitState, error) { return g.state, nil },
		workflow.QueryHandlerOptions{Description: "Where the operation is: attempt, notice"})
	if err != nil {
		return contract.GitResult{}, err
	}
	res := g.run(ctx)
	g.state.State, g.state.Notice = string(res.Outcome), ""
	return res, recordEnd(ctx, res.Outcome, res.Error)
}

func (g *gitRead) run(ctx workflow.Context) contract.GitResult {
	if problem := g.validate(); problem != "" {
		return g.failed(ctx, contract.Failure{Reason: string(policies.ReasonFormat), Rule: "G3/input", Message: problem})
	}
	g.started = workflow.Now(ctx)
	for {
		res, fault := g.attempt(ctx)
		if fault == nil {
			return res
		}
		if ctx.Err() != nil {
			return g.cancelled()
		}
		delay, again := g.next(ctx, *fault)
		if !again {
			return g.failed(ctx, *fault)
		}
		if err := g.wait(ctx, delay, *fault); err != nil {
			return g.cancelled()
		}
	}
}

// validate says what is wrong with the input, before anything is sent.
func (g *gitRead) validate() string {
	g.limit = gitTimeout
	if g.timeout != "" {
		d, err := time.ParseDuration(g.timeout)
		if err != nil || d <= 0 {
			return "the timeout is no positive duration; write it like 90s or 2m"
		}
		g.limit = d
	}
	if g.admission != nil && g.admission.Activity == "" {
		return "the admission names no activity"
	}
	if g.needDir && g.request.Dir == "" {
		return "no checkout is named; give its directory with --dir"
	}
	if g.request.URL == "" && !g.needURL {
		return ""
	}
	if _, err := policies.ParseGitURL(g.request.URL); err != nil {
		return err.Error()
	}
	return ""
}

// left is what is left of the operation's original timeout.
func (g *gitRead) left(ctx workflow.Context) time.Duration {
	return g.limit - workflow.Now(ctx).Sub(g.started)
}

// attempt runs the activity once.
func (g *gitRead) attempt(ctx workflow.Context) (contract.GitResult, *contract.Failure) {
	if refused := g.admit(ctx); refused != nil {
		return contract.GitResult{}, refused
	}
	left := g.left(ctx)
	if left < time.Millisecond {
		return contract.GitResult{}, &contract.Failure{
			Reason: string(policies.ReasonDeadline), Rule: "G1/timeout", Permanent: true,
			Message: "the operation's time was spent; give it more with --timeout",
		}
	}
	g.charged++
	g.state = contract.GitState{State: gitRunning, Attempt: g.charged + g.lost}
	g.request.LimitMS = left.Milliseconds()
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: left + gitGrace,
		HeartbeatTimeout:    gitHeartbeat,
		// A fetch may be writing refs: how it ended is told, not guessed.
		WaitForCancellation: g.operation == policies.OpFetch,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             fmt.Sprintf("git %s, attempt %d of %d", g.operation, g.charged, gitAttempts),
	})
	var res contract.GitResult
	err := workflow.ExecuteActivity(ctx, g.activity, g.request).Get(ctx, &res)
	if err == nil {
		return res, nil
	}
	fault := failure.From(err)
	return contract.GitResult{}, &fault
}

// next says whether there is another attempt after a failed one, and after which
// wait. A lost worker's attempt is not charged (G3); it is followed by one more,
// at once.
func (g *gitRead) next(ctx workflow.Context, fault contract.Failure) (time.Duration, bool) {
	spent := g.limit - g.left(ctx)
	if fault.Reason == string(policies.ReasonWorkerLost) {
		g.charged--
		g.lost++
		return 0, g.lost == 1 && spent < g.limit
	}
	if !fault.RetrySame || g.charged >= gitAttempts || fault.FloorInfinite {
		return 0, false
	}
	left, ok := policies.GitRetryLeft(g.limit, spent)
	if !ok {
		return 0, false
	}
	delay := policies.GitRetryDelay
	if floor := floorOf(fault); floor > delay {
		// A floor is never undercut, and one that passes the end is not waited for (P2).
		left -= floor - delay
		delay = floor
	}
	return delay, left > 0
}

// wait waits before the coming attempt, as a timer that the UI shows and that
// cancellation ends.
func (g *gitRead) wait(ctx workflow.Context, delay time.Duration, fault contract.Failure) error {
	coming := g.charged + 1
	g.warn(ctx, coming, delay)
	if delay == 0 {
		return nil
	}
	notice := fmt.Sprintf("wait %v: %s, attempt %d of %d", spoken(delay), fault.Reason, coming, gitAttempts)
	g.state = contract.GitState{State: gitWaiting, Attempt: coming + g.lost, Notice: notice}
	workflow.SetCurrentDetails(ctx, notice)
	defer workflow.SetCurrentDetails(ctx, "")
	return workflow.NewTimerWithOptions(ctx, delay, workflow.TimerOptions{Summary: notice}).Get(ctx, nil)
}

// warn logs the one line about a scheduled retry (G8).
func (g *gitRead) warn(ctx workflow.Context, attempt int, delay time.Duration) {
	log.With(workflow.GetLogger(ctx), "subsystem", "git/network").Warn("git retry",
		"operation", string(g.operation), "attempt", attempt, "max_attempts", gitAttempts,
		"delay", delay.String(), "exit_code", gitExitCode)
}

// spoken writes a duration with a space before its unit where there is one unit.
func spoken(d time.Duration) string {
	if d%time.Second == 0 && d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return d.String()
}

// failed is the end of an operation by a failure. A time that the other side
// named is passed on.
func (g *gitRead) failed(ctx workflow.Context, fault contract.Failure) contract.GitResult {
	e := &contract.Error{
		Reason: fault.Reason, Message: fault.Message, Rule: fault.Rule, Attempts: g.charged + g.lost,
	}
	e.ResetAt = resetAt(ctx, fault)
	return contract.GitResult{Outcome: contract.OutcomeFailed, Error: e}
}

func (g *gitRead) cancelled() contract.GitResult {
	return contract.GitResult{Outcome: contract.OutcomeCancelled, Error: &contract.Error{
		Reason: string(policies.ReasonCancelled), Message: "the operation was cancelled", Rule: "G5/cancelled", Attempts: g.charged + g.lost,
	}}
}
