package model

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// SinkLine is one line of NDJSON that an http sink receives (M6). A new attempt
// id tells the reader to forget what it showed of the one before (M2.12).
type SinkLine struct {
	RunID     string `json:"run_id"`
	AttemptID string `json:"attempt_id,omitempty"`
	Seq       int    `json:"seq"`
	// Type is start, text, heartbeat, end or notice.
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Notice is set on notice lines.
	Notice *transcript.Notice `json:"notice,omitempty"`
}

const (
	sinkHeartbeat = 15 * time.Second
	sinkBacklog   = 1 << 20 // bytes that may wait for a slow reader; text beyond is left out
	sinkFlush     = 2 * time.Second
	noticeTime    = time.Second
)

var (
	errSinkRefused = errors.New("the sink's address is neither loopback nor in gateway.sinks.allow")
	errSinkGone    = errors.New("the sink's reader is gone")
)

// sinks opens the sinks of attempts.
type sinks struct {
	// allow says whether the operator lets live text go to a URL.
	allow   func(url string) bool
	client  *http.Client
	logger  *slog.Logger
	closing context.Context
	flush   time.Duration // how long a reader may lag behind the end
	posts   sync.WaitGroup
}

// newSinks returns sinks whose posts end with closing. Their client follows no
// redirect, which could lead where the operator allows nothing, and reads no
// proxy from the environment.
func newSinks(closing context.Context, allow func(string) bool, logger *slog.Logger) *sinks {
	return &sinks{
		allow: allow, logger: logger, closing: closing, flush: sinkFlush,
		client: &http.Client{
			Transport:     &http.Transport{IdleConnTimeout: 30 * time.Second},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// sink takes the live text of one attempt. A failing or slow reader never fails
// or delays the attempt: lines are queued and posted by a goroutine of their
// own.
type sink struct {
	runID, attemptID string
	wake             chan struct{}
	logger           *slog.Logger  // set for kind log
	ended            chan struct{} // closed by Close

	mu      sync.Mutex
	pending bytes.Buffer
	seq     int
	closed  bool
}

// open returns the sink of an attempt, or nil when there is none or it is not
// allowed.
func (s *sinks) open(req *transcript.Request) *sink {
	if req.Sink == nil {
		return nil
	}
	k := &sink{runID: req.RunID, attemptID: req.AttemptID, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	switch req.Sink.Kind {
	case "log":
		k.logger = s.logger
		k.put("start", "")
		return k
	case "http":
		if !s.allow(req.Sink.URL) {
			s.logger.Warn("sink refused", "run", req.RunID, "error", errSinkRefused)
			return nil
		}
	default:
		return nil
	}
	k.put("start", "")
	s.posts.Go(func() { s.post(req.Sink.URL, k) })
	return k
}

// Text queues a piece of the answer.
func (k *sink) Text(text string) {
	if k == nil || text == "" {
		return
	}
	k.put("text", text)
}

// Close ends the sink; what is queued is still posted, if its reader takes it
// soon.
func (k *sink) Close() {
	if k == nil {
		return
	}
	k.put("end", "")
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	close(k.ended)
	k.signal()
}

func (k *sink) put(kind, text string) {
	k.mu.Lock()
	if k.closed {
		k.mu.Unlock()
		return
	}
	k.seq++
	line := SinkLine{RunID: k.runID, AttemptID: k.attemptID, Seq: k.seq, Type: kind, Text: text}
	if k.logger != nil {
		k.mu.Unlock()
		k.logger.Info("model output", "run", k.runID, "attempt", k.attemptID, "seq", line.Seq, "type", kind, "text", text)
		return
	}
	if k.pending.Len() < sinkBacklog || kind == "end" {
		_ = json.NewEncoder(&k.pending).Encode(line)
	}
	k.mu.Unlock()
	k.signal()
}

func (k *sink) signal() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// take returns what is queued and whether the sink is closed.
func (k *sink) take() ([]byte, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := bytes.Clone(k.pending.Bytes())
	k.pending.Reset()
	return data, k.closed
}

// post sends the queue as one chunked request until the sink closes. A reader
// that does not take what is queued is given up a little after that.
func (s *sinks) post(target string, k *sink) {
	ctx, cancel := context.WithCancel(s.closing)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-over:
			return
		case <-k.ended:
		}
		select {
		case <-over:
		case <-time.After(s.flush):
			cancel()
		}
	}()
	body, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The reader may answer before it has read all: nothing more is written then.
		defer func() { _ = body.CloseWithError(errSinkGone) }()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, body)
		if err != nil {
			return
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		if resp, err := s.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	s.pump(k, writer)
	_ = writer.Close()
	<-done
}

// pump writes what is queued, and a heartbeat line when nothing is.
func (s *sinks) pump(k *sink, w io.Writer) {
	beat := time.NewTicker(sinkHeartbeat)
	defer beat.Stop()
	for {
		select {
		case <-k.wake:
		case <-beat.C:
			k.put("heartbeat", "")
		}
		data, closed := k.take()
		if len(data) > 0 {
			if _, err := w.Write(data); err != nil {
				return
			}
		}
		if closed {
			return
		}
	}
}

// notify posts one notice line, best effort within a second.
func (s *sinks) notify(ctx context.Context, n transcript.Notice) error {
	if n.Sink == nil || n.Sink.Kind != "http" || !s.allow(n.Sink.URL) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, noticeTime)
	defer cancel()
	target := n.Sink.URL
	n.Sink = nil
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(SinkLine{RunID: n.RunID, Type: "notice", Text: n.Text, Notice: &n}); err != nil {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, &line)
	if err != nil {
		return nil
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := s.client.Do(req)
	if err != nil {
		s.logger.Debug("sink notice not taken", "run", n.RunID)
		return nil
	}
	_ = resp.Body.Close()
	return nil
}
