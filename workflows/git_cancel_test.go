package workflows

import (
	"testing"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
)

// cancelled runs a Git workflow and cancels it after 5 s.
func cancelled(t *testing.T, flow, in any, script ...gitAnswer) (*gitRun, contract.GitResult) {
	t.Helper()
	g := newGitRun(t, script...)
	g.env.RegisterDelayedCallback(g.env.CancelWorkflow, 5*time.Second)
	g.env.ExecuteWorkflow(flow, in)
	return g, g.result(t)
}

// G5: cancellation ends an operation within a second, whatever its activity
// does. One that writes is given a moment to tell how it ended.
func TestGitCancelledInATransfer(t *testing.T) {
	t.Parallel()
	slow := func(a gitAnswer) gitAnswer { return a.after(time.Hour) }
	ms := time.Millisecond
	moved := []contract.GitUpdate{{Ref: "refs/heads/main", New: gitNew}}
	fetched := gitAnswer{result: contract.GitResult{Outcome: contract.OutcomeFetched, Updated: moved}}
	clone := contract.GitCloneInput{URL: gitIn.URL, Dir: "/c/new"}
	for _, tc := range []struct {
		name    string
		flow    any
		in      any
		script  []gitAnswer
		outcome contract.Outcome
		ended   time.Duration
		moved   bool // the refs that a fetch moved are told
	}{
		{"listing", GitLsRemote, contract.GitLsRemoteInput{URL: gitIn.URL}, []gitAnswer{slow(listed)}, contract.OutcomeCancelled, 5000 * ms, false},
		{"fetch", GitFetch, gitIn, []gitAnswer{slow(succeeds)}, contract.OutcomeCancelled, 5700 * ms, false},
		{"fetch that tells of its end", GitFetch, gitIn, []gitAnswer{fails("cancelled", false).after(5300 * ms)}, contract.OutcomeCancelled, 5300 * ms, false},
		{"fetch that was faster", GitFetch, gitIn, []gitAnswer{fetched.after(5300 * ms)}, contract.OutcomeFetched, 5300 * ms, true},
		{"the second attempt", GitFetch, gitIn, []gitAnswer{fails("timeout", true), slow(succeeds)}, contract.OutcomeCancelled, 5700 * ms, false},
		{"clone", GitClone, clone, []gitAnswer{slow(succeeds)}, contract.OutcomeCancelled, 5700 * ms, false},
		{"clone's wait", GitClone, clone, []gitAnswer{fails("timeout", true).after(4500 * ms)}, contract.OutcomeCancelled, 5000 * ms, false},
		{"sync's fetch", GitSync, contract.GitSyncInput{Dir: "/c"}, []gitAnswer{slow(succeeds)}, contract.OutcomeCancelled, 5700 * ms, false},
		{"sync's fast-forward", GitSync, contract.GitSyncInput{Dir: "/c"}, []gitAnswer{fetched, slow(succeeds)}, contract.OutcomeCancelled, 5700 * ms, true},
		{"sync between", GitSync, contract.GitSyncInput{Dir: "/c"}, []gitAnswer{fetched.after(5300 * ms)}, contract.OutcomeCancelled, 5300 * ms, true},
		{"reading before a push", GitPush, pushIn, []gitAnswer{slow(planned)}, contract.OutcomeCancelled, 5000 * ms, false},
	} {
		g, res := cancelled(t, tc.flow, tc.in, tc.script...)
		if res.Outcome != tc.outcome || len(g.requests) != len(tc.script) || g.since() != tc.ended {
			t.Errorf("%s: %s after %v and %d requests", tc.name, jsonOf(res), g.since(), len(g.requests))
		}
		if tc.outcome == contract.OutcomeCancelled && (res.Error == nil || res.Error.Rule != "G5/cancelled") {
			t.Errorf("%s: %s", tc.name, jsonOf(res))
		}
		if (len(res.Updated) == 1) != tc.moved {
			t.Errorf("%s: moved %v", tc.name, res.Updated)
		}
	}
}

// G5: the wait for word of an activity is over when word has come.
func TestGitGraceEndsEarly(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, planned, pushFails("cancelled", "unknown", false).after(5300*time.Millisecond), finds(gitOld), finds(gitOld))
	ended := 0
	g.env.SetOnTimerCanceledListener(func(string) { ended++ })
	g.env.RegisterDelayedCallback(g.env.CancelWorkflow, 5*time.Second)
	g.env.ExecuteWorkflow(GitPush, pushIn)
	if res := g.result(t); res.Outcome != contract.OutcomeCancelled || ended != 1 || g.seen.timers[0].D != gitCancelGrace {
		t.Errorf("%s: %d timers were ended of %v", jsonOf(res), ended, g.seen.timers)
	}
}

