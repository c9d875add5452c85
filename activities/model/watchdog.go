package model

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// Limits are how long an attempt may stay without what it waits for (M2.2).
// Nothing limits its total length but the run's deadline.
type Limits struct {
	Connect         time.Duration // defaults to 10 s
	Headers         time.Duration // streaming; defaults to 60 s
	HeadersNoStream time.Duration // defaults to 600 s
	FirstEvent      time.Duration // defaults to 120 s
	Silence         time.Duration // no byte at all; defaults to 120 s
	// SilenceWithPings applies once the server has sent a ping or comment;
	// defaults to 30 s.
	SilenceWithPings time.Duration
	Progress         time.Duration // no event that carries content; defaults to 300 s
}

// WithDefaults fills what is not set.
func (l Limits) WithDefaults() Limits {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&l.Connect, 10*time.Second)
	set(&l.Headers, 60*time.Second)
	set(&l.HeadersNoStream, 600*time.Second)
	set(&l.FirstEvent, 120*time.Second)
	set(&l.Silence, 120*time.Second)
	set(&l.SilenceWithPings, 30*time.Second)
	set(&l.Progress, 300*time.Second)
	return l
}

// LookEvery is how often the watchdog looks: every 5 s, or a tenth of the least
// limit if that is less, so that a dead connection is found within its limit
// and one look (M2.3).
func (l Limits) LookEvery() time.Duration {
	least := min(l.Headers, l.HeadersNoStream, l.FirstEvent, l.Silence, l.SilenceWithPings, l.Progress)
	return max(min(5*time.Second, least/10), time.Millisecond)
}

// WatchdogLabel names the watchdog in logs and rules (M2.3).
const WatchdogLabel = "session_watchdog"

// StallError says which limit an attempt broke.
type StallError struct {
	Phase policies.Phase
	Waits string // what did not come
	Limit time.Duration
}

func (e *StallError) Error() string {
	return fmt.Sprintf("%s: no %s within %s", WatchdogLabel, e.Waits, e.Limit)
}

// Timeout makes the error known to code that asks for timeouts.
func (e *StallError) Timeout() bool { return true }

// watchdog watches one attempt. The reading goroutine notes what arrives; the
// watching one looks from time to time.
type watchdog struct {
	limits    Limits
	streaming bool
	record    *attempt.Record

	firstEvent  atomic.Int64 // Unix nanoseconds; 0 until it came
	lastContent atomic.Int64
	pinged      atomic.Bool
}

func (w *watchdog) observe(e Event, now time.Time) {
	if e.Kind == EventPing {
		w.pinged.Store(true)
		return
	}
	w.firstEvent.CompareAndSwap(0, now.UnixNano())
	if e.Kind == EventContent || e.Kind == EventText {
		w.lastContent.Store(now.UnixNano())
	}
}

// check returns the limit that is broken at now, or nil.
func (w *watchdog) check(now time.Time) *StallError {
	times := w.record.Times()
	if times.Headers.IsZero() {
		return w.checkHeaders(times, now)
	}
	last := times.Headers
	if times.LastByte.After(last) {
		last = times.LastByte
	}
	silence := w.limits.Silence
	if w.pinged.Load() {
		silence = min(silence, w.limits.SilenceWithPings)
	}
	first := w.firstEvent.Load()
	if first == 0 && w.streaming {
		if now.Sub(times.Headers) > w.limits.FirstEvent {
			return &StallError{Phase: policies.PhaseFirstEvent, Waits: "first event", Limit: w.limits.FirstEvent}
		}
	}
	if now.Sub(last) > silence {
		phase := policies.PhaseBody
		if first == 0 && w.streaming {
			phase = policies.PhaseFirstEvent
		}
		return &StallError{Phase: phase, Waits: "byte", Limit: silence}
	}
	if !w.streaming || first == 0 {
		return nil
	}
	progressed := max(first, w.lastContent.Load())
	if now.Sub(time.Unix(0, progressed)) > w.limits.Progress {
		return &StallError{Phase: policies.PhaseBody, Waits: "content", Limit: w.limits.Progress}
	}
	return nil
}

// checkHeaders counts from when the request had a connection; until then the
// transport's own limit holds.
func (w *watchdog) checkHeaders(times attempt.Times, now time.Time) *StallError {
	limit := w.limits.HeadersNoStream
	if w.streaming {
		limit = w.limits.Headers
	}
	if times.GotConn.IsZero() || now.Sub(times.GotConn) <= limit {
		return nil
	}
	return &StallError{Phase: policies.PhaseHeaders, Waits: "response headers", Limit: limit}
}

// awaitsFirst reports whether a stream has had no event so far.
func (w *watchdog) awaitsFirst() bool { return w.streaming && w.firstEvent.Load() == 0 }

// watch looks until ctx ends and cancels the attempt with a *StallError when a
// limit is broken, which closes the body under the reader.
func (w *watchdog) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	look := time.NewTicker(w.limits.LookEvery())
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-look.C:
			if stall := w.check(now); stall != nil {
				cancel(stall)
				return
			}
		}
	}
}
