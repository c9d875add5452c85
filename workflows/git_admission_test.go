package workflows

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// admitted is gitIn under an admission, answered by answers in order; the last
// one repeats. It returns what the admission was asked.
func admitted(g *gitRun, answers ...error) (contract.GitFetchInput, *[]contract.GitAdmissionRequest) {
	var asked []contract.GitAdmissionRequest
	g.env.RegisterActivityWithOptions(func(_ context.Context, in contract.GitAdmissionRequest) error {
		asked = append(asked, in)
		return answers[min(len(asked), len(answers))-1]
	}, activity.RegisterOptions{Name: "gateway.may_fetch"})
	in := gitIn
	in.Admission = &contract.GitAdmission{Activity: "gateway.may_fetch"}
	return in, &asked
}

func refused(t *testing.T, res contract.GitResult, attempts int) {
	t.Helper()
	if res.Outcome != contract.OutcomeFailed || res.Error == nil || res.Error.Reason != "permission" || res.Error.Rule != "G5/refused" || res.Error.Attempts != attempts {
		t.Errorf("%s, want failed, permission, G5/refused after %d attempts", jsonOf(res), attempts)
	}
}

// G5: the vectors of git_runner that bind the workflow. The second admission is
// refused, and there is no second run.
func TestGitAdmissionVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../policies/testdata/vectors/git_runner.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		ID    string
		Input struct {
			Argv                                     []string
			Stderr, BeforeRunSecond, SecondAdmission string
		}
		Expect struct {
			Rejects          bool
			Admissions, Runs *int
		}
	}
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, row := range rows {
		refusal := row.Input.BeforeRunSecond + row.Input.SecondAdmission
		if refusal == "" {
			continue
		}
		checked++
		stderr := row.Input.Stderr
		if stderr == "" {
			stderr = "connection reset" // the row tells only why the second is refused
		}
		fault := policies.Fault{Surface: policies.SurfaceGit, Argv: row.Input.Argv, Stderr: stderr}
		first := failure.FromVerdict(&fault, policies.JudgeGit(&fault), "the connection was reset")
		g := newGitRun(t, gitAnswer{err: failure.New(first, failure.Options{})}, succeeds)
		in, asked := admitted(g, nil, errors.New(refusal))
		res := g.fetch(t, in)
		if !row.Expect.Rejects {
			t.Errorf("%s: the row expects no refusal", row.ID)
		}
		refused(t, res, 1)
		want := []contract.GitAdmissionRequest{{Operation: "fetch", Attempt: 1}, {Operation: "fetch", Attempt: 2}}
		if diff := cmp.Diff(want, *asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", row.ID, diff)
		}
		if n := row.Expect.Admissions; n != nil && *n != len(*asked) {
			t.Errorf("%s: %d admissions, want %d", row.ID, len(*asked), *n)
		}
		if n := row.Expect.Runs; len(g.requests) != 1 || (n != nil && *n != 1) {
			t.Errorf("%s: %d runs, want 1", row.ID, len(g.requests))
		}
	}
	if checked != 2 {
		t.Errorf("%d rows checked, want authority-revoked and credential-rotated", checked)
	}
}

// G5: the admission is asked before the first attempt too, on the gateway's
// queue and once; admitted attempts go on as ever.
func TestGitAdmission(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, succeeds)
	in, _ := admitted(g, errors.New("no"))
	refused(t, g.fetch(t, in), 0)
	if len(g.requests) != 0 {
		t.Errorf("%d requests", len(g.requests))
	}

	g = newGitRun(t, fails("timeout", true), succeeds)
	in, asked := admitted(g, nil)
	var queue string
	in.Admission.TaskQueue = "gateway"
	g.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if info.ActivityType.Name == "gateway.may_fetch" {
			queue = info.TaskQueue
		}
	})
	if res := g.fetch(t, in); res.Outcome != contract.OutcomeFetched || len(*asked) != 2 || len(g.requests) != 2 {
		t.Errorf("%s after %d admissions and %d requests", jsonOf(res), len(*asked), len(g.requests))
	}
	if queue != "gateway" {
		t.Errorf("asked on the queue %q", queue)
	}

	// A lost worker's attempt is admitted anew, and counted.
	g = newGitRun(t, fails("worker_lost", true), succeeds)
	in, asked = admitted(g, nil)
	g.fetch(t, in)
	if n := len(*asked); n != 2 || (*asked)[1].Attempt != 2 {
		t.Errorf("asked %+v", *asked)
	}

	g = newGitRun(t)
	in = gitIn
	in.Admission = &contract.GitAdmission{TaskQueue: "gateway"}
	if res := g.fetch(t, in); res.Error == nil || res.Error.Reason != "format" {
		t.Errorf("an admission without an activity: %s", jsonOf(res))
	}

	g = newGitRun(t, listed)
	in, asked = admitted(g, nil)
	g.env.ExecuteWorkflow(GitLsRemote, contract.GitLsRemoteInput{URL: gitIn.URL, Admission: in.Admission})
	if res := g.result(t); res.Outcome != contract.OutcomeListed || len(*asked) != 1 || (*asked)[0].Operation != "ls-remote" {
		t.Errorf("%s after %+v", jsonOf(res), *asked)
	}
}

