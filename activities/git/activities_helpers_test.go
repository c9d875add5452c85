package git

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
)

// fakeEngine does what a test says in place of the engine beneath.
type fakeEngine struct {
	engine
	onFetch   func(context.Context, *remote, *checkout) ([]contract.GitUpdate, error)
	onClone   func(ctx context.Context, dir string, s cloneSpec) (contract.GitHead, error)
	onPush    func(context.Context, contract.GitPushIntent) error
	onAdvance func(ctx context.Context, from, to string) error
}

// deadEngine does nothing and says so.
type deadEngine struct{}

func (deadEngine) lsRemote(context.Context, *remote) ([]contract.GitRef, error) {
	return nil, errNotGit
}
func (deadEngine) fetch(context.Context, *remote, *checkout, string) ([]contract.GitUpdate, error) {
	return nil, errNotGit
}
func (deadEngine) clone(context.Context, *remote, string, cloneSpec) (contract.GitHead, error) {
	return contract.GitHead{}, errNotGit
}
func (deadEngine) push(context.Context, *remote, *checkout, contract.GitPushIntent) error {
	return errNotGit
}
func (deadEngine) locate(context.Context, *remote, *checkout, string, string) (contract.GitLocated, error) {
	return contract.GitLocated{}, errNotGit
}
func (deadEngine) descends(context.Context, *checkout, string, string) (bool, error) {
	return false, errNotGit
}
func (deadEngine) advance(context.Context, *checkout, *progress, advanceSpec) error {
	return errNotGit
}

func (f *fakeEngine) fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	if f.onFetch == nil {
		return f.engine.fetch(ctx, r, c, ref)
	}
	return f.onFetch(ctx, r, c)
}

func (f *fakeEngine) clone(ctx context.Context, r *remote, dir string, s cloneSpec) (contract.GitHead, error) {
	if f.onClone == nil {
		return f.engine.clone(ctx, r, dir, s)
	}
	return f.onClone(ctx, dir, s)
}

func (f *fakeEngine) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	if f.onPush == nil {
		return f.engine.push(ctx, r, c, p)
	}
	return f.onPush(ctx, p)
}

// advance asks the test first and then goes on, unless that says otherwise.
func (f *fakeEngine) advance(ctx context.Context, c *checkout, p *progress, m advanceSpec) error {
	if f.onAdvance != nil {
		if err := f.onAdvance(ctx, m.from, m.to); err != nil {
			return err
		}
	}
	return f.engine.advance(ctx, c, p, m)
}

// newFakes makes activities above the git program, with a fake engine between.
func newFakes(t *testing.T, cfg Config) (*Activities, *fakeEngine) {
	t.Helper()
	a := newActivities(t, cfg)
	g, err := newProgram(programConfig{transport: attempt.NewTransport(attempt.Options{Fresh: true}), connectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeEngine{engine: g}
	a.engine = fake
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := a.Wait(ctx); err != nil {
			t.Error("work of an activity has not ended")
		}
	})
	return a, fake
}

// caller says by what an activity is run.
type caller struct {
	interceptor.WorkerInterceptorBase
	interceptor.ActivityInboundInterceptorBase
	interceptor.ActivityOutboundInterceptorBase
	// queue and workflow default to those of the test environment.
	queue, workflow string
	// ctx is what the activity's context is made of. Defaults to the test's.
	ctx context.Context
}

func (c *caller) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	c.ActivityInboundInterceptorBase.Next = next
	return c
}

func (c *caller) Init(out interceptor.ActivityOutboundInterceptor) error {
	c.ActivityOutboundInterceptorBase.Next = out
	return c.ActivityInboundInterceptorBase.Next.Init(c)
}

func (c *caller) GetInfo(ctx context.Context) activity.Info {
	info := c.ActivityOutboundInterceptorBase.Next.GetInfo(ctx)
	if c.queue != "" {
		info.TaskQueue = c.queue
	}
	if c.workflow != "" {
		info.WorkflowExecution.ID = c.workflow
	}
	return info
}

// ask runs an activity once. The failure is the zero value for success.
func ask[T any](t *testing.T, c caller, do func(context.Context, contract.GitRequest) (T, error), in contract.GitRequest) (res T, f contract.Failure) {
	t.Helper()
	if in.LimitMS == 0 {
		in.LimitMS = 60_000
	}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: "under test"})
	if c.ctx == nil {
		c.ctx = t.Context()
	}
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: c.ctx, Interceptors: []interceptor.WorkerInterceptor{&c}})
	out, err := env.ExecuteActivity("under test", in)
	if err == nil {
		err = out.Get(&res)
	}
	if temporal.IsCanceledError(err) {
		return res, contract.Failure{Reason: "cancelled"}
	}
	return res, failure.From(err)
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// put writes files, given by path and content in turn.
func put(t *testing.T, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(files[i]), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
