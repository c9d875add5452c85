package workflows

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

type modelStep func(transcript.Request) (transcript.Answer, error)

// runRun drives one Run through scripted attempts; the last step repeats.
type runRun struct {
	*harness
	plan     transcript.Plan
	planErr  error
	script   []modelStep
	took     time.Duration // how long each attempt takes
	requests []transcript.Request
	at       []time.Duration
	notices  []transcript.Notice
}

func newRunRun(t *testing.T, models []string, script ...modelStep) *runRun {
	t.Helper()
	r := &runRun{harness: newHarness(t, "run/k"), script: script}
	policy, err := profiles.Load("default")
	if err != nil {
		t.Fatal(err)
	}
	r.plan = transcript.Plan{Policy: policy, Deadline: 30 * time.Minute}
	for _, name := range models {
		provider, model, _ := strings.Cut(name, "/")
		r.plan.Targets = append(r.plan.Targets, transcript.Target{
			Candidate: contract.Candidate{Provider: provider, Model: model}, InputPrice: 1, OutputPrice: 10,
		})
	}
	r.env.RegisterActivityWithOptions(func(context.Context, contract.RunInput) (transcript.Plan, error) {
		return r.plan, r.planErr
	}, activity.RegisterOptions{Name: contract.ActivityModelPlan})
	r.env.RegisterActivityWithOptions(func(_ context.Context, n transcript.Notice) error {
		r.notices = append(r.notices, n)
		return failure.New(contract.Failure{Reason: "server_error", Message: "the sink is down"}, failure.Options{})
	}, activity.RegisterOptions{Name: contract.ActivityModelNotice})
	r.env.RegisterActivityWithOptions(r.attempt, activity.RegisterOptions{Name: contract.ActivityModelAttempt})
	return r
}

func (r *runRun) attempt(_ context.Context, in transcript.Request) (transcript.Answer, error) {
	r.requests = append(r.requests, in)
	r.at = append(r.at, r.since())
	return r.script[min(len(r.requests), len(r.script))-1](in)
}

func (r *runRun) run(in contract.RunInput) contract.RunResult {
	r.t.Helper()
	if in.Prompt == "" {
		in.Prompt = "hello"
	}
	if r.took > 0 {
		r.env.OnActivity(contract.ActivityModelAttempt, mock.Anything, mock.Anything).Return(r.attempt).After(r.took)
	}
	r.env.ExecuteWorkflow(Run, in)
	var result contract.RunResult
	r.check(&result)
	if len(result.Attempts) < len(r.requests) {
		r.t.Errorf("M3.15: %d attempts are listed of %d made", len(result.Attempts), len(r.requests))
	}
	return result
}

