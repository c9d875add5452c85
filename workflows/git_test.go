package workflows

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

// gitRun drives one Git workflow through scripted attempts, in skipped time.
type gitRun struct {
	env      *testsuite.TestWorkflowEnvironment
	start    time.Time
	script   []func() (contract.GitResult, error)
	requests []contract.GitRequest
	at       []time.Duration // when each attempt began
	timers   []time.Duration
	logs     bytes.Buffer
}

func newGitRun(t *testing.T, script ...func() (contract.GitResult, error)) *gitRun {
	t.Helper()
	g := &gitRun{script: script}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewJSONHandler(&g.logs, nil))))
	g.env = suite.NewTestWorkflowEnvironment()
	g.start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	g.env.SetStartTime(g.start)
	attempt := func(_ context.Context, in contract.GitRequest) (contract.GitResult, error) {
		g.requests = append(g.requests, in)
		g.at = append(g.at, g.env.Now().Sub(g.start))
		if len(g.requests) > len(g.script) {
			t.Errorf("attempt %d was not expected", len(g.requests))
			return contract.GitResult{}, gitFailure("unclassified", false, 0)
		}
		return g.script[len(g.requests)-1]()
	}
	for _, name := range []string{contract.ActivityGitFetch, contract.ActivityGitLsRemote} {
		g.env.RegisterActivityWithOptions(attempt, activity.RegisterOptions{Name: name})
	}
	g.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) { g.timers = append(g.timers, d) })
	return g
}

func (g *gitRun) fetch(t *testing.T, in contract.GitFetchInput) contract.GitResult {
	t.Helper()
	g.env.ExecuteWorkflow(GitFetch, in)
	return g.result(t)
}

func (g *gitRun) result(t *testing.T) contract.GitResult {
	t.Helper()
	if err := g.env.GetWorkflowError(); err != nil {
		t.Fatalf("the workflow failed: %v", err)
	}
	var res contract.GitResult
	if err := g.env.GetWorkflowResult(&res); err != nil {
		t.Fatal(err)
	}
	return res
}

// warnings are the warnings of the run's log.
func (g *gitRun) warnings(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(g.logs.String()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if entry["level"] == "WARN" {
			out = append(out, entry)
		}
	}
	return out
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

func fails(reason string, retry bool) func() (contract.GitResult, error) {
	return func() (contract.GitResult, error) { return contract.GitResult{}, gitFailure(reason, retry, 0) }
}

func succeeds() (contract.GitResult, error) {
	return contract.GitResult{Outcome: contract.OutcomeFetched}, nil
}

var gitIn = contract.GitFetchInput{Dir: "/c/arguments", URL: "https://git.example/arguments", Ref: "arguments"}

// G1, G8: a transient failure is retried once, after exactly 1 s, on a timer
// that says why; one warning is logged, without arguments, URL or output.
func TestGitRetriesOnce(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, fails("server_error", true), succeeds)
	var waiting contract.GitState
	g.env.RegisterDelayedCallback(func() {
		v, err := g.env.QueryWorkflow(contract.QueryState)
		if err == nil {
			err = v.Get(&waiting)
		}
		if err != nil {
			t.Error(err)
		}
	}, 500*time.Millisecond)
	res := g.fetch(t, gitIn)
	if res.Outcome != contract.OutcomeFetched || res.Error != nil {
		t.Errorf("result %+v, want fetched", res)
	}
	if diff := cmp.Diff([]time.Duration{time.Second}, g.timers); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, time.Second}, g.at); diff != "" {
		t.Errorf("attempts began at (-want +got):\n%s", diff)
	}
	if got := []int64{g.requests[0].LimitMS, g.requests[1].LimitMS}; got[0] != 120_000 || got[1] != 119_000 {
		t.Errorf("limits %v, want 120000 and 119000", got)
	}
	want := contract.GitState{State: "waiting", Attempt: 2, Notice: "wait 1 s: server_error, attempt 2 of 2"}
	if diff := cmp.Diff(want, waiting); diff != "" {
		t.Errorf("state while waiting (-want +got):\n%s", diff)
	}

	warnings := g.warnings(t)
	if len(warnings) != 1 {
		t.Fatalf("%d warnings, want 1: %v", len(warnings), warnings)
	}
	for key, want := range map[string]any{
		"subsystem": "git/network", "operation": "fetch", "attempt": 2.0, "max_attempts": 2.0, "delay": "1s", "exit_code": 1.0,
	} {
		if warnings[0][key] != want {
			t.Errorf("warning: %s is %v, want %v", key, warnings[0][key], want)
		}
	}
	if strings.Contains(g.logs.String(), "arguments") || strings.Contains(g.logs.String(), "said no") {
		t.Errorf("arguments, URL or output are logged: %s", g.logs.String())
	}
}

