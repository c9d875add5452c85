package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/internal/sse"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// event is what is read of every frame; the library's types are used for the
// terminal snapshot alone, since deltas come by the hundred.
type event struct {
	Type     string          `json:"type"`
	Object   json.RawMessage `json:"object"`
	Delta    json.RawMessage `json:"delta"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// readStream reads frames until the terminal event. A body that ends before it
// is interrupted, however it ends (M2.1).
func readStream(body io.Reader, call *model.Call) (transcript.Answer, error) {
	frames := sse.NewReader(body, sse.Options{})
	var seen strings.Builder // text of the deltas
	var partial transcript.Answer
	for {
		frame, err := frames.Next()
		if err != nil {
			partial.Text = seen.String()
			return partial, broken(err)
		}
		if frame.Comment {
			call.Observe(model.Event{Kind: model.EventPing})
			continue
		}
		done, err := readFrame(frame, call, &seen, &partial)
		if done || err != nil {
			if err != nil && partial.Text == "" {
				partial.Text = seen.String()
			}
			return partial, err
		}
	}
}

// readFrame takes one frame; done when it was the terminal one.
func readFrame(frame sse.Frame, call *model.Call, seen *strings.Builder, partial *transcript.Answer) (done bool, err error) {
	if len(frame.Data) == 0 && frame.Event != "error" {
		return read(&event{Type: frame.Event}, call, seen, partial)
	}
	if string(frame.Data) == "[DONE]" {
		return false, nil
	}
	var e event
	if err := json.Unmarshal(frame.Data, &e); err != nil {
		if frame.Event == "error" {
			return false, &model.ProviderError{Code: codeUnsaid, Body: cut(frame.Data)}
		}
		return false, &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "a frame is not valid JSON"}
	}
	if err := reported(frame.Event, &e, frame.Data); err != nil {
		return false, err
	}
	if e.Type == "" {
		e.Type = frame.Event
	}
	return read(&e, call, seen, partial)
}

// read takes one event; done when it was the terminal one.
func read(e *event, call *model.Call, seen *strings.Builder, answer *transcript.Answer) (done bool, err error) {
	switch e.Type {
	case "response.output_text.delta":
		text := textOf(e.Delta)
		seen.WriteString(text)
		call.Observe(model.Event{Kind: model.EventText, Text: text})
	case "response.completed", "response.incomplete", "response.failed":
		*answer, err = finish(e.Type, e.Response, seen.String(), *answer)
		return true, err
	case "response.created", "response.in_progress", "response.queued":
		note(e.Response, answer)
		call.Observe(model.Event{Kind: model.EventFrame})
	case "ping", "keepalive":
		call.Observe(model.Event{Kind: model.EventPing})
	default:
		kind := model.EventFrame
		if strings.HasSuffix(e.Type, ".delta") {
			kind = model.EventContent
		}
		call.Observe(model.Event{Kind: kind})
	}
	return false, nil
}

func textOf(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// note keeps id and model of a response under way (M2.10).
func note(raw json.RawMessage, answer *transcript.Answer) {
	var r struct {
		ID    string `json:"id"`
		Model string `json:"model"`
	}
	if json.Unmarshal(raw, &r) != nil {
		return
	}
	answer.ResponseID = cmp.Or(r.ID, answer.ResponseID)
	answer.Served = cmp.Or(r.Model, answer.Served)
}
