package workflows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

var unknown = sendFailure("timeout", "unknown")

// C1, C4: Telegram cannot be asked. The send ends in needs_review with the text
// of the part and of what was delivered, and leaves a review behind that
// outlives it.
func TestSendUnknownOnTelegram(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, ok("a"), unknown)
	in := contract.SendInput{Channel: "telegram", Account: "main", To: "42", Text: words(2000) + "\n\nend"}
	got := s.run(in)
	outcome(t, got, contract.OutcomeNeedsReview, "timeout")
	if got.Review == nil || len(s.inputs) != 2 || len(got.Receipts) != 1 || len(s.lists) != 0 {
		t.Fatalf("%s after %d attempts", jsonOf(got), len(s.inputs))
	}
	want := contract.Review{
		Part: 2, Text: s.inputs[1].Text, Key: "k",
		Delivered: []contract.DeliveredPart{{Part: 1, MessageID: "a", Text: s.inputs[0].Text}},
		Rest:      strings.TrimPrefix(in.Text, s.inputs[0].Text+" "),
	}
	if diff := cmp.Diff(want, *got.Review); diff != "" {
		t.Errorf("review (-want +got):\n%s", diff)
	}
	if len(s.seen.children) != 1 {
		t.Fatalf("%d child workflows, want the review", len(s.seen.children))
	}
	child := s.seen.children[0]
	if child.WorkflowID != "review/k" || child.ParentClosePolicy != enumspb.PARENT_CLOSE_POLICY_ABANDON ||
		child.TaskQueue != contract.QueueWorkflows || child.StaticSummary != "review part 2 of a send to telegram 42" {
		t.Errorf("the review is started with %+v", child)
	}
	given := s.seen.childInput[0].(contract.ReviewInput)
	if given.SendID != "send/k" || given.Review.Text != want.Text || given.Error.Reason != "timeout" {
		t.Errorf("the review is given %s", jsonOf(given))
	}
	in.Text = "" // the review holds it
	if diff := cmp.Diff(in, given.Send); diff != "" {
		t.Errorf("the send as the review knows it (-want +got):\n%s", diff)
	}
}

// C1: what a retry would send is the text as it was written, with the markup
// that was given up; where a cut changed it, it is what was planned.
func TestReviewRest(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, sendFailure("parse_error", "not_sent"), unknown)
	text := "*bold* " + words(2000)
	got := s.run(contract.SendInput{Channel: "telegram", Format: contract.FormatMarkdown, Text: text})
	outcome(t, got, contract.OutcomeNeedsReview, "timeout")
	if got.Review.Rest != text || strings.Contains(got.Review.Text, "*") {
		t.Errorf("part %.20q, rest %.20q, want the text as it was written", got.Review.Text, got.Review.Rest)
	}
	s = newSendRun(t, ok("a"), unknown)
	got = s.run(contract.SendInput{Channel: "telegram", Format: contract.FormatMarkdown, Text: "```go\n" + strings.Repeat("x := 1\n", 1500) + "```"})
	outcome(t, got, contract.OutcomeNeedsReview, "timeout")
	if !strings.HasPrefix(got.Review.Rest, "```go\n") || !strings.HasPrefix(got.Review.Rest, got.Review.Text) || len(got.Review.Rest) <= len(got.Review.Text) {
		t.Errorf("rest %.20q of %d bytes, part of %d", got.Review.Rest, len(got.Review.Rest), len(got.Review.Text))
	}
}

// C4: what a send says of an unknown outcome. A resend stays within the budget.
func TestSendOnUnknown(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, unknown)
	outcome(t, s.run(contract.SendInput{Channel: "telegram", OnUnknown: contract.OnUnknownResend}), contract.OutcomeDelivered, "")
	if len(s.inputs) != 2 || s.inputs[1].Used != 1 {
		t.Errorf("resend: %+v", s.inputs)
	}
	s = newSendRun(t, unknown, unknown, unknown)
	outcome(t, s.run(contract.SendInput{Channel: "telegram", OnUnknown: contract.OnUnknownResend}), contract.OutcomeNeedsReview, "timeout")
	if len(s.inputs) != 3 {
		t.Errorf("resend: %d attempts, want 3", len(s.inputs))
	}

	s = newSendRun(t, unknown)
	got := s.run(contract.SendInput{Channel: "telegram", Text: words(1000), OnUnknown: contract.OnUnknownDrop})
	outcome(t, got, contract.OutcomeDelivered, "timeout")
	if len(got.Receipts) != 1 || got.Receipts[0].Part != 2 || !strings.Contains(got.Error.Message, "part 1 was left out") {
		t.Errorf("drop: %s", jsonOf(got))
	}
	s = newSendRun(t, unknown)
	outcome(t, s.run(contract.SendInput{Channel: "telegram", OnUnknown: contract.OnUnknownDrop}), contract.OutcomeNotSent, "timeout")
	if len(s.seen.children) != 0 {
		t.Error("drop left a review behind")
	}
}

