package workflows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

// G1, G8: a transient failure is retried once, after exactly 1 s, on a timer
// that says why; one warning is logged, without arguments, URL or output.
func TestGitRetriesOnce(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, fails("server_error", true), succeeds)
	waiting := g.stateAt(500 * time.Millisecond)
	res := g.fetch(t, gitIn)
	if res.Outcome != contract.OutcomeFetched || res.Error != nil {
		t.Errorf("result %+v, want fetched", res)
	}
	if diff := cmp.Diff([]time.Duration{time.Second}, g.waits()); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]time.Duration{0, time.Second}, g.at); diff != "" {
		t.Errorf("attempts began at (-want +got):\n%s", diff)
	}
	if got := []int64{g.requests[0].LimitMS, g.requests[1].LimitMS}; got[0] != 120_000 || got[1] != 119_000 {
		t.Errorf("limits %v, want 120000 and 119000", got)
	}
	want := contract.GitState{State: "waiting", Attempt: 2, Notice: "wait 1 s: server_error, attempt 2 of 2"}
	if diff := cmp.Diff(want, *waiting); diff != "" {
		t.Errorf("state while waiting (-want +got):\n%s", diff)
	}

	warnings := g.warnings()
	if len(warnings) != 1 {
		t.Fatalf("%d warnings, want 1: %v", len(warnings), warnings)
	}
	for key, want := range map[string]string{
		"subsystem": "git/network", "operation": "fetch", "attempt": "2", "max_attempts": "2", "delay": "1s", "exit_code": "1",
	} {
		if warnings[0][key] != want {
			t.Errorf("warning: %s is %q, want %q", key, warnings[0][key], want)
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
		script   []gitAnswer
		reason   string
		attempts int
	}{
		{"transient twice", []gitAnswer{fails("timeout", true), fails("server_error", true)}, "server_error", 2},
		{"transient, then denied", []gitAnswer{fails("timeout", true), fails("auth", false)}, "auth", 2},
		{"denied", []gitAnswer{fails("auth", false)}, "auth", 1},
		{"output limit", []gitAnswer{fails("output_limit", false)}, "output_limit", 1},
		{"foreign", []gitAnswer{{err: errors.New("boom")}}, "unclassified", 1},
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
		if len(g.requests) != tc.attempts || len(g.warnings()) != tc.attempts-1 {
			t.Errorf("%s: %d requests, %d warnings, want %d and one less", tc.name, len(g.requests), len(g.warnings()), tc.attempts)
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
		if diff := cmp.Diff(tc.limits, g.limits()); diff != "" {
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
	g := newGitRun(t, limited(7*time.Second), succeeds)
	if res := g.fetch(t, gitIn); res.Outcome != contract.OutcomeFetched {
		t.Errorf("floor of 7 s: %+v", res)
	}
	if diff := cmp.Diff([]time.Duration{7 * time.Second}, g.waits()); diff != "" {
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
		if len(g.waits()) != 0 {
			t.Errorf("floor of %v: waited %v", floor, g.waits())
		}
	}
	endless := contract.Failure{Reason: "rate_limit", RetrySame: true, FloorInfinite: true, FloorSource: "retry-after", Message: "never"}
	g = newGitRun(t, gitAnswer{err: failure.New(endless, failure.Options{})})
	if res := g.fetch(t, gitIn); res.Error == nil || res.Error.Reason != "rate_limit" || len(g.waits()) != 0 {
		t.Errorf("a floor for ever: %+v", res)
	}
	g = newGitRun(t, limited(10*time.Millisecond), succeeds)
	g.fetch(t, gitIn)
	if diff := cmp.Diff([]time.Duration{time.Second}, g.waits()); diff != "" {
		t.Errorf("a floor below the minimum: timers (-want +got):\n%s", diff)
	}
}

// G3: a lost worker is not a killed process: one more attempt, at once and not
// charged, so that a transient failure after it is still retried.
func TestGitLostWorker(t *testing.T) {
	t.Parallel()
	closed := gitAnswer{err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)}
	for name, first := range map[string]gitAnswer{"heartbeat": vanishes(), "start to close": closed} {
		g := newGitRun(t, first, fails("timeout", true), succeeds)
		res := g.fetch(t, gitIn)
		if res.Outcome != contract.OutcomeFetched || len(g.requests) != 3 {
			t.Errorf("%s: %+v after %d requests, want fetched after 3", name, res, len(g.requests))
		}
		if diff := cmp.Diff([]time.Duration{time.Second}, g.waits()); diff != "" {
			t.Errorf("%s: timers (-want +got):\n%s", name, diff)
		}
	}
	g := newGitRun(t, vanishes(), vanishes())
	res := g.fetch(t, gitIn)
	if res.Error == nil || res.Error.Reason != "worker_lost" || res.Error.Attempts != 2 {
		t.Errorf("lost twice: %+v, want worker_lost after 2 attempts", res)
	}
	// The timeout bounds this attempt too.
	in := gitIn
	in.Timeout = "3s"
	g = newGitRun(t, vanishes().after(15*time.Second))
	if res = g.fetch(t, in); res.Error == nil || res.Error.Reason != "worker_lost" || res.Error.Attempts != 1 {
		t.Errorf("lost beyond the timeout: %+v, want worker_lost after 1 attempt", res)
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
	if got := g.since(); got != 300*time.Millisecond {
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
		}, "positive duration"},
		{"negative timeout", func(g *gitRun) {
			g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: "https://h/r", Timeout: "-1s"})
		}, "positive duration"},
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

// G1: the timeout is that of the operation. A failure that leaves no more than
// the delay of the retry is the end, and otherwise the retry has what is left.
func TestGitTimeoutIsShared(t *testing.T) {
	t.Parallel()
	in := gitIn
	in.Timeout = "3s"
	g := newGitRun(t, fails("server_error", true).after(2500*time.Millisecond))
	res := g.fetch(t, in)
	if res.Error == nil || res.Error.Reason != "server_error" || res.Error.Attempts != 1 || g.since() != 2500*time.Millisecond || len(g.warnings()) != 0 {
		t.Errorf("failed after 2.5 s of 3 s: %s, ended after %v with %d warnings", jsonOf(res), g.since(), len(g.warnings()))
	}
	g = newGitRun(t, fails("server_error", true).after(1500*time.Millisecond), succeeds)
	if res = g.fetch(t, in); res.Outcome != contract.OutcomeFetched {
		t.Errorf("failed with 1.5 s left: %s", jsonOf(res))
	}
	if diff := cmp.Diff([]int64{3000, 500}, g.limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if second := g.seen.activities[1]; second.ScheduleToStartTimeout != 500*time.Millisecond || second.StartToCloseTimeout != 500*time.Millisecond+gitGrace {
		t.Errorf("the second attempt may take %+v", second)
	}
}

// G1: where the second attempt fails otherwise, the first cause is told too.
func TestGitTellsTheFirstCause(t *testing.T) {
	t.Parallel()
	first := contract.Failure{Reason: "server_error", RetrySame: true, Message: "the remote answered 503"}
	second := contract.Failure{Reason: "deadline", Permanent: true, Message: "the time was spent"}
	for _, tc := range []struct {
		second contract.Failure
		want   string
	}{
		{second, "the time was spent; the first attempt failed otherwise: the remote answered 503"},
		{first, "the remote answered 503"},
	} {
		g := newGitRun(t, gitAnswer{err: failure.New(first, failure.Options{})}, gitAnswer{err: failure.New(tc.second, failure.Options{})})
		if res := g.fetch(t, gitIn); res.Error == nil || res.Error.Message != tc.want || res.Error.Reason != tc.second.Reason {
			t.Errorf("%s, want %q", jsonOf(res), tc.want)
		}
	}
}

// G8: the warning has the exit code of the program that failed.
func TestGitWarnsOfTheExitCode(t *testing.T) {
	t.Parallel()
	f := contract.Failure{Reason: "timeout", RetrySame: true, Message: "lost", ExitCode: 128}
	g := newGitRun(t, gitAnswer{err: failure.New(f, failure.Options{})}, succeeds)
	g.fetch(t, gitIn)
	if w := g.warnings(); len(w) != 1 || w[0]["exit_code"] != "128" {
		t.Errorf("warnings %v", w)
	}
}

// A worker that never came has done nothing, and the failure says what is
// missing.
func TestGitNotBegun(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, neverBegins())
	res := g.fetch(t, gitIn)
	if e := res.Error; e == nil || e.Reason != "deadline" || e.Rule != "G1/not_begun" || !strings.Contains(e.Message, "host") {
		t.Errorf("%s", jsonOf(res))
	}
}

// G2: a clone is tried as a fetch is, and asks for what was asked of it.
func TestGitClone(t *testing.T) {
	t.Parallel()
	in := contract.GitCloneInput{
		URL: "https://git.example/r", Dir: "/c/new", Ref: "main", Depth: 3, SingleBranch: true, NoTags: true, Sparse: []string{"docs"}, Auth: "github",
	}
	cloned := gitAnswer{of: contract.ActivityGitClone, result: contract.GitResult{
		Outcome: contract.OutcomeCloned, Head: &contract.GitHead{Ref: "refs/heads/main", OID: gitNew},
	}}
	for _, tc := range []struct {
		name     string
		script   []gitAnswer
		outcome  contract.Outcome
		reason   string
		waits    []time.Duration
		attempts int
	}{
		{"at once", []gitAnswer{cloned}, contract.OutcomeCloned, "", nil, 1},
		{"after a failure", []gitAnswer{fails("timeout", true), cloned}, contract.OutcomeCloned, "", []time.Duration{time.Second}, 2},
		{"not at all", []gitAnswer{fails("timeout", true), fails("timeout", true)}, contract.OutcomeFailed, "timeout", []time.Duration{time.Second}, 2},
		{"denied", []gitAnswer{fails("no_space", false)}, contract.OutcomeFailed, "no_space", nil, 1},
		{"after a lost worker", []gitAnswer{vanishes(), fails("timeout", true), cloned}, contract.OutcomeCloned, "", []time.Duration{time.Second}, 3},
	} {
		g := newGitRun(t, tc.script...)
		g.env.ExecuteWorkflow(GitClone, in)
		res := g.result(t)
		reason := ""
		if res.Error != nil {
			reason = res.Error.Reason
		}
		if res.Outcome != tc.outcome || reason != tc.reason || g.times(contract.ActivityGitClone) != tc.attempts {
			t.Errorf("%s: %s after %v", tc.name, jsonOf(res), g.called)
		}
		if res.Outcome == contract.OutcomeCloned && res.Head == nil {
			t.Errorf("%s: what is checked out is not told", tc.name)
		}
		if diff := cmp.Diff(tc.waits, g.waits()); diff != "" {
			t.Errorf("%s: timers (-want +got):\n%s", tc.name, diff)
		}
		want := contract.GitRequest{
			URL: in.URL, Dir: in.Dir, Ref: "main", Depth: 3, SingleBranch: true, NoTags: true, Sparse: []string{"docs"}, Auth: "github",
			LimitMS: g.requests[0].LimitMS,
		}
		if diff := cmp.Diff(want, g.requests[0]); diff != "" {
			t.Errorf("%s: request (-want +got):\n%s", tc.name, diff)
		}
	}
	for hint, bad := range map[string]contract.GitCloneInput{
		"URL is empty": {Dir: "/c"}, "--dir": {URL: in.URL}, "depth": {URL: in.URL, Dir: "/c", Depth: -1},
	} {
		g := newGitRun(t)
		g.env.ExecuteWorkflow(GitClone, bad)
		if res := g.result(t); res.Outcome != contract.OutcomeFailed || res.Error.Reason != "format" || !strings.Contains(res.Error.Message, hint) {
			t.Errorf("%s: %s", hint, jsonOf(res))
		}
	}
}

// G7: a sync is a fetch, retried as one, and then a fast-forward, which is
// repeated only for a lost worker. What the fetch moved is told in any case.
func TestGitSync(t *testing.T) {
	t.Parallel()
	moved := []contract.GitUpdate{{Ref: "refs/remotes/origin/main", Old: gitOld, New: gitNew}}
	fetched := gitAnswer{of: contract.ActivityGitFetch, result: contract.GitResult{Outcome: contract.OutcomeFetched, Updated: moved, Truncated: true}}
	forward := func(outcome contract.Outcome) gitAnswer {
		return gitAnswer{of: contract.ActivityGitFastForward, result: contract.GitResult{
			Outcome: outcome, Head: &contract.GitHead{Ref: "refs/heads/main", OID: gitNew},
		}}
	}
	for _, tc := range []struct {
		name    string
		script  []gitAnswer
		outcome contract.Outcome
		rule    string
		moved   bool
	}{
		{"synced", []gitAnswer{fetched, forward(contract.OutcomeSynced)}, contract.OutcomeSynced, "", true},
		{"up to date, though refs moved", []gitAnswer{fetched, forward(contract.OutcomeUpToDate)}, contract.OutcomeUpToDate, "", true},
		{"behind, though no ref moved", []gitAnswer{{result: contract.GitResult{Outcome: contract.OutcomeUpToDate}}, forward(contract.OutcomeSynced)}, contract.OutcomeSynced, "", false},
		{"diverged", []gitAnswer{fetched, forward(contract.OutcomeDiverged)}, contract.OutcomeDiverged, "G7/diverged", true},
		{"fetched at the second attempt", []gitAnswer{fails("timeout", true), fetched, forward(contract.OutcomeSynced)}, contract.OutcomeSynced, "", true},
		{"not fetched", []gitAnswer{fails("auth", false)}, contract.OutcomeFailed, "G4/test", false},
		{"files in the way", []gitAnswer{fetched, fails("conflict", false)}, contract.OutcomeFailed, "G4/test", true},
		{"not repeated", []gitAnswer{fetched, fails("lock", true)}, contract.OutcomeFailed, "G4/test", true},
		{"worker lost", []gitAnswer{fetched, vanishes(), forward(contract.OutcomeSynced)}, contract.OutcomeSynced, "", true},
		{"worker lost twice", []gitAnswer{fetched, vanishes(), vanishes()}, contract.OutcomeFailed, "C2.8/worker_lost", true},
	} {
		g := newGitRun(t, tc.script...)
		g.env.ExecuteWorkflow(GitSync, contract.GitSyncInput{Dir: "/c", Ref: "main", Auth: "github"})
		res := g.result(t)
		rule := ""
		if res.Error != nil {
			rule = res.Error.Rule
		}
		if res.Outcome != tc.outcome || rule != tc.rule || len(g.requests) != len(tc.script) {
			t.Errorf("%s: %s after %v", tc.name, jsonOf(res), g.called)
		}
		if (len(res.Updated) == 1 && res.Truncated) != tc.moved {
			t.Errorf("%s: moved %v", tc.name, res.Updated)
		}
		if tc.outcome.ExitStatus() == contract.ExitOK && res.Head == nil {
			t.Errorf("%s: what is checked out is not told", tc.name)
		}
	}
	// The fast-forward has what the fetch has left of the time.
	g := newGitRun(t, fetched.after(50*time.Second), forward(contract.OutcomeSynced))
	g.env.ExecuteWorkflow(GitSync, contract.GitSyncInput{Dir: "/c"})
	g.result(t)
	if diff := cmp.Diff([]int64{120_000, 70_000}, g.limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	g = newGitRun(t, fetched.after(2*time.Minute))
	g.env.ExecuteWorkflow(GitSync, contract.GitSyncInput{Dir: "/c"})
	if res := g.result(t); res.Outcome != contract.OutcomeFailed || res.Error.Rule != "G1/timeout" || len(res.Updated) != 1 {
		t.Errorf("no time for the fast-forward: %s", jsonOf(res))
	}
}

// G7: a sync fetches the branch that it follows, even where a tag has its name.
func TestGitSyncNamesItsBranch(t *testing.T) {
	t.Parallel()
	for ref, want := range map[string]string{"": "", "main": "refs/heads/main", "refs/heads/x": "refs/heads/x"} {
		if got := branchOf(ref); got != want {
			t.Errorf("branchOf(%q) is %q, want %q", ref, got, want)
		}
	}
}
