package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/simulator"
	simtelegram "github.com/holdfast-dev/holdfast/simulator/telegram"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret = "123456:AAE-secret-of-the-test-bot_0123456789"
	chatID = "1001"
)

func token(context.Context) (string, error) { return secret, nil }

func newServer(t *testing.T) *simtelegram.Server {
	t.Helper()
	s, err := simtelegram.Start(simtelegram.Options{Tokens: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newActivities(t *testing.T, accounts map[string]Account) *Activities {
	t.Helper()
	a, err := New(Config{Accounts: accounts})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func one(s *simtelegram.Server) map[string]Account {
	return map[string]Account{"main": {Token: token, APIURL: s.URL()}}
}

// send makes one attempt, as the suite sees it.
func send(t *testing.T, a *Activities, call conformance.ChannelCall) conformance.ChannelAnswer {
	t.Helper()
	var out conformance.ChannelAnswer
	evidence, err := activitytest.Run(t, activitytest.Attempt{
		Number: call.Number, Evidence: call.Evidence, Context: call.Context,
	}, a.SendMessage, call.Input, &out.Result)
	out.Evidence = evidence
	if err == nil {
		return out
	}
	f := failure.From(err)
	out.Failure = &f
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		out.Retry, out.Delay = !app.NonRetryable(), app.NextRetryDelay()
	}
	details, _ := json.Marshal(f)
	out.Stored = err.Error() + string(details)
	return out
}

// C1, C2.5, C2.8, C4, P2, P3: the suite that every channel passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Channel(t, func(t *testing.T) conformance.ChannelAdapter {
		s := newServer(t)
		a := newActivities(t, one(s))
		return conformance.ChannelAdapter{
			Server: s.Server, Operation: simtelegram.OpSendMessage, Effect: simtelegram.EffectMessage, Secret: secret,
			Throttled: simtelegram.FloodWait,
			Refused:   func(status int) simulator.Step { return simtelegram.Fail(status, "refused") },
			Input:     contract.MessageInput{Account: "main", To: chatID, Text: "hello", Format: contract.FormatPlain},
			Send:      func(t *testing.T, call conformance.ChannelCall) conformance.ChannelAnswer { return send(t, a, call) },
		}
	})
}
