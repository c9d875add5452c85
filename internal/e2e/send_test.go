package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/interceptor"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

// prose is a text of numbered sentences with exactly n characters.
func prose(n int) string {
	var b strings.Builder
	for i := 1; b.Len() < n; i++ {
		fmt.Fprintf(&b, "This is sentence number %d of the text. ", i)
	}
	return b.String()[:n-1] + "."
}

// joined compares what was delivered with a text without regard to the white
// space at which it was cut.
func joined(parts []string) string {
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// contents are the effects of a kind in the order they happened.
func contents(s *simulator.Server, kind string) []string {
	var all []string
	for _, e := range s.Ledger().Effects(kind) {
		all = append(all, e.Content)
	}
	return all
}

// wantContents compares what was delivered, which is told once and in order.
func wantContents(t *testing.T, s *simulator.Server, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, contents(s, "message")); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// wantRequests checks how often an operation was requested.
func wantRequests(t *testing.T, s *simulator.Server, op string, want int) []simulator.Request {
	t.Helper()
	requests := s.Ledger().Requests(op)
	if len(requests) != want {
		t.Errorf("%d requests of %s, want %d: %+v", len(requests), op, want, requests)
	}
	return requests
}

// wantOutcome checks how a send ended, and how many receipts it has.
func wantOutcome(t *testing.T, r contract.SendResult, want contract.Outcome, receipts int) {
	t.Helper()
	if r.Outcome != want || len(r.Receipts) != receipts {
		t.Errorf("outcome %s with %d receipts, want %s with %d (error %+v)", r.Outcome, len(r.Receipts), want, receipts, r.Error)
	}
}

// wantUsedUp checks that every scripted fault was met.
func wantUsedUp(t *testing.T, s *simulator.Server) {
	t.Helper()
	if left := s.Remaining(); len(left) > 0 {
		t.Errorf("faults that no request met: %+v", left)
	}
}

// C1, C2.1, P2, P3: Discord send of 7,000 characters; part 2 gets 429 with
// retry_after 0.7 twice. Four messages in order, once each, and no request
// earlier than its floor.
func TestDiscordLongTextThrottled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Discord.Script(
		simulator.Pass().On(discord.OpCreateMessage),
		discord.RateLimited(0.7, false).On(discord.OpCreateMessage).Times(2),
	)
	text := prose(7000)
	h := s.send("long-text", contract.SendInput{Channel: "discord", Text: text})
	result := finish(s, h)
	wantOutcome(t, result, contract.OutcomeDelivered, 4)
	got := contents(s.world.Discord.Server, discord.EffectMessage)
	if len(got) != 4 {
		t.Errorf("%d messages, want 4", len(got))
	}
	if joined(got) != joined([]string{text}) {
		t.Errorf("the messages do not make up the text in order:\n%s", strings.Join(got, "\n---\n"))
	}
	wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 6)
	if early := s.world.Discord.Ledger().Early(0); len(early) > 0 {
		t.Errorf("requests before their floor: %+v", early)
	}
	for i, e := range s.world.Discord.Ledger().Effects(discord.EffectMessage) {
		if want := (contract.Receipt{Part: i + 1, MessageID: e.ID}); result.Receipts[i] != want {
			t.Errorf("receipt %+v, want %+v", result.Receipts[i], want)
		}
	}
	wantUsedUp(t, s.world.Discord.Server)
	// I4: a summary on every activity.
	if diff := cmp.Diff([]string{"discord part 1/4", "discord part 2/4", "discord part 3/4", "discord part 4/4"},
		summaries(s.history(h.ID()), enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)); diff != "" {
		t.Errorf("summaries of activities (-want +got):\n%s", diff)
	}
	// I4: the details show the receipts; search attributes say what it was.
	details := s.details(h.ID())
	for _, r := range result.Receipts {
		if row := fmt.Sprintf("| %d | %s |", r.Part, r.MessageID); !strings.Contains(details, row) {
			t.Errorf("the details lack the receipt %q:\n%s", row, details)
		}
	}
	s.wantAttributes(h.ID(), contract.AttributeKind, "send", contract.AttributeChannel, "discord", contract.AttributeAccount, "main",
		contract.AttributeDestination, channelID, contract.AttributeOutcome, "delivered", contract.AttributeReason, "")
	s.keep("send-discord-parts", h.ID())
}

