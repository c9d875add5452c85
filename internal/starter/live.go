package starter

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflow/v1"

	holdfast "github.com/holdfast-dev/holdfast/client"
)

const (
	liveEvery = 400 * time.Millisecond
	clearLine = "\r\x1b[K"
)

// liveLine shows on a terminal what long work waits for, until the returned
// function is called.
func liveLine[T any](ctx context.Context, s *session, h *holdfast.Handle[T]) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(liveEvery)
		defer tick.Stop()
		shown := false
		var last gitGlance
		for {
			select {
			case <-ctx.Done():
				if shown {
					fmt.Fprint(s.Err, clearLine)
				}
				return
			case <-tick.C:
				if line := status(ctx, h, &last); line != "" {
					fmt.Fprint(s.Err, clearLine, clean(line))
					shown = true
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// status is one line about the work: the attempt that runs or waits, why the
// one before failed, and when the next is due.
func status[T any](ctx context.Context, h *holdfast.Handle[T], last *gitGlance) string {
	d, err := h.Describe(ctx)
	if err != nil {
		return ""
	}
	for _, a := range d.GetPendingActivities() {
		if isGit(a) {
			return gitLine(a, last.attempt(ctx, a, h.Query))
		}
		return pending(a, time.Now())
	}
	var state struct {
		State  string `json:"state"`
		Notice string `json:"notice"`
	}
	if h.Query(ctx, "state", &state) != nil {
		return ""
	}
	if state.Notice != "" {
		return state.Notice
	}
	return state.State
}

func pending(a *workflow.PendingActivityInfo, now time.Time) string {
	line := fmt.Sprintf("%s attempt %d", a.GetActivityType().GetName(), a.GetAttempt())
	if m := a.GetMaximumAttempts(); m > 0 {
		line += fmt.Sprintf(" of %d", m)
	}
	if reason := a.GetLastFailure().GetApplicationFailureInfo().GetType(); reason != "" {
		line += ": " + reason
	}
	if next := a.GetNextAttemptScheduleTime(); next != nil && next.AsTime().After(now) {
		line += fmt.Sprintf(", next in %.1f s", next.AsTime().Sub(now).Seconds())
	}
	return line
}
