package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

var (
	pushIn     = contract.GitPushInput{Dir: "/c/arguments", URL: "https://git.example/arguments", Ref: "main", Auth: "github"}
	pushIntent = contract.GitPushIntent{Ref: "refs/heads/main", Old: gitOld, New: gitNew}

	planned = plans(contract.GitPushPlan{Intent: pushIntent, Found: gitOld})
	pushes  = gitAnswer{of: contract.ActivityGitPush}
)

func plans(plan contract.GitPushPlan) gitAnswer {
	return gitAnswer{of: contract.ActivityGitPushIntent, result: plan}
}

// pushFails is a push that ended so.
func pushFails(reason, effect string, permanent bool) gitAnswer {
	return gitAnswer{of: contract.ActivityGitPush, err: failure.New(contract.Failure{
		Surface: "git", Reason: reason, Rule: "G4/test", Effect: effect, Permanent: permanent, Message: "the first cause",
	}, failure.Options{})}
}

// answerLost is a push whose answer did not come.
var answerLost = pushFails("timeout", "unknown", false)

// finds is a reading of the remote.
func finds(oid string, contains ...bool) gitAnswer {
	return gitAnswer{of: contract.ActivityGitLocate, result: contract.GitLocated{Found: oid, Contains: len(contains) > 0}}
}

func unreadable(reason string, retry bool) gitAnswer {
	a := fails(reason, retry)
	a.of = contract.ActivityGitLocate
	return a
}

func push(t *testing.T, in contract.GitPushInput, script ...gitAnswer) (*gitRun, contract.GitResult) {
	t.Helper()
	g := newGitRun(t, script...)
	g.env.ExecuteWorkflow(GitPush, in)
	return g, g.result(t)
}

