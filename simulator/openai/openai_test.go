package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o openai.Options) *openai.Server {
	t.Helper()
	s, err := openai.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func ask(t *testing.T, s *openai.Server, key string, in map[string]any) reply {
	t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest("POST", s.BaseURL()+"/responses", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(data), err}
}

type object struct {
	ID     string
	Model  string
	Status string
	Output []struct {
		Type      string
		Content   []struct{ Text string }
		Name      string
		Arguments string
	}
	Error             *struct{ Code, Message string }
	IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
	Usage             *struct {
		Output int `json:"output_tokens"`
	}
}

type event struct {
	name string
	data struct {
		Type     string
		Sequence int `json:"sequence_number"`
		Delta    string
		Code     string
		Response *object
	}
}

// read takes a stream apart; a frame that is not JSON or is cut has no type.
func read(t *testing.T, body string) (events []event, deltas string) {
	t.Helper()
	for _, frame := range strings.SplitAfter(body, "\n\n") {
		if frame == "" || strings.HasPrefix(frame, ":") {
			continue
		}
		name, data, _ := strings.Cut(strings.TrimSpace(frame), "\ndata: ")
		e := event{name: strings.TrimPrefix(name, "event: ")}
		if json.Unmarshal([]byte(data), &e.data) == nil && e.data.Type != e.name {
			t.Errorf("event %q has type %q", e.name, e.data.Type)
		}
		events = append(events, e)
		if strings.HasSuffix(e.name, "output_text.delta") {
			deltas += e.data.Delta
		}
	}
	return events, deltas
}

func prompt(stream bool) map[string]any {
	return map[string]any{"model": "m1", "input": "Why is the sky blue?", "stream": stream}
}

// M2.1: a stream has the events of the API in their order, and its text is that
// of the answer without streaming.
func TestStream(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Options{})
	var whole object
	if err := json.Unmarshal([]byte(ask(t, s, "", prompt(false)).body), &whole); err != nil {
		t.Fatal(err)
	}
	r := ask(t, s, "", prompt(true))
	events, deltas := read(t, r.body)
	if r.err != nil || !strings.HasPrefix(r.header.Get("Content-Type"), "text/event-stream") || r.header.Get("x-ratelimit-remaining-requests") == "" {
		t.Errorf("%v, headers %v", r.err, r.header)
	}
	var names []string
	for i, e := range events {
		if e.data.Sequence != i {
			t.Errorf("event %d has sequence number %d", i, e.data.Sequence)
		}
		if n := len(names); n == 0 || names[n-1] != e.name {
			names = append(names, e.name)
		}
	}
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
		"response.output_text.delta", "response.output_text.done", "response.content_part.done",
		"response.output_item.done", "response.completed",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := events[len(events)-1].data.Response
	if text := whole.Output[0].Content[0].Text; deltas != text || last.Output[0].Content[0].Text != text {
		t.Errorf("deltas %q, snapshot %+v, without streaming %q", deltas, last, text)
	}
	if last.Usage == nil || last.Usage.Output == 0 || last.Status != "completed" || last.Model != "m1" {
		t.Errorf("the last snapshot is %+v", last)
	}
	if len(deltas) < 400 {
		t.Errorf("the answer is too short to be cut: %q", deltas)
	}
	if got := len(s.Ledger().Effects(openai.EffectResponse)); got != 2 {
		t.Errorf("%d responses, want 2", got)
	}
}

// M2.1, M2.5: how each broken stream ends.
func TestStreamFaults(t *testing.T) {
	t.Parallel()
	clean := start(t, openai.Options{})
	all, _ := read(t, ask(t, clean, "", prompt(true)).body)
	tests := []struct {
		name   string
		step   simulator.Step
		events int
		last   string
		broken bool
	}{
		{"cut at 40 %", simulator.CutFraction(0.4), len(all) * 2 / 5, "response.output_text.delta", true},
		{"cut after events", simulator.CutEvents(7), 7, "response.output_text.delta", true},
		{"ended early", openai.EndEarly(7), 7, "response.output_text.delta", false},
		{"error event", openai.StreamError(6, "server_error", "no"), 7, "error", false},
		{"failed", openai.Failed(6, "server_error", "no"), 7, "response.failed", false},
		{"incomplete", openai.Incomplete(6, "content_filter"), 7, "response.incomplete", false},
		{"malformed", openai.Malformed(6), len(all) + 1, "response.completed", false},
		{"pings", openai.Pings(1, 5), len(all), "response.completed", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, openai.Options{})
			s.Script(tt.step)
			r := ask(t, s, "", prompt(true))
			events, _ := read(t, r.body)
			if got := errors.Is(r.err, io.ErrUnexpectedEOF); got != tt.broken {
				t.Errorf("read error %v", r.err)
			}
			if len(events) != tt.events || events[len(events)-1].name != tt.last {
				t.Errorf("%d events, the last %q; want %d and %q", len(events), events[len(events)-1].name, tt.events, tt.last)
			}
			if o := events[len(events)-1].data.Response; o != nil && (o.ID != events[0].data.Response.ID || o.Model != "m1") {
				t.Errorf("the last snapshot is of another response: %+v", o)
			}
			if pings := strings.Count(r.body, ": ping\n\n"); pings > 0 != (tt.name == "pings") {
				t.Errorf("%d pings", pings)
			}
		})
	}
}

