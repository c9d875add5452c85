package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

// lost sends two parts by Telegram, the answer to the second of which is lost,
// and returns what the starter said.
func (s *stage) lost(key string, more ...string) answer {
	s.t.Helper()
	s.world.Telegram.Script(
		simulator.Pass().On(telegram.OpSendMessage),
		simulator.EffectThenReset().On(telegram.OpSendMessage),
	)
	s.track(contract.PrefixSend + key)
	s.track(contract.PrefixReview + key)
	return s.starter(append([]string{"send", "--channel", "telegram", "--account", "main", "--to", chat,
		"--text", prose(6000), "--key", key}, more...)...)
}

// C2.8, C4: Telegram: effect, then connection reset. No second request;
// needs_review, exit status 3, both texts shown.
func TestTelegramEffectThenReset(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	a := s.lost("lost-telegram")
	if a.status != contract.ExitNeedsReview {
		t.Errorf("exit status %d, want %d; errors: %s", a.status, contract.ExitNeedsReview, a.errors)
	}
	wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 2)
	texts := contents(s.world.Telegram.Server, telegram.EffectMessage)
	if len(texts) != 2 {
		t.Fatalf("%d messages, want 2", len(texts))
	}
	for i, text := range texts {
		if !strings.Contains(a.out, text) {
			t.Errorf("the text of part %d is not shown:\n%s", i+1, a.out)
		}
	}
	if !strings.Contains(a.errors, "needs_review") {
		t.Errorf("standard error %q does not say needs_review", a.errors)
	}
	for i, text := range texts {
		if details := s.details("review/lost-telegram"); !strings.Contains(details, strings.ReplaceAll(text, "\n", "\n> ")) {
			t.Errorf("the details of the review lack the text of part %d:\n%s", i+1, details)
		}
	}
	s.keep("send-telegram-needs-review", "send/lost-telegram")

	again := s.starter("send", "--channel", "telegram", "--account", "main", "--to", chat,
		"--text", prose(6000), "--key", "lost-telegram", "--json")
	object := s.object(again)
	review, _ := object["review"].(map[string]any)
	delivered, _ := review["delivered"].([]any)
	if len(delivered) != 1 {
		t.Fatalf("review %v, want one delivered part", review)
	}
	got := []any{again.status, object["outcome"], review["part"], review["text"], delivered[0].(map[string]any)["text"]}
	if diff := cmp.Diff([]any{contract.ExitNeedsReview, "needs_review", 2.0, texts[1], texts[0]}, got); diff != "" {
		t.Errorf("JSON of the review (-want +got):\n%s", diff)
	}
	wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 2)
}

// C1: the review that a send leaves behind takes the operator's word: settle
// with the message's id, retry as a new send, or abandon. It is listed until
// then, and decided once.
func TestReviewDecisions(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		decision string
		args     []string
		messages int
	}{
		{"settled", []string{"settle", "KEY", "--receipt", "2"}, 2},
		{"retried", []string{"retry", "KEY", "--key", "second-try"}, 3},
		{"abandoned", []string{"abandon", "KEY", "--reason", "nobody needs it"}, 2},
	} {
		t.Run(tc.decision, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.work()
			key := "review-" + tc.decision
			if a := s.lost(key); a.status != contract.ExitNeedsReview {
				t.Fatalf("exit status %d, want %d; errors: %s", a.status, contract.ExitNeedsReview, a.errors)
			}
			args := append([]string{"review"}, tc.args...)
			args[2] = key
			a := s.starter(append(args, "--json")...)
			if object := s.object(a); a.status != contract.ExitOK || object["decision"] != tc.decision {
				t.Fatalf("exit status %d, answer %v, want 0 and %s; errors: %s", a.status, object, tc.decision, a.errors)
			}
			if tc.decision == "retried" {
				s.track("send/second-try")
				result, err := s.holdfast.Temporal().GetWorkflow(s.ctx, "send/second-try", ""), error(nil)
				var end contract.SendResult
				if err = result.Get(s.ctx, &end); err != nil {
					t.Fatal(err)
				}
				wantOutcome(t, end, contract.OutcomeDelivered, 1)
			}
			if n := len(contents(s.world.Telegram.Server, telegram.EffectMessage)); n != tc.messages {
				t.Errorf("%d messages, want %d", n, tc.messages)
			}
			if err := s.temporal.GetWorkflow(s.ctx, "review/"+key, "").Get(s.ctx, nil); err != nil {
				t.Fatal(err)
			}
			if a := s.starter("review", "abandon", key, "--json"); a.status != contract.ExitUsage {
				t.Errorf("a second decision: exit status %d, want %d", a.status, contract.ExitUsage)
			} else {
				s.object(a)
			}
			s.keep("review-"+tc.decision, "review/"+key)
		})
	}
}

// C1, I1: open reviews are listed with both texts.
func TestReviewList(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	s.lost("listed")
	texts := contents(s.world.Telegram.Server, telegram.EffectMessage)
	var a answer
	s.until("review/listed", "listed review", func(described) bool {
		// Lists follow the store by a moment.
		a = s.starter("review", "list")
		return strings.Contains(a.out, "listed")
	})
	for i, text := range texts {
		// The list shows how each text begins; the send itself showed it whole.
		if !strings.Contains(a.out, strings.ReplaceAll(text[:150], "\n", "\n    ")) {
			t.Errorf("the list does not show the text of part %d:\n%s", i+1, a.out)
		}
	}
	object := s.object(s.starter("review", "list", "--json"))
	if rows, _ := object["reviews"].([]any); len(rows) != 1 {
		t.Errorf("reviews %v, want one", object["reviews"])
	}
}

// C1, C4: the longest text that is taken, part 16 of which is lost: the review
// holds all that was delivered and all that is planned, and the send answers
// needs_review.
func TestReviewOfLongestText(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.work()
	// Each of these takes six bytes of JSON.
	text := strings.Repeat(strings.Repeat("<&>", 20)+"\n", 1420)
	s.world.Telegram.Script(
		simulator.Pass().On(telegram.OpSendMessage).Times(15),
		simulator.EffectThenReset().On(telegram.OpSendMessage),
	)
	s.track("send/longest")
	s.track("review/longest")
	a := s.starter("send", "--channel", "telegram", "--account", "main", "--to", chat, "--text", text, "--key", "longest", "--json")
	object := s.object(a)
	review, _ := object["review"].(map[string]any)
	delivered, _ := review["delivered"].([]any)
	if a.status != contract.ExitNeedsReview || review["part"] != 16.0 || len(delivered) != 15 {
		t.Errorf("exit status %d, part %v, %d delivered; want 3, part 16, 15 delivered: %s", a.status, review["part"], len(delivered), a.errors)
	}
	if list := s.starter("review", "list"); !strings.Contains(list.out, "longest") {
		t.Errorf("the list of reviews lacks it:\n%s%s", list.out, list.errors)
	}
	wantRequests(t, s.world.Telegram.Server, telegram.OpSendMessage, 16)
}