func message(at time.Time, author, content string) contract.DiscordMessage {
	return contract.DiscordMessage{ID: policies.Snowflake(at), AuthorID: author, Content: content}
}

// shows lets the n-th read of the channel, and all after the last, find ms.
func shows(looks ...[]contract.DiscordMessage) func(contract.DiscordListInput) ([]contract.DiscordMessage, error) {
	n := 0
	return func(contract.DiscordListInput) ([]contract.DiscordMessage, error) {
		n++
		return looks[min(n, len(looks))-1], nil
	}
}

// C4: a Discord part that is found in the channel is settled with its receipt
// and not sent again; the part after it follows.
func TestSendUnknownOnDiscordFound(t *testing.T) {
	t.Parallel()
	text := words(500)
	first := policies.Chunk(text, policies.ChunkDiscord)[0]
	ours := message(testStart.Add(time.Second), "900", first)
	other := message(testStart.Add(time.Second), "901", first)
	for name, looks := range map[string][][]contract.DiscordMessage{
		"at the first look":  {{ours}},
		"at the second look": {{other}, {other, ours}},
	} {
		s := newSendRun(t, unknown)
		s.channel = shows(looks...)
		got := s.run(contract.SendInput{Channel: "discord", Text: text, Thread: "77"})
		outcome(t, got, contract.OutcomeDelivered, "")
		want := []contract.Receipt{{Part: 1, MessageID: ours.ID}, {Part: 2, MessageID: "m2"}}
		if diff := cmp.Diff(want, got.Receipts); diff != "" {
			t.Errorf("%s: receipts (-want +got):\n%s", name, diff)
		}
		if len(s.inputs) != 2 || s.inputs[1].Text == first {
			t.Errorf("%s: sent %q", name, s.texts())
		}
		in := s.lists[0]
		if in.Channel != "77" || in.Author != "900" || in.After != policies.Snowflake(testStart.Add(-5*time.Minute)) {
			t.Errorf("%s: read with %+v, want the thread, after the start less 5 min", name, in)
		}
	}
}

// C4: two complete looks 2 s apart that see others but not the part prove it
// absent, and it is sent again under its key.
func TestSendUnknownOnDiscordAbsent(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, ok("100"), unknown)
	s.channel = shows([]contract.DiscordMessage{message(testStart, "901", "hi")})
	got := s.run(contract.SendInput{Channel: "discord", Text: words(500)})
	outcome(t, got, contract.OutcomeDelivered, "")
	if len(s.inputs) != 3 || s.inputs[2].Text != s.inputs[1].Text || s.inputs[2].Nonce != s.inputs[1].Nonce || s.inputs[2].Used != 1 {
		t.Errorf("sent %+v", s.inputs)
	}
	if len(s.lists) != 2 || s.listAt[1]-s.listAt[0] != policies.ReconcileGap || s.lists[0].After != "100" {
		t.Errorf("looks at %v of %+v, want two, 2s apart, after the part before", s.listAt, s.lists)
	}
	if diff := cmp.Diff([]timer{{2 * time.Second, "wait 2s: second look for part 2"}}, s.seen.timers); diff != "" {
		t.Errorf("timers (-want +got):\n%s", diff)
	}
	// With the budget spent the part is proved not sent, and the send says so.
	s = newSendRun(t, sendFailure("timeout", "unknown", attempts(3)))
	s.channel = shows([]contract.DiscordMessage{message(testStart, "901", "hi")})
	got = s.run(contract.SendInput{Channel: "discord"})
	outcome(t, got, contract.OutcomeNotSent, "timeout")
}

// C4: a channel that cannot be read, or shows nothing at all, proves nothing.
func TestSendUnknownOnDiscordUnresolved(t *testing.T) {
	t.Parallel()
	refused := failure.New(contract.Failure{Surface: "discord", Reason: "permission", Permanent: true, Effect: "none", Attempts: 1}, failure.Options{})
	for name, channel := range map[string]func(contract.DiscordListInput) ([]contract.DiscordMessage, error){
		"unreadable": func(contract.DiscordListInput) ([]contract.DiscordMessage, error) { return nil, refused },
		"empty":      shows(nil),
	} {
		s := newSendRun(t, unknown)
		s.channel = channel
		got := s.run(contract.SendInput{Channel: "discord"})
		outcome(t, got, contract.OutcomeNeedsReview, "timeout")
		if len(s.inputs) != 1 || len(s.seen.children) != 1 {
			t.Errorf("%s: %d attempts, %d reviews", name, len(s.inputs), len(s.seen.children))
		}
	}
}

