// Package activitytest runs one attempt of an activity as the server would: with
// its number, with the evidence that the attempt before left in its heartbeats,
// and with a context that can be cancelled. It is for tests.
package activitytest

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// Attempt says which attempt of an activity is made.
type Attempt struct {
	// Number counts from 1, which is the default.
	Number int
	// Evidence is what the heartbeats of the attempt before said; nil for none.
	Evidence json.RawMessage
	// Context is what the activity's own is made of. Defaults to the test's.
	Context context.Context
	// Log takes what the activity logs. Defaults to nowhere.
	Log slog.Handler
}

// Run makes one attempt of an activity and decodes its result, unless it failed.
// It returns the details of the last heartbeat and the error that the server
// would be told of.
func Run(t testing.TB, a Attempt, fn, in, result any) (evidence json.RawMessage, err error) {
	t.Helper()
	if a.Context == nil {
		a.Context = t.Context()
	}
	if a.Log == nil {
		a.Log = slog.DiscardHandler
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(a.Log)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(fn)
	env.SetWorkerOptions(worker.Options{
		BackgroundActivityContext: a.Context,
		Interceptors:              []interceptor.WorkerInterceptor{&numbered{number: int32(max(a.Number, 1))}},
	})
	if a.Evidence != nil {
		env.SetHeartbeatDetails(a.Evidence)
	}
	var mu sync.Mutex
	env.SetOnActivityHeartbeatListener(func(_ *activity.Info, details converter.EncodedValues) {
		var last json.RawMessage
		if details.HasValues() && details.Get(&last) == nil {
			mu.Lock()
			defer mu.Unlock()
			evidence = last
		}
	})
	value, err := env.ExecuteActivity(fn, in)
	mu.Lock()
	defer mu.Unlock()
	if err != nil {
		return evidence, err
	}
	if err := value.Get(result); err != nil {
		t.Fatalf("the result does not decode: %v", err)
	}
	return evidence, nil
}

// numbered tells the activity that it is a later attempt, which the test
// environment cannot.
type numbered struct {
	interceptor.WorkerInterceptorBase
	number int32
}

func (n *numbered) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &inbound{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, number: n.number}
}

type inbound struct {
	interceptor.ActivityInboundInterceptorBase
	number int32
}

func (i *inbound) Init(out interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(&outbound{ActivityOutboundInterceptorBase: interceptor.ActivityOutboundInterceptorBase{Next: out}, number: i.number})
}

type outbound struct {
	interceptor.ActivityOutboundInterceptorBase
	number int32
}

func (o *outbound) GetInfo(ctx context.Context) activity.Info {
	info := o.Next.GetInfo(ctx)
	info.Attempt = o.number
	return info
}