func (r *runRun) lines(mark string) []string {
	var lines []string
	for line := range strings.Lines(r.logs.String()) {
		if strings.Contains(line, mark) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func runOutcome(t *testing.T, got contract.RunResult, want contract.Outcome, reason string) {
	t.Helper()
	gotReason := ""
	if got.Error != nil {
		gotReason = got.Error.Reason
	}
	if got.Outcome != want || gotReason != reason {
		got.Attempts = nil
		t.Fatalf("outcome %q, reason %q, want %q, %q: %s", got.Outcome, gotReason, want, reason, jsonOf(got))
	}
}

var usage = contract.Usage{InputTokens: 1000, OutputTokens: 100}

func answers(transcript.Request) (transcript.Answer, error) {
	return transcript.Answer{Text: "hi", Served: "one-0125", ResponseID: "resp_1", Finish: "stop", Usage: usage}, nil
}

// modelFails is a failed attempt that left a part of an answer behind.
func modelFails(reason policies.Reason, floor time.Duration) modelStep {
	f := contract.Failure{
		Surface: "model", Reason: string(reason), Rule: "P4.1/test", RetrySame: true, Failover: true, Effect: "none",
		Phase: "headers", Status: 503, Message: "the provider said so", Attempts: 1,
	}
	if floor > 0 {
		ms := floor.Milliseconds()
		f.FloorMS, f.FloorSource = &ms, "retry-after"
	}
	return func(transcript.Request) (transcript.Answer, error) {
		return transcript.Answer{}, failure.New(f, failure.Options{Partial: transcript.Answer{Text: "h", Usage: contract.Usage{InputTokens: 1000}}})
	}
}

// M3.12, M3.15, M2.12, I4, I5: a retry is a timer with a notice in the query,
// the details and the sink; the result lists both attempts in full and the
// recovered one leaves no error.
func TestRunRetries(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonRateLimit, 20*time.Second), answers)
	r.took = 3 * time.Second
	var waiting contract.RunState
	var shown string
	r.env.RegisterDelayedCallback(func() {
		r.query(contract.QueryState, &waiting)
		shown = r.details()
	}, 10*time.Second)
	sink := &contract.Sink{Kind: "http", URL: "http://127.0.0.1/"}
	got := r.run(contract.RunInput{Sink: sink})
	runOutcome(t, got, contract.OutcomeCompleted, "")
	if got.Text != "hi" || got.Requested != "p/one" || got.Served != "p/one-0125" {
		t.Errorf("result %s", jsonOf(got))
	}
	delay := r.seen.timers[0].D
	floor := int64(20_000)
	candidate := contract.Candidate{Provider: "p", Model: "one"}
	want := []contract.Attempt{{
		ID: "run/k/1", Candidate: candidate, Streaming: true, Phase: "headers", Reason: "rate_limit", Rule: "P4.1/test", Status: 503,
		FloorMS: &floor, Usage: contract.Usage{InputTokens: 1000, Cost: 0.001}, Started: testStart, Ended: testStart.Add(r.took),
	}, {
		ID: "run/k/2", Candidate: candidate, Streaming: true, Served: "one-0125", ResponseID: "resp_1", Finish: "stop",
		DelayMS: failure.CeilMS(delay), Usage: contract.Usage{InputTokens: 1000, OutputTokens: 100, Cost: 0.002},
		Started: testStart.Add(r.took + delay), Ended: testStart.Add(2*r.took + delay),
	}}
	if diff := cmp.Diff(want, got.Attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got.Usage.InputTokens != 2000 || got.Usage.OutputTokens != 100 || delay < 20*time.Second {
		t.Errorf("usage %+v, delay %s", got.Usage, delay)
	}
	if waiting.State != "waiting" || waiting.Attempt != 2 || !strings.HasPrefix(waiting.Notice, "retrying p/one… 2 of 16, next in 2") || !strings.Contains(shown, waiting.Notice) {
		t.Errorf("M3.12: state %+v, details %q", waiting, shown)
	}
	if !strings.Contains(r.seen.timers[0].Summary, ": rate_limit, attempt 2 of 16") {
		t.Errorf("I4: timer %q", r.seen.timers[0].Summary)
	}
	if len(r.notices) != 1 || r.notices[0].Text != waiting.Notice || r.notices[0].RunID != "run/k" || r.notices[0].WaitMS < 20_000 {
		t.Errorf("M2.12: the sink was told %+v", r.notices)
	}
	line := "[RETRY] p/one attempt=2/16 reason=rate_limit floor=20s next_in=2"
	if lines := r.lines("[RETRY]"); len(lines) != 1 || !strings.Contains(lines[0], line) || !strings.Contains(lines[0], "level=WARN") {
		t.Errorf("I5: logged %q, want %q", lines, line)
	}
	var state contract.RunState
	r.query(contract.QueryState, &state)
	if d := r.details(); state.Notice != "" || state.State != "completed" || strings.Contains(d, "retrying") {
		t.Errorf("the notice stays: %+v, %q", state, d)
	}
	if r.requests[0].AttemptID == r.requests[1].AttemptID || r.requests[0].Sink.URL != sink.URL {
		t.Errorf("M2.12: requests %+v", r.requests)
	}
	if len(r.lines("level=ERROR")) != 0 {
		t.Errorf("an error is logged of a run that completed: %q", r.lines("level=ERROR"))
	}
}

// M3.1, M3.2: nine attempts are the budget of an outage, sixteen once it saw a
// rate limit; what was partly streamed resets nothing.
func TestRunBudgets(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonServerError, 0))
	r.plan.Policy.Transient.Window = 0
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeFailed, "server_error")
	if len(r.requests) != 9 || got.Error.Attempts != 9 {
		t.Errorf("M3.1: %d attempts, want 9", len(r.requests))
	}
	// M3.12: one error that says how often, over what time, on what, and why.
	for _, says := range []string{"after 9 tries over ", " on p/one", "the provider said so"} {
		if !strings.Contains(got.Error.Message, says) {
			t.Errorf("M3.12: %q does not say %q", got.Error.Message, says)
		}
	}

	script := make([]modelStep, 8)
	for i := range script {
		script[i] = modelFails(policies.ReasonServerError, 0)
	}
	r = newRunRun(t, []string{"p/one"}, append(script, modelFails(policies.ReasonRateLimit, 0))...)
	r.plan.Policy.Transient.Window = 0
	runOutcome(t, r.run(contract.RunInput{}), contract.OutcomeFailed, "rate_limit")
	if len(r.requests) != 16 {
		t.Errorf("M3.2: %d attempts, want 16", len(r.requests))
	}

	// The window of 90 s counts waits and failing attempts: at 40 s each the
	// third failure ends at more than 80 s and leaves no room for another wait.
	r = newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonServerError, 0))
	r.took = 40 * time.Second
	runOutcome(t, r.run(contract.RunInput{}), contract.OutcomeFailed, "server_error")
	if n := len(r.requests); n != 3 && n != 4 {
		t.Errorf("M3.2: %d attempts of 40 s in a window of 90 s", n)
	}
	// But not an attempt that ended in a timeout: its waits alone are counted.
	timed := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonTimeout, 0))
	timed.took = 40 * time.Second
	runOutcome(t, timed.run(contract.RunInput{}), contract.OutcomeFailed, "timeout")
	if len(timed.requests) <= len(r.requests) {
		t.Errorf("M3.2: %d attempts that timed out", len(timed.requests))
	}
}

