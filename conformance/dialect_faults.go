package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

// P4: an error body that cannot be read leaves status and headers in force, for
// every status.
func dialectUnreadable(t *testing.T, a DialectAdapter) {
	const page = "<html><body>please wait, internal-hostname-17</body></html>"
	for status, reason := range map[int]string{401: "auth", 429: "rate_limit", 500: "server_error", 503: "server_error", 529: "overloaded"} {
		for name, step := range map[string]simulator.Step{
			"page":      simulator.HTML(status, page),
			"truncated": {Note: "truncated", Status: status, Body: page, Cut: &simulator.Cut{Bytes: 9}, End: simulator.EndFIN},
			"reset":     {Note: "reset", Status: status, Body: page, Cut: &simulator.Cut{Bytes: 9}, End: simulator.EndRST},
			"no body":   simulator.Status(status, ""),
		} {
			a.Server.Script(step.WithHeader("Retry-After", "3").On(a.Operation))
			answer := a.attempt(t, DialectCall{}, 1)
			f := answer.fails(t, name, reason)
			if f.FloorMS == nil || *f.FloorMS != 3000 || f.Status != status {
				t.Errorf("%s: status %d, floor %v, want %d and 3000 ms", name, f.Status, f.FloorMS, status)
			}
			if strings.Contains(answer.Stored, "internal-hostname-17") || strings.Contains(answer.Stored, "Retry-After") {
				t.Errorf("%s: the stored error holds the raw answer: %s", name, answer.Stored)
			}
		}
	}
}

// P4, M2.3: nor does one that never ends.
func endlessErrorBody(t *testing.T, a DialectAdapter) {
	step := simulator.Step{Note: "endless 429", Status: 429, Body: strings.Repeat(" ", 100), Cut: &simulator.Cut{Bytes: 50}, End: simulator.EndStall}
	a.Server.Script(step.WithHeader("Retry-After", "3").On(a.Operation))
	f := a.attempt(t, DialectCall{}, 1).fails(t, "endless 429", "rate_limit")
	if f.FloorMS == nil || *f.FloorMS != 3000 || f.Status != 429 {
		t.Errorf("status %d, floor %v, want 429 and 3000 ms", f.Status, f.FloorMS)
	}
}

// M2.1, M2.9, M2.10: a stream without its terminal event is interrupted, however
// it ends; the text seen and the response's id are kept.
func cutStreams(t *testing.T, a DialectAdapter) {
	for _, tc := range []struct {
		name string
		step simulator.Step
		text bool // some of the text has surely been read
	}{
		{"ended in order", a.EndEarly(8), true},
		{"cut between events", simulator.CutEvents(8), true},
		{"cut early", simulator.CutEvents(1), false},
		{"reset", simulator.CutEvents(8).WithEnd(simulator.EndRST), false},
		{"cut inside a frame", simulator.CutBytes(1700), false},
		{"headers only", simulator.Step{Note: "headers only", Cut: &simulator.Cut{}, End: simulator.EndFIN}, false},
	} {
		a.Server.Script(tc.step.On(a.Operation))
		got := a.attempt(t, DialectCall{}, 1)
		f := got.fails(t, tc.name, "stream_interrupted")
		if !f.RetrySame || f.Status != 200 {
			t.Errorf("%s: repeat %v, status %d, want true and 200", tc.name, f.RetrySame, f.Status)
		}
		want := a.text(t)
		if !strings.HasPrefix(want, got.Text) || got.Text == want || got.Live != got.Text {
			t.Errorf("%s: kept %q, told of %q, want one true prefix of the answer", tc.name, got.Text, got.Live)
		}
		if tc.text && (got.Text == "" || got.ResponseID == "" || got.Served == "") {
			t.Errorf("%s: kept text %q, id %q, served %q, want all of them", tc.name, got.Text, got.ResponseID, got.Served)
		}
	}
}

// M2.1: a document that broke off is no answer.
func cutDocument(t *testing.T, a DialectAdapter) {
	for _, step := range []simulator.Step{simulator.CutBytes(120), simulator.CutBytes(120).WithEnd(simulator.EndRST), simulator.CutFraction(0.9)} {
		a.Server.Script(step.On(a.Operation))
		if got := a.attempt(t, DialectCall{Whole: true}, 1); got.Failure == nil ||
			got.Failure.Reason != "stream_interrupted" && got.Failure.Reason != "timeout" {
			t.Errorf("%s: %+v, want an interruption", step.Note, got.Failure)
		}
	}
}

