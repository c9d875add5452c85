package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
)

// DialectAdapter is a model dialect under test with its simulator. Every subtest
// asks for a new one.
type DialectAdapter struct {
	Server *simulator.Server
	// Operation is the ledger's name of the request for an answer, Effect that
	// of the answer made.
	Operation, Effect string
	// Secret is the API key, which must appear nowhere.
	Secret string
	// Refused is an error answer in the dialect's form, with a status and the
	// provider's guidance.
	Refused func(status int, guidance string) simulator.Step
	// EndEarly ends a stream in order after so many events, without what ends it
	// for good; Malformed puts a frame that is not JSON there; Pings puts what the
	// dialect's servers send to show that they are alive after every event from
	// there.
	EndEarly, Malformed, Pings func(events int) simulator.Step
	// Malformation is the reason of a malformed frame. Defaults to
	// "malformed_stream".
	Malformation string
	// InStream are errors that a server reports inside an answer of status 200
	// once five events have left, by the reason they stand for.
	InStream map[string][]simulator.Step
	// Attempt makes one attempt.
	Attempt func(t *testing.T, call DialectCall) DialectAnswer
}

// DialectLimits are the limits of an attempt; what is zero is left at its
// default.
type DialectLimits struct {
	Headers, FirstEvent, Silence, SilenceWithPings, Progress time.Duration
}

// DialectCall is one attempt at an answer. The prompt is the adapter's; its
// answer has more than ten events.
type DialectCall struct {
	Context context.Context
	// Whole asks for a whole answer instead of a stream.
	Whole bool
}

// DialectAnswer is how an attempt ended: the answer, or beside a failure what
// was complete of it.
type DialectAnswer struct {
	Text                       string
	Served, ResponseID, Finish string
	Usage                      contract.Usage
	// Live is the text that was told of while it came.
	Live string
	// Failure is nil for success.
	Failure *contract.Failure
	// Retry says that the attempt lets the server repeat it, which it never may:
	// the budget is the workflow's.
	Retry bool
	// Stored is the whole error as it would be stored.
	Stored string
}

// Dialect shows what a model dialect must guarantee (M2, M3.13, P4). start gets
// the limits that the attempts are to have.
func Dialect(t *testing.T, start func(t *testing.T, limits DialectLimits) DialectAdapter) {
	// Long enough for a slow machine to send what comes before the silence.
	const limit = 400 * time.Millisecond
	for _, tc := range []struct {
		name   string
		limits DialectLimits
		run    func(t *testing.T, a DialectAdapter)
	}{
		{"answers", DialectLimits{}, answers},
		{"throttled", DialectLimits{}, dialectThrottled},
		{"refusals", DialectLimits{}, dialectRefused},
		{"unreadable error bodies", DialectLimits{}, dialectUnreadable},
		{"endless error body", DialectLimits{Silence: limit}, endlessErrorBody},
		{"cut streams", DialectLimits{}, cutStreams},
		{"cut document", DialectLimits{}, cutDocument},
		{"malformed frame", DialectLimits{}, malformedFrame},
		{"errors in the stream", DialectLimits{}, errorsInStream},
		{"no connection", DialectLimits{}, dialectNotConnected},
		{"no headers", DialectLimits{Headers: limit}, stalls(simulator.Stall(), "headers")},
		{"no first event", DialectLimits{FirstEvent: limit}, stalls(simulator.StallHeaders(), "first_event")},
		{"silence", DialectLimits{Silence: limit}, stalls(simulator.StallEvents(6), "body")},
		{"silence after pings", DialectLimits{SilenceWithPings: limit}, silentAfterPings},
		{"redirect", DialectLimits{}, redirected},
		{"cancelled before", DialectLimits{}, dialectCancelledBefore},
		{"cancelled during", DialectLimits{}, dialectCancelledDuring},
		{"deadline", DialectLimits{}, dialectDeadline},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, start(t, tc.limits))
		})
	}
}

