package conformance

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
)

// ChannelAdapter is a channel under test with its simulator. Every subtest asks
// for a new one.
type ChannelAdapter struct {
	Server *simulator.Server
	// Operation is the ledger's name of the request that sends a message, Effect
	// that of the message.
	Operation, Effect string
	// Secret is the account's token, which must appear nowhere.
	Secret string
	// Keyed says that the platform makes a repeat under the same key harmless
	// for a while (C2.1).
	Keyed bool
	// Throttled is the platform's 429 that asks for a wait of whole seconds.
	Throttled func(seconds int) simulator.Step
	// Refused is the platform's refusal with a status.
	Refused func(status int) simulator.Step
	// Input is a message that the platform takes.
	Input contract.MessageInput
	// Send makes one attempt.
	Send func(t *testing.T, call ChannelCall) ChannelAnswer
}

// ChannelCall is one attempt at a message.
type ChannelCall struct {
	Context context.Context
	Input   contract.MessageInput
	// Number counts the attempts from 1; Evidence is what the one before left,
	// nil where it vanished.
	Number   int
	Evidence json.RawMessage
}

// ChannelAnswer is how an attempt ended.
type ChannelAnswer struct {
	Result contract.MessageResult
	// Failure is nil for success.
	Failure *contract.Failure
	// Retry says that the attempt lets itself be repeated after Delay without
	// anybody being asked.
	Retry    bool
	Delay    time.Duration
	Evidence json.RawMessage
	// Stored is the whole error as it would be stored.
	Stored string
}

// Effects of a failed request, as contract.Failure says them.
const (
	notSent = "not_sent"
	unknown = "unknown"
)

// Channel shows what a channel adapter must guarantee (C1, C2, C4).
func Channel(t *testing.T, start func(t *testing.T) ChannelAdapter) {
	for _, tc := range []struct {
		name string
		run  func(t *testing.T, a ChannelAdapter)
	}{
		{"delivers once", deliversOnce},
		{"throttled", throttled},
		{"long floor", longFloor},
		{"floor past the time to live", floorPastTTL},
		{"refused for good", refusedForGood},
		{"not connected", notConnected},
		{"unreadable bodies", unreadableBodies},
		{"misdirected", misdirected},
		{"lost answer", lostAnswer},
		{"vanished attempt", vanishedAttempt},
		{"vanished attempt, then throttled", vanishedThenThrottled},
		{"budget", budget},
		{"cancelled before", cancelledBefore},
		{"cancelled during", cancelledDuring},
		{"expired", expired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.run(t, start(t))
		})
	}
}

// send makes one attempt, which is one request at most (C2, Q2).
func (a ChannelAdapter) send(t *testing.T, call ChannelCall, requests int) ChannelAnswer {
	t.Helper()
	if call.Context == nil {
		call.Context = t.Context()
	}
	if call.Input.To == "" {
		call.Input = a.Input
	}
	call.Number = max(call.Number, 1)
	before := len(a.Server.Ledger().Requests(""))
	answer := a.Send(t, call)
	if got := len(a.Server.Ledger().Requests("")) - before; got != requests {
		t.Errorf("the attempt made %d requests, want %d", got, requests)
	}
	for _, r := range a.Server.Ledger().Requests("") {
		if r.Reused() {
			t.Errorf("request %d used the connection of another, on which the HTTP client could have repeated it", r.N)
		}
	}
	if strings.Contains(answer.Stored, a.Secret) {
		t.Errorf("the stored error holds the token: %s", answer.Stored)
	}
	if len(answer.Stored) >= 4<<10 {
		t.Errorf("the stored error has %d bytes, want less than 4 KiB", len(answer.Stored))
	}
	return answer
}

// fails checks a failure: its effect, its reason and whether it repeats itself.
func (answer ChannelAnswer) fails(t *testing.T, reason, effect string, retry bool) *contract.Failure {
	t.Helper()
	f := answer.Failure
	if f == nil {
		t.Fatal("the attempt succeeded, want a failure")
	}
	if f.Reason != reason || f.Effect != effect || answer.Retry != retry {
		t.Errorf("reason %q, effect %q, retry %v (%s), want %q, %q, %v", f.Reason, f.Effect, answer.Retry, f.Rule, reason, effect, retry)
	}
	if f.Rule == "" || f.Message == "" || f.Surface == "" {
		t.Errorf("the failure does not say enough: %+v", *f)
	}
	return f
}

