package workers

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/workflows"
)

// DrainTimeout is how long activities that are under way may go on when the
// process stops.
const DrainTimeout = 30 * time.Second

// heartbeatThrottle is the longest that a heartbeat, and with it the news of a
// cancellation, is held back (C6).
const heartbeatThrottle = 2 * time.Second

// deadlockAfter is how long a workflow may compute before it counts as stuck.
// The SDK's one second is too short for cutting a text of a megabyte on a busy
// machine: the send would fail its task again and again. It stays below the ten
// seconds that the server gives a workflow task.
const deadlockAfter = 5 * time.Second

// Names of the queues a process can be asked to serve.
var queues = map[string]string{
	"workflows": contract.QueueWorkflows,
	"discord":   contract.QueueDiscord,
	"telegram":  contract.QueueTelegram,
	"model":     contract.QueueModel,
	"git":       contract.QueueGit,
}

// QueueNames lists what a process can be asked to serve.
func QueueNames() []string { return slices.Sorted(maps.Keys(queues)) }

// Options of a worker process.
type Options struct {
	Config *config.Config
	// Queues to serve, by the names of QueueNames. Defaults to all.
	Queues []string
	// Logger takes the workers' logs. Defaults to none.
	Logger *slog.Logger
	// MaxConcurrentActivities bounds the activities at work at once, per queue.
	// Defaults to 1000.
	MaxConcurrentActivities int
	// Interceptors are put around the workers' own.
	Interceptors []interceptor.WorkerInterceptor
}

// Workers serve the queues of one process.
type Workers struct {
	workers []worker.Worker
	close   []func()
}

// Start checks the options, registers everything and begins to poll. The
// client stays the caller's to close, after Stop.
func Start(c client.Client, o Options) (*Workers, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	names, err := serve(o.Queues)
	if err != nil {
		return nil, err
	}
	w := &Workers{}
	for _, name := range names {
		one := worker.New(c, queues[name], options(o))
		if err := w.register(one, name, o); err != nil {
			w.Stop()
			return nil, err
		}
		if err := one.Start(); err != nil {
			w.Stop()
			return nil, fmt.Errorf("start the worker of queue %s: %w", queues[name], err)
		}
		w.workers = append(w.workers, one)
	}
	return w, nil
}

// Stop ends polling, waits up to DrainTimeout for what is under way, and
// releases what the activities hold.
func (w *Workers) Stop() {
	done := make(chan struct{})
	for _, one := range w.workers {
		go func() {
			one.Stop()
			done <- struct{}{}
		}()
	}
	for range w.workers {
		<-done
	}
	for _, f := range w.close {
		f()
	}
	w.workers, w.close = nil, nil
}

func serve(names []string) ([]string, error) {
	if len(names) == 0 {
		return QueueNames(), nil
	}
	var known []string
	for _, name := range names {
		if _, ok := queues[name]; !ok {
			return nil, &QueueError{Name: name}
		}
		if !slices.Contains(known, name) {
			known = append(known, name)
		}
	}
	return known, nil
}

// QueueError names a queue that does not exist.
type QueueError struct{ Name string }

func (e *QueueError) Error() string {
	return fmt.Sprintf("there is no queue %q; known queues are %s", e.Name, strings.Join(QueueNames(), ", "))
}

func options(o Options) worker.Options {
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 4, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 32,
	})
	return worker.Options{
		MaxConcurrentActivityExecutionSize: o.MaxConcurrentActivities,
		WorkflowTaskPollerBehavior:         pollers,
		ActivityTaskPollerBehavior:         pollers,
		WorkerStopTimeout:                  DrainTimeout,
		MaxHeartbeatThrottleInterval:       heartbeatThrottle,
		DefaultHeartbeatThrottleInterval:   heartbeatThrottle,
		DeadlockDetectionTimeout:           deadlockAfter,
		Interceptors:                       append(slices.Clone(o.Interceptors), NewErrorGuard(o.Logger)),
	}
}

// register puts the workflows on every queue and the activities of its outside
// on each.
func (w *Workers) register(one worker.Registry, name string, o Options) error {
	RegisterWorkflows(one)
	switch name {
	case "discord":
		return w.discord(one, o)
	case "telegram":
		return w.telegram(one, o)
	case "model":
		return w.model(one, o)
	case "git":
		return w.git(one, o)
	}
	return nil
}

// Workflows are the functions of every workflow by the names under which
// they are registered.
func Workflows() map[string]any {
	return map[string]any{
		contract.WorkflowSend:        workflows.Send,
		contract.WorkflowReview:      workflows.Review,
		contract.WorkflowRun:         workflows.Run,
		contract.WorkflowGitLsRemote: workflows.GitLsRemote,
		contract.WorkflowGitFetch:    workflows.GitFetch,
		contract.WorkflowGitClone:    workflows.GitClone,
		contract.WorkflowGitPush:     workflows.GitPush,
		contract.WorkflowGitSync:     workflows.GitSync,
	}
}

// RegisterWorkflows registers every workflow, with a worker or with a replayer
// of recorded histories.
func RegisterWorkflows(registry worker.WorkflowRegistry) {
	for name, fn := range Workflows() {
		registry.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: name})
	}
}

func add(one worker.Registry, activities map[string]any) {
	for name, fn := range activities {
		one.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}