// G1: two attempts are all there are. G3: what is denied is never retried.
func TestGitEndsInAFailure(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		script   []func() (contract.GitResult, error)
		reason   string
		attempts int
	}{
		{"transient twice", []func() (contract.GitResult, error){fails("timeout", true), fails("server_error", true)}, "server_error", 2},
		{"transient, then denied", []func() (contract.GitResult, error){fails("timeout", true), fails("auth", false)}, "auth", 2},
		{"denied", []func() (contract.GitResult, error){fails("auth", false)}, "auth", 1},
		{"output limit", []func() (contract.GitResult, error){fails("output_limit", false)}, "output_limit", 1},
		{"foreign", []func() (contract.GitResult, error){func() (contract.GitResult, error) {
			return contract.GitResult{}, errors.New("boom")
		}}, "unclassified", 1},
	} {
		g := newGitRun(t, tc.script...)
		res := g.fetch(t, gitIn)
		if res.Outcome != contract.OutcomeFailed || res.Error == nil {
			t.Errorf("%s: result %+v, want failed", tc.name, res)
			continue
		}
		if e := res.Error; e.Reason != tc.reason || e.Attempts != tc.attempts || e.Rule == "" || e.Message == "" {
			t.Errorf("%s: error %+v, want %s after %d attempts", tc.name, e, tc.reason, tc.attempts)
		}
		if len(g.requests) != tc.attempts || len(g.warnings(t)) != tc.attempts-1 {
			t.Errorf("%s: %d requests, %d warnings, want %d and one less", tc.name, len(g.requests), len(g.warnings(t)), tc.attempts)
		}
	}
}

// G1: the retry is inside the original timeout; with 1 s or less left there is
// none, and the second attempt gets what is left.
func TestGitRetryWithinTheTimeout(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		timeout string
		limits  []int64
	}{
		{"1s", []int64{1000}},
		{"999ms", []int64{999}},
		{"1001ms", []int64{1001, 1}},
		{"10s", []int64{10_000, 9000}},
		{"2m", []int64{120_000, 119_000}},
		{"", []int64{120_000, 119_000}},
	} {
		g := newGitRun(t, fails("timeout", true), fails("timeout", true))
		in := gitIn
		in.Timeout = tc.timeout
		res := g.fetch(t, in)
		var limits []int64
		for _, r := range g.requests {
			limits = append(limits, r.LimitMS)
		}
		if diff := cmp.Diff(tc.limits, limits); diff != "" {
			t.Errorf("timeout %q: limits (-want +got):\n%s", tc.timeout, diff)
		}
		if res.Error == nil || res.Error.Reason != "timeout" {
			t.Errorf("timeout %q: %+v, want the cause", tc.timeout, res)
		}
	}
}

// P2: a floor is never undercut, and one that passes the deadline is not waited
// for: the end names the reset time.
func TestGitFloors(t *testing.T) {
	t.Parallel()
	limited := func(floor time.Duration) func() (contract.GitResult, error) {
		return func() (contract.GitResult, error) { return contract.GitResult{}, gitFailure("rate_limit", true, floor) }
	}
	g := newGitRun(t, limited(7*time.Second), succeeds)
	if res := g.fetch(t, gitIn); res.Outcome != contract.OutcomeFetched {
		t.Errorf("floor of 7 s: %+v", res)
	}
	if diff := cmp.Diff([]time.Duration{7 * time.Second}, g.timers); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	if got := g.requests[1].LimitMS; got != 113_000 {
		t.Errorf("second limit %d, want 113000", got)
	}
	for _, floor := range []time.Duration{2 * time.Minute, time.Hour} {
		g = newGitRun(t, limited(floor))
		res := g.fetch(t, gitIn)
		if res.Error == nil || res.Error.Reason != "rate_limit" || res.Error.ResetAt != g.start.Add(floor).Format(time.RFC3339) {
			t.Errorf("floor of %v: %+v, want its reset time", floor, res.Error)
		}
		if len(g.timers) != 0 {
			t.Errorf("floor of %v: waited %v", floor, g.timers)
		}
	}
	g = newGitRun(t, limited(10*time.Millisecond), succeeds)
	g.fetch(t, gitIn)
	if diff := cmp.Diff([]time.Duration{time.Second}, g.timers); diff != "" {
		t.Errorf("a floor below the minimum: timers (-want +got):\n%s", diff)
	}
}