func (a ChannelAdapter) effects(t *testing.T, want int) {
	t.Helper()
	if got := a.Server.Ledger().Effects(a.Effect); len(got) != want {
		t.Errorf("%d messages, want %d: %+v", len(got), want, got)
	}
}

// C1: one part, one request, one receipt that names the message.
func deliversOnce(t *testing.T, a ChannelAdapter) {
	answer := a.send(t, ChannelCall{}, 1)
	if answer.Failure != nil {
		t.Fatalf("failed: %+v", *answer.Failure)
	}
	effects := a.Server.Ledger().Effects(a.Effect)
	if len(effects) != 1 || effects[0].ID != answer.Result.MessageID || effects[0].Content != a.Input.Text {
		t.Errorf("messages %+v, receipt %q", effects, answer.Result.MessageID)
	}
	if answer.Result.Attempts != 1 {
		t.Errorf("%d attempts, want 1", answer.Result.Attempts)
	}
}

// C2, P2: a 429 is proof that nothing was done; the floor is never undercut, and
// jitter goes upward only.
func throttled(t *testing.T, a ChannelAdapter) {
	a.Server.Script(a.Throttled(7).On(a.Operation))
	first := a.send(t, ChannelCall{}, 1)
	f := first.fails(t, "rate_limit", notSent, true)
	if f.FloorMS == nil || *f.FloorMS != 7000 || f.Attempts != 1 {
		t.Errorf("floor %v, attempts %d, want 7000 ms and 1", f.FloorMS, f.Attempts)
	}
	if first.Delay < 7*time.Second || first.Delay > 7700*time.Millisecond {
		t.Errorf("delay %s, want 7 s to 7.7 s", first.Delay)
	}
	second := a.send(t, ChannelCall{Number: 2, Evidence: first.Evidence}, 1)
	if second.Failure != nil || second.Result.Attempts != 2 {
		t.Errorf("the second attempt: %+v, %+v", second.Result, second.Failure)
	}
	a.effects(t, 1)
}

// P2: a floor above 60 s is the workflow's to wait for.
func longFloor(t *testing.T, a ChannelAdapter) {
	a.Server.Script(a.Throttled(2400).On(a.Operation))
	f := a.send(t, ChannelCall{}, 1).fails(t, "rate_limit", notSent, false)
	if !f.RetrySame || f.DelayMS < 2_400_000 || f.DelayMS > 2_640_000 {
		t.Errorf("retry %v after %d ms, want 40 min to 44 min", f.RetrySame, f.DelayMS)
	}
}

// P2: a floor that passes the time to live is not waited for.
func floorPastTTL(t *testing.T, a ChannelAdapter) {
	a.Server.Script(a.Throttled(30).On(a.Operation))
	in := a.Input
	in.ExpiresAt = time.Now().Add(20 * time.Second)
	f := a.send(t, ChannelCall{Input: in}, 1).fails(t, "rate_limit", notSent, false)
	if f.FloorMS == nil || *f.FloorMS != 30_000 || f.DelayMS < 30_000 {
		t.Errorf("floor %v, delay %d: the caller cannot tell when to come back", f.FloorMS, f.DelayMS)
	}
}

// C2: 400, 401, 403 and 404 are never retried.
func refusedForGood(t *testing.T, a ChannelAdapter) {
	for status, reason := range map[int]string{400: "format", 401: "auth", 403: "permission", 404: "not_found"} {
		a.Server.Script(a.Refused(status).On(a.Operation))
		f := a.send(t, ChannelCall{}, 1).fails(t, reason, notSent, false)
		if !f.Permanent || f.Status != status {
			t.Errorf("status %d: %+v, want permanent", status, *f)
		}
	}
	a.effects(t, 0)
}