// P2, C4: a floor over 60 s that a read meets is waited out too.
func TestSendWaitsToLook(t *testing.T) {
	t.Parallel()
	f := contract.Failure{Surface: "discord", Reason: "rate_limit", Effect: "none", Attempts: 1}
	floor(2 * time.Minute)(&f)
	first := true
	s := newSendRun(t, unknown)
	s.channel = func(contract.DiscordListInput) ([]contract.DiscordMessage, error) {
		if first {
			first = false
			return nil, failure.New(f, failure.Options{})
		}
		return []contract.DiscordMessage{message(testStart, "900", "hello")}, nil
	}
	outcome(t, s.run(contract.SendInput{Channel: "discord"}), contract.OutcomeDelivered, "")
	if s.listAt[1]-s.listAt[0] < 2*time.Minute || len(s.inputs) != 1 {
		t.Errorf("looks at %v, %d attempts", s.listAt, len(s.inputs))
	}
}

// C1, C4: what has started is reconciled although the send was cancelled; then
// nothing more is sent, whatever on_unknown says.
func TestSendCancelledWhileUnknown(t *testing.T) {
	t.Parallel()
	run := func(in contract.SendInput, looks ...contract.DiscordMessage) (*sendRun, contract.SendResult) {
		var s *sendRun
		s = newSendRun(t, func(in contract.MessageInput) (contract.MessageResult, error) {
			s.env.CancelWorkflow()
			return unknown(in)
		})
		s.channel = shows(looks)
		return s, s.run(in)
	}
	text := words(500)
	ours := message(testStart, "900", policies.Chunk(text, policies.ChunkDiscord)[0])
	s, got := run(contract.SendInput{Channel: "discord", Text: text}, ours)
	outcome(t, got, contract.OutcomeCancelled, "cancelled")
	if len(got.Receipts) != 1 || got.Receipts[0].MessageID != ours.ID || len(s.inputs) != 1 {
		t.Errorf("found: %s after %d attempts", jsonOf(got), len(s.inputs))
	}
	s, got = run(contract.SendInput{Channel: "discord", OnUnknown: contract.OnUnknownResend}, message(testStart, "901", "hi"))
	outcome(t, got, contract.OutcomeCancelled, "cancelled")
	if len(got.Receipts) != 0 || len(s.inputs) != 1 || len(s.lists) != 2 {
		t.Errorf("absent: %s after %d attempts and %d looks", jsonOf(got), len(s.inputs), len(s.lists))
	}
	s, got = run(contract.SendInput{Channel: "telegram", OnUnknown: contract.OnUnknownResend})
	outcome(t, got, contract.OutcomeNeedsReview, "timeout")
	if len(s.inputs) != 1 || len(s.seen.children) != 1 {
		t.Errorf("telegram: %d attempts, %d reviews", len(s.inputs), len(s.seen.children))
	}
}

// C2.1, C2.8: a Discord create whose worker vanished repeats under its key; one
// that keeps failing so is reconciled.
func TestSendLostCreateRepeats(t *testing.T) {
	t.Parallel()
	gone := lost(enumspb.TIMEOUT_TYPE_HEARTBEAT)
	s := newSendRun(t, gone)
	outcome(t, s.run(contract.SendInput{Channel: "discord"}), contract.OutcomeDelivered, "")
	if len(s.inputs) != 2 || s.inputs[0].Nonce == "" || s.inputs[0].Nonce != s.inputs[1].Nonce {
		t.Errorf("sent %+v", s.inputs)
	}
	s = newSendRun(t, gone, gone, gone)
	s.channel = shows([]contract.DiscordMessage{message(testStart, "900", "hello")})
	outcome(t, s.run(contract.SendInput{Channel: "discord"}), contract.OutcomeDelivered, "")
	if len(s.inputs) != 3 || len(s.lists) != 1 {
		t.Errorf("%d attempts, %d looks", len(s.inputs), len(s.lists))
	}
}

// P4.14: an error that no activity of ours built is unknown, never repeated.
func TestSendUnexplained(t *testing.T) {
	t.Parallel()
	s := newSendRun(t, func(contract.MessageInput) (contract.MessageResult, error) {
		return contract.MessageResult{}, failure.New(failure.From(errors.New("boom")), failure.Options{})
	})
	outcome(t, s.run(contract.SendInput{Channel: "telegram"}), contract.OutcomeNeedsReview, "unclassified")
	if len(s.inputs) != 1 {
		t.Errorf("%d attempts", len(s.inputs))
	}
}
