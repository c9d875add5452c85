package workflows

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

func clientOptions(id string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: id, TaskQueue: "test"}
}

func outcome(t *testing.T, got contract.SendResult, want contract.Outcome, reason string) {
	t.Helper()
	gotReason := ""
	if got.Error != nil {
		gotReason = got.Error.Reason
	}
	if got.Outcome != want || gotReason != reason {
		t.Errorf("outcome %q, reason %q, want %q, %q: %s", got.Outcome, gotReason, want, reason, jsonOf(got))
	}
}

// C1: a long text is planned into parts that leave in order, each with its own
// receipt and key; the first alone is the reply. I4: every part is summarised.
func TestSendParts(t *testing.T) {
	t.Parallel()
	s := newSendRun(t)
	got := s.run(contract.SendInput{Channel: "discord", Text: words(1000), ReplyTo: "7", Thread: "8", Account: "main"})
	outcome(t, got, contract.OutcomeDelivered, "")
	if len(s.inputs) != 3 || strings.Join(s.texts(), " ") != words(1000) {
		t.Fatalf("%d parts: %q", len(s.inputs), s.texts())
	}
	keys := map[string]bool{}
	for i, in := range s.inputs {
		keys[in.Nonce] = true
		if len(in.Text) > 2000 || len(in.Nonce) > 25 || in.Thread != "8" || in.Account != "main" || in.FirstAt.IsZero() || !in.ExpiresAt.Equal(s.start.Add(24*time.Hour)) {
			t.Errorf("part %d: %+v", i+1, in)
		}
		if want := map[int]string{0: "7"}[i]; in.ReplyTo != want {
			t.Errorf("part %d answers %q, want %q", i+1, in.ReplyTo, want)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys for 3 parts", len(keys))
	}
	want := []contract.Receipt{{Part: 1, MessageID: "m1"}, {Part: 2, MessageID: "m2"}, {Part: 3, MessageID: "m3"}}
	if diff := cmp.Diff(want, got.Receipts); diff != "" {
		t.Errorf("receipts (-want +got):\n%s", diff)
	}
	if got := s.seen.activities[1].Summary; got != "discord part 2/3" {
		t.Errorf("I4: summary %q", got)
	}
	var parts []contract.Part
	s.query(contract.QueryParts, &parts)
	if len(parts) != 3 || parts[0].ReplyTo != "7" || parts[2].N != 3 {
		t.Errorf("query parts: %+v", parts)
	}
	if d := s.details(); !strings.Contains(d, "| 3 | m3 |") || !strings.Contains(d, "delivered") {
		t.Errorf("I4: details %q", d)
	}
}

// C1: a part that fails leaves the earlier ones alone, and nothing is sent
// after it.
func TestSendStopsAtTheFailedPart(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, ok("a"), sendFailure("permission", "not_sent", func(f *contract.Failure) { f.Permanent = true }))
	got := s.run(contract.SendInput{Channel: "telegram", Text: words(2000)})
	outcome(t, got, contract.OutcomeRejected, "permission")
	if len(got.Receipts) != 1 || got.Receipts[0].MessageID != "a" || len(s.inputs) != 2 || got.Error.Attempts != 2 {
		t.Errorf("%s after %d attempts", jsonOf(got), len(s.inputs))
	}
}

func ok(id string) func(contract.MessageInput) (contract.MessageResult, error) {
	return func(contract.MessageInput) (contract.MessageResult, error) {
		return contract.MessageResult{MessageID: id, Attempts: 1}, nil
	}
}

// C1: what cannot be sent is refused at planning, with an error that says what
// to change.
func TestSendIsRefusedAtPlanning(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		in   contract.SendInput
		says string
	}{
		{contract.SendInput{Channel: "icq"}, "known channels are"},
		{contract.SendInput{Channel: "discord", Format: "html"}, "--format markdown"},
		{contract.SendInput{Channel: "discord", Format: "rtf"}, `format "rtf"`},
		{contract.SendInput{Channel: "discord", Text: " \n "}, "--text"},
		{contract.SendInput{Channel: "discord", TTL: "soon"}, `"soon"`},
		{contract.SendInput{Channel: "discord", TTL: "-1h"}, `"-1h"`},
		{contract.SendInput{Channel: "discord", OnUnknown: "guess"}, "on_unknown"},
	} {
		s := newSendRun(t)
		got := s.run(tc.in)
		outcome(t, got, contract.OutcomeRejected, "format")
		if !strings.Contains(got.Error.Message, tc.says) || len(s.inputs) != 0 {
			t.Errorf("%+v: %q after %d requests, want %q", tc.in, got.Error.Message, len(s.inputs), tc.says)
		}
	}
	s := newSendRun(t)
	s.env.ExecuteWorkflow(Send, contract.SendInput{Channel: "discord", Text: "x"})
	var got contract.SendResult
	s.check(&got)
	outcome(t, got, contract.OutcomeRejected, "format")
}

