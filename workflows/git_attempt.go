package workflows

import (
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

const (
	// gitGrace is how much longer than its own limit an activity may take before
	// its worker counts as lost.
	gitGrace = 10 * time.Second
	// gitReadGrace is the same for a reading that another can take the place of.
	gitReadGrace = time.Second
	// gitHeartbeat is after how long without a heartbeat a worker counts as lost.
	gitHeartbeat = 15 * time.Second
	// gitExitCode is what the warning about a retry shows where no program ran
	// (G8).
	gitExitCode = 1
)

// gitStep is one activity of a Git operation that may be repeated.
type gitStep struct {
	activity string
	request  contract.GitRequest
	// said is what summaries call it; defaults to the operation.
	said string
	// local says that nothing outside is touched: nobody is asked for admission,
	// and only the loss of a worker is a reason to repeat it.
	local bool
	// awaited says that it writes, so that a cancelled operation asks how it
	// ended.
	awaited bool
}

// gitAttempts are the attempts of a step, and the waits between them.
type gitAttempts struct {
	*gitOperation
	gitStep

	// charged counts the attempts of the envelope, lost the attempts whose
	// worker was lost, which are not charged.
	charged, lost int
	first         contract.Failure // of the charged ones
}

// made is how many attempts were made.
func (a *gitAttempts) made() int { return a.charged + a.lost }

// run makes one attempt after another until one succeeds, into the given result,
// or there is no other.
func (a *gitAttempts) run(ctx workflow.Context, into any) *contract.Failure {
	for {
		if ctx.Err() != nil {
			return &contract.Failure{Reason: string(policies.ReasonCancelled)}
		}
		fault := a.attempt(ctx, into)
		if fault == nil || ctx.Err() != nil {
			return fault
		}
		delay, again := a.next(ctx, *fault)
		if !again {
			return a.final(*fault)
		}
		if a.wait(ctx, delay, *fault) != nil {
			return fault
		}
	}
}

// attempt runs the activity once, if that is still admitted and in time.
func (a *gitAttempts) attempt(ctx workflow.Context, into any) *contract.Failure {
	if !a.local {
		if refused := a.admit(ctx, a.made()+1); refused != nil {
			return refused
		}
	}
	left, spent := a.timeLeft(ctx)
	if spent != nil {
		return spent
	}
	a.charged++
	a.state.Attempt = a.made()
	a.show(gitRunning, "")
	said := "git " + string(a.operation)
	if a.said != "" {
		said = "git " + a.said
	}
	if !a.local {
		said = fmt.Sprintf("%s, attempt %d of %d", said, a.charged, policies.EnvelopeGitRead.Attempts)
	}
	return a.call(ctx, gitCall{
		activity: a.activity, request: a.request, summary: said, limit: left, awaited: a.awaited,
	}, into)
}

// final is the failure that ends the step. What went wrong first is told too,
// for it may be the cause.
func (a *gitAttempts) final(fault contract.Failure) *contract.Failure {
	if a.first.Message != "" && a.first.Message != fault.Message {
		fault.Message = failure.Shorten(fault.Message + "; the first attempt failed otherwise: " + a.first.Message)
	}
	return &fault
}

// next says whether there is another attempt after a failed one, and after which
// wait. A lost worker's attempt is not charged (G3); it is followed by one more,
// at once.
func (a *gitAttempts) next(ctx workflow.Context, fault contract.Failure) (time.Duration, bool) {
	spent := a.limit - a.left(ctx)
	if fault.Reason == string(policies.ReasonWorkerLost) {
		a.charged--
		a.lost++
		return 0, a.lost == 1 && spent < a.limit
	}
	if a.local || !fault.RetrySame || a.charged >= policies.EnvelopeGitRead.Attempts || fault.FloorInfinite {
		return 0, false
	}
	left, ok := policies.GitRetryLeft(a.limit, spent)
	if !ok {
		return 0, false
	}
	delay := policies.GitRetryDelay
	if floor := floorOf(fault); floor > delay {
		// A floor is never undercut, and one that passes the end is not waited for (P2).
		left -= floor - delay
		delay = floor
	}
	a.first = fault
	return delay, left > 0
}

// wait waits before the coming attempt, as a timer that the UI shows and that
// cancellation ends.
func (a *gitAttempts) wait(ctx workflow.Context, delay time.Duration, fault contract.Failure) error {
	coming, of := a.charged+1, policies.EnvelopeGitRead.Attempts
	warnOfGitRetry(ctx, a.operation, fault, delay, "attempt", coming, "max_attempts", of)
	if delay == 0 {
		return nil
	}
	notice := fmt.Sprintf("wait %v: %s, attempt %d of %d", spoken(delay), fault.Reason, coming, of)
	a.state.Attempt = coming + a.lost
	a.show(gitWaiting, notice)
	workflow.SetCurrentDetails(ctx, notice)
	defer workflow.SetCurrentDetails(ctx, "")
	return workflow.NewTimerWithOptions(ctx, delay, workflow.TimerOptions{Summary: notice}).Get(ctx, nil)
}

// warnOfGitRetry logs the one line about a scheduled retry, with the numbers that
// say which one it is (G8).
func warnOfGitRetry(ctx workflow.Context, op policies.Operation, fault contract.Failure, delay time.Duration, numbers ...any) {
	exitCode := gitExitCode
	if fault.ExitCode != 0 {
		exitCode = fault.ExitCode
	}
	fields := append([]any{"operation", string(op)}, numbers...)
	fields = append(fields, "delay", delay.String(), "exit_code", exitCode)
	log.With(workflow.GetLogger(ctx), "subsystem", "git/network").Warn("git retry", fields...)
}

// spoken writes a duration with a space before its unit where there is one unit.
func spoken(d time.Duration) string {
	if d%time.Second == 0 && d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return d.String()
}

// gitCall is one attempt of one activity.
type gitCall struct {
	activity string
	summary  string
	request  contract.GitRequest
	// limit is the attempt's own time; it is also how long it may wait for a
	// worker.
	limit time.Duration
	// awaited is as of gitStep.
	awaited bool
	// bounded says that it is given up soon after its limit, since another can
	// be made.
	bounded bool
}

// call makes one attempt, whose result goes into the given value.
func (g *gitOperation) call(ctx workflow.Context, c gitCall, into any) *contract.Failure {
	c.limit = max(c.limit, time.Millisecond)
	c.request.LimitMS = c.limit.Milliseconds()
	options := workflow.ActivityOptions{
		ScheduleToStartTimeout: c.limit,
		StartToCloseTimeout:    c.limit + gitGrace,
		HeartbeatTimeout:       gitHeartbeat,
		WaitForCancellation:    c.awaited,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                cut(c.summary, maxSummary),
	}
	if c.bounded {
		options.ScheduleToCloseTimeout = c.limit + gitReadGrace
	}
	future := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), c.activity, c.request)
	var err error
	if c.awaited {
		err = getWithGrace(ctx, future, into)
	} else {
		err = future.Get(ctx, into)
	}
	if err == nil {
		return nil
	}
	fault := gitFault(err)
	return &fault
}

// gitFault is the failure of a Git activity. One that no worker began in time
// has done nothing.
func gitFault(err error) contract.Failure {
	fault := failure.From(err)
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) && timeout.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START {
		fault.Rule, fault.Effect = "G1/not_begun", string(policies.EffectNotSent)
		fault.Message = "no worker began the work in time; see that one runs for this host, then try again"
	}
	return fault
}
