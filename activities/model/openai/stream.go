package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/sse"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// event is what is read of every frame; the library's types are used for the
// terminal snapshot alone, since deltas come by the hundred.
type event struct {
	Type     string          `json:"type"`
	Delta    json.RawMessage `json:"delta"`
	Response json.RawMessage `json:"response"`
	Error    json.RawMessage `json:"error"`
	Code     string          `json:"code"`
	Message  string          `json:"message"`
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
		if len(frame.Data) == 0 || string(frame.Data) == "[DONE]" {
			continue
		}
		var e event
		if json.Unmarshal(frame.Data, &e) != nil {
			partial.Text = seen.String()
			return partial, &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "a frame is not valid JSON"}
		}
		if e.Type == "" {
			e.Type = frame.Event
		}
		done, err := read(&e, call, &seen, &partial)
		if done || err != nil {
			if err != nil && partial.Text == "" {
				partial.Text = seen.String()
			}
			return partial, err
		}
	}
}

// read takes one event; done when it was the terminal one.
func read(e *event, call *model.Call, seen *strings.Builder, answer *transcript.Answer) (done bool, err error) {
	switch e.Type {
	case "response.output_text.delta":
		text := textOf(e.Delta)
		seen.WriteString(text)
		call.Observe(model.Event{Kind: model.EventText, Text: text})
	case "response.completed", "response.incomplete", "response.failed":
		*answer, err = finish(e.Response, seen.String(), *answer)
		return true, err
	case "error":
		if len(e.Error) > 0 && string(e.Error) != "null" {
			return false, providerError(e.Error)
		}
		return false, &model.ProviderError{Code: e.Code, Message: e.Message}
	case "response.created", "response.in_progress", "response.queued":
		note(e.Response, answer)
		call.Observe(model.Event{Kind: model.EventFrame})
	case "ping", "keepalive":
		call.Observe(model.Event{Kind: model.EventPing})
	case "":
		if len(e.Error) > 0 && string(e.Error) != "null" {
			return false, providerError(e.Error)
		}
		call.Observe(model.Event{Kind: model.EventFrame})
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
	if json.Unmarshal(raw, &r) == nil {
		answer.ResponseID, answer.Served = r.ID, r.Model
	}
}

// finish reads the terminal snapshot, which wins over the deltas (M2.8) and over
// what was noted before. deltas is used only when the snapshot has no output at
// all.
func finish(raw json.RawMessage, deltas string, before transcript.Answer) (transcript.Answer, error) {
	var r responses.Response
	if len(raw) == 0 || json.Unmarshal(raw, &r) != nil {
		before.Text = deltas
		return before, &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "the terminal event holds no response"}
	}
	answer := transcript.Answer{
		Text: r.OutputText(), Served: r.Model, ResponseID: r.ID, Finish: string(r.Status),
		Usage: contract.Usage{
			InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
			CachedTokens:    r.Usage.InputTokensDetails.CachedTokens,
			ReasoningTokens: r.Usage.OutputTokensDetails.ReasoningTokens,
		},
	}
	if len(r.Output) == 0 {
		answer.Text = deltas
	}
	if answer.ResponseID == "" {
		answer.ResponseID = before.ResponseID
	}
	if answer.Served == "" {
		answer.Served = before.Served
	}
	if reason := r.IncompleteDetails.Reason; reason != "" {
		answer.Finish = reason
	}
	switch {
	case r.Status == responses.ResponseStatusFailed, r.Error.Message != "" && answer.Text == "":
		return answer, &model.ProviderError{Code: string(r.Error.Code), Message: r.Error.Message}
	case r.Status == responses.ResponseStatusCancelled:
		return answer, &model.StreamError{Reason: policies.ReasonStreamInterrupted, Detail: "the provider cancelled the response"}
	case refused(&r) || answer.Finish == "content_filter":
		return answer, &model.StreamError{Reason: policies.ReasonRefusal, Detail: "the model refused or its answer was filtered"}
	}
	return answer, nil
}

// refused reports whether the answer is a refusal and nothing else.
func refused(r *responses.Response) bool {
	found := false
	for _, item := range r.Output {
		for _, part := range item.Content {
			switch part.Type {
			case "refusal":
				found = true
			case "output_text":
				return false
			}
		}
	}
	return found
}

func providerError(raw json.RawMessage) error {
	var e struct {
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
		Message string          `json:"message"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		var text string
		if errors.As(err, new(*json.UnmarshalTypeError)) && json.Unmarshal(raw, &text) == nil {
			return &model.ProviderError{Message: text}
		}
		return &model.ProviderError{}
	}
	return &model.ProviderError{Type: e.Type, Code: strings.Trim(string(e.Code), `"`), Message: e.Message}
}