// P2, I4: a floor over 60 s is a timer that says why; it uses one attempt of the
// envelope and is not undercut.
func TestSendWaitsOutALongFloor(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, sendFailure("rate_limit", "not_sent", floor(40*time.Minute)))
	var waiting contract.SendState
	var shown string
	s.env.RegisterDelayedCallback(func() {
		s.query(contract.QueryState, &waiting)
		shown = s.details()
	}, time.Minute)
	got := s.run(contract.SendInput{Channel: "telegram"})
	outcome(t, got, contract.OutcomeDelivered, "")
	if diff := cmp.Diff([]timer{{42 * time.Minute, "wait 42m0s: rate_limit, attempt 2 of 3"}}, s.seen.timers); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	if s.at[1] < 40*time.Minute || s.inputs[1].Used != 1 {
		t.Errorf("the second attempt at %s with %d used", s.at[1], s.inputs[1].Used)
	}
	if waiting.State != "waiting" || !strings.Contains(waiting.Notice, "rate_limit, attempt 2 of 3") || !strings.Contains(shown, waiting.Notice) {
		t.Errorf("state %+v, details %q", waiting, shown)
	}
	line := "[RETRY] telegram attempt=2/3 reason=rate_limit floor=40m0s next_in=42m0s"
	if strings.Count(s.logs.String(), "[RETRY]") != 1 || !strings.Contains(s.logs.String(), line) {
		t.Errorf("I5: logged:\n%s\nwant one line %q", s.logs.String(), line)
	}
	if s.seen.activities[1].RetryPolicy.MaximumAttempts != 2 {
		t.Errorf("%d attempts are left to the second activity, want 2", s.seen.activities[1].RetryPolicy.MaximumAttempts)
	}
}

// P1: three attempts are all there are, whoever made them.
func TestSendBudget(t *testing.T) {
	t.Parallel()
	long := sendFailure("rate_limit", "not_sent", floor(2*time.Minute))
	s := newSendRun(t, long, long, long)
	got := s.run(contract.SendInput{Channel: "telegram"})
	outcome(t, got, contract.OutcomeNotSent, "rate_limit")
	if len(s.inputs) != 3 || got.Error.Attempts != 3 || got.Error.ResetAt == "" {
		t.Errorf("%d attempts: %s", len(s.inputs), jsonOf(got))
	}
}

// P2, C1: a floor that passes the time to live is not waited for; the error has
// the reset time.
func TestSendExpires(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, sendFailure("rate_limit", "not_sent", floor(40*time.Minute)))
	got := s.run(contract.SendInput{Channel: "telegram", TTL: "30m"})
	outcome(t, got, contract.OutcomeExpired, "deadline")
	if want := s.start.Add(40 * time.Minute).Format(time.RFC3339); got.Error.ResetAt != want {
		t.Errorf("reset at %s, want %s", got.Error.ResetAt, want)
	}
	if len(s.seen.timers) != 0 || len(s.inputs) != 1 {
		t.Errorf("timers %v, %d attempts", s.seen.timers, len(s.inputs))
	}
	// An attempt that came too late says so itself, and proves that it sent nothing.
	for _, channel := range []string{"telegram", "discord"} {
		s = newSendRun(t, sendFailure("deadline", "not_sent"))
		outcome(t, s.run(contract.SendInput{Channel: channel}), contract.OutcomeExpired, "deadline")
	}
}

// C2.7: a part that the platform cannot parse is sent at once as plain text with
// its links readable, uncharged, and stays plain.
func TestSendFallsBackToPlainText(t *testing.T) {
	t.Parallel()
	limited := sendFailure("rate_limit", "not_sent", floor(2*time.Minute))
	s := newSendRun(t, sendFailure("parse_error", "not_sent"), limited, limited)
	got := s.run(contract.SendInput{Channel: "telegram", Format: "markdown", Text: "see [the docs](https://example.org) *now"})
	outcome(t, got, contract.OutcomeDelivered, "")
	if len(s.inputs) != 4 || s.at[1] != 0 {
		t.Fatalf("attempts at %v, want 4, the second at once", s.at)
	}
	for i, in := range s.inputs[1:] {
		if in.Format != contract.FormatPlain || in.Text != "see the docs (https://example.org) *now" || in.Used != i {
			t.Errorf("attempt %d: %+v", i+2, in)
		}
	}
	if len(got.Receipts) != 1 || !got.Receipts[0].Plain {
		t.Errorf("receipts %+v, want one that is plain", got.Receipts)
	}
	// A second parse error is an end, not a loop.
	s = newSendRun(t, sendFailure("parse_error", "not_sent"), sendFailure("parse_error", "not_sent"))
	outcome(t, s.run(contract.SendInput{Channel: "telegram", Format: "html"}), contract.OutcomeRejected, "parse_error")
}