// C2.1: Discord: effect, then connection reset without an answer. One message:
// Discord knows the nonce of the retry, which is only so if it is the same.
func TestDiscordEffectThenReset(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Discord.Script(simulator.EffectThenReset().On(discord.OpCreateMessage))
	h := s.send("lost-answer", contract.SendInput{Channel: "discord", Text: "once"})
	result := finish(s, h)
	wantOutcome(t, result, contract.OutcomeDelivered, 1)
	wantContents(t, s.world.Discord.Server, "once")
	wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 2)
	if id := s.world.Discord.Ledger().Effects("")[0].ID; result.Receipts[0].MessageID != id {
		t.Errorf("receipt %s, want the message's own id %s", result.Receipts[0].MessageID, id)
	}
	wantUsedUp(t, s.world.Discord.Server)
	s.keep("send-discord-single", h.ID())
}

// C4: a Discord part of unknown outcome, whose nonce window has passed for
// want of attempts, is looked for. Where it is found, its receipt is its own;
// where it is proved absent, nothing is claimed.
func TestDiscordReconciled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		step    simulator.Step
		outcome contract.Outcome
		effects int
	}{
		{"found", simulator.EffectThenReset(), contract.OutcomeDelivered, 1},
		{"absent", simulator.Reset(), contract.OutcomeNotSent, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.work()
			// Another's message makes an empty look tell absence from a missing
			// permission.
			s.world.Discord.Post(channelID, "90000000000000001", "hello")
			// Three attempts are the whole envelope; Discord gave no answer to any.
			s.world.Discord.Script(tc.step.On(discord.OpCreateMessage).Times(3))
			h := s.send("reconciled-"+tc.name, contract.SendInput{Channel: "discord", Text: "looked for"})
			result := finish(s, h)
			wantOutcome(t, result, tc.outcome, tc.effects)
			wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 3)
			if n := len(contents(s.world.Discord.Server, discord.EffectMessage)); n != tc.effects {
				t.Errorf("%d messages, want %d", n, tc.effects)
			}
			if len(s.world.Discord.Ledger().Requests(discord.OpListMessages)) == 0 {
				t.Error("nobody looked for the message")
			}
			s.keep("send-discord-reconciled-"+tc.name, h.ID())
		})
	}
}

// watcher calls after with the error of each attempt of an activity, before the
// server hears of it.
type watcher struct {
	interceptor.WorkerInterceptorBase
	after func(error)
}

func (w *watcher) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &watched{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, after: w.after}
}

type watched struct {
	interceptor.ActivityInboundInterceptorBase
	after func(error)
}

func (w *watched) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	result, err := w.Next.ExecuteActivity(ctx, in)
	w.after(err)
	return result, err
}

// C2.5: Telegram: refused connection twice, then fine. A refused connection is
// proof that nothing was sent: delivered once, after two retries.
func TestTelegramRefusedTwice(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	release, err := s.world.Telegram.Refuse()
	if err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int32
	s.work(&watcher{after: func(err error) {
		if err != nil && refused.Add(1) == 2 {
			release()
		}
	}})
	h := s.send("refused", contract.SendInput{Channel: "telegram", Text: "once"})
	wantOutcome(t, finish(s, h), contract.OutcomeDelivered, 1)
	wantContents(t, s.world.Telegram.Server, "once")
	wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 1)
	if n := refused.Load(); n != 2 {
		t.Errorf("%d connections were refused, want 2", n)
	}
	attempts := int32(0)
	for _, e := range s.history(h.ID()).GetEvents() {
		attempts = max(attempts, e.GetActivityTaskStartedEventAttributes().GetAttempt())
	}
	if attempts != 3 {
		t.Errorf("%d attempts, want 3", attempts)
	}
	s.keep("send-telegram-single", h.ID())
}

