package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/openai/openai-go/v3/responses"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// readDocument reads an answer that is one JSON document, asked for or not
// (M2.4).
func readDocument(body io.Reader, call *model.Call) (transcript.Answer, error) {
	call.Observe(model.Event{Kind: model.EventFrame})
	data, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if err != nil {
		return transcript.Answer{}, broken(err)
	}
	if len(data) > maxAnswer {
		return transcript.Answer{}, &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "the answer is larger than 32 MiB"}
	}
	data = bytes.TrimPrefix(data, []byte("\xEF\xBB\xBF"))
	var e event
	var kind *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &e); err != nil && !errors.As(err, &kind) {
		if errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&e), io.ErrUnexpectedEOF) {
			return transcript.Answer{}, broken(io.ErrUnexpectedEOF)
		}
		return transcript.Answer{}, &model.StreamError{Reason: policies.ReasonFormat, Detail: "the answer is not valid JSON"}
	}
	answer, err := finish("", data, "", transcript.Answer{})
	if errors.Is(err, errNoResponse) {
		if err := reported("", &e, data); err != nil {
			return transcript.Answer{}, err
		}
		return transcript.Answer{}, &model.StreamError{Reason: policies.ReasonFormat, Detail: "the answer is JSON, but no response"}
	}
	if answer.Text != "" {
		call.Observe(model.Event{Kind: model.EventText, Text: answer.Text})
	}
	return answer, err
}

// errNoResponse is a document that is no response object.
var errNoResponse = errors.New("no response object")

// finish reads the terminal snapshot, which wins over the deltas (M2.8) and over
// what was noted before. deltas is used only when the snapshot has no output at
// all. kind is the type of the event that carried the snapshot, empty for a
// document of its own.
func finish(kind string, raw json.RawMessage, deltas string, before transcript.Answer) (transcript.Answer, error) {
	var r responses.Response
	malformed := len(raw) == 0 || json.Unmarshal(raw, &r) != nil
	if kind == "" && (malformed || r.Status == "" && len(r.Output) == 0) {
		return before, errNoResponse
	}
	if malformed {
		before.Text = deltas
		return before, &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "the terminal event holds no response"}
	}
	status := statusOf(kind, &r)
	answer := transcript.Answer{
		Text: r.OutputText(), Served: cmp.Or(r.Model, before.Served), ResponseID: cmp.Or(r.ID, before.ResponseID),
		Finish: cmp.Or(r.IncompleteDetails.Reason, string(status)),
		Usage: contract.Usage{
			InputTokens: r.Usage.InputTokens, OutputTokens: r.Usage.OutputTokens,
			CachedTokens:    r.Usage.InputTokensDetails.CachedTokens,
			ReasoningTokens: r.Usage.OutputTokensDetails.ReasoningTokens,
		},
	}
	if len(r.Output) == 0 {
		answer.Text = deltas
	}
	failed := r.Error.Message != "" || r.Error.Code != ""
	switch {
	case status == responses.ResponseStatusFailed, failed && answer.Text == "":
		return answer, providerError([]byte(r.Error.RawJSON()))
	case status == responses.ResponseStatusCancelled:
		return answer, &model.StreamError{Reason: policies.ReasonStreamInterrupted, Detail: "the provider cancelled the response"}
	case status == responses.ResponseStatusInProgress, status == responses.ResponseStatusQueued:
		return answer, &model.StreamError{Reason: policies.ReasonStreamInterrupted, Detail: "the provider answered with a response that is not finished"}
	case refused(&r) || answer.Finish == "content_filter":
		return answer, &model.StreamError{Reason: policies.ReasonRefusal, Detail: "the model refused or its answer was filtered"}
	}
	return answer, nil
}

// statusOf is the status of a response. The terminal event says it as well, and
// stands in where the snapshot does not know it.
func statusOf(kind string, r *responses.Response) responses.ResponseStatus {
	said := responses.ResponseStatus(strings.TrimPrefix(kind, "response."))
	switch r.Status {
	case "", responses.ResponseStatusInProgress, responses.ResponseStatusQueued:
		return cmp.Or(said, r.Status)
	}
	if said == responses.ResponseStatusFailed {
		return said
	}
	return r.Status
}

// refused reports whether the answer is a refusal and nothing else.
func refused(r *responses.Response) bool {
	found := false
	for _, item := range r.Output {
		for _, part := range item.Content {
			switch {
			case part.Type == "refusal":
				found = true
			case part.Type == "output_text" && strings.TrimSpace(part.Text) != "":
				return false
			}
		}
	}
	return found
}

// codeUnsaid stands for an error of which nothing is said.
const codeUnsaid = "server_error"

// reported returns the error that a frame or a document reports, in the shapes
// that servers use (P4.10): an event of that name or type, flat or nested, an
// object of that kind, and a bare error member.
func reported(name string, e *event, data []byte) error {
	nested := len(e.Error) > 0 && string(e.Error) != "null" && !strings.HasPrefix(e.Type, "response.")
	if nested {
		err := providerError(e.Error)
		err.Body = cut(data)
		return err
	}
	if name == "error" || e.Type == "error" || string(e.Object) == `"error"` {
		return providerError(data)
	}
	return nil
}

// providerError reads an error object, or a text in its place.
func providerError(raw json.RawMessage) *model.ProviderError {
	var e struct{ Type, Code, Message json.RawMessage }
	err := &model.ProviderError{Body: cut(raw)}
	if json.Unmarshal(raw, &e) == nil {
		err.Type, err.Code, err.Message = textOf(e.Type), wordOf(e.Code), textOf(e.Message)
	} else {
		err.Message = textOf(raw)
	}
	if err.Type == "error" {
		err.Type = ""
	}
	if err.Type == "" && err.Code == "" && err.Message == "" {
		err.Code = codeUnsaid
	}
	return err
}

// wordOf is a code, which some servers write as a number.
func wordOf(raw json.RawMessage) string {
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return textOf(raw)
}

// cut copies what is looked at of an error.
func cut(raw []byte) []byte { return bytes.Clone(raw[:min(len(raw), policies.MaxBody)]) }