// G5: cancellation ends an operation while the gateway is asked.
func TestGitAdmissionCancelled(t *testing.T) {
	t.Parallel()
	g := newGitRun(t, succeeds)
	in, _ := admitted(g, nil)
	g.env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { g.env.CancelWorkflow() })
	res := g.fetch(t, in)
	if res.Outcome != contract.OutcomeCancelled || len(g.requests) != 0 || g.since() > time.Second {
		t.Errorf("%s after %d requests", jsonOf(res), len(g.requests))
	}
}

// G5: a clone, a sync and a push are asked for too, a sync as the fetch it is. A
// push is asked for twice: before the remote is read for it, and once more
// before it is made. What is refused is not attempted.
func TestGitAdmissionOfEveryOperation(t *testing.T) {
	t.Parallel()
	forwarded := gitAnswer{of: contract.ActivityGitFastForward, result: contract.GitResult{Outcome: contract.OutcomeSynced}}
	for _, tc := range []struct {
		name   string
		script []gitAnswer
		asked  []contract.GitAdmissionRequest
		start  func(*gitRun, *contract.GitAdmission)
	}{
		{"clone", []gitAnswer{fails("timeout", true), succeeds}, []contract.GitAdmissionRequest{{Operation: "clone", Attempt: 1}, {Operation: "clone", Attempt: 2}},
			func(g *gitRun, a *contract.GitAdmission) {
				g.env.ExecuteWorkflow(GitClone, contract.GitCloneInput{URL: gitIn.URL, Dir: "/c", Admission: a})
			}},
		{"sync", []gitAnswer{fails("timeout", true), succeeds, forwarded}, []contract.GitAdmissionRequest{{Operation: "fetch", Attempt: 1}, {Operation: "fetch", Attempt: 2}},
			func(g *gitRun, a *contract.GitAdmission) {
				g.env.ExecuteWorkflow(GitSync, contract.GitSyncInput{Dir: "/c", Admission: a})
			}},
		{"push", []gitAnswer{planned, pushes}, []contract.GitAdmissionRequest{{Operation: "push", Attempt: 1}, {Operation: "push", Attempt: 2}},
			func(g *gitRun, a *contract.GitAdmission) {
				in := pushIn
				in.Admission = a
				g.env.ExecuteWorkflow(GitPush, in)
			}},
	} {
		g := newGitRun(t, tc.script...)
		in, asked := admitted(g, nil)
		tc.start(g, in.Admission)
		if res := g.result(t); res.Outcome.ExitStatus() != contract.ExitOK {
			t.Errorf("%s: %s", tc.name, jsonOf(res))
		}
		if diff := cmp.Diff(tc.asked, *asked); diff != "" {
			t.Errorf("%s: asked (-want +got):\n%s", tc.name, diff)
		}
		g = newGitRun(t)
		in, _ = admitted(g, errors.New("no"))
		tc.start(g, in.Admission)
		refused(t, g.result(t), 0)

		// The second time, the first attempt has been made and no other is.
		g = newGitRun(t, tc.script[0])
		in, _ = admitted(g, nil, errors.New("no"))
		tc.start(g, in.Admission)
		made := 1
		if tc.name == "push" {
			made = 0 // of pushes
		}
		refused(t, g.result(t), made)
		if len(g.requests) != 1 {
			t.Errorf("%s: %v were made", tc.name, g.called)
		}
	}
}