// C2.7: Telegram: 400 can't parse entities. The part goes out as plain text at
// once, within the same logical attempt.
func TestTelegramParseError(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	h := s.send("parse-error", contract.SendInput{Channel: "telegram", Text: "an *open entity", Format: contract.FormatMarkdown})
	result := finish(s, h)
	wantOutcome(t, result, contract.OutcomeDelivered, 1)
	if len(result.Receipts) == 1 && !result.Receipts[0].Plain {
		t.Error("the receipt does not say that the part went out as plain text")
	}
	requests := wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 2)
	if requests[0].Status != http.StatusBadRequest || requests[1].Status != http.StatusOK {
		t.Errorf("answers %d and %d, want 400 and 200", requests[0].Status, requests[1].Status)
	}
	if n := len(contents(s.world.Telegram.Server, telegram.EffectMessage)); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	history := s.history(h.ID())
	if waits := summaries(history, enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) > 0 {
		t.Errorf("the plain text waited: %q", waits)
	}
	// One logical attempt: the envelope of the second activity is whole.
	for _, e := range history.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.GetRetryPolicy().GetMaximumAttempts() != 3 {
			t.Errorf("an activity may take %d attempts, want 3", a.GetRetryPolicy().GetMaximumAttempts())
		}
	}
	s.keep("send-telegram-parse-error", h.ID())
}

// P2: a floor that passes the time to live is not waited for; the send ends as
// expired, at once, with the time at which it may be sent again.
func TestFloorBeyondTimeToLive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Telegram.Script(telegram.FloodWait(2400).On(telegram.OpSendMessage))
	h := s.send("flood", contract.SendInput{Channel: "telegram", Text: "too late", TTL: "10m"})
	result := finish(s, h)
	wantOutcome(t, result, contract.OutcomeExpired, 0)
	if result.Error == nil || result.Error.ResetAt == "" {
		t.Fatalf("error %+v, want a reset time", result.Error)
	}
	reset, err := time.Parse(time.RFC3339, result.Error.ResetAt)
	floor := s.world.Telegram.Ledger().Requests("")[0].Floor
	if err != nil || reset.Before(floor.Truncate(time.Second)) {
		t.Errorf("reset at %s (%v), want the floor %s", result.Error.ResetAt, err, floor)
	}
	wantContents(t, s.world.Telegram.Server)
	s.wantAttributes(h.ID(), contract.AttributeOutcome, "expired", contract.AttributeReason, "deadline")
	s.keep("send-telegram-expired", h.ID())
}

// C2.5, P2: a flood wait too long for the server's own retry delay is a timer
// with a summary; cancelling ends it, and what was not sent is cancelled (C1).
func TestCancelDuringFloodWait(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.world.Telegram.Script(telegram.FloodWait(2400).On(telegram.OpSendMessage))
	h := s.send("flood-cancelled", contract.SendInput{Channel: "telegram", Text: "never"})
	awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, h.ID(), ""), "TimerStarted")
	if details := s.details(h.ID()); !strings.Contains(details, "rate_limit, attempt 2 of 3") {
		t.Errorf("the details of a send that waits do not say so:\n%s", details)
	}
	if err := h.Cancel(s.ctx); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, finish(s, h), contract.OutcomeCancelled, 0)
	wantContents(t, s.world.Telegram.Server)
	waits := summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED)
	if len(waits) != 1 || !strings.Contains(waits[0], "rate_limit, attempt 2 of 3") {
		t.Errorf("waits %q, want one that names rate_limit and attempt 2 of 3", waits)
	}
	s.answersAtOnce(h.ID())
	s.keep("send-telegram-cancelled", h.ID())
}

// C1: same key again: the first result, and nothing sent twice. Same key, other
// text: refused with exit status 2.
func TestSameKey(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	send := func(text string, more ...string) answer {
		return s.starter(append([]string{"send", "--channel", "discord", "--account", "main", "--to", channelID,
			"--text", text, "--key", "same-key", "--json"}, more...)...)
	}
	first := send("the first text")
	s.track("send/same-key")
	again := send("the first text")
	if first.status != contract.ExitOK || again.status != contract.ExitOK {
		t.Fatalf("exit statuses %d and %d, want 0 and 0; errors: %s%s", first.status, again.status, first.errors, again.errors)
	}
	if diff := cmp.Diff(s.object(first), s.object(again)); diff != "" {
		t.Errorf("answer to the same key (-first +again):\n%s", diff)
	}
	other := send("another text")
	if other.status != contract.ExitUsage {
		t.Errorf("another text under the same key: exit status %d, want %d", other.status, contract.ExitUsage)
	}
	if !strings.Contains(other.errors, "use another key") {
		t.Errorf("the refusal %q does not say what to do", other.errors)
	}
	s.object(other)
	wantContents(t, s.world.Discord.Server, "the first text")
	wantRequests(t, s.world.Discord.Server, discord.OpCreateMessage, 1)
}
