package telegram

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/simulator"
	simtelegram "github.com/holdfast-dev/holdfast/simulator/telegram"
)

// C2.7: a parse error is a typed failure, benign, not permanent work of an
// operator: the workflow sends the part as plain text at once.
func TestParseErrorIsBenign(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	for _, format := range []contract.Format{contract.FormatMarkdown, contract.FormatHTML} {
		in := contract.MessageInput{To: chatID, Text: "a <b>bold* claim.", Format: format, Used: 1}
		var result contract.MessageResult
		_, err := activitytest.Run(t, activitytest.Attempt{}, a.SendMessage, in, &result)
		var app *temporal.ApplicationError
		if !errors.As(err, &app) || app.Category() != temporal.ApplicationErrorCategoryBenign || !app.NonRetryable() {
			t.Fatalf("%s: %v, want a benign application error that is not retried", format, err)
		}
		var f contract.Failure
		if app.Details(&f) != nil || f.Reason != "parse_error" || f.Effect != "not_sent" || f.Attempts != 1 {
			t.Errorf("%s: %+v", format, f)
		}
	}
	if n := len(s.Messages(1001)); n != 0 {
		t.Errorf("%d messages, want none", n)
	}
}

// C2: the answer says where a group has moved to.
func TestMigration(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Migrate(-500, -1009)
	got := send(t, newActivities(t, one(s)), conformance.ChannelCall{Input: contract.MessageInput{To: "-500", Text: "x"}})
	if f := got.Failure; f == nil || f.MigrateTo != "-1009" || f.Effect != "not_sent" || got.Retry {
		t.Errorf("%+v, want migrate_to -1009, proved not sent", f)
	}
}

// C2.5: what the Bot API says in its body holds although a proxy made its
// status a success.
func TestRefusalUnderStatus200(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.Script(simulator.JSON(200, map[string]any{
		"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 5", "parameters": map[string]any{"retry_after": 5},
	}).On(simtelegram.OpSendMessage))
	got := send(t, newActivities(t, one(s)), conformance.ChannelCall{Input: contract.MessageInput{To: chatID, Text: "x"}})
	if f := got.Failure; f == nil || f.Reason != "rate_limit" || f.Effect != "not_sent" || f.FloorMS == nil || *f.FloorMS != 5000 || !got.Retry {
		t.Errorf("%+v, retry %v", f, got.Retry)
	}
	if f := got.Failure; f != nil && !strings.Contains(f.Message, "asks to slow down (429): Too Many Requests") {
		t.Errorf("message %q", f.Message)
	}
}

// C2.5: an answer whose message id is none could not be read.
func TestAnswerWithoutAMessageID(t *testing.T) {
	t.Parallel()
	for _, id := range []int{0, -7} {
		s := newServer(t)
		s.Script(simulator.JSON(200, map[string]any{"ok": true, "result": map[string]any{"message_id": id}}).On(simtelegram.OpSendMessage))
		got := send(t, newActivities(t, one(s)), conformance.ChannelCall{Input: contract.MessageInput{To: chatID, Text: "x"}})
		if f := got.Failure; f == nil || f.Rule != "C2.5/receipt_lost" || f.Effect != "unknown" || got.Retry {
			t.Errorf("id %d: result %+v, failure %+v", id, got.Result, f)
		}
	}
}