// C2: a request that never had a connection was not started.
func notConnected(t *testing.T, a ChannelAdapter) {
	release, err := a.Server.Refuse()
	if err != nil {
		t.Fatal(err)
	}
	first := a.send(t, ChannelCall{}, 0)
	first.fails(t, "timeout", notSent, true)
	release()
	if second := a.send(t, ChannelCall{Number: 2, Evidence: first.Evidence}, 1); second.Failure != nil {
		t.Errorf("the second attempt: %+v", *second.Failure)
	}
	a.effects(t, 1)
}

// C2: an error body that cannot be read leaves status and headers in force.
func unreadableBodies(t *testing.T, a ChannelAdapter) {
	page := "<html><body>slow down</body></html>"
	for name, step := range map[string]simulator.Step{
		"page":      simulator.HTML(429, page),
		"no body":   simulator.Status(429, ""),
		"truncated": {Note: "truncated 429", Status: 429, Body: page, Cut: &simulator.Cut{Bytes: 9}, End: simulator.EndFIN},
		"reset":     {Note: "reset 429", Status: 429, Body: page, Cut: &simulator.Cut{Bytes: 9}, End: simulator.EndRST},
	} {
		a.Server.Script(step.WithHeader("Retry-After", "3").On(a.Operation))
		f := a.send(t, ChannelCall{}, 1).fails(t, "rate_limit", notSent, true)
		if f.FloorMS == nil || *f.FloorMS != 3000 || f.Status != 429 {
			t.Errorf("%s: status %d, floor %v, want 429 and 3000 ms", name, f.Status, f.FloorMS)
		}
	}
	// P3: a 429 that names no wait asks for 60 s.
	a.Server.Script(simulator.HTML(429, page).On(a.Operation))
	answer := a.send(t, ChannelCall{}, 1)
	if f := answer.Failure; f == nil || f.FloorMS == nil || *f.FloorMS != 60_000 || f.FloorSource != "default" {
		t.Errorf("a 429 without a wait: %+v, want a default of 60 s", f)
	}
	a.effects(t, 0)
}

// C2: 421 is the platform's word that it did not act.
func misdirected(t *testing.T, a ChannelAdapter) {
	a.Server.Script(a.Refused(421).On(a.Operation))
	a.send(t, ChannelCall{}, 1).fails(t, "misdirected", notSent, true)
}

// C2.1, C2.5: an answer that was lost, or a 5xx, is repeated only under a key,
// and then makes no second message.
func lostAnswer(t *testing.T, a ChannelAdapter) {
	for name, fault := range map[string]struct {
		step   simulator.Step
		reason string
	}{
		"reset":      {simulator.EffectThenReset(), "timeout"},
		"closed":     {simulator.EffectThenClose(), "timeout"},
		"5xx":        {simulator.HTML(502, "<html>bad gateway</html>").WithEffect(simulator.EffectOnce), "server_error"},
		"unreadable": {simulator.CutBytes(5), "timeout"},
		"no receipt": {simulator.JSON(200, map[string]any{"ok": true, "result": map[string]any{}}).WithEffect(simulator.EffectOnce), "timeout"},
	} {
		a.Server.Reset()
		in := a.Input
		in.Nonce += name
		in.FirstAt = time.Now()
		a.Server.Script(fault.step.On(a.Operation))
		first := a.send(t, ChannelCall{Input: in}, 1)
		first.fails(t, fault.reason, unknown, a.Keyed)
		a.effects(t, 1)
		if !a.Keyed {
			continue
		}
		second := a.send(t, ChannelCall{Input: in, Number: 2, Evidence: first.Evidence}, 1)
		if second.Failure != nil || second.Result.MessageID != a.Server.Ledger().Effects(a.Effect)[0].ID {
			t.Errorf("%s: the repeat gave %+v, %+v", name, second.Result, second.Failure)
		}
		a.effects(t, 1)
		// Past the window a repeat could double: no request is made.
		in.FirstAt = time.Now().Add(-3 * time.Minute)
		a.send(t, ChannelCall{Input: in, Number: 2, Evidence: first.Evidence}, 0).fails(t, "worker_lost", unknown, false)
		// Nor is a fault that comes near its end repeated beyond it.
		in.FirstAt = time.Now().Add(-2 * time.Minute)
		a.Server.Script(simulator.Reset().On(a.Operation))
		a.send(t, ChannelCall{Input: in}, 1).fails(t, "timeout", unknown, false)
	}
}

