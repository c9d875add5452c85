package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/activities/model/openai"
	"github.com/holdfast-dev/holdfast/conformance"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	simopenai "github.com/holdfast-dev/holdfast/simulator/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "test-key-of-the-openai-dialect-0123456789"

// tap hears what a dialect tells of while it works.
type tap struct {
	model.Dialect
	mu   sync.Mutex
	live strings.Builder
}

func (d *tap) Attempt(ctx context.Context, call *model.Call) (transcript.Answer, error) {
	d.mu.Lock()
	d.live.Reset()
	d.mu.Unlock()
	observe := call.Observe
	call.Observe = func(e model.Event) {
		d.mu.Lock()
		d.live.WriteString(e.Text)
		d.mu.Unlock()
		observe(e)
	}
	return d.Dialect.Attempt(ctx, call)
}

func (d *tap) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.live.String()
}

func newActivities(t *testing.T, p model.Provider) *model.Activities {
	t.Helper()
	p.AuthProfiles = []string{"key"}
	a, err := model.New(model.Config{
		Providers: map[string]model.Provider{"openai": p},
		Policy:    func(string) (policies.Policy, error) { return policies.Policy{}, nil },
		Secret:    func(context.Context, string) (string, error) { return secret, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func attempt(t *testing.T, a *model.Activities, call conformance.DialectCall) conformance.DialectAnswer {
	t.Helper()
	req := transcript.Request{
		RunID: "run/1", AttemptID: "run/1/1", Streaming: !call.Whole,
		Candidate: contract.Candidate{Provider: "openai", Model: "gpt-x", AuthProfile: "key"},
		Messages:  []transcript.Message{{Role: transcript.RoleUser, Text: "hello"}},
	}
	var answer transcript.Answer
	_, err := activitytest.Run(t, activitytest.Attempt{Context: call.Context}, a.Attempt, req, &answer)
	var out conformance.DialectAnswer
	if err != nil {
		f := failure.From(err)
		out.Failure = &f
		failure.Partial(err, &answer)
		var app *temporal.ApplicationError
		out.Retry = !errors.As(err, &app) || !app.NonRetryable()
		details, _ := json.Marshal(f)
		out.Stored = err.Error() + string(details)
	}
	out.Text, out.Served, out.ResponseID, out.Finish, out.Usage = answer.Text, answer.Served, answer.ResponseID, answer.Finish, answer.Usage
	return out
}

// splice ends a stream after five events with a frame.
func splice(note, frame string) simulator.Step {
	step := simulator.SpliceFrame(5, frame).As(note)
	step.Splice.Last = true
	return step
}

// inStream are the shapes in which servers report errors (P4.10).
func inStream() map[string][]simulator.Step {
	const limit, message = "rate_limit_exceeded", "Rate limit reached. Please try again in 1.5s."
	flat := fmt.Sprintf(`"code":%q,"message":%q`, limit, message)
	return map[string][]simulator.Step{
		"rate_limit": {
			simopenai.StreamError(5, limit, message),
			simopenai.Failed(5, limit, message),
			splice("nested", "event: error\ndata: {\"type\":\"error\",\"error\":{"+flat+"}}\n\n"),
			splice("flat, named by its event", "event: error\ndata: {"+flat+"}\n\n"),
			splice("of its own type", "event: error\ndata: {\"type\":\"tokens\","+flat+"}\n\n"),
			splice("bare", "data: {\"error\":{"+flat+"}}\n\n"),
			splice("number", "data: {\"error\":{\"code\":429,\"message\":\"slow\"}}\n\n"),
			splice("flat number", "event: error\ndata: {\"type\":\"error\",\"code\":429,\"message\":\"slow\"}\n\n"),
			splice("status beside", "data: {\"type\":\"error\",\"status\":429,\"error\":{\"message\":\"slow\"}}\n\n"),
			splice("object", "data: {\"object\":\"error\",\"type\":\"RateLimitError\",\"code\":429,\"message\":\"slow\"}\n\n"),
			splice("text in place of an object", "data: {\"error\":\"Rate limit reached, too many requests\"}\n\n"),
			splice("words", "event: error\ndata: rate limit reached, too many requests\n\n"),
			splice("failed without a status", "data: {\"type\":\"response.failed\",\"response\":{\"error\":{"+flat+"}}}\n\n"),
		},
		"server_error": {
			simopenai.StreamError(5, "server_error", "The server had an error."),
			simopenai.Failed(5, "server_error", "The server had an error."),
			splice("nothing said", "event: error\ndata: {\"type\":\"error\"}\n\n"),
			splice("no data", "event: error\n\n"),
			splice("failed, nothing said", "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":null}}\n\n"),
		},
		"overloaded":       {simopenai.StreamError(5, "server_is_overloaded", "Our servers are currently overloaded.")},
		"quota_exhausted":  {simopenai.Failed(5, "insufficient_quota", "You exceeded your current quota.")},
		"context_overflow": {simopenai.Failed(5, "context_length_exceeded", "Your input exceeds the context window of this model.")},
		"refusal":          {simopenai.Incomplete(5, "content_filter")},
	}
}

// M1.1, M2, M3.13, P4: the suite that every dialect passes.
func TestConformance(t *testing.T) {
	t.Parallel()
	conformance.Dialect(t, func(t *testing.T, l conformance.DialectLimits) conformance.DialectAdapter {
		s, err := simopenai.Start(simopenai.Options{Keys: []string{secret}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		d := &tap{Dialect: openai.Responses{}}
		a := newActivities(t, model.Provider{Dialect: d, BaseURL: s.BaseURL(), Limits: model.Limits{
			Headers: l.Headers, FirstEvent: l.FirstEvent, Silence: l.Silence, SilenceWithPings: l.SilenceWithPings, Progress: l.Progress,
		}})
		return conformance.DialectAdapter{
			Server: s.Server, Operation: simopenai.OpResponses, Effect: simopenai.EffectResponse, Secret: secret,
			Refused:   func(status int, guidance string) simulator.Step { return simopenai.Fail(status, "", "", guidance) },
			EndEarly:  simopenai.EndEarly,
			Malformed: simopenai.Malformed,
			Pings:     func(events int) simulator.Step { return simopenai.Pings(events, 1) },
			InStream:  inStream(),
			Attempt: func(t *testing.T, call conformance.DialectCall) conformance.DialectAnswer {
				answer := attempt(t, a, call)
				answer.Live = d.text()
				return answer
			},
		}
	})
}