// M2.2: after its headers the stream is silent; the ledger sees the client leave.
func TestStall(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Options{})
	s.Script(simulator.StallHeaders())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "POST", s.BaseURL()+"/responses", strings.NewReader(`{"model":"m1","input":"a","stream":true}`))
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	resp.Body.Close()
	wait, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	if _, err := s.Ledger().WaitGone(wait, 1); err != nil {
		t.Error(err)
	}
}

// M2.1: an answer longer than the limit is incomplete, streamed or not.
func TestMaxOutputTokens(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Options{})
	for _, stream := range []bool{false, true} {
		in := prompt(stream)
		in["max_output_tokens"] = 5
		r := ask(t, s, "", in)
		var o object
		if stream {
			events, _ := read(t, r.body)
			last := events[len(events)-1]
			if last.name != "response.incomplete" {
				t.Errorf("the last event is %q", last.name)
			}
			o = *last.data.Response
		} else if err := json.Unmarshal([]byte(r.body), &o); err != nil {
			t.Fatal(err)
		}
		if o.Status != "incomplete" || o.IncompleteDetails == nil || o.IncompleteDetails.Reason != "max_output_tokens" || o.Usage.Output != 5 {
			t.Errorf("stream %v: %+v", stream, o)
		}
	}
}

// M2.8: tool calls are streamed in pieces, and a tool's output gets a text.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Options{Answer: func(p openai.Prompt) openai.Reply {
		if p.ToolOutput() {
			return openai.Reply{Text: "It is " + p.Input[len(p.Input)-1].Text}
		}
		return openai.Reply{Calls: []openai.ToolCall{{ID: "c1", Name: p.Tools[0], Arguments: `{"city":"Bern"}`, ChunkSize: 4}}}
	}})
	in := prompt(true)
	in["tools"] = []any{map[string]any{"type": "function", "name": "weather"}}
	r := ask(t, s, "", in)
	events, _ := read(t, r.body)
	arguments := ""
	for _, e := range events {
		if e.name == "response.function_call_arguments.delta" {
			arguments += e.data.Delta
		}
	}
	last := events[len(events)-1].data.Response
	if arguments != `{"city":"Bern"}` || last.Output[0].Name != "weather" || last.Output[0].Arguments != arguments {
		t.Errorf("arguments %q, snapshot %+v", arguments, last)
	}
	in["input"] = []any{
		map[string]any{"role": "user", "content": []any{map[string]any{"type": "input_text", "text": "weather?"}}},
		map[string]any{"type": "function_call", "call_id": "c1", "name": "weather", "arguments": arguments},
		map[string]any{"type": "function_call_output", "call_id": "c1", "output": "sunny"},
	}
	if _, text := read(t, ask(t, s, "", in).body); text != "It is sunny" {
		t.Errorf("text %q", text)
	}
}

// Q1: keys, models, throttles and other refusals.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := start(t, openai.Options{Keys: []string{"k"}, Models: []string{"m1"}})
	other := prompt(false)
	other["model"] = "m2"
	tests := []struct {
		name   string
		key    string
		in     map[string]any
		step   simulator.Step
		status int
		code   string
	}{
		{"bad key", "x", prompt(false), simulator.Pass(), 401, "invalid_api_key"},
		{"no such model", "k", other, simulator.Pass(), 404, "model_not_found"},
		{"no model", "k", map[string]any{"input": "a"}, simulator.Pass(), 400, "missing_required_parameter"},
		{"throttled", "k", prompt(true), openai.RateLimited(0.7), 429, "rate_limit_exceeded"},
		{"no quota", "k", prompt(true), openai.QuotaExhausted(), 429, "insufficient_quota"},
		{"overloaded", "k", prompt(true), openai.Overloaded(), 503, "server_overloaded"},
	}
	for _, tt := range tests {
		s.Script(tt.step)
		r := ask(t, s, tt.key, tt.in)
		var e struct{ Error struct{ Code string } }
		if err := json.Unmarshal([]byte(r.body), &e); err != nil || r.status != tt.status || e.Error.Code != tt.code {
			t.Errorf("%s: %d %s, %v; want %d %s", tt.name, r.status, r.body, err, tt.status, tt.code)
		}
		if tt.name == "throttled" && r.header.Get("Retry-After") != "0.7" {
			t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
		}
	}
	if got := s.Ledger().Requests(openai.OpResponses)[1].Key; got != "m2" {
		t.Errorf("key %q, want the model", got)
	}
	if n := len(s.Ledger().Effects("")); n != 0 {
		t.Errorf("%d responses were made", n)
	}
}
