package workers

import (
	"context"
	"errors"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
)

// newSteady returns an interceptor that keeps an activity going when the server
// does not take a heartbeat for a moment. The SDK cancels the activity then, as
// if somebody had asked for it: a restarted or slow server would cut the
// transfers and streams that are under way. An activity that the server has
// given up meanwhile is ended by its own limits.
func newSteady(log *slog.Logger) interceptor.WorkerInterceptor { return &steady{log: log} }

type steady struct {
	interceptor.WorkerInterceptorBase
	log *slog.Logger
}

func (s *steady) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &steadied{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, log: s.log}
}

type steadied struct {
	interceptor.ActivityInboundInterceptorBase
	log *slog.Logger
}

func (s *steadied) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	ctx, end := unshaken(ctx, func() {
		s.log.Warn("the server took no heartbeat; the activity goes on", "activity", name(ctx))
	})
	defer end()
	return s.Next.ExecuteActivity(ctx, in)
}

// unshaken is ctx without the cancellations that a failed heartbeat causes, of
// which it tells.
func unshaken(ctx context.Context, told func()) (context.Context, func()) {
	kept, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := func() {}
	if deadline, ok := ctx.Deadline(); ok {
		kept, release = context.WithDeadline(kept, deadline)
	}
	stop := context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		switch {
		case meant(cause):
			cancel(cause)
		case !errors.Is(ctx.Err(), context.DeadlineExceeded): // kept has the deadline itself
			told()
		}
	})
	return kept, func() {
		stop()
		cancel(nil)
		release()
	}
}

// meant reports whether an activity's context was cancelled because somebody
// wants the activity to end, or because the server no longer knows it.
func meant(cause error) bool {
	return temporal.IsCanceledError(cause) ||
		errors.Is(cause, context.Canceled) ||
		errors.Is(cause, activity.ErrActivityPaused) || errors.Is(cause, activity.ErrActivityReset) ||
		errors.As(cause, new(*serviceerror.NotFound)) ||
		errors.As(cause, new(*serviceerror.NamespaceNotFound)) ||
		errors.As(cause, new(*serviceerror.NamespaceNotActive))
}
