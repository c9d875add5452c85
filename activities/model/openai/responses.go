package openai

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/internal/sse"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// Responses is the dialect "openai-responses".
type Responses struct{}

// maxErrorBody bounds what is read of an error answer; the recorder keeps no
// more.
const maxErrorBody = policies.MaxBody

// maxAnswer bounds a whole JSON answer.
const maxAnswer = 32 << 20

// Attempt implements [model.Dialect].
func (Responses) Attempt(ctx context.Context, call *model.Call) (transcript.Answer, error) {
	service := responses.NewResponseService(options(call)...)
	var raw *http.Response
	_, err := service.New(ctx, params(call.Request), option.WithResponseBodyInto(&raw))
	if err != nil {
		return transcript.Answer{}, err
	}
	defer func() { _ = raw.Body.Close() }()
	if raw.StatusCode < 200 || raw.StatusCode > 299 {
		return transcript.Answer{}, errStatus
	}
	kind, body, err := sse.Sniff(raw.Body)
	if err != nil {
		return transcript.Answer{}, broken(err)
	}
	switch kind {
	case sse.KindSSE:
		return readStream(body, call)
	case sse.KindJSON:
		return readDocument(body, call)
	}
	return transcript.Answer{}, neither(body)
}

// errStatus is an answer whose status alone says what it is, such as a redirect.
var errStatus = errors.New("the answer is no success")

// neither judges a body that is no event stream and no JSON: one that ended
// before it could be told was interrupted (M2.1).
func neither(body io.Reader) error {
	start, err := io.ReadAll(io.LimitReader(body, 64))
	if err != nil {
		return broken(err)
	}
	text := bytes.TrimSpace(start)
	for _, field := range []string{"data", "event", "id", "retry"} {
		if bytes.HasPrefix([]byte(field), text) {
			return broken(io.ErrUnexpectedEOF)
		}
	}
	return &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: "the answer is neither an event stream nor JSON"}
}

// options states everything, so that the library reads nothing from the
// environment.
func options(call *model.Call) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithBaseURL(call.BaseURL),
		option.WithHTTPClient(call.Client),
		option.WithMaxRetries(0),
		option.WithMiddleware(boundErrors),
	}
	if call.APIKey != "" {
		opts = append(opts, option.WithAPIKey(call.APIKey))
	}
	for name, value := range call.Header {
		opts = append(opts, option.WithHeader(name, value))
	}
	if call.Request.Streaming {
		opts = append(opts, option.WithJSONSet("stream", true), option.WithHeader("Accept", "text/event-stream"))
	}
	return opts
}

// boundErrors keeps an endless error body from being read for ever.
func boundErrors(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	resp, err := next(req)
	if err == nil && resp.StatusCode >= 400 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, err
}

func params(req transcript.Request) responses.ResponseNewParams {
	var items responses.ResponseInputParam
	for _, m := range req.Messages {
		role := responses.EasyInputMessageRoleUser
		if m.Role == transcript.RoleAssistant {
			role = responses.EasyInputMessageRoleAssistant
		}
		items = append(items, responses.ResponseInputItemParamOfMessage(m.Text, role))
	}
	p := responses.ResponseNewParams{
		Model: req.Candidate.Model,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: items},
		// Nothing is to be kept at the provider beyond the call.
		Store: param.NewOpt(false),
	}
	if req.System != "" {
		p.Instructions = param.NewOpt(req.System)
	}
	if req.MaxOutputTokens > 0 {
		p.MaxOutputTokens = param.NewOpt(req.MaxOutputTokens)
	}
	if req.Temperature != nil {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.ReasoningEffort != "" {
		p.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffort(req.ReasoningEffort)}
	}
	return p
}

// broken turns an end of the body before its terminal event into the stream
// error it is (M2.1). Errors of the context stay as they are.
func broken(err error) error {
	var long *sse.LineTooLongError
	var frame *sse.FrameTooLongError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &long), errors.As(err, &frame):
		return &model.StreamError{Reason: policies.ReasonMalformedStream, Detail: err.Error()}
	}
	return &model.StreamError{Reason: policies.ReasonStreamInterrupted, Detail: "the stream ended before its terminal event"}
}
