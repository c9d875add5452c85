package model_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/activities/model/openai"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/activitytest"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "test-key-of-the-model-tests-0123456789"

// Frames of a stream with the text "one two", and its pieces.
const (
	created   = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-x-1\"}}\n\n"
	deltaOne  = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"one \"}\n\n"
	deltaTwo  = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"two\"}\n\n"
	document  = `{"id":"resp_1","object":"response","status":"completed","model":"gpt-x-1","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"one two"}]}],"usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":1}}}`
	completed = "data: {\"type\":\"response.completed\",\"response\":" + document + "}\n\n"
	answered  = created + deltaOne + deltaTwo + completed
)

// streamHead starts an event stream that ends with its connection, jsonHead a
// document.
const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
	jsonHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
)

// chunk is a piece of a chunked body.
func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

const chunkedHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

// server is a raw peer on the loopback.
type server struct {
	addr     string
	url      string
	conns    atomic.Int32
	requests atomic.Int32
	mu       sync.Mutex
	last     *http.Request
}

// serve hands every accepted connection to handle, and closes it after.
func serve(t testing.TB, handle func(s *server, c net.Conn)) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	s := &server{addr: addr, url: "http://" + addr + "/v1"}
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				handle(s, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return s
}

// read takes one whole request; nil when the client has gone.
func (s *server) read(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil
	}
	s.requests.Add(1)
	s.mu.Lock()
	s.last = req
	s.mu.Unlock()
	return req
}

// say answers each connection's one request with text and closes.
func say(t testing.TB, text string) *server {
	return serve(t, func(s *server, c net.Conn) {
		if s.read(bufio.NewReader(c)) != nil {
			_, _ = io.WriteString(c, text)
		}
	})
}

// hang answers with text and waits for the client to leave, which closes gone.
func hang(t testing.TB, text string) (s *server, gone chan struct{}) {
	gone = make(chan struct{})
	return serve(t, func(s *server, c net.Conn) {
		r := bufio.NewReader(c)
		if s.read(r) == nil {
			return
		}
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, r)
		close(gone)
	}), gone
}

// provider speaks Responses with the server.
func provider(s *server) model.Provider {
	return model.Provider{Dialect: openai.Responses{}, BaseURL: s.url, AuthProfiles: []string{"key"}}
}

// told passes what a dialect tells of on to a test.
type told struct {
	model.Dialect
	hear func(model.Event)
}

func (d told) Attempt(ctx context.Context, call *model.Call) (transcript.Answer, error) {
	observe := call.Observe
	call.Observe = func(e model.Event) {
		observe(e)
		d.hear(e)
	}
	return d.Dialect.Attempt(ctx, call)
}

func activities(t testing.TB, p model.Provider, set ...func(*model.Config)) *model.Activities {
	t.Helper()
	c := model.Config{
		Providers: map[string]model.Provider{"acme": p},
		Policy:    func(string) (policies.Policy, error) { return policies.Policy{}, nil },
		Secret:    func(context.Context, string) (string, error) { return secret, nil },
	}
	for _, f := range set {
		f(&c)
	}
	a, err := model.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func request() transcript.Request {
	return transcript.Request{
		RunID: "run/r", AttemptID: "run/r/1", Streaming: true,
		Candidate: contract.Candidate{Provider: "acme", Model: "gpt-x", AuthProfile: "key"},
		Messages:  []transcript.Message{{Role: transcript.RoleUser, Text: "hello"}},
	}
}

// result is how an attempt ended: the answer, or what was complete of it beside
// a failure.
type result struct {
	transcript.Answer
	failure *contract.Failure
	err     error
}

func attempt(t testing.TB, a *model.Activities, req transcript.Request) result {
	t.Helper()
	return attemptIn(t, t.Context(), a, req)
}

func attemptIn(t testing.TB, ctx context.Context, a *model.Activities, req transcript.Request) result {
	t.Helper()
	var r result
	_, r.err = activitytest.Run(t, activitytest.Attempt{Context: ctx}, a.Attempt, req, &r.Answer)
	if r.err == nil {
		return r
	}
	f := failure.From(r.err)
	r.failure = &f
	failure.Partial(r.err, &r.Answer)
	var app *temporal.ApplicationError
	if !errors.As(r.err, &app) || !app.NonRetryable() {
		t.Errorf("the server could repeat the attempt: %v", r.err)
	}
	if strings.Contains(fmt.Sprintf("%v %+v", r.err, f), secret) {
		t.Errorf("the error holds the key: %v", r.err)
	}
	return r
}

// fails checks reason and phase of a failure.
func (r result) fails(t testing.TB, reason, phase string) contract.Failure {
	t.Helper()
	if r.failure == nil {
		t.Fatalf("the attempt succeeded with %q, want %s", r.Text, reason)
	}
	if r.failure.Reason != reason || r.failure.Phase != phase {
		t.Errorf("reason %q, phase %q (%s: %s), want %q and %q", r.failure.Reason, r.failure.Phase, r.failure.Rule, r.failure.Message, reason, phase)
	}
	return *r.failure
}

// await fails the test if c is not closed in a time that no machine needs.
func await(t testing.TB, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}

// ending cancels when the dialect is done.
type ending struct {
	model.Dialect
	cancel context.CancelFunc
}

func (d ending) Attempt(ctx context.Context, call *model.Call) (transcript.Answer, error) {
	defer d.cancel()
	return d.Dialect.Attempt(ctx, call)
}
