package workflows

import (
	"context"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

// gitRun drives one Git workflow through scripted attempts, in skipped time.
type gitRun struct {
	*harness
	script   []gitAnswer
	called   []string // the activities, in their order
	requests []contract.GitRequest
	at       []time.Duration // when each attempt began
}

// gitAnswer is how one attempt goes: of which activity, if that matters, after
// how long, and with what.
type gitAnswer struct {
	of     string
	took   time.Duration
	result any
	err    error
}

// after is the same answer after some time.
func (a gitAnswer) after(d time.Duration) gitAnswer {
	a.took = d
	return a
}

func newGitRun(t *testing.T, script ...gitAnswer) *gitRun {
	t.Helper()
	g := &gitRun{harness: newHarness(t, "git/k"), script: script}
	for _, name := range []string{
		contract.ActivityGitFetch, contract.ActivityGitLsRemote, contract.ActivityGitClone, contract.ActivityGitFastForward,
		contract.ActivityGitPushIntent, contract.ActivityGitPush, contract.ActivityGitLocate,
	} {
		g.env.RegisterActivityWithOptions(g.attempt, activity.RegisterOptions{Name: name})
	}
	return g
}

func (g *gitRun) attempt(ctx context.Context, in contract.GitRequest) (any, error) {
	info := activity.GetInfo(ctx)
	g.called = append(g.called, info.ActivityType.Name)
	g.requests = append(g.requests, in)
	g.at = append(g.at, g.since())
	n := len(g.requests)
	if n > len(g.script) {
		g.t.Errorf("attempt %d (%s) was not expected", n, info.ActivityType.Name)
		return nil, gitFailure("unclassified", false, 0)
	}
	answer := g.script[n-1]
	if answer.of != "" && answer.of != info.ActivityType.Name {
		g.t.Errorf("attempt %d is of %s, want %s", n, info.ActivityType.Name, answer.of)
	}
	if answer.took == 0 {
		return answer.result, answer.err
	}
	token := info.TaskToken
	g.env.RegisterDelayedCallback(func() {
		if err := g.env.CompleteActivity(token, answer.result, answer.err); err != nil {
			g.t.Error(err)
		}
	}, answer.took)
	return nil, activity.ErrResultPending
}

func (g *gitRun) fetch(t *testing.T, in contract.GitFetchInput) contract.GitResult {
	t.Helper()
	g.env.ExecuteWorkflow(GitFetch, in)
	return g.result(t)
}

func (g *gitRun) result(t *testing.T) contract.GitResult {
	t.Helper()
	var res contract.GitResult
	g.check(&res)
	return res
}

// waits are how long the timers were.
func (g *gitRun) waits() (waits []time.Duration) {
	for _, tm := range g.seen.timers {
		waits = append(waits, tm.D)
	}
	return waits
}

// limits are what the attempts were given, in milliseconds.
func (g *gitRun) limits() (limits []int64) {
	for _, r := range g.requests {
		limits = append(limits, r.LimitMS)
	}
	return limits
}

// times says how often an activity was called.
func (g *gitRun) times(name string) (n int) {
	for _, called := range g.called {
		if called == name {
			n++
		}
	}
	return n
}

// failedReadings says how many readings after a push were told to fail.
func (g *gitRun) failedReadings() (n int) {
	for i, name := range g.called {
		if name == contract.ActivityGitLocate && g.script[i].err != nil {
			n++
		}
	}
	return n
}

// stateAt is what the "state" query answered at a time of the run.
func (g *gitRun) stateAt(d time.Duration) *contract.GitState {
	var state contract.GitState
	g.env.RegisterDelayedCallback(func() { g.query(contract.QueryState, &state) }, d)
	return &state
}

// warnings are the warnings of the run's log, by key and value.
func (g *gitRun) warnings() (warnings []map[string]string) {
	for line := range strings.Lines(g.logs.String()) {
		if !strings.Contains(line, "level=WARN") {
			continue
		}
		entry := map[string]string{}
		for _, field := range strings.Fields(line) {
			if key, value, ok := strings.Cut(field, "="); ok {
				entry[key] = value
			}
		}
		warnings = append(warnings, entry)
	}
	return warnings
}

func gitFailure(reason string, retry bool, floor time.Duration) error {
	f := contract.Failure{
		Surface: "git", Reason: reason, Rule: "G4/test", RetrySame: retry, Permanent: !retry, Effect: "none",
		Message: "the remote said no", Attempts: 1,
	}
	if floor > 0 {
		ms := floor.Milliseconds()
		f.FloorMS, f.FloorSource = &ms, "retry-after"
	}
	return failure.New(f, failure.Options{})
}

func fails(reason string, retry bool) gitAnswer { return gitAnswer{err: gitFailure(reason, retry, 0)} }

func limited(floor time.Duration) gitAnswer {
	return gitAnswer{err: gitFailure("rate_limit", true, floor)}
}

// vanishes is an attempt whose worker was lost.
func vanishes() gitAnswer { return gitAnswer{err: temporal.NewHeartbeatTimeoutError()} }

var (
	succeeds = gitAnswer{result: contract.GitResult{Outcome: contract.OutcomeFetched}}
	listed   = gitAnswer{result: contract.GitResult{Outcome: contract.OutcomeListed}}
)

var gitIn = contract.GitFetchInput{Dir: "/c/arguments", URL: "https://git.example/arguments", Ref: "arguments"}

// What a remote's ref is, and is to become.
const (
	gitOld   = "1111111111111111111111111111111111111111"
	gitNew   = "2222222222222222222222222222222222222222"
	gitOther = "3333333333333333333333333333333333333333"
)

// neverBegins is an attempt that no worker took up in time.
func neverBegins() gitAnswer {
	return gitAnswer{err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)}
}
