package openai

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

// The operations that steps and ledger name. The key of a request is its model.
const (
	OpResponses = "responses"
	OpModels    = "models"
	OpOther     = "other"
)

// EffectResponse is the one kind of effect: a response that was made, and would be
// billed. Its content is the answer's text.
const EffectResponse = "response"

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Keys are the API keys that are accepted; if empty, any or none.
	Keys []string
	// Models are the models that exist; if empty, any.
	Models []string
	// Answer makes the reply to a prompt. Defaults to [DefaultAnswer].
	Answer func(Prompt) Reply
	// Pace is the wait between the events of a stream. Defaults to none.
	Pace time.Duration
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Server is an OpenAI on a loopback port.
type Server struct {
	*simulator.Server
}

// Start listens and serves. It fails if the address cannot be listened on.
func Start(o Options) (*Server, error) {
	if o.Answer == nil {
		o.Answer = DefaultAnswer
	}
	s, err := simulator.Start(&platform{options: o}, simulator.Options{Addr: o.Addr, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// BaseURL is the base of the API, as a client is configured with it.
func (s *Server) BaseURL() string { return s.URL() + "/v1" }

// RateLimited is a 429 with the wait in seconds in Retry-After, and the headers of
// an empty request budget.
func RateLimited(retryAfter float64) simulator.Step {
	return Fail(http.StatusTooManyRequests, "rate_limit_exceeded", "requests",
		fmt.Sprintf("Rate limit reached. Please try again in %gs.", retryAfter)).
		WithHeader("Retry-After", fmt.Sprintf("%g", retryAfter)).
		WithHeader("x-ratelimit-remaining-requests", "0").
		WithHeader("x-ratelimit-reset-requests", fmt.Sprintf("%gs", retryAfter)).
		As(fmt.Sprintf("429, retry after %g s", retryAfter))
}

// QuotaExhausted is a 429 for which waiting does not help.
func QuotaExhausted() simulator.Step {
	return Fail(http.StatusTooManyRequests, "insufficient_quota", "insufficient_quota",
		"You exceeded your current quota, please check your plan and billing details.")
}

// Overloaded is a 503.
func Overloaded() simulator.Step {
	return Fail(http.StatusServiceUnavailable, "server_overloaded", "server_error",
		"The engine is currently overloaded, please try again later.")
}

// Fail is an error answer in OpenAI's form.
func Fail(status int, code, kind, message string) simulator.Step {
	return simulator.JSON(status, errorBody(code, kind, message))
}

// StreamError ends a stream after n events with an error event.
func StreamError(n int, code, message string) simulator.Step {
	return last(n, "error event", frame("error", fmt.Sprintf(
		`{"type":"error","sequence_number":{{seq}},"code":%q,"message":%q,"param":null}`, code, message)))
}

// Failed ends a stream after n events with response.failed.
func Failed(n int, code, message string) simulator.Step {
	return last(n, "response.failed", frame("response.failed", fmt.Sprintf(
		`{"type":"response.failed","sequence_number":{{seq}},"response":{"id":"{{id}}","object":"response","created_at":{{created_at}},"status":"failed","model":"{{model}}","output":[],"error":{"code":%q,"message":%q},"incomplete_details":null,"usage":null}}`, code, message)))
}

// Incomplete ends a stream after n events with response.incomplete; the reasons of
// the API are max_output_tokens and content_filter.
func Incomplete(n int, reason string) simulator.Step {
	return last(n, "response.incomplete", frame("response.incomplete", fmt.Sprintf(
		`{"type":"response.incomplete","sequence_number":{{seq}},"response":{"id":"{{id}}","object":"response","created_at":{{created_at}},"status":"incomplete","model":"{{model}}","output":[],"error":null,"incomplete_details":{"reason":%q},"usage":null}}`, reason)))
}

// EndEarly ends a stream in order after n events, without its terminal event.
func EndEarly(n int) simulator.Step { return last(n, "ended early", "") }

// Malformed puts a frame that is not JSON into a stream after n events.
func Malformed(n int) simulator.Step {
	return simulator.SpliceFrame(n, frame("response.output_text.delta", `{"type":"response.output_text.delta","delta":`)).As("malformed frame")
}

// Pings puts a comment into a stream after n events and after every such number
// of events from there.
func Pings(n, every int) simulator.Step {
	step := simulator.SpliceFrame(n, ": ping\n\n").As("pings")
	step.Splice.Every = every
	return step
}

func last(n int, what, frame string) simulator.Step {
	step := simulator.SpliceFrame(n, frame).As(fmt.Sprintf("%s after %d events", what, n))
	step.Splice.Last = true
	return step
}

// Faults is a mix of faults for random scripts in which about rate of the
// requests fail, each kind as often as the others.
func Faults(rate float64) []simulator.RandomFault {
	steps := []simulator.Step{
		RateLimited(0.05), Overloaded(), simulator.HTML(502, "<html>502 Bad Gateway</html>"),
		simulator.Reset(), simulator.CutFraction(0.4), StreamError(6, "server_error", "The server had an error."), EndEarly(5),
	}
	var faults []simulator.RandomFault
	for _, step := range steps {
		faults = append(faults, simulator.RandomFault{Rate: rate / float64(len(steps)), Step: step.On(OpResponses)})
	}
	return faults
}

type platform struct {
	options Options
	ids     atomic.Int64
}

// Identify names a request; the key is the model.
func (p *platform) Identify(r *http.Request, body []byte) simulator.Identity {
	id := simulator.Identity{Op: OpOther, Path: r.URL.Path, Credential: r.Header.Get("Authorization")}
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/v1/responses":
		id.Op = OpResponses
		id.Key = modelOf(body)
	case r.Method == http.MethodGet && (r.URL.Path == "/v1/models" || strings.HasPrefix(r.URL.Path, "/v1/models/")):
		id.Op = OpModels
	}
	return id
}

// Serve checks the key and the model, and answers.
func (p *platform) Serve(c *simulator.Call) simulator.Answer {
	key := strings.TrimPrefix(c.Request.Header.Get("Authorization"), "Bearer ")
	if len(p.options.Keys) > 0 && !slices.Contains(p.options.Keys, key) {
		return fail(http.StatusUnauthorized, "invalid_api_key", "invalid_request_error", "Incorrect API key provided.")
	}
	switch c.Op {
	case OpResponses:
		return p.respond(c)
	case OpModels:
		return p.models(c)
	}
	return fail(http.StatusNotFound, "", "invalid_request_error",
		fmt.Sprintf("Invalid URL (%s %s)", c.Request.Method, c.Request.URL.Path))
}

func (p *platform) models(c *simulator.Call) simulator.Answer {
	type model struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
	names := p.options.Models
	if len(names) == 0 {
		names = []string{"simulated"}
	}
	if name, ok := strings.CutPrefix(c.Request.URL.Path, "/v1/models/"); ok {
		if !slices.Contains(names, name) {
			return noModel(name)
		}
		return simulator.JSONAnswer(http.StatusOK, model{name, "model", 0, "simulator"})
	}
	list := []model{}
	for _, name := range names {
		list = append(list, model{name, "model", 0, "simulator"})
	}
	return simulator.JSONAnswer(http.StatusOK, map[string]any{"object": "list", "data": list})
}

func noModel(name string) simulator.Answer {
	return fail(http.StatusNotFound, "model_not_found", "invalid_request_error",
		fmt.Sprintf("The model '%s' does not exist or you do not have access to it.", name))
}

func errorBody(code, kind, message string) any {
	var c any
	if code != "" {
		c = code
	}
	return map[string]any{"error": map[string]any{"message": message, "type": kind, "param": nil, "code": c}}
}

func fail(status int, code, kind, message string) simulator.Answer {
	return simulator.JSONAnswer(status, errorBody(code, kind, message))
}
