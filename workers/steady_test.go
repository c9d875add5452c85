package workers

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Q2: a heartbeat that a slow or restarted server did not take ends no activity; a
// cancellation that somebody asked for, and an activity that is no longer known,
// do at once.
func TestFailedHeartbeatEndsNothing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		cause error
		ends  bool
	}{
		{"unavailable", serviceerror.NewUnavailable("restarting"), false},
		{"slow", serviceerror.NewDeadlineExceeded("context deadline exceeded"), false},
		{"slow, by the client", context.DeadlineExceeded, false},
		{"busy", &serviceerror.ResourceExhausted{}, false},
		{"asked for", temporal.NewCanceledError(), true},
		{"worker stopped", nil, true},
		{"paused", activity.ErrActivityPaused, true},
		{"reset", activity.ErrActivityReset, true},
		{"not known", serviceerror.NewNotFound("gone"), true},
		{"namespace gone", serviceerror.NewNamespaceNotFound("default"), true},
	} {
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), tc.name, "kept"))
		told := make(chan struct{})
		kept, end := unshaken(ctx, func() { close(told) })
		cancel(tc.cause)
		if tc.ends {
			<-kept.Done()
			if !errors.Is(context.Cause(kept), context.Cause(ctx)) {
				t.Errorf("%s: ended by %v, want %v", tc.name, context.Cause(kept), context.Cause(ctx))
			}
		} else {
			<-told
			if kept.Err() != nil {
				t.Errorf("%s: ended by %v", tc.name, context.Cause(kept))
			}
		}
		if kept.Value(tc.name) != "kept" {
			t.Errorf("%s: the values are lost", tc.name)
		}
		end()
		if kept.Err() == nil {
			t.Errorf("%s: goes on after its end", tc.name)
		}
	}

	limited, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	kept, end := unshaken(limited, func() {})
	defer end()
	if !errors.Is(kept.Err(), context.DeadlineExceeded) {
		t.Errorf("the deadline is lost: %v", kept.Err())
	}
}