// M3.3, M3.6, I5: a spent budget goes on to the next candidate, each visited
// once, with a line for each failover.
func TestRunFailsOver(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, []string{"p/one", "q/two"}, modelFails(policies.ReasonServerError, 0))
	r.plan.Policy.Transient.Window = 0
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeFailed, "server_error")
	var visited []string
	for _, in := range r.requests {
		if n := len(visited); n == 0 || visited[n-1] != in.Candidate.String() {
			visited = append(visited, in.Candidate.String())
		}
	}
	if diff := cmp.Diff([]string{"p/one", "q/two"}, visited); diff != "" || len(r.requests) != 18 {
		t.Errorf("%d attempts, candidates (-want +got):\n%s", len(r.requests), diff)
	}
	if lines := r.lines("[FAILOVER]"); len(lines) != 1 || !strings.Contains(lines[0], "[FAILOVER] p/one -> q/two reason=server_error") {
		t.Errorf("I5: logged %q", lines)
	}
	if n := len(r.lines("[RETRY]")); n != 16 {
		t.Errorf("I5: %d lines for 16 retries", n)
	}
	if !strings.Contains(got.Error.Message, "p/one, q/two") {
		t.Errorf("M3.12: %q names not both candidates", got.Error.Message)
	}

	r = newRunRun(t, []string{"p/one", "q/two"}, modelFails(policies.ReasonModelNotFound, 0), answers)
	got = r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeCompleted, "")
	if got.Requested != "p/one" || got.Served != "q/one-0125" || got.Attempts[1].Candidate.String() != "q/two" {
		t.Errorf("M3.15: %s", jsonOf(got))
	}
}

// M3.4: max_retries overrides the count; 0 makes one attempt, and a rate-limit
// outage never has more than 16.
func TestRunMaxRetries(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]int{0: 1, 2: 3, 40: 16} {
		r := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonRateLimit, 0))
		r.plan.MaxRetries = &retries
		runOutcome(t, r.run(contract.RunInput{}), contract.OutcomeFailed, "rate_limit")
		if len(r.requests) != want {
			t.Errorf("%d retries: %d attempts, want %d", retries, len(r.requests), want)
		}
	}
}

// M3.13: cancelled while it waits or while an attempt is under way, a run
// answers at once, and lists what was tried.
func TestRunCancelled(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonRateLimit, 50*time.Second))
	r.env.RegisterDelayedCallback(r.env.CancelWorkflow, 10*time.Second)
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeCancelled, "cancelled")
	if r.since() != 10*time.Second || len(r.requests) != 1 || got.Attempts[0].Reason != "rate_limit" {
		t.Errorf("in a wait: ended after %s: %s", r.since(), jsonOf(got))
	}

	r = newRunRun(t, []string{"p/one"}, answers)
	r.took = 20 * time.Second
	r.env.RegisterDelayedCallback(r.env.CancelWorkflow, 10*time.Second)
	got = r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeCancelled, "cancelled")
	if r.since() != 10*time.Second || len(got.Attempts) != 1 {
		t.Errorf("in an attempt: ended after %s: %s", r.since(), jsonOf(got))
	}
}