// C1: format, thread and reply reach the platform; what is no number is refused
// before anything is requested.
func TestParameters(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	first := send(t, a, conformance.ChannelCall{Input: contract.MessageInput{To: chatID, Text: "first"}})
	got := send(t, a, conformance.ChannelCall{Input: contract.MessageInput{
		To: chatID, Text: "<b>second</b>", Format: contract.FormatHTML, Thread: "9", ReplyTo: first.Result.MessageID,
	}})
	if got.Failure != nil {
		t.Fatalf("%+v", *got.Failure)
	}
	messages := s.Messages(1001)
	m := messages[len(messages)-1]
	if m.ParseMode != "HTML" || m.Thread != 9 || m.ReplyTo == nil || m.ReplyTo.ID != messages[0].ID {
		t.Errorf("message %+v", m)
	}
	before := len(s.Ledger().Requests(""))
	for _, in := range []contract.MessageInput{
		{To: chatID, Text: "x", Thread: "main"}, {To: chatID, Text: "x", ReplyTo: "abc"},
	} {
		got := send(t, a, conformance.ChannelCall{Input: in})
		if f := got.Failure; f == nil || f.Reason != "format" || !f.Permanent || !strings.Contains(f.Message, "is a number") {
			t.Errorf("%+v: %+v", in, f)
		}
	}
	if n := len(s.Ledger().Requests("")) - before; n != 0 {
		t.Errorf("%d requests, want none", n)
	}
	params, err := sendParams(contract.MessageInput{To: "@news", Format: contract.FormatMarkdown})
	if err != nil || params.ChatID.Username != "@news" || params.ParseMode != "MarkdownV2" {
		t.Errorf("parameters %+v, %v", params, err)
	}
}

// An account that is not named is the only one; where there are several, the
// error lists them. Nothing is requested.
func TestAccounts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	main := one(s)["main"]
	broken := Account{APIURL: s.URL(), Token: func(context.Context) (string, error) { return "", errors.New(secret) }}
	for _, tc := range []struct {
		accounts              map[string]Account
		account, reason, says string
	}{
		{one(s), "", "", ""},
		{one(s), "other", "format", "known: main"},
		{map[string]Account{"b": main, "a": main}, "", "format", "known: a, b"},
		{nil, "", "format", "no telegram account is configured"},
		{map[string]Account{"main": broken}, "", "auth", "channels.telegram.accounts.main.token"},
		{map[string]Account{"main": {APIURL: s.URL(), Token: func(context.Context) (string, error) { return "1:\x7f" + secret, nil }}}, "", "format", "does not form a valid URL"},
	} {
		before := len(s.Ledger().Requests(""))
		got := send(t, newActivities(t, tc.accounts), conformance.ChannelCall{Input: contract.MessageInput{Account: tc.account, To: chatID, Text: "x"}})
		requests := len(s.Ledger().Requests("")) - before
		if tc.reason == "" {
			if got.Failure != nil || requests != 1 {
				t.Errorf("%+v after %d requests", got.Failure, requests)
			}
			continue
		}
		f := got.Failure
		if f == nil || f.Reason != tc.reason || f.Effect != "not_sent" || !strings.Contains(f.Message, tc.says) || requests != 0 {
			t.Errorf("want %q: %+v after %d requests", tc.says, f, requests)
		}
		if strings.Contains(got.Stored, secret) {
			t.Errorf("the error holds the token: %s", got.Stored)
		}
	}
}

// An error says what to do about it, with Telegram's own words, and never the
// address, whose path holds the token.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	for status, want := range map[int]string{
		401: "channels.telegram.accounts", 403: "may not write there", 404: "check the token", 500: "Telegram answered 500", 429: "slow down",
	} {
		s.Script(simtelegram.Fail(status, "Words of Telegram").On(simtelegram.OpSendMessage))
		got := send(t, a, conformance.ChannelCall{Input: contract.MessageInput{To: chatID, Text: "x"}})
		if f := got.Failure; f == nil || !strings.Contains(f.Message, want) || !strings.Contains(f.Message, "Words of Telegram") {
			t.Errorf("%d: %+v, want %q", status, f, want)
		}
	}
	s.Close()
	got := send(t, a, conformance.ChannelCall{Input: contract.MessageInput{To: chatID, Text: "x"}})
	if got.Failure == nil || strings.Contains(got.Stored, secret) || strings.Contains(got.Stored, "/bot") {
		t.Errorf("stored: %s", got.Stored)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]Account{
		"no URL": {Token: token, APIURL: "telegram"}, "no token": {APIURL: "http://127.0.0.1:1"},
	} {
		if _, err := New(Config{Accounts: map[string]Account{"main": a}}); err == nil || !strings.Contains(err.Error(), `"main"`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