// M2.5: a malformed frame is named, and the text before it is kept.
func malformedFrame(t *testing.T, a DialectAdapter) {
	reason := a.Malformation
	if reason == "" {
		reason = "malformed_stream"
	}
	a.Server.Script(a.Malformed(8).On(a.Operation))
	got := a.attempt(t, DialectCall{}, 1)
	got.fails(t, "malformed frame", reason)
	if got.Text == "" || !strings.HasPrefix(a.text(t), got.Text) {
		t.Errorf("kept %q, want a prefix of the answer", got.Text)
	}
}

// P4.10: errors inside an answer of status 200 are judged by the same table.
func errorsInStream(t *testing.T, a DialectAdapter) {
	if len(a.InStream) == 0 {
		t.Error("no error inside a stream was given")
	}
	for reason, steps := range a.InStream {
		for _, step := range steps {
			a.Server.Script(step.On(a.Operation))
			got := a.attempt(t, DialectCall{}, 1)
			f := got.fails(t, step.Note, reason)
			if f.Status != 200 || got.ResponseID == "" {
				t.Errorf("%s: status %d, id %q, want 200 and the response's id", step.Note, f.Status, got.ResponseID)
			}
		}
	}
}

// P4.11: a request that never had a connection names the phase.
func dialectNotConnected(t *testing.T, a DialectAdapter) {
	release, err := a.Server.Refuse()
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	f := a.attempt(t, DialectCall{}, 0).fails(t, "refused", "timeout")
	if f.Phase != "connect" || f.Status != 0 || !f.RetrySame {
		t.Errorf("phase %q, status %d, repeat %v, want connect, 0 and true", f.Phase, f.Status, f.RetrySame)
	}
}

// M2.2, M2.3: a peer that falls silent is found, named with its phase, and its
// socket closed.
func stalls(step simulator.Step, phase string) func(t *testing.T, a DialectAdapter) {
	return func(t *testing.T, a DialectAdapter) { a.stalls(t, step, phase) }
}

func (a DialectAdapter) stalls(t *testing.T, step simulator.Step, phase string) {
	a.Server.Script(step.On(a.Operation))
	f := a.attempt(t, DialectCall{}, 1).fails(t, step.Note, "timeout")
	if f.Phase != phase || !strings.Contains(f.Rule, "session_watchdog") || !f.RetrySame {
		t.Errorf("phase %q, rule %q, repeat %v, want %s, the session_watchdog and true", f.Phase, f.Rule, f.RetrySame, phase)
	}
	a.closed(t)
}

// closed waits until the server has seen the client leave.
func (a DialectAdapter) closed(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := a.Server.Ledger().WaitGone(ctx, len(a.Server.Ledger().Requests(""))); err != nil {
		t.Errorf("the socket was not closed: %v", err)
	}
}

// M2.2: once the server has shown that it sends pings, their absence counts
// sooner.
func silentAfterPings(t *testing.T, a DialectAdapter) {
	step := a.Pings(3)
	step.Cut, step.End = &simulator.Cut{Events: 6}, simulator.EndStall
	a.stalls(t, step, "body")
}

// A redirect is not followed: the key is for one host.
func redirected(t *testing.T, a DialectAdapter) {
	step := simulator.Status(307, "").WithHeader("Location", a.Server.URL()+"/elsewhere")
	a.Server.Script(step.On(a.Operation))
	got := a.attempt(t, DialectCall{}, 1)
	if got.Failure == nil || got.Failure.Status != 307 {
		t.Errorf("%+v, want a failure of status 307", got.Failure)
	}
}

// M3.13: cancelled before the request means that there is none.
func dialectCancelledBefore(t *testing.T, a DialectAdapter) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.attempt(t, DialectCall{Context: ctx}, 0).fails(t, "cancelled", "cancelled")
}

// M3.13: a cancellation closes the provider's socket, wherever the stream is.
func dialectCancelledDuring(t *testing.T, a DialectAdapter) {
	for _, step := range []simulator.Step{simulator.Stall(), simulator.StallHeaders(), simulator.StallEvents(6)} {
		a.Server.Script(step.On(a.Operation))
		ctx, cancel := context.WithCancel(t.Context())
		n := len(a.Server.Ledger().Requests("")) + 1
		go func() {
			_, _ = a.Server.Ledger().WaitRequests(t.Context(), a.Operation, n)
			cancel()
		}()
		a.attempt(t, DialectCall{Context: ctx}, 1).fails(t, step.Note, "cancelled")
		a.closed(t)
	}
}

// M3.1: the run's deadline ends the attempt and is its reason.
func dialectDeadline(t *testing.T, a DialectAdapter) {
	a.Server.Script(simulator.StallEvents(6).On(a.Operation))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	f := a.attempt(t, DialectCall{Context: ctx}, 1).fails(t, "deadline", "deadline")
	if f.RetrySame || f.Failover {
		t.Error("a deadline lets the run go on")
	}
	a.closed(t)
}
