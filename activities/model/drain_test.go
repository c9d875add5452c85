package model

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// M2.7: what follows the terminal event is read for 250 ms and 64 KiB at most,
// and no longer than until the worker stops.
func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		feed  func(w *io.PipeWriter)
		close time.Duration // after which the worker stops; 0 for never
		took  time.Duration
		read  int64
	}{
		"silent body":    {func(*io.PipeWriter) {}, 0, drainTime, 0},
		"body that ends": {func(w *io.PipeWriter) { _, _ = io.WriteString(w, "rest"); _ = w.Close() }, 0, 0, 4},
		"body that goes on": {func(w *io.PipeWriter) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
					return
				}
			}
		}, 0, 0, drainBytes},
		"worker stops": {func(*io.PipeWriter) {}, 100 * time.Millisecond, 100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				closing, stop := context.WithCancel(t.Context())
				ctx, cancel := context.WithCancelCause(t.Context())
				r, w := io.Pipe()
				context.AfterFunc(ctx, func() { _ = r.CloseWithError(context.Canceled) }) // as net/http does
				counted := &counter{ReadCloser: r}
				go tc.feed(w)
				if tc.close > 0 {
					time.AfterFunc(tc.close, stop)
				}
				started := time.Now()
				body := &restBody{body: counted}
				body.drain(closing, cancel)
				if took := time.Since(started); took != tc.took || counted.n != tc.read {
					t.Errorf("read %d bytes in %v, want %d in %v", counted.n, took, tc.read, tc.took)
				}
				if ctx.Err() == nil {
					t.Error("the request goes on")
				}
				stop()
				_ = w.Close()
				synctest.Wait()
			})
		})
	}
}

type counter struct {
	io.ReadCloser
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n += int64(n)
	return n, err
}