// Q2: work that began before there was a grace goes on as it was begun.
func TestGitCancelledWithoutGrace(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, succeeds.after(8*time.Second))
	g.env.OnGetVersion(changeGitCancelGrace, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	g.env.RegisterDelayedCallback(g.env.CancelWorkflow, 5*time.Second)
	if res := g.fetch(t, gitIn); res.Outcome != contract.OutcomeFetched || g.since() != 8*time.Second {
		t.Errorf("%s after %v", jsonOf(res), g.since())
	}
}

// G6: a push that was under way at a cancellation is looked for, for ten seconds
// at most, and never guessed.
func TestGitPushCancelled(t *testing.T) {
	t.Parallel()
	s, ms := time.Second, time.Millisecond
	never := pushes.after(time.Hour)
	for _, tc := range []struct {
		name    string
		script  []gitAnswer
		outcome contract.Outcome
		rule    string
		ended   time.Duration
	}{
		{"landed within the grace", []gitAnswer{planned, pushes.after(5500 * ms)}, contract.OutcomeLanded, "", 5500 * ms},
		{"landed", []gitAnswer{planned, never, finds(gitNew)}, contract.OutcomeLanded, "", 5700 * ms},
		{"not landed", []gitAnswer{planned, never, finds(gitOld), finds(gitOld)}, contract.OutcomeCancelled, "G6/unchanged", 7700 * ms},
		{"somebody else", []gitAnswer{planned, never, finds(gitOther), finds(gitOther)}, contract.OutcomeConflict, "G6/moved_elsewhere", 7700 * ms},
		{"not readable", []gitAnswer{planned, never, unreadable("auth", false)}, contract.OutcomeNeedsReview, "G6/unreadable", 5700 * ms},
		{"a reading hangs", []gitAnswer{planned, never, unreadable("deadline", false).after(10 * s)}, contract.OutcomeNeedsReview, "G6/not_read_in_time", 15_700 * ms},
		{"readable at the third time", []gitAnswer{planned, never, unreadable("timeout", true), unreadable("timeout", true), finds(gitNew)}, contract.OutcomeLanded, "", 8700 * ms},

		// While it is looked for: a wait and a reading under way are cut short.
		{"in a long wait", []gitAnswer{planned, answerLost, {err: gitFailure("rate_limit", true, 8*s)}, finds(gitNew)}, contract.OutcomeLanded, "", 8 * s},
		{"in a wait too long", []gitAnswer{planned, answerLost, {err: gitFailure("rate_limit", true, 30*s)}}, contract.OutcomeNeedsReview, "G6/not_read_in_time", 5 * s},
		{"in a wait that is now shorter", []gitAnswer{planned, answerLost, unreadable("timeout", true), unreadable("timeout", true), unreadable("timeout", true), finds(gitNew)}, contract.OutcomeLanded, "", 5 * s},
		{"in a reading", []gitAnswer{planned, answerLost, finds(gitOld).after(time.Hour), finds(gitNew)}, contract.OutcomeLanded, "", 5 * s},
		{"between two readings", []gitAnswer{planned, answerLost.after(4 * s), finds(gitOld), finds(gitOld)}, contract.OutcomeCancelled, "G6/unchanged", 6 * s},
	} {
		g := newGitRun(t, tc.script...)
		g.env.RegisterDelayedCallback(g.env.CancelWorkflow, 5*s)
		g.env.ExecuteWorkflow(GitPush, pushIn)
		res := g.result(t)
		rule := ""
		if res.Error != nil {
			rule = res.Error.Rule
		}
		if res.Outcome != tc.outcome || rule != tc.rule || len(g.requests) != len(tc.script) || g.times(contract.ActivityGitPush) != 1 {
			t.Errorf("%s: %s after %v", tc.name, jsonOf(res), g.called)
		}
		if g.since() != tc.ended {
			t.Errorf("%s: ended after %v, want %v", tc.name, g.since(), tc.ended)
		}
		if n, failed := len(g.warnings()), g.failedReadings(); n > failed {
			t.Errorf("G8: %s: %d warnings of %d failed readings", tc.name, n, failed)
		}
	}
	// Cancelled before it was pushed, nothing is, and nothing is looked for.
	g, res := cancelled(t, GitPush, pushIn, fails("timeout", true).after(4500*ms))
	if res.Outcome != contract.OutcomeCancelled || len(g.requests) != 1 || res.Push != nil {
		t.Errorf("before the push: %s", jsonOf(res))
	}
}

// G6: the readings after a cancellation have ten seconds in all, and the server
// ends one that hangs.
func TestGitPushCancelledBoundsItsReadings(t *testing.T) {
	t.Parallel()
	g, _ := cancelled(t, GitPush, pushIn, planned, pushes.after(time.Hour), unreadable("timeout", true), finds(gitNew))
	if limits := g.limits(); limits[2] != 5000 || limits[3] != 5000 {
		t.Errorf("readings may take %v ms", limits[2:])
	}
	for _, o := range g.seen.activities[2:] {
		if o.ScheduleToCloseTimeout > 6*time.Second || o.WaitForCancellation {
			t.Errorf("a reading may take %v in all", o.ScheduleToCloseTimeout)
		}
	}
}
