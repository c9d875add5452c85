package starter

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/holdfast-dev/holdfast/contract"
)

func TestClean(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain ä 😀\n\tx":        "plain ä 😀\n\tx",
		"\x1b]0;title\x07a":     "]0;titlea",
		"\x1b[2Ja\r\b\x7fb\x00": "[2Jab",
		"\u009b31mred\u0085":    "31mred",
		"raw \x9b byte":         "raw \uFFFD byte",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// I1: no text of the other side steers the user's terminal.
func TestTextCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[2J\u009b\x07b"
	failure := &contract.Error{Reason: evil, Message: evil, Rule: evil, ResetAt: evil}
	for name, show := range map[string]func(*session){
		"error": func(s *session) { s.fail(errors.New(evil)) },
		"send": func(s *session) {
			s.showSend("send/k", contract.SendResult{
				Outcome: contract.OutcomeDelivered, Error: failure, Receipts: []contract.Receipt{{MessageID: evil}},
				Review: &contract.Review{Text: evil, Key: "k", Delivered: []contract.DeliveredPart{{Text: evil, MessageID: evil}}},
			})
		},
		"lament": func(s *session) { s.lament("send/k", contract.OutcomeRejected, failure) },
		"git": func(s *session) {
			s.showGit("git-fetch/k", contract.GitResult{
				Outcome: contract.OutcomeListed, Refs: []contract.GitRef{{OID: evil, Name: evil}},
				Updated: []contract.GitUpdate{{Ref: evil, Old: evil, New: evil}}, Head: &contract.GitHead{Ref: evil, OID: evil},
			})
			for _, o := range []contract.Outcome{contract.OutcomeLanded, contract.OutcomeConflict, contract.OutcomeNotLanded, contract.OutcomeNeedsReview} {
				s.showPush(o, contract.GitPushed{Ref: evil, Old: evil, New: evil, Found: evil})
			}
		},
		"run": func(s *session) {
			s.showRun("run/k", contract.RunResult{Outcome: contract.OutcomeCompleted, Text: evil, Served: evil, Attempts: make([]contract.Attempt, 2)}, nil)
		},
		"live": func(s *session) {
			v := &view{session: s}
			v.take(line{Type: "text", Text: evil})
			v.take(line{Type: "notice", Text: evil})
		},
	} {
		s, out, errs := newSession(t.Context(), Globals{})
		show(s)
		text := out.String() + errs.String()
		if !strings.Contains(text, "a[2Jb") {
			t.Errorf("%s: the text is not shown: %q", name, text)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
			t.Errorf("%s prints control characters: %q", name, text)
		}
	}
}
