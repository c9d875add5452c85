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
)

var errSinkRefused = errors.New("the sink's address is neither loopback nor in gateway.sinks.allow")

// Sinks opens sinks.
type Sinks struct {
	// Allow says whether the operator lets live text go to a URL.
	Allow  func(url string) bool
	Client *http.Client
	Logger *slog.Logger
}

// sink takes the live text of one attempt. A failing or slow reader never fails
// or delays the attempt: lines are queued and posted by a goroutine of their
// own.
type sink struct {
	runID, attemptID string
	mu               sync.Mutex
	pending          bytes.Buffer
	seq              int
	closed           bool
	wake             chan struct{}
	logger           *slog.Logger // set for kind log
}

// open returns the sink of an attempt, or nil when there is none or it is not
// allowed.
func (s *Sinks) open(ctx context.Context, req *transcript.Request) *sink {
	if req.Sink == nil {
		return nil
	}
	k := &sink{runID: req.RunID, attemptID: req.AttemptID, wake: make(chan struct{}, 1)}
	switch req.Sink.Kind {
	case "log":
		k.logger = s.Logger
		return k
	case "http":
		if !s.Allow(req.Sink.URL) {
			s.Logger.Warn("sink refused", "run", req.RunID, "error", errSinkRefused)
			return nil
		}
	default:
		return nil
	}
	k.put("start", "")
	go s.post(context.WithoutCancel(ctx), req.Sink.URL, k)
	return k
}

// Text queues a piece of the answer.
func (k *sink) Text(text string) {
	if k == nil || text == "" {
		return
	}
	k.put("text", text)
}

// Close ends the sink; what is queued is still posted.
func (k *sink) Close() {
	if k == nil {
		return
	}
	k.put("end", "")
	k.mu.Lock()
	k.closed = true
	k.mu.Unlock()
	k.signal()
}

func (k *sink) put(kind, text string) {
	k.mu.Lock()
	k.seq++
	line := SinkLine{RunID: k.runID, AttemptID: k.attemptID, Seq: k.seq, Type: kind, Text: text}
	if k.logger != nil {
		k.mu.Unlock()
		k.logger.Info("model output", "run", k.runID, "attempt", k.attemptID, "seq", line.Seq, "type", kind, "text", text)
		return
	}
	if k.pending.Len() < sinkBacklog {
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

// post sends the queue as one chunked request until the sink closes.
func (s *Sinks) post(ctx context.Context, target string, k *sink) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, writer := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, body)
		if err == nil {
			req.Header.Set("Content-Type", "application/x-ndjson")
			var resp *http.Response
			if resp, err = s.Client.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
		if err != nil {
			_ = body.CloseWithError(errSinkGone)
		}
	}()
	s.pump(k, writer)
	_ = writer.Close()
	select {
	case <-done:
	case <-time.After(sinkFlush):
	}
}

var errSinkGone = errors.New("the sink's reader is gone")

// pump writes what is queued, and a heartbeat line when nothing is.
func (s *Sinks) pump(k *sink, w io.Writer) {
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

// Notify posts one notice line, best effort within a second.
func (s *Sinks) Notify(ctx context.Context, n transcript.Notice) error {
	if n.Sink == nil || n.Sink.Kind != "http" || !s.Allow(n.Sink.URL) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	target := n.Sink.URL
	n.Sink = nil
	var line bytes.Buffer
	if err := json.NewEncoder(&line).Encode(SinkLine{RunID: n.RunID, Type: "notice", Text: n.Text, Notice: &n}); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, &line)
	if err != nil {
		return nil
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	resp, err := s.Client.Do(req)
	if err != nil {
		s.Logger.Debug("sink notice not taken", "run", n.RunID)
		return nil
	}
	return resp.Body.Close()
}