// C2.8: an attempt that vanished with its worker left no evidence. Under a key it
// is repeated inside the window; without one no request is made.
func vanishedAttempt(t *testing.T, a ChannelAdapter) {
	in := a.Input
	in.FirstAt = time.Now()
	for _, evidence := range []json.RawMessage{nil, json.RawMessage(`{"attempt":1}`), json.RawMessage(`{"attempt":7,"proven":true}`)} {
		if !a.Keyed {
			a.send(t, ChannelCall{Input: in, Number: 2, Evidence: evidence}, 0).fails(t, "worker_lost", unknown, false)
			continue
		}
		if answer := a.send(t, ChannelCall{Input: in, Number: 2, Evidence: evidence}, 1); answer.Failure != nil {
			t.Errorf("inside the window: %+v", *answer.Failure)
		}
		late := in
		late.FirstAt = time.Now().Add(-3 * time.Minute)
		a.send(t, ChannelCall{Input: late, Number: 2, Evidence: evidence}, 0).fails(t, "worker_lost", unknown, false)
	}
}

// C2.8, C4: a refusal after a vanished attempt says nothing about that one.
func vanishedThenThrottled(t *testing.T, a ChannelAdapter) {
	if !a.Keyed {
		return // it makes no request then
	}
	in := a.Input
	in.FirstAt = time.Now()
	a.Server.Script(a.Throttled(7).On(a.Operation), a.Refused(403).On(a.Operation))
	second := a.send(t, ChannelCall{Input: in, Number: 2}, 1)
	second.fails(t, "rate_limit", unknown, true)
	third := a.send(t, ChannelCall{Input: in, Number: 3, Evidence: second.Evidence}, 1)
	third.fails(t, "permission", unknown, false)
}

// P1: the envelope has three attempts, over all activities that worked on the
// message.
func budget(t *testing.T, a ChannelAdapter) {
	a.Server.Script(a.Throttled(1).On(a.Operation).Times(4))
	var evidence json.RawMessage
	for n := 1; n <= 3; n++ {
		answer := a.send(t, ChannelCall{Number: n, Evidence: evidence}, 1)
		answer.fails(t, "rate_limit", notSent, n < 3)
		evidence = answer.Evidence
	}
	in := a.Input
	in.Used = 2
	a.send(t, ChannelCall{Input: in}, 1).fails(t, "rate_limit", notSent, false)
}

// C1: cancelled before the request means that there is none.
func cancelledBefore(t *testing.T, a ChannelAdapter) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.send(t, ChannelCall{Context: ctx}, 0).fails(t, "cancelled", notSent, false)
	in := a.Input
	in.FirstAt = time.Now()
	answer := a.send(t, ChannelCall{Context: ctx, Input: in, Number: 2}, 0)
	if answer.Failure == nil || answer.Failure.Effect != unknown {
		t.Errorf("cancelled after a vanished attempt: %+v, want an unknown effect", answer.Failure)
	}
}

// C1: a request that has started is finished even when the send is cancelled.
func cancelledDuring(t *testing.T, a ChannelAdapter) {
	a.Server.Script(simulator.HoldAfter("written").On(a.Operation))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = a.Server.Gate("written").WaitHeld(t.Context())
		cancel()
		a.Server.Gate("written").Release()
	}()
	answer := a.send(t, ChannelCall{Context: ctx}, 1)
	if answer.Failure != nil || answer.Result.MessageID == "" {
		t.Errorf("%+v, %+v, want the receipt", answer.Result, answer.Failure)
	}
}

// C1: nothing is sent once the time to live has passed.
func expired(t *testing.T, a ChannelAdapter) {
	in := a.Input
	in.ExpiresAt = time.Now().Add(-time.Millisecond)
	a.send(t, ChannelCall{Input: in}, 0).fails(t, "deadline", notSent, false)
}
