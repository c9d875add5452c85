package model

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// After the terminal event a stream is read a little further, so that its
// connection can be used again (M2.7).
const (
	drainBytes = 64 << 10
	drainTime  = 250 * time.Millisecond
)

// restBody keeps hold of a response body that the client library would close
// when the dialect is done with it.
type restBody struct {
	mu   sync.Mutex
	body io.ReadCloser
}

// client returns a copy of c whose response bodies are kept by b.
func (b *restBody) client(c *http.Client) *http.Client {
	kept := *c
	kept.Transport = keepBody{next: c.Transport, rest: b}
	return &kept
}

type keepBody struct {
	next http.RoundTripper
	rest *restBody
}

func (k keepBody) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := k.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	k.rest.mu.Lock()
	k.rest.body = resp.Body
	k.rest.mu.Unlock()
	resp.Body = io.NopCloser(resp.Body)
	return resp, nil
}

// drain reads the rest of the body within its bounds and ends the request.
// Closing stops it.
func (b *restBody) drain(closing context.Context, cancel context.CancelCauseFunc) {
	b.mu.Lock()
	body := b.body
	b.mu.Unlock()
	defer cancel(nil)
	if body == nil {
		return
	}
	limit := time.AfterFunc(drainTime, func() { cancel(nil) })
	defer limit.Stop()
	stop := context.AfterFunc(closing, func() { cancel(nil) })
	defer stop()
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	_ = body.Close()
}