// G3: a lost worker is not a killed process: one more attempt, at once and not
// charged, so that a transient failure after it is still retried.
func TestGitLostWorker(t *testing.T) {
	t.Parallel()
	lost := func() (contract.GitResult, error) { return contract.GitResult{}, temporal.NewHeartbeatTimeoutError() }
	closed := func() (contract.GitResult, error) {
		return contract.GitResult{}, temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)
	}
	for name, first := range map[string]func() (contract.GitResult, error){"heartbeat": lost, "start to close": closed} {
		g := newGitRun(t, first, fails("timeout", true), succeeds)
		res := g.fetch(t, gitIn)
		if res.Outcome != contract.OutcomeFetched || len(g.requests) != 3 {
			t.Errorf("%s: %+v after %d requests, want fetched after 3", name, res, len(g.requests))
		}
		if diff := cmp.Diff([]time.Duration{time.Second}, g.timers); diff != "" {
			t.Errorf("%s: timers (-want +got):\n%s", name, diff)
		}
	}
	g := newGitRun(t, lost, lost)
	res := g.fetch(t, gitIn)
	if res.Error == nil || res.Error.Reason != "worker_lost" || res.Error.Attempts != 2 {
		t.Errorf("lost twice: %+v, want worker_lost after 2 attempts", res)
	}
}

// G5: cancellation stops the wait at once.
func TestGitCancelledWhileWaiting(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, fails("timeout", true))
	g.env.RegisterDelayedCallback(g.env.CancelWorkflow, 300*time.Millisecond)
	res := g.fetch(t, gitIn)
	if res.Outcome != contract.OutcomeCancelled || res.Error.Attempts != 1 || len(g.requests) != 1 {
		t.Errorf("%+v after %d requests, want cancelled after 1", res, len(g.requests))
	}
	if got := g.env.Now().Sub(g.start); got != 300*time.Millisecond {
		t.Errorf("ended after %v, want 300ms", got)
	}
}

// G9, I1: what cannot work is refused before anything is sent, and the reason
// never repeats a credential.
func TestGitInput(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		run  func(g *gitRun)
		hint string
	}{
		{"credential", func(g *gitRun) {
			g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: "https://u:s3cr3t@git.example/r"})
		}, "--auth"},
		{"no URL", func(g *gitRun) { g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{}) }, "URL"},
		{"scheme", func(g *gitRun) { g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: "ftp://h/s3cr3t"}) }, "https"},
		{"timeout", func(g *gitRun) {
			g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: "https://h/r", Timeout: "soon"})
		}, "90s"},
		{"negative timeout", func(g *gitRun) {
			g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: "https://h/r", Timeout: "-1s"})
		}, "90s"},
		{"no dir", func(g *gitRun) { g.env.ExecuteWorkflow(GitFetch, contract.GitFetchInput{}) }, "--dir"},
		{"credential in fetch", func(g *gitRun) {
			g.env.ExecuteWorkflow(GitFetch, contract.GitFetchInput{Dir: "/c", URL: "https://s3cr3t@h/r"})
		}, "--auth"},
	} {
		g := newGitRun(t)
		tc.run(g)
		res := g.result(t)
		if res.Outcome != contract.OutcomeFailed || res.Error.Reason != "format" || res.Error.Attempts != 0 {
			t.Errorf("%s: %+v, want failed, format, 0 attempts", tc.name, res)
			continue
		}
		if !strings.Contains(res.Error.Message, tc.hint) || strings.Contains(res.Error.Message, "s3cr3t") {
			t.Errorf("%s: message %q, want a word on %s", tc.name, res.Error.Message, tc.hint)
		}
	}
}

// I4: the end is searchable, by one upsert.
func TestGitSearchAttributes(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, fails("auth", false))
	var ended []temporal.SearchAttributes
	g.env.OnUpsertTypedSearchAttributes(mock.MatchedBy(func(sa temporal.SearchAttributes) bool {
		ended = append(ended, sa)
		return true
	})).Return(nil).Once()
	g.fetch(t, gitIn)
	if len(ended) != 1 {
		t.Fatalf("%d upserts, want 1", len(ended))
	}
	for key, want := range map[string]string{contract.AttributeOutcome: "failed", contract.AttributeReason: "auth"} {
		if got, _ := ended[0].GetKeyword(temporal.NewSearchAttributeKeyKeyword(key)); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}