// G6: what a push comes to, by how its one attempt ends and by what is read
// after it. No course has a second push.
func TestGitPush(t *testing.T) {
	t.Parallel()
	s := time.Second
	for _, tc := range []struct {
		name    string
		script  []gitAnswer
		outcome contract.Outcome
		reason  string
		rule    string
		found   string
		waits   []time.Duration
	}{
		{"landed", []gitAnswer{planned, pushes}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"there already", []gitAnswer{plans(contract.GitPushPlan{Outcome: contract.OutcomeUpToDate, Intent: pushIntent, Found: gitNew})}, contract.OutcomeUpToDate, "", "", gitNew, nil},
		{"not ours to replace", []gitAnswer{plans(contract.GitPushPlan{Outcome: contract.OutcomeConflict, Intent: pushIntent, Found: gitOther})}, contract.OutcomeConflict, "conflict", "G6/lease", gitOther, nil},
		{"not ours to replace, with a reason", []gitAnswer{plans(contract.GitPushPlan{
			Outcome: contract.OutcomeConflict, Intent: pushIntent, Found: gitOther, Error: &contract.Error{Reason: "conflict", Rule: "G6/not_a_fast_forward", Message: "why"},
		})}, contract.OutcomeConflict, "conflict", "G6/not_a_fast_forward", gitOther, nil},

		// The reading before the push is retried as every reading is (G1).
		{"read at the second attempt", []gitAnswer{fails("server_error", true), planned, pushes}, contract.OutcomeLanded, "", "", gitNew, []time.Duration{s}},
		{"read by another worker", []gitAnswer{vanishes(), planned, pushes}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"never read", []gitAnswer{fails("server_error", true), fails("server_error", true)}, contract.OutcomeFailed, "server_error", "G4/test", "", []time.Duration{s}},
		{"denied when read", []gitAnswer{fails("auth", false)}, contract.OutcomeFailed, "auth", "G4/test", "", nil},

		// A refusal before anything was taken in is the end.
		{"denied", []gitAnswer{planned, pushFails("auth", "not_sent", true)}, contract.OutcomeFailed, "auth", "G4/test", "", nil},

		// An answer that was lost is looked for.
		{"answer lost, landed", []gitAnswer{planned, answerLost, finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"answer lost, landed beneath another", []gitAnswer{planned, answerLost, finds(gitOther, true)}, contract.OutcomeLanded, "", "", gitOther, nil},
		{"answer lost, a replica lags", []gitAnswer{planned, answerLost, finds(gitOld), finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, []time.Duration{2 * s}},
		{"answer lost, not landed", []gitAnswer{planned, answerLost, finds(gitOld), finds(gitOld)}, contract.OutcomeNotLanded, "timeout", "G6/unchanged", gitOld, []time.Duration{2 * s}},
		{"answer lost, somebody else", []gitAnswer{planned, answerLost, finds(gitOther), finds(gitOther)}, contract.OutcomeConflict, "conflict", "G6/moved_elsewhere", gitOther, []time.Duration{2 * s}},
		{"answer lost, it moves", []gitAnswer{planned, answerLost, finds(gitOther), finds(""), finds("")}, contract.OutcomeConflict, "conflict", "G6/moved_elsewhere", "", []time.Duration{2 * s, 2 * s}},
		{"lease refused", []gitAnswer{planned, pushFails("conflict", "not_sent", true), finds(gitOther), finds(gitOther)}, contract.OutcomeConflict, "conflict", "G6/moved_elsewhere", gitOther, []time.Duration{2 * s}},
		{"branch protected", []gitAnswer{planned, pushFails("conflict", "not_sent", true), finds(gitOld), finds(gitOld)}, contract.OutcomeNotLanded, "conflict", "G6/unchanged", gitOld, []time.Duration{2 * s}},
		{"never connected", []gitAnswer{planned, pushFails("timeout", "not_sent", false), finds(gitOld), finds(gitOld)}, contract.OutcomeNotLanded, "timeout", "G6/unchanged", gitOld, []time.Duration{2 * s}},
		{"foreign failure", []gitAnswer{planned, {err: temporal.NewApplicationError("x", "Other")}, finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},

		// A lost worker's push may have landed, and is not made anew.
		{"worker lost, landed", []gitAnswer{planned, vanishes(), finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"worker lost, not landed", []gitAnswer{planned, vanishes(), finds(gitOld), finds(gitOld)}, contract.OutcomeNotLanded, "worker_lost", "G6/unchanged", gitOld, []time.Duration{2 * s}},
		{"worker too slow", []gitAnswer{planned, {err: temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil)}, finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"no worker came, nothing pushed", []gitAnswer{planned, neverBegins(), finds(gitOld), finds(gitOld)}, contract.OutcomeNotLanded, "deadline", "G6/unchanged", gitOld, []time.Duration{2 * s}},
		{"out of time", []gitAnswer{planned, pushFails("deadline", "unknown", true), finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},

		// A remote that cannot be read is polled.
		{"read later", []gitAnswer{planned, answerLost, unreadable("timeout", true), unreadable("timeout", true), finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, []time.Duration{s, 2 * s}},
		{"reader lost", []gitAnswer{planned, answerLost, vanishes(), finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, nil},
		{"a floor", []gitAnswer{planned, answerLost, {err: gitFailure("rate_limit", true, 20*s)}, finds(gitNew)}, contract.OutcomeLanded, "", "", gitNew, []time.Duration{20 * s}},
		{"no longer readable", []gitAnswer{planned, answerLost, unreadable("auth", false)}, contract.OutcomeNeedsReview, "timeout", "G6/unreadable", "", nil},
		{"no longer readable, but never sent", []gitAnswer{planned, pushFails("timeout", "not_sent", false), unreadable("auth", false)}, contract.OutcomeNotLanded, "timeout", "G6/not_sent", "", nil},
	} {
		g, res := push(t, pushIn, tc.script...)
		reason, rule := "", ""
		if res.Error != nil {
			reason, rule = res.Error.Reason, res.Error.Rule
		}
		if res.Outcome != tc.outcome || reason != tc.reason || rule != tc.rule || len(g.requests) != len(tc.script) {
			t.Errorf("%s: %s after %v", tc.name, jsonOf(res), g.called)
			continue
		}
		if g.times(contract.ActivityGitPush) > 1 {
			t.Errorf("%s: pushed %d times", tc.name, g.times(contract.ActivityGitPush))
		}
		if diff := cmp.Diff(tc.waits, g.waits()); diff != "" {
			t.Errorf("%s: timers (-want +got):\n%s", tc.name, diff)
		}
		if tc.outcome == contract.OutcomeFailed {
			continue
		}
		want := &contract.GitPushed{Ref: pushIntent.Ref, Old: gitOld, New: gitNew, Found: tc.found}
		if diff := cmp.Diff(want, res.Push); diff != "" {
			t.Errorf("%s: push (-want +got):\n%s", tc.name, diff)
		}
		if res.Error != nil && (res.Error.Attempts != 1 || res.Error.Message == "") {
			t.Errorf("%s: %s, want one attempt and a message", tc.name, jsonOf(res.Error))
		}
	}
}

// G6: the intent is recorded before the push, is the push's input, and is what
// is looked for; the lease goes into the reading before it.
func TestGitPushFollowsItsIntent(t *testing.T) {
	t.Parallel()
	in := pushIn
	in.Expect = gitOld
	intent := pushIntent
	intent.Force = true
	g, res := push(t, in, plans(contract.GitPushPlan{Intent: intent, Found: gitOld}), answerLost, finds(gitNew))
	if res.Outcome != contract.OutcomeLanded {
		t.Fatalf("%s", jsonOf(res))
	}
	where := contract.GitRequest{Dir: in.Dir, URL: in.URL, Ref: in.Ref, Auth: in.Auth}
	want := []contract.GitRequest{where, where, where}
	want[0].Expect, want[1].Intent, want[2].Intent = gitOld, &intent, &intent
	for i := range want {
		want[i].LimitMS = g.requests[i].LimitMS
	}
	if diff := cmp.Diff(want, g.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, o := range g.seen.activities {
		if o.RetryPolicy.MaximumAttempts != 1 {
			t.Errorf("the server may repeat an attempt: %+v", o.RetryPolicy)
		}
	}
	// A branch that was moved back contains where it was moved to anyway.
	intent.Rewinds = true
	if _, res = push(t, in, plans(contract.GitPushPlan{Intent: intent, Found: gitOld}), answerLost, finds(gitOther, true), finds(gitOther, true)); res.Outcome != contract.OutcomeConflict {
		t.Errorf("rewound: %s", jsonOf(res))
	}
}

// G1, G6: the push leaves time of its operation's for readings, and each reading
// leaves some for another.
func TestGitPushSharesItsTime(t *testing.T) {
	t.Parallel()
	g, _ := push(t, pushIn, planned.after(20*time.Second), answerLost.after(10*time.Second), finds(gitOld).after(10*time.Second), finds(gitOld))
	if diff := cmp.Diff([]int64{120_000, 75_000, 45_000, 39_000}, g.limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if o := g.seen.activities[2]; o.ScheduleToCloseTimeout != 46*time.Second {
		t.Errorf("a reading may take %v in all, want its limit and a moment", o.ScheduleToCloseTimeout)
	}
	in := pushIn
	in.Timeout = "4s"
	g, _ = push(t, in, planned, answerLost.after(3*time.Second), finds(gitNew))
	if diff := cmp.Diff([]int64{4000, 3000, 5000}, g.limits()); diff != "" {
		t.Errorf("little time: limits (-want +got):\n%s", diff)
	}
	in.Timeout = "1ms"
	g, _ = push(t, in, planned, pushes)
	if diff := cmp.Diff([]int64{1, 1}, g.limits()); diff != "" {
		t.Errorf("hardly any time: limits (-want +got):\n%s", diff)
	}
	// With no time left for a push there is none, and nothing to look for.
	in.Timeout = "4s"
	g, res := push(t, in, planned.after(4*time.Second))
	if res.Outcome != contract.OutcomeFailed || res.Error.Rule != "G1/timeout" || len(g.requests) != 1 {
		t.Errorf("no time: %s after %v", jsonOf(res), g.called)
	}
}

// G6: a remote that stays unreadable is polled, less and less often, to the end
// of the operation's time; then a person has to look. The result names the first
// cause, and says what to do.
func TestGitPushNeedsReview(t *testing.T) {
	t.Parallel()
	script := []gitAnswer{planned, answerLost}
	for range 20 {
		script = append(script, unreadable("server_error", true))
	}
	g := newGitRun(t, script...)
	state := g.stateAt(10 * time.Second)
	g.env.ExecuteWorkflow(GitPush, pushIn)
	res := g.result(t)
	if res.Outcome != contract.OutcomeNeedsReview || res.Error.Reason != "timeout" || res.Error.Rule != "G6/not_read_in_time" {
		t.Fatalf("%s", jsonOf(res))
	}
	for _, part := range []string{"the first cause", "new key", "the remote said no"} {
		if !strings.Contains(res.Error.Message, part) {
			t.Errorf("message %q, want a word on %q", res.Error.Message, part)
		}
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{s, 2 * s, 4 * s, 8 * s, 15 * s, 15 * s, 15 * s, 15 * s, 15 * s, 15 * s, 13 * s}, g.waits()); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	if g.since() > 120*time.Second {
		t.Errorf("ended after %v", g.since())
	}
	if state.State != gitReconciling || !strings.Contains(state.Notice, "may have landed") {
		t.Errorf("state while it is looked for: %+v", state)
	}
	// G8: one warning for each reading that is made anew.
	warnings := g.warnings()
	if len(warnings) != 11 || warnings[0]["subsystem"] != "git/network" || warnings[0]["operation"] != "push" || strings.Contains(g.logs.String(), "arguments") {
		t.Errorf("%d warnings: %v", len(warnings), warnings)
	}
	if !strings.Contains(g.details(), "needs_review") || !strings.Contains(g.details(), pushIntent.Ref) {
		t.Errorf("details %q", g.details())
	}
	// A worker that never came has pushed nothing, which is proof enough.
	script = []gitAnswer{planned, neverBegins(), neverBegins()}
	script[1].took, script[2].took = 90*s, 30*s
	if _, res = push(t, pushIn, script...); res.Outcome != contract.OutcomeNotLanded || res.Error.Rule != "G6/not_sent" {
		t.Errorf("nobody there: %s", jsonOf(res))
	}
}

// G6: a push that is lost after its time is spent is still read, twice.
func TestGitPushIsReadAfterItsTime(t *testing.T) {
	t.Parallel()
	in := pushIn
	in.Timeout = "3s"
	g, res := push(t, in, planned, vanishes().after(15*time.Second), finds(gitOld), finds(gitOld))
	if res.Outcome != contract.OutcomeNotLanded || g.since() != 17*time.Second {
		t.Errorf("%s after %v", jsonOf(res), g.since())
	}
	g, res = push(t, in, planned, vanishes().after(15*time.Second), unreadable("timeout", true), unreadable("timeout", true), unreadable("timeout", true))
	if res.Outcome != contract.OutcomeNeedsReview || g.since() > 20*time.Second {
		t.Errorf("%s after %v", jsonOf(res), g.since())
	}
}

// G9, I1: what cannot be pushed is refused before anything is sent.
func TestGitPushInput(t *testing.T) {
	t.Parallel()
	for hint, change := range map[string]func(*contract.GitPushInput){
		"--dir":    func(in *contract.GitPushInput) { in.Dir = "" },
		"--auth":   func(in *contract.GitPushInput) { in.URL = "https://u:s3cr3t@h/r" },
		"--expect": func(in *contract.GitPushInput) { in.Expect = "main" },
		"deleted":  func(in *contract.GitPushInput) { in.Ref = ":main" },
	} {
		in := pushIn
		change(&in)
		_, res := push(t, in)
		if res.Outcome != contract.OutcomeFailed || res.Error.Reason != "format" || res.Error.Attempts != 0 || !strings.Contains(res.Error.Message, hint) {
			t.Errorf("%s: %s", hint, jsonOf(res))
		}
		if strings.Contains(res.Error.Message, "s3cr3t") {
			t.Errorf("%s: the message repeats a credential", hint)
		}
	}
}

// G6: whatever happens to a push, there is at most one; landed is never said
// without the remote's word or a reading that has ours, and not_landed never
// after one.
func TestGitPushIsMadeOnce(t *testing.T) {
	t.Parallel()
	attempts := []gitAnswer{
		pushes, answerLost, pushFails("timeout", "not_sent", false), pushFails("auth", "not_sent", true), pushFails("conflict", "unknown", true),
		pushFails("deadline", "unknown", true), pushFails("worker_lost", "none", false), vanishes(), neverBegins(), {err: temporal.NewApplicationError("x", "Other")},
	}
	readings := []gitAnswer{
		finds(gitOld), finds(gitNew), finds(gitOther), finds(gitOther, true), finds(""), vanishes(), neverBegins(),
		unreadable("timeout", true), unreadable("auth", false), unreadable("deadline", false), {err: gitFailure("rate_limit", true, 7*time.Second)},
	}
	rapid.Check(t, func(rt *rapid.T) {
		took := rapid.SampledFrom([]time.Duration{0, time.Second, 30 * time.Second})
		attempt := rapid.SampledFrom(attempts).Draw(rt, "push")
		script := []gitAnswer{planned, attempt.after(took.Draw(rt, "push took"))}
		for range 200 {
			script = append(script, rapid.SampledFrom(readings).Draw(rt, "reading").after(took.Draw(rt, "reading took")))
		}
		g := newGitRun(t, script...)
		if at := rapid.IntRange(0, 60).Draw(rt, "cancelled after"); at > 0 {
			g.env.RegisterDelayedCallback(g.env.CancelWorkflow, time.Duration(at)*time.Second)
		}
		g.env.ExecuteWorkflow(GitPush, pushIn)
		res := g.result(t)
		if n := g.times(contract.ActivityGitPush); n != 1 {
			rt.Fatalf("pushed %d times: %v", n, g.called)
		}
		ours := attempt.err == nil
		for i, name := range g.called {
			if located, ok := g.script[i].result.(contract.GitLocated); ok && name == contract.ActivityGitLocate {
				ours = ours || located.Found == gitNew || located.Contains
			}
		}
		switch res.Outcome {
		case contract.OutcomeLanded:
			if !ours {
				rt.Fatalf("landed without a sign of it: %v", g.called)
			}
		case contract.OutcomeNotLanded, contract.OutcomeConflict, contract.OutcomeNeedsReview, contract.OutcomeFailed, contract.OutcomeCancelled:
		default:
			rt.Fatalf("%s", jsonOf(res))
		}
	})
}
