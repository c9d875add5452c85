package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Platform is one outside system behind a [Server].
type Platform interface {
	// Identify names a request without acting on it. It is called once before
	// the body is read, with a nil body, and again when it has been.
	Identify(r *http.Request, body []byte) Identity
	// Serve does what the request asks, records its effects with [Call.Effect],
	// and returns the answer. It runs on many goroutines at once.
	Serve(c *Call) Answer
}

// Call is one request as a platform sees it.
type Call struct {
	// Request is the request; its Body reads Body from the start.
	Request *http.Request
	Body    []byte
	Identity
	// N is the request's ordinal in the ledger.
	N int

	ledger *Ledger
	now    func() time.Time
}

// Now is the server's time.
func (c *Call) Now() time.Time { return c.now() }

// Effect records that the request had an effect.
func (c *Call) Effect(kind, id, content string) {
	c.ledger.Enact(Effect{Kind: kind, ID: id, Key: c.Key, Content: content, Request: c.N, At: c.now()})
}

// Answer is what a platform answers. Exactly one of Body, Frames and Stream is used.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Frames are the events of an event stream, each with its blank line; Pace
	// is the wait between them.
	Frames [][]byte
	Pace   time.Duration
	// Vars stand in the frames that a step splices in.
	Vars map[string]string
	// Stream writes an answer of unknown size, with its own status and headers.
	// It returns at the first error of a write.
	Stream func(w http.ResponseWriter)
}

// JSONAnswer makes an answer of v as JSON. It panics if v has no JSON form.
func JSONAnswer(status int, v any) Answer {
	body, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("simulator.JSONAnswer: %v", err))
	}
	return Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}
}

// scripted is the answer that a step puts in the platform's place.
func (s Step) scripted() Answer {
	a := Answer{Status: s.Status, Header: http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, Body: []byte(s.Body)}
	if s.JSON != nil {
		a.Body = s.JSON
		a.Header.Set("Content-Type", "application/json")
	}
	return a
}
