package discord

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
	simdiscord "github.com/holdfast-dev/holdfast/simulator/discord"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret    = "MTIzNDU2Nzg5.Secret.bot-token-of-the-test"
	channelID = "41771983423143937"
)

func token(context.Context) (string, error) { return secret, nil }

func newServer(t *testing.T) *simdiscord.Server {
	t.Helper()
	s, err := simdiscord.Start(simdiscord.Options{Tokens: map[string]string{secret: "900"}})
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

func one(s *simdiscord.Server) map[string]Account {
	return map[string]Account{"main": {Token: token, APIURL: s.APIURL()}}
}

// answer is what the suite sees of an attempt.
func answer(result contract.MessageResult, evidence json.RawMessage, err error) conformance.ChannelAnswer {
	out := conformance.ChannelAnswer{Result: result, Evidence: evidence}
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

func create(t *testing.T, a *Activities, call conformance.ChannelCall) conformance.ChannelAnswer {
	t.Helper()
	var result contract.MessageResult
	evidence, err := activitytest.Run(t, activitytest.Attempt{
		Number: call.Number, Evidence: call.Evidence, Context: call.Context,
	}, a.CreateMessage, call.Input, &result)
	return answer(result, evidence, err)
}

// C1, C2.1, C2.8, C4, P2, P3: the suite that every channel passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Channel(t, func(t *testing.T) conformance.ChannelAdapter {
		s := newServer(t)
		a := newActivities(t, one(s))
		return conformance.ChannelAdapter{
			Server: s.Server, Operation: simdiscord.OpCreateMessage, Effect: simdiscord.EffectMessage, Secret: secret, Keyed: true,
			Throttled: func(seconds int) simulator.Step { return simdiscord.RateLimited(float64(seconds), false) },
			Refused:   func(status int) simulator.Step { return simdiscord.Fail(status, 0, "refused") },
			Input: contract.MessageInput{
				Account: "main", To: channelID, Text: "hello", Format: contract.FormatMarkdown, Nonce: "n",
			},
			Send: func(t *testing.T, call conformance.ChannelCall) conformance.ChannelAnswer { return create(t, a, call) },
		}
	})
}
