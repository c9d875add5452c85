package model

import (
	"context"
	"fmt"
	"net/http"

	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// Dialect speaks one wire. An implementation makes exactly one HTTP request for
// one call, through the client it is given, with its library's own retries and
// environment defaults off.
type Dialect interface {
	// Attempt makes the request and returns when the response has its terminal
	// event, or fails. What was complete is returned beside an error. Errors of
	// the stream itself are a *[StreamError], errors that the provider reported
	// inside a 200 answer a *[ProviderError]; any other error is judged by what
	// the recorder saw.
	Attempt(ctx context.Context, call *Call) (transcript.Answer, error)
}

// Call is what a dialect is given for one attempt.
type Call struct {
	Request transcript.Request
	BaseURL string
	// APIKey is empty for servers that want none.
	APIKey string
	Header map[string]string
	Client *http.Client
	// Observe is told of everything that arrives, in order.
	Observe func(Event)
}

// EventKind is what a frame was good for.
type EventKind int

// Kinds of event.
const (
	EventFrame   EventKind = iota // the stream is alive: any frame that carries no content
	EventPing                     // the server says on purpose that it is alive
	EventContent                  // content other than text, such as reasoning
	EventText                     // text of the answer
)

// Event is one observation of a stream.
type Event struct {
	Kind EventKind
	Text string
}

// StreamError is a stream that broke a rule: it ended early, carried a malformed
// frame, degenerated or said nothing (M2.1, M2.5, M2.6).
type StreamError struct {
	Reason policies.Reason
	Detail string
}

func (e *StreamError) Error() string { return fmt.Sprintf("%s: %s", e.Reason, e.Detail) }

// ProviderError is an error that the provider reported inside an answer of
// status 200 (P4.10). Message is the provider's guidance; Body is the error as
// it came, for its details to be judged like those of an error answer. It is
// never shown.
type ProviderError struct {
	Type    string
	Code    string
	Message string
	Body    []byte
}

func (e *ProviderError) Error() string { return "the provider reported an error inside its answer" }

// Unspoken stands for a dialect that this version does not speak; its provider
// is skipped.
type Unspoken struct{ Dialect string }

// Attempt makes no request.
func (u Unspoken) Attempt(context.Context, *Call) (transcript.Answer, error) {
	return transcript.Answer{}, &ProviderError{
		Code: "model_not_found", Message: fmt.Sprintf("this version does not speak the dialect %q", u.Dialect),
	}
}
