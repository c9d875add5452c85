package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/openai"
)

// fullAnswer is what the simulated model says to the stage's prompt.
var fullAnswer = openai.DefaultAnswer(openai.Prompt{
	Input: []openai.Item{{Type: "message", Role: "user", Text: "Why is the sky blue?"}},
}).Text

// wantAnswer checks that a run completed with the model's text, once.
func wantAnswer(t *testing.T, r contract.RunResult) {
	t.Helper()
	if r.Outcome != contract.OutcomeCompleted {
		t.Errorf("outcome %s (%+v), want completed", r.Outcome, r.Error)
	}
	if diff := cmp.Diff(fullAnswer, r.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// wantAttempts checks the candidate and the reason of every attempt.
func wantAttempts(t *testing.T, r contract.RunResult, want ...string) {
	t.Helper()
	var got []string
	for _, a := range r.Attempts {
		got = append(got, strings.TrimSpace(a.Candidate.String()+" "+a.Reason))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// M3.1, M3.12, P2, P3: model: 429 retry-after: 1, 503, then 200. The answer comes
// after two visible waits, the first of which is at least 1 s.
func TestModelThrottledThenOverloaded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.RateLimited(1).On(openai.OpResponses), openai.Overloaded().On(openai.OpResponses))
	h := s.run("throttled", contract.RunInput{})
	result := finish(s, h)
	wantAnswer(t, result)
	wantAttempts(t, result, "openai/gpt-5.1 rate_limit", "openai/gpt-5.1 overloaded", "openai/gpt-5.1")
	s.wantAttributes(h.ID(), contract.AttributeProvider, "openai", contract.AttributeModel, "gpt-5.1", contract.AttributeState, contract.StateDone)
	if early := s.world.OpenAI.Ledger().Early(0); len(early) > 0 {
		t.Errorf("requests before their floor: %+v", early)
	}
	requests := wantRequests(t, s.world.OpenAI.Server, openai.OpResponses, 3)
	if len(requests) == 3 && requests[1].At.Sub(requests[0].AnsweredAt) < time.Second {
		t.Errorf("the first wait was %s, want at least 1 s", requests[1].At.Sub(requests[0].AnsweredAt))
	}
	waits := summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED)
	if len(waits) != 2 || !strings.Contains(waits[0], "rate_limit, attempt 2 of") || !strings.Contains(waits[1], "overloaded, attempt 3 of") {
		t.Errorf("waits %q, want one for rate_limit and one for overloaded", waits)
	}
	s.keep("run-retried", h.ID())
}

// M2.1, M3.9: model: stream cut after 40 % without a terminal event. Recovered,
// and the text of the result is not doubled.
func TestModelStreamCut(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(simulator.CutFraction(0.4).On(openai.OpResponses))
	h := s.run("cut", contract.RunInput{})
	result := finish(s, h)
	wantAnswer(t, result)
	wantAttempts(t, result, "openai/gpt-5.1 stream_interrupted", "openai/gpt-5.1")
	// M2.10: what the broken stream said of itself is kept.
	if result.Attempts[0].ResponseID == "" || result.Attempts[0].Served != "gpt-5.1" {
		t.Errorf("the cut attempt has response id %q and served model %q", result.Attempts[0].ResponseID, result.Attempts[0].Served)
	}
	wantUsedUp(t, s.world.OpenAI.Server)
}

// M2.2, M2.3: model: headers, then silence (limits set to 1 s). Found within the
// limit and one look of a tenth of it, and retried.
func TestModelSilentAfterHeaders(t *testing.T) {
	t.Parallel()
	s := newStage(t, "limits: {first_event: 1s, silence: 1s}\n")
	s.work()
	s.world.OpenAI.Script(simulator.StallHeaders().On(openai.OpResponses))
	h := s.run("silent", contract.RunInput{})
	result := finish(s, h)
	wantAnswer(t, result)
	wantAttempts(t, result, "openai/gpt-5.1 timeout", "openai/gpt-5.1")
	if rule := result.Attempts[0].Rule; rule != "M2.3/session_watchdog" {
		t.Errorf("rule %s, want M2.3/session_watchdog", rule)
	}
	gone, err := s.world.OpenAI.Ledger().WaitGone(s.ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	// The grace is for a busy machine; the default limit is a hundred times it.
	const limit, look, grace = time.Second, 100 * time.Millisecond, time.Second
	if silent := gone.GoneAt.Sub(gone.AnsweredAt); silent < limit-look || silent > limit+look+grace {
		t.Errorf("the silence was found after %s, want %s and a look", silent, limit)
	}
}

// M3.3, P4: model: 401 on the first candidate. The second candidate at once; the
// first is not tried again.
func TestModelUnauthorized(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.Fail(http.StatusUnauthorized, "invalid_api_key", "invalid_request_error", "Incorrect API key provided.").
		On(openai.OpResponses).Always())
	h := s.run("unauthorized", contract.RunInput{Agent: "careful"})
	result := finish(s, h)
	wantAnswer(t, result)
	wantRequests(t, s.world.OpenAI.Server, openai.OpResponses, 1)
	wantRequests(t, s.backup.Server, openai.OpResponses, 1)
	if len(result.Attempts) != 2 || result.Attempts[1].DelayMS != 0 {
		t.Errorf("attempts %+v, want a second one without a wait", result.Attempts)
	}
	if waits := summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) > 0 {
		t.Errorf("the second candidate waited: %q", waits)
	}
	if result.Requested != "openai/gpt-5.1" || result.Served != "backup/gpt-5.1-mini" {
		t.Errorf("requested %s, served %s", result.Requested, result.Served)
	}
	s.keep("run-failover", h.ID())
}

