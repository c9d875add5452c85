package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bwmarrin/discordgo"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/simulator"
	simdiscord "github.com/holdfast-dev/holdfast/simulator/discord"
)

func list(t *testing.T, a *Activities, in contract.DiscordListInput, at activitytest.Attempt) (contract.DiscordListResult, conformance.ChannelAnswer) {
	t.Helper()
	var result contract.DiscordListResult
	evidence, err := activitytest.Run(t, at, a.ListMessages, in, &result)
	return result, answer(contract.MessageResult{}, evidence, err)
}

// C1: a reply names what it answers and survives its deletion; a thread is where
// the message goes.
func TestReplyAndThread(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	for _, target := range []string{s.Post("77", "someone", "hi"), "12345"} {
		got := create(t, a, conformance.ChannelCall{Input: contract.MessageInput{
			To: channelID, Thread: "77", ReplyTo: target, Text: "answer to " + target, Nonce: target,
		}})
		if got.Failure != nil {
			t.Fatalf("reply to %s: %+v", target, *got.Failure)
		}
	}
	messages := s.Messages("77")
	if len(messages) != 3 || len(s.Messages(channelID)) != 0 {
		t.Fatalf("%d messages in the thread, want 3 and none outside", len(messages))
	}
	if ref := messages[1].Reference; ref == nil || ref.MessageID != messages[0].ID {
		t.Errorf("reference %+v, want %s", ref, messages[0].ID)
	}
}

