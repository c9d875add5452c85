package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/activities/model/openai"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// canned answers every request with a body, and keeps the request.
type canned struct {
	body string
	sent map[string]any
	err  error
}

func (c *canned) RoundTrip(req *http.Request) (*http.Response, error) {
	c.err = json.NewDecoder(req.Body).Decode(&c.sent)
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(c.body)), Request: req,
	}, nil
}

func ask(t *testing.T, c *canned, req transcript.Request) (answer transcript.Answer, events []model.Event, err error) {
	t.Helper()
	call := &model.Call{
		Request: req, BaseURL: "http://model.example/v1", Client: &http.Client{Transport: c},
		Observe: func(e model.Event) { events = append(events, e) },
	}
	answer, err = openai.Responses{}.Attempt(context.Background(), call)
	if c.err != nil {
		t.Fatal(c.err)
	}
	return answer, events, err
}

const begun = `data: {"type":"response.created","response":{"id":"r1","model":"m1"}}

data: {"type":"response.output_text.delta","delta":"delta"}

`

// M2.8, M2.10: the terminal snapshot wins over what came before it.
func TestTerminalSnapshot(t *testing.T) {
	t.Parallel()
	says := func(kind, part string) string {
		return `{"id":"r2","model":"m2","status":"` + kind + `","output":[{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[` + part + `]}]`
	}
	text := `{"type":"output_text","text":"final"}`
	refusal := `{"type":"refusal","refusal":"I cannot."}`
	for name, tc := range map[string]struct {
		kind, response string
		want           transcript.Answer
		reason         policies.Reason // of a *StreamError
	}{
		"text":                     {"completed", says("completed", text) + `}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"two parts":                {"completed", says("completed", text+","+text) + `}`, transcript.Answer{Text: "finalfinal", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"no output in it":          {"completed", `{"status":"completed","output":[]}`, transcript.Answer{Text: "delta", Served: "m1", ResponseID: "r1", Finish: "completed"}, ""},
		"no status in it":          {"completed", `{"id":"r2","model":"m2"}`, transcript.Answer{Text: "delta", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"stale status":             {"completed", says("in_progress", text) + `}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"output, but no text":      {"completed", `{"id":"r2","model":"m2","status":"completed","output":[{"type":"reasoning","summary":[]}]}`, transcript.Answer{Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"warning":                  {"completed", says("completed", text) + `,"error":{"code":"note","message":"deprecated"}}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"output limit":             {"incomplete", says("incomplete", text) + `,"incomplete_details":{"reason":"max_output_tokens"}}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "max_output_tokens"}, ""},
		"unknown reason":           {"incomplete", says("incomplete", text) + `,"incomplete_details":{"reason":"tired"}}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "tired"}, ""},
		"no reason":                {"incomplete", says("incomplete", text) + `,"incomplete_details":null}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "incomplete"}, ""},
		"filtered":                 {"incomplete", says("incomplete", text) + `,"incomplete_details":{"reason":"content_filter"}}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "content_filter"}, policies.ReasonRefusal},
		"refusal":                  {"completed", says("completed", refusal) + `}`, transcript.Answer{Text: "delta", Served: "m2", ResponseID: "r2", Finish: "completed"}, policies.ReasonRefusal},
		"refusal beside no text":   {"completed", says("completed", `{"type":"output_text","text":""},`+refusal) + `}`, transcript.Answer{Text: "delta", Served: "m2", ResponseID: "r2", Finish: "completed"}, policies.ReasonRefusal},
		"refusal beside text":      {"completed", says("completed", text+","+refusal) + `}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "completed"}, ""},
		"cancelled by the service": {"completed", says("cancelled", text) + `}`, transcript.Answer{Text: "final", Served: "m2", ResponseID: "r2", Finish: "cancelled"}, policies.ReasonStreamInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &canned{body: begun + `data: {"type":"response.` + tc.kind + `","response":` + tc.response + "}\n\ndata: {\"error\":\"late\"}\n\n"}
			got, _, err := ask(t, c, transcript.Request{Streaming: true})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var stream *model.StreamError
			if errors.As(err, &stream) != (tc.reason != "") || stream != nil && stream.Reason != tc.reason || err != nil && stream == nil {
				t.Errorf("error %v, want reason %q", err, tc.reason)
			}
		})
	}
}

// P4.12: an error and no content is an error, also in a response that calls
// itself complete.
func TestErrorAndNoContent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"r","status":"completed","output":[],"error":{"code":"server_error","message":"Sorry."}}`,
		`{"id":"r","status":"completed","output":[],"error":{"code":"server_error"}}`,
		`{"error":{"code":"server_error","message":"Sorry."},"status":500}`,
	} {
		_, _, err := ask(t, &canned{body: body}, transcript.Request{})
		var provider *model.ProviderError
		if !errors.As(err, &provider) || provider.Code != "server_error" {
			t.Errorf("%s: %v, want the provider's error", body, err)
		}
	}
}

// M2.2: which frames are signs of life, which content.
func TestEvents(t *testing.T) {
	t.Parallel()
	c := &canned{body: ": hello\n\nevent: ping\n\ndata: {\"type\":\"keepalive\"}\n\n" + begun +
		`data: {"type":"response.reasoning_summary_text.delta","delta":"hm"}` + "\n\n" +
		`data: {"type":"response.web_search_call.searching"}` + "\n\n" +
		`data: {"type":"response.completed","response":{"status":"completed"}}` + "\n\n"}
	_, events, err := ask(t, c, transcript.Request{Streaming: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []model.Event{
		{Kind: model.EventPing}, {Kind: model.EventPing}, {Kind: model.EventPing}, {Kind: model.EventFrame},
		{Kind: model.EventText, Text: "delta"}, {Kind: model.EventContent}, {Kind: model.EventFrame},
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// M1.1: what is asked.
func TestRequest(t *testing.T) {
	t.Parallel()
	warm := 0.5
	c := &canned{body: `{"status":"completed","output":[]}`}
	_, _, _ = ask(t, c, transcript.Request{
		Candidate: contract.Candidate{Model: "m"}, System: "Be kind.", MaxOutputTokens: 7, Temperature: &warm, ReasoningEffort: "low", Streaming: true,
		Messages: []transcript.Message{{Role: transcript.RoleUser, Text: "a"}, {Role: transcript.RoleAssistant, Text: "b"}},
	})
	want := map[string]any{
		"model": "m", "instructions": "Be kind.", "max_output_tokens": 7.0, "temperature": 0.5, "stream": true, "store": false,
		"reasoning": map[string]any{"effort": "low"},
		"input":     []any{map[string]any{"role": "user", "content": "a"}, map[string]any{"role": "assistant", "content": "b"}},
	}
	if diff := cmp.Diff(want, c.sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	c = &canned{body: `{"status":"completed","output":[]}`}
	_, _, _ = ask(t, c, transcript.Request{Candidate: contract.Candidate{Model: "m"}})
	if diff := cmp.Diff(map[string]any{"model": "m", "store": false}, c.sent); diff != "" {
		t.Errorf("the least request (-want +got):\n%s", diff)
	}
}
