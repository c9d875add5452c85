package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// NewErrorGuard returns an interceptor that lets only errors built by package
// failure out of an activity. A panic, or an error that is wrapped or of
// another kind, would be retried by the server without anybody having judged
// it, and its text could hold a secret; it leaves as an unclassified failure of
// unknown effect instead, and is logged.
func NewErrorGuard(log *slog.Logger) interceptor.WorkerInterceptor { return &guard{log: log} }

type guard struct {
	interceptor.WorkerInterceptorBase
	log *slog.Logger
}

func (g *guard) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &guarded{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, log: g.log}
}

type guarded struct {
	interceptor.ActivityInboundInterceptorBase
	log *slog.Logger
}

func (g *guarded) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			g.log.Error("an activity panicked", "activity", name(ctx), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, unexplained("the activity panicked; see the worker's log")
		}
	}()
	result, err = g.Next.ExecuteActivity(ctx, in)
	return result, g.check(ctx, err)
}

func (g *guarded) check(ctx context.Context, err error) error {
	switch err.(type) {
	case nil, *temporal.ApplicationError, *temporal.CanceledError:
		return err
	}
	if errors.Is(err, activity.ErrResultPending) {
		return err
	}
	g.log.Error("an activity returned an error that was not built by package failure",
		"activity", name(ctx), "type", fmt.Sprintf("%T", err))
	return unexplained("the activity failed in a way it did not explain; see the worker's log")
}

func unexplained(message string) error {
	return failure.New(contract.Failure{
		Reason: string(policies.ReasonUnclassified), Rule: "P4.14/unexplained", Permanent: true,
		Effect: string(policies.EffectUnknown), Message: message,
	}, failure.Options{})
}

func name(ctx context.Context) string { return activity.GetInfo(ctx).ActivityType.Name }