// C2.1: the body carries the nonce with enforce_nonce, and no mention of
// everyone is parsed.
func TestBody(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(messageOf(contract.MessageInput{Text: "@everyone hello", Nonce: "abc"}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Content  string                   `json:"content"`
		Nonce    string                   `json:"nonce"`
		Enforce  bool                     `json:"enforce_nonce"`
		Mentions struct{ Parse []string } `json:"allowed_mentions"`
	}
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if got.Content != "@everyone hello" || got.Nonce != "abc" || !got.Enforce {
		t.Errorf("body %s", body)
	}
	if diff := cmp.Diff([]string{"users"}, got.Mentions.Parse); diff != "" {
		t.Errorf("mentions that are parsed (-want +got):\n%s", diff)
	}
}

// An account that is not named is the only one; where there are several, the
// error lists them. Nothing is requested.
func TestAccounts(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	broken := Account{APIURL: s.APIURL(), Token: func(context.Context) (string, error) {
		return "", errors.New("cannot read /run/secrets/" + secret)
	}}
	main := one(s)["main"]
	for _, tc := range []struct {
		name     string
		accounts map[string]Account
		account  string
		reason   string // empty for success
		says     []string
	}{
		{"only one", one(s), "", "", nil},
		{"named", one(s), "main", "", nil},
		{"unknown", one(s), "other", "format", []string{`"other"`, "known: main"}},
		{"several", map[string]Account{"b": main, "a": main}, "", "format", []string{"several discord accounts", "known: a, b", "--account"}},
		{"none", nil, "", "format", []string{"no discord account is configured"}},
		{"no token", map[string]Account{"main": broken}, "main", "auth", []string{"channels.discord.accounts.main.token"}},
	} {
		before := len(s.Ledger().Requests(""))
		got := create(t, newActivities(t, tc.accounts), conformance.ChannelCall{Input: contract.MessageInput{
			Account: tc.account, To: channelID, Text: "hello", Nonce: tc.name,
		}})
		requests := len(s.Ledger().Requests("")) - before
		if tc.reason == "" {
			if got.Failure != nil || requests != 1 {
				t.Errorf("%s: %+v after %d requests", tc.name, got.Failure, requests)
			}
			continue
		}
		f := got.Failure
		if f == nil || f.Reason != tc.reason || f.Effect != "not_sent" || !f.Permanent || got.Retry || requests != 0 {
			t.Errorf("%s: %+v, retry %v, after %d requests", tc.name, f, got.Retry, requests)
			continue
		}
		for _, want := range tc.says {
			if !strings.Contains(f.Message, want) {
				t.Errorf("%s: message %q does not say %q", tc.name, f.Message, want)
			}
		}
		if strings.Contains(got.Stored, secret) {
			t.Errorf("%s: the error holds a secret", tc.name)
		}
	}
	// C2.8: a setting that is missing after an attempt vanished proves nothing.
	got := create(t, newActivities(t, nil), conformance.ChannelCall{Number: 2, Input: contract.MessageInput{To: channelID, Text: "x", Nonce: "n"}})
	if got.Failure == nil || got.Failure.Effect != "unknown" {
		t.Errorf("after a vanished attempt: %+v, want an unknown effect", got.Failure)
	}
}

// C4: a look reads what came after its anchor, oldest first, and shows the
// content of our own messages only.
func TestList(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	anchor := s.Post(channelID, "77001", "before")
	var want []contract.DiscordMessage
	for i := range 3 {
		author := []string{"900", "77001"}[i%2]
		m := contract.DiscordMessage{AuthorID: author, ID: s.Post(channelID, author, fmt.Sprint("text ", i))}
		if author == "900" {
			m.Content = fmt.Sprint("text ", i)
		}
		want = append(want, m)
	}
	got, failed := list(t, a, contract.DiscordListInput{Channel: channelID, After: anchor, Limit: 100, Author: "900"}, activitytest.Attempt{})
	if failed.Failure != nil {
		t.Fatalf("%+v", *failed.Failure)
	}
	if diff := cmp.Diff(want, got.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	got, _ = list(t, a, contract.DiscordListInput{Channel: channelID, Before: want[0].ID, Limit: 1}, activitytest.Attempt{})
	if len(got.Messages) != 1 || got.Messages[0].ID != anchor {
		t.Errorf("before the first: %+v, want %s", got.Messages, anchor)
	}
}

// C2.3: reads are repeated on 408, 429, 5xx and transport failures, whatever
// became of the attempts before, and have no effect to speak of.
func TestReadsAreRepeated(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	in := contract.DiscordListInput{Channel: channelID, After: "1", Limit: 1}
	for _, step := range []simulator.Step{
		simulator.Status(408, ""), simdiscord.RateLimited(1, false), simulator.HTML(502, "<html>"), simulator.Reset(), simulator.CutBytes(1),
	} {
		for number := 1; number <= 2; number++ {
			s.Script(step.On(simdiscord.OpListMessages))
			before := len(s.Ledger().Requests(""))
			_, got := list(t, a, in, activitytest.Attempt{Number: number})
			if got.Failure == nil || !got.Retry || got.Failure.Effect != "none" {
				t.Errorf("%s, attempt %d: %+v, retry %v", step.Note, number, got.Failure, got.Retry)
			}
			if n := len(s.Ledger().Requests("")) - before; n != 1 {
				t.Errorf("%s: %d requests, want 1", step.Note, n)
			}
		}
	}
	s.Forbidden(channelID)
	if _, got := list(t, a, in, activitytest.Attempt{}); got.Failure == nil || got.Retry || got.Failure.Reason != "permission" {
		t.Errorf("forbidden: %+v", got.Failure)
	}
}

// C4: the account's own user is whose messages are looked for.
func TestCurrentUser(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	var got contract.DiscordUserResult
	if _, err := activitytest.Run(t, activitytest.Attempt{}, a.CurrentUser, contract.DiscordListInput{}, &got); err != nil || got.ID != "900" {
		t.Errorf("user %+v, %v, want 900", got, err)
	}
}

// A redirect is not followed: the token would go with it.
func TestNoRedirect(t *testing.T) {
	t.Parallel()
	s, other := newServer(t), newServer(t)
	a := newActivities(t, one(s))
	s.Script(simulator.Status(307, "").WithHeader("Location", other.APIURL()+"/channels/1/messages").On(simdiscord.OpCreateMessage))
	got := create(t, a, conformance.ChannelCall{Input: contract.MessageInput{To: channelID, Text: "x", Nonce: "n"}})
	if got.Failure == nil || got.Retry || got.Failure.Effect != "unknown" {
		t.Errorf("%+v, retry %v", got.Failure, got.Retry)
	}
	if n := len(other.Ledger().Requests("")); n != 0 {
		t.Errorf("the redirect was followed %d times", n)
	}
}

// An error says what to do about it, with Discord's own words.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	a := newActivities(t, one(s))
	for status, want := range map[int]string{
		401: "channels.discord.accounts", 403: "permissions in the channel", 404: "does not know the channel", 500: "Discord answered 500", 418: "(code 50035)",
	} {
		s.Script(simdiscord.Fail(status, 50035, "Words of Discord").On(simdiscord.OpCreateMessage))
		got := create(t, a, conformance.ChannelCall{Input: contract.MessageInput{To: channelID, Text: "x", Nonce: fmt.Sprint(status)}})
		if f := got.Failure; f == nil || !strings.Contains(f.Message, want) || !strings.Contains(f.Message, "Words of Discord") {
			t.Errorf("%d: %+v, want %q", status, f, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]Account{
		"no URL": {Token: token, APIURL: "discord"}, "no token": {APIURL: "http://127.0.0.1:1"},
	} {
		if _, err := New(Config{Accounts: map[string]Account{"main": a}}); err == nil || !strings.Contains(err.Error(), `"main"`) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// G9, C2.1: an id of an answer is kept in history, so an answer that puts the
// token in its place counts as one that could not be read.
func TestAnswerThatEchoesTheToken(t *testing.T) {
	t.Parallel()
	echo := "Bot " + secret
	for name, body := range map[string]any{
		"message": map[string]any{"id": echo},
		"author":  map[string]any{"id": "1", "author": map[string]any{"id": echo}},
		"words":   map[string]any{"id": "12a"},
		"long":    map[string]any{"id": strings.Repeat("1", 21)},
		"empty":   map[string]any{"id": ""},
	} {
		s := newServer(t)
		s.Script(simulator.JSON(200, body).On(simdiscord.OpCreateMessage))
		got := create(t, newActivities(t, one(s)), conformance.ChannelCall{Input: contract.MessageInput{To: channelID, Text: "x", Nonce: "n"}})
		if f := got.Failure; f == nil || f.Rule != "C2.1/receipt_lost" || f.Effect != "unknown" || !strings.Contains(f.Message, "could not be read") {
			t.Errorf("%s: result %+v, failure %+v", name, got.Result, f)
		}
		if strings.Contains(got.Stored, secret) {
			t.Errorf("%s: stored: %s", name, got.Stored)
		}
	}
	for name, body := range map[string]string{
		"message": `[{"id":"1"},{"id":"` + echo + `"}]`, "author": `[{"id":"1","author":{"id":"` + echo + `"}}]`,
	} {
		var messages []discordgo.Message
		if err := json.Unmarshal([]byte(body), &messages); err != nil {
			t.Fatal(err)
		}
		if checkIDs(&messages) == nil {
			t.Errorf("a list with the token as the id of a %s passes", name)
		}
	}
	if checkIDs(&discordgo.User{ID: echo}) == nil {
		t.Error("a user with the token as id passes")
	}
}