// attempt makes one attempt, which is one request at most (M, P7).
func (a DialectAdapter) attempt(t *testing.T, call DialectCall, requests int) DialectAnswer {
	t.Helper()
	if call.Context == nil {
		call.Context = t.Context()
	}
	before := len(a.Server.Ledger().Requests(""))
	answer := a.Attempt(t, call)
	if got := len(a.Server.Ledger().Requests("")) - before; got != requests {
		t.Errorf("the attempt made %d requests, want %d", got, requests)
	}
	if strings.Contains(answer.Stored, a.Secret) {
		t.Errorf("the stored error holds the key: %s", answer.Stored)
	}
	return answer
}

// fails checks a failure: its reason, and that nobody but the workflow repeats
// the attempt. A repeat has nothing to double.
func (answer DialectAnswer) fails(t *testing.T, what, reason string) *contract.Failure {
	t.Helper()
	f := answer.Failure
	if f == nil {
		t.Fatalf("%s: the attempt succeeded with %q, want %s", what, answer.Text, reason)
	}
	if f.Reason != reason || answer.Retry || f.Effect != "none" || f.Attempts > 1 {
		t.Errorf("%s: reason %q (%s), retried by the server %v, effect %q, attempts %d, want %q, false, none, 1",
			what, f.Reason, f.Rule, answer.Retry, f.Effect, f.Attempts, reason)
	}
	if f.Rule == "" || f.Message == "" || f.Surface != "model" {
		t.Errorf("%s: the failure does not say enough: %+v", what, *f)
	}
	return f
}

// text is the text of the latest answer that was made.
func (a DialectAdapter) text(t *testing.T) string {
	t.Helper()
	made := a.Server.Ledger().Effects(a.Effect)
	if len(made) == 0 {
		t.Fatal("no answer was made")
	}
	return made[len(made)-1].Content
}

// M2.8, M2.10, M2.12: the answer is what was made, streamed or whole, and what
// was told of live adds up to it.
func answers(t *testing.T, a DialectAdapter) {
	for _, whole := range []bool{false, true} {
		got := a.attempt(t, DialectCall{Whole: whole}, 1)
		if got.Failure != nil {
			t.Fatalf("whole %v: %+v", whole, *got.Failure)
		}
		if want := a.text(t); got.Text != want || got.Live != want {
			t.Errorf("whole %v: text %q, live %q, want %q", whole, got.Text, got.Live, want)
		}
		if got.Served == "" || got.ResponseID == "" || got.Finish == "" || got.Usage.InputTokens == 0 || got.Usage.OutputTokens == 0 {
			t.Errorf("whole %v: served %q, id %q, finish %q, usage %+v, want all of them", whole, got.Served, got.ResponseID, got.Finish, got.Usage)
		}
	}
}

// P3, P7: a throttle's floor is kept to the millisecond, and no library repeats
// the request, whatever the answer asks of it.
func dialectThrottled(t *testing.T, a DialectAdapter) {
	step := a.Refused(429, "Slow down.").WithHeader("Retry-After", "7.5").WithHeader("X-Should-Retry", "true")
	a.Server.Script(step.On(a.Operation).Times(2))
	for _, whole := range []bool{false, true} {
		f := a.attempt(t, DialectCall{Whole: whole}, 1).fails(t, "429", "rate_limit")
		if f.FloorMS == nil || *f.FloorMS != 7500 || f.Status != 429 || !f.RetrySame {
			t.Errorf("status %d, floor %v, repeat %v, want 429, 7500 ms and true", f.Status, f.FloorMS, f.RetrySame)
		}
	}
	if got := a.attempt(t, DialectCall{}, 1); got.Failure != nil {
		t.Errorf("after the throttle: %+v", *got.Failure)
	}
}

// P4: the class of a status; the guidance is shown, a key in it is not.
func dialectRefused(t *testing.T, a DialectAdapter) {
	for status, reason := range map[int]string{
		400: "format", 401: "auth", 403: "permission", 404: "model_not_found", 408: "timeout",
		413: "context_overflow", 500: "server_error", 502: "server_error", 503: "server_error", 504: "timeout", 529: "overloaded",
	} {
		a.Server.Script(a.Refused(status, "Guidance for "+a.Secret+".").On(a.Operation))
		answer := a.attempt(t, DialectCall{}, 1)
		f := answer.fails(t, reason, reason)
		if f.Status != status || !strings.Contains(f.Message, "Guidance for") {
			t.Errorf("status %d, message %q, want %d and the guidance", f.Status, f.Message, status)
		}
	}
}