// M3.3, M3.12, M3.15: nobody serves: one terminal failure with its attempts, exit
// status 1.
func TestModelFails(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.QuotaExhausted().On(openai.OpResponses).Always())
	s.track("run/nobody")
	a := s.starter("run", "--agent", "main", "--prompt", "Why is the sky blue?", "--key", "nobody", "--json")
	object := s.object(a)
	failed, _ := object["error"].(map[string]any)
	got := []any{a.status, object["outcome"], failed["reason"], failed["attempts"]}
	if diff := cmp.Diff([]any{contract.ExitFailed, "failed", "quota_exhausted", 1.0}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	s.keep("run-failed", "run/nobody")
}

// M2.12, M6, I1: starter run --stream shows the text as it arrives, and of the
// result only what it has not shown.
func TestModelStreamsToStarter(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.track("run/streamed")
	a := s.starter("run", "--agent", "main", "--prompt", "Why is the sky blue?", "--key", "streamed", "--stream")
	if a.status != contract.ExitOK || a.out != fullAnswer+"\n" {
		t.Errorf("exit status %d and text %q, want 0 and the answer once", a.status, a.out)
	}
	s.keep("run-completed", "run/streamed")

	// With --json the text comes as JSON lines, and the object is the last of them.
	a = s.starter("run", "--agent", "main", "--model", "openai/gpt-5.1", "--prompt", "Why is the sky blue?", "--key", "lines", "--stream", "--json")
	s.track("run/lines")
	var shown strings.Builder
	lines := strings.Split(strings.TrimSpace(a.out), "\n")
	for _, line := range lines[:len(lines)-1] {
		var l struct{ Type, Text string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		if l.Type == "text" {
			shown.WriteString(l.Text)
		}
	}
	if shown.String() != fullAnswer {
		t.Errorf("the lines make up %q, want the answer", shown.String())
	}
	if object := s.object(answer{out: lines[len(lines)-1]}); object["text"] != fullAnswer {
		t.Errorf("the last object is %v, want the result", object)
	}
	s.wantAttributes("run/lines", contract.AttributeProvider, "openai", contract.AttributeModel, "gpt-5.1", contract.AttributeOutcome, "completed")
}

// M3.13: cancelling a run during a stream: the workflow answers within 1 s, and
// the provider's socket is closed within 5 s.
func TestCancelDuringStream(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(simulator.StallEvents(5).On(openai.OpResponses))
	h := s.run("cancelled-stream", contract.RunInput{})
	n := s.streaming(s.world.OpenAI.Server)
	asked := time.Now()
	if err := h.Cancel(s.ctx); err != nil {
		t.Fatal(err)
	}
	result := finish(s, h)
	if result.Outcome != contract.OutcomeCancelled {
		t.Errorf("outcome %s, want cancelled", result.Outcome)
	}
	s.answersAtOnce(h.ID())
	gone, err := s.world.OpenAI.Ledger().WaitGone(s.ctx, n)
	if err != nil {
		t.Fatal(err)
	}
	if took := gone.GoneAt.Sub(asked); took > 5*time.Second {
		t.Errorf("the socket was closed after %s, want at most 5 s", took)
	}
	wantRequests(t, s.world.OpenAI.Server, openai.OpResponses, 1)
	s.keep("run-cancelled-stream", h.ID())
}

// streaming waits until the answer to the first request has begun.
func (s *stage) streaming(server *simulator.Server) (n int) {
	s.t.Helper()
	s.poll("stream", func() bool {
		requests := server.Ledger().Requests(openai.OpResponses)
		if len(requests) == 0 || requests[0].Status == 0 {
			return false
		}
		n = requests[0].N
		return true
	})
	return n
}

// M3.13: cancelling a run during a wait: it answers within 1 s, and asks nobody
// again.
func TestCancelDuringWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.OpenAI.Script(openai.RateLimited(50).On(openai.OpResponses).Always())
	h := s.run("cancelled-wait", contract.RunInput{})
	awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, h.ID(), ""), "TimerStarted")
	// M3.12: the notice is in the query while it waits.
	var state contract.RunState
	if err := h.Query(s.ctx, contract.QueryState, &state); err != nil {
		t.Fatal(err)
	}
	if state.State != "waiting" || !strings.Contains(state.Notice, "openai/gpt-5.1") {
		t.Errorf("state %+v, want one that waits, with a notice", state)
	}
	if details := s.details(h.ID()); !strings.Contains(details, state.Notice) {
		t.Errorf("the details do not show the notice %q:\n%s", state.Notice, details)
	}
	if err := h.Cancel(s.ctx); err != nil {
		t.Fatal(err)
	}
	if result := finish(s, h); result.Outcome != contract.OutcomeCancelled {
		t.Errorf("outcome %s, want cancelled", result.Outcome)
	}
	s.answersAtOnce(h.ID())
	wantRequests(t, s.world.OpenAI.Server, openai.OpResponses, 1)
	// M3.12: the result takes the notice away.
	if details := s.details(h.ID()); strings.Contains(details, state.Notice) {
		t.Errorf("the notice is still shown:\n%s", details)
	}
	s.wantAttributes(h.ID(), contract.AttributeKind, "run", contract.AttributeOutcome, "cancelled", contract.AttributeReason, "cancelled")
	s.keep("run-cancelled-wait", h.ID())
}