// M3.1: the deadline is never moved. A floor beyond it is not waited for, and
// the error has the reset time.
func TestRunDeadline(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonRateLimit, 50*time.Second))
	r.plan.Deadline = 30 * time.Second
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeFailed, "rate_limit")
	if want := testStart.Add(50 * time.Second).Format(time.RFC3339); len(r.seen.timers) != 0 || got.Error.ResetAt != want {
		t.Errorf("timers %v, reset %q, want %q", r.seen.timers, got.Error.ResetAt, want)
	}
	if o := r.seen.activities[0]; o.ScheduleToCloseTimeout != 30*time.Second || o.RetryPolicy.MaximumAttempts != 1 || o.HeartbeatTimeout != 15*time.Second {
		t.Errorf("the attempt may take %+v", o)
	}
	r = newRunRun(t, []string{"p/one"}, modelFails(policies.ReasonDeadline, 0))
	runOutcome(t, r.run(contract.RunInput{}), contract.OutcomeFailed, "deadline")
	if len(r.requests) != 1 {
		t.Errorf("%d attempts after the deadline", len(r.requests)-1)
	}
}

// A run that cannot be planned requests nothing and says what to change.
func TestRunPlanError(t *testing.T) {
	t.Parallel()
	r := newRunRun(t, nil)
	r.planErr = failure.New(contract.Failure{Reason: "format", Rule: "I3/plan", Permanent: true, Message: "there is no agent"}, failure.Options{})
	got := r.run(contract.RunInput{Model: "p/one"})
	runOutcome(t, got, contract.OutcomeFailed, "format")
	if got.Error.Message != "there is no agent" || got.Requested != "p/one" || got.Attempts == nil || len(r.requests) != 0 {
		t.Errorf("%s after %d requests", jsonOf(got), len(r.requests))
	}
}

// M3.17: a lost worker's attempt is made again, uncharged, three times in a row
// at most.
func TestRunWorkerLost(t *testing.T) {
	t.Parallel()
	gone := modelFails(policies.ReasonWorkerLost, 0)
	r := newRunRun(t, []string{"p/one"}, gone, gone, gone, answers)
	zero := 0
	r.plan.MaxRetries = &zero
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeCompleted, "")
	if len(got.Attempts) != 4 || got.Attempts[2].Reason != "worker_lost" {
		t.Errorf("%s", jsonOf(got))
	}
	r = newRunRun(t, []string{"p/one"}, gone)
	r.plan.MaxRetries = &zero
	runOutcome(t, r.run(contract.RunInput{}), contract.OutcomeFailed, "worker_lost")
	if len(r.requests) != 4 {
		t.Errorf("%d attempts, want 4", len(r.requests))
	}
}

// M3.1, I4: the outer guard stops at 128 attempts, and what is shown of them,
// under the longest names, stays within the server's limits (harness.check).
func TestRunShowsLittle(t *testing.T) {
	t.Parallel()
	var models []string
	for i := range 10 {
		models = append(models, fmt.Sprintf("p%d/%s", i, strings.Repeat("ü", 600)))
	}
	r := newRunRun(t, models, modelFails(policies.ReasonRateLimit, 0))
	r.plan.Deadline = 24 * time.Hour
	got := r.run(contract.RunInput{})
	runOutcome(t, got, contract.OutcomeFailed, "rate_limit")
	if len(r.requests) != 128 {
		t.Errorf("%d attempts, want 128", len(r.requests))
	}
	if d := r.details(); !strings.Contains(d, "| 128 |") || !strings.Contains(d, "68 more") {
		t.Errorf("details of %d bytes do not show the last attempts", len(d))
	}
}

// A retry's jitter is the same in every replay and differs from run to run.
func TestFraction(t *testing.T) {
	t.Parallel()
	seen := map[float64]bool{}
	for n := range 100 {
		f := fraction("seed", n)
		if f < 0 || f >= 1 || f != fraction("seed", n) || f == fraction("other", n) || seen[f] {
			t.Fatalf("fraction %d is %v", n, f)
		}
		seen[f] = true
	}
}