// C2: a group that moved is followed once, uncharged, and for all later parts.
func TestSendFollowsAMigration(t *testing.T) {
	t.Parallel()
	moved := func(to string) func(contract.MessageInput) (contract.MessageResult, error) {
		return sendFailure("misdirected", "not_sent", func(f *contract.Failure) { f.MigrateTo = to }, attempts(3))
	}
	s := newSendRun(t, moved("-1009"))
	got := s.run(contract.SendInput{Channel: "telegram", To: "-5", Text: words(1000)})
	outcome(t, got, contract.OutcomeDelivered, "")
	var to []string
	for _, in := range s.inputs {
		to = append(to, in.To)
	}
	if diff := cmp.Diff([]string{"-5", "-1009", "-1009"}, to); diff != "" {
		t.Errorf("destinations (-want +got):\n%s", diff)
	}
	if s.inputs[1].Used != 2 || s.seen.activities[1].RetryPolicy.MaximumAttempts != 1 {
		t.Errorf("after a migration at the last attempt: used %d, %d left, want 2 and 1",
			s.inputs[1].Used, s.seen.activities[1].RetryPolicy.MaximumAttempts)
	}
	s = newSendRun(t, moved("-1009"), moved("-1010"))
	outcome(t, s.run(contract.SendInput{Channel: "telegram", To: "-5"}), contract.OutcomeRejected, "misdirected")
}

// C2.1, C2.5, C2.8: what the server may repeat without asking.
func TestSendRetryPolicy(t *testing.T) {
	t.Parallel()
	for channel, want := range map[string][]string{"discord": nil, "telegram": failure.LostWorkerTypes()} {
		s := newSendRun(t)
		s.run(contract.SendInput{Channel: channel})
		o := s.seen.activities[0]
		if diff := cmp.Diff(want, o.RetryPolicy.NonRetryableErrorTypes); diff != "" {
			t.Errorf("%s: what is never repeated (-want +got):\n%s", channel, diff)
		}
		if o.RetryPolicy.MaximumAttempts != 3 || !o.WaitForCancellation || o.HeartbeatTimeout != 15*time.Second || o.StartToCloseTimeout < 30*time.Second {
			t.Errorf("%s: options %+v", channel, o)
		}
		if (s.inputs[0].Nonce != "") != (channel == "discord") {
			t.Errorf("%s: nonce %q", channel, s.inputs[0].Nonce)
		}
	}
}

// C1: cancelled before a part, or while a floor is waited out, the part was not
// sent; what went before keeps its receipt.
func TestSendCancelled(t *testing.T) {
	t.Parallel()
	for _, channel := range []string{"telegram", "discord"} {
		var s *sendRun
		s = newSendRun(t, func(contract.MessageInput) (contract.MessageResult, error) {
			s.env.CancelWorkflow()
			return contract.MessageResult{MessageID: "a", Attempts: 1}, nil
		})
		got := s.run(contract.SendInput{Channel: channel, Text: words(2000)})
		outcome(t, got, contract.OutcomeCancelled, "cancelled")
		if len(got.Receipts) != 1 || len(s.inputs) != 1 || len(s.lists) != 0 {
			t.Errorf("%s, between parts: %s after %d requests", channel, jsonOf(got), len(s.inputs))
		}

		s = newSendRun(t, sendFailure("rate_limit", "not_sent", floor(40*time.Minute)))
		s.env.RegisterDelayedCallback(s.env.CancelWorkflow, 10*time.Minute)
		got = s.run(contract.SendInput{Channel: channel})
		outcome(t, got, contract.OutcomeCancelled, "cancelled")
		if s.since() != 10*time.Minute || len(s.inputs) != 1 {
			t.Errorf("%s, in a wait: ended after %s and %d requests", channel, s.since(), len(s.inputs))
		}
	}
	// The activity says that it was cancelled before its request.
	s := newSendRun(t, sendFailure("cancelled", "not_sent", attempts(0)))
	got := s.run(contract.SendInput{Channel: "discord"})
	outcome(t, got, contract.OutcomeCancelled, "cancelled")
	if got.Error.Attempts != 0 {
		t.Errorf("%d attempts, want none", got.Error.Attempts)
	}
}

// C2.8, C4: an attempt that was never picked up sent nothing, where the server
// repeats only what is proved; one whose worker vanished is unknown.
func TestSendLostActivity(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, lost(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START))
	outcome(t, s.run(contract.SendInput{Channel: "telegram"}), contract.OutcomeExpired, "deadline")
	for _, kind := range []enumspb.TimeoutType{enumspb.TIMEOUT_TYPE_HEARTBEAT, enumspb.TIMEOUT_TYPE_START_TO_CLOSE} {
		s := newSendRun(t, lost(kind))
		got := s.run(contract.SendInput{Channel: "telegram"})
		outcome(t, got, contract.OutcomeNeedsReview, "worker_lost")
		if len(s.inputs) != 1 {
			t.Errorf("%v: %d attempts, want one", kind, len(s.inputs))
		}
	}
}

// I4: what is shown of a send of many parts to a long address stays within the
// server's limits (harness.check looks at it).
func TestSendShowsLittle(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, sendFailure("rate_limit", "not_sent", floor(40*time.Minute)))
	got := s.run(contract.SendInput{Channel: "discord", To: strings.Repeat("ü", 5000), Text: words(60_000)})
	outcome(t, got, contract.OutcomeDelivered, "")
	if len(got.Receipts) < 140 {
		t.Errorf("%d parts", len(got.Receipts))
	}
	if d := s.details(); !strings.Contains(d, "more |") {
		t.Errorf("the table is not shortened: %d bytes", len(d))
	}
}
