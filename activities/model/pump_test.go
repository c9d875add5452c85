package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

func newSink() *sink {
	return &sink{runID: "run/r", attemptID: "run/r/1", wake: make(chan struct{}, 1), ended: make(chan struct{})}
}

// M6: a quiet attempt sends a heartbeat line every 15 s, to its end.
func TestSinkHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &sinks{flush: sinkFlush}
		k := newSink()
		r, w := io.Pipe()
		go func() {
			s.pump(k, w)
			_ = w.Close()
		}()
		started := time.Now()
		lines := bufio.NewScanner(r)
		for beat := 1; beat <= 3; beat++ {
			if !lines.Scan() {
				t.Fatal(lines.Err())
			}
			var line SinkLine
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			want := SinkLine{RunID: "run/r", AttemptID: "run/r/1", Seq: beat, Type: "heartbeat"}
			if at := time.Since(started); line != want || at != time.Duration(beat)*15*time.Second {
				t.Errorf("after %v: %+v, want %+v", at, line, want)
			}
		}
		k.Close()
		if !lines.Scan() || !strings.Contains(lines.Text(), `"seq":4,"type":"end"`) || lines.Scan() {
			t.Errorf("the last line is %q", lines.Text())
		}
	})
}

// M2.12: what waits for a slow reader is bounded; what is left out shows in the
// numbers, and the end is there.
func TestSinkBacklog(t *testing.T) {
	t.Parallel()
	k := newSink()
	piece := strings.Repeat("x", 1<<10)
	for range 5000 {
		k.Text(piece)
	}
	k.Close()
	k.Text("late")
	data, closed := k.take()
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var last SinkLine
	if err := json.Unmarshal(lines[len(lines)-1], &last); err != nil {
		t.Fatal(err)
	}
	if len(data) > sinkBacklog+2<<10 || !closed || last.Type != "end" || last.Seq != 5001 {
		t.Errorf("%d bytes wait, closed %v, last line %+v", len(data), closed, last)
	}
}

// A sink of no kind, and one of a kind that is not known, is none.
func TestNoSink(t *testing.T) {
	t.Parallel()
	s := &sinks{}
	for _, sink := range []*contract.Sink{nil, {Kind: "none"}, {Kind: "pigeon"}} {
		if k := s.open(&transcript.Request{Sink: sink}); k != nil {
			t.Errorf("%+v opened %+v", sink, k)
		}
	}
	var none *sink
	none.Text("x")
	none.Close()
}
