package workers

import (
	"cmp"
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

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/workflows"
)

// DrainTimeout is how long activities that are under way may go on when the
// process stops.
const DrainTimeout = 30 * time.Second

// heartbeatThrottle is the longest that a heartbeat, and with it the news of a
// cancellation, is held back (C6); that of Git's is shorter, since it carries the
// progress that is shown (G10).
const (
	heartbeatThrottle    = 2 * time.Second
	gitHeartbeatThrottle = git.HeartbeatEvery
)

// gitActivities bounds the Git activities at work at once, per queue: each may
// take git.limits.memory.
const gitActivities = 32

// deadlockAfter is how long a workflow may compute before it counts as stuck.
// The SDK's one second is too short for cutting a text of a megabyte on a busy
// machine: the send would fail its task again and again. It stays below the ten
// seconds that the server gives a workflow task.
const deadlockAfter = 5 * time.Second

// queueGit is the name of the queues of managed Git.
const queueGit = "git"

// Names of the queues a process can be asked to serve.
var queues = map[string]string{
	"workflows": contract.QueueWorkflows,
	"discord":   contract.QueueDiscord,
	"telegram":  contract.QueueTelegram,
	"model":     contract.QueueModel,
	queueGit:    contract.QueueGit,
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
	// Defaults to 1000, and to 32 for Git, whose work runs in processes of its
	// own.
	MaxConcurrentActivities int
	// Interceptors are put around the workers' own.
	Interceptors []interceptor.WorkerInterceptor
}

// Workers serve the queues of one process.
type Workers struct {
	workers []worker.Worker
	close   []func()
	git     string
}

// Git says whose checkouts are worked in and by which engines; empty where
// managed Git is not served.
func (w *Workers) Git() string { return w.git }

// Start checks the options, registers everything and begins to poll. The
// client stays the caller's to close, after Stop.
func Start(c client.Client, o Options) (*Workers, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	names, err := known(o.Queues)
	if err != nil {
		return nil, err
	}
	w := &Workers{}
	for _, name := range names {
		if err := w.serve(c, name, o); err != nil {
			w.Stop()
			return nil, err
		}
	}
	return w, nil
}

// serve starts a worker on each task queue of a name. They share the activities
// of its outside.
func (w *Workers) serve(c client.Client, name string, o Options) error {
	activities, err := w.activities(name, o)
	if err != nil {
		return err
	}
	for _, queue := range taskQueues(name, o) {
		one := worker.New(c, queue, options(name, o))
		RegisterWorkflows(one)
		for activityName, fn := range activities {
			one.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: activityName})
		}
		if err := one.Start(); err != nil {
			return fmt.Errorf("start the worker of queue %s: %w", queue, err)
		}
		w.workers = append(w.workers, one)
	}
	return nil
}

// taskQueues are those of a name: one, but for Git also that of the checkouts on
// this host's disk (G11). A machine whose host name is none for a queue serves
// shared roots only.
func taskQueues(name string, o Options) []string {
	all := []string{queues[name]}
	if name != queueGit {
		return all
	}
	host := o.Config.Git.Host
	if contract.ValidateGitHost(host) != nil {
		o.Logger.Warn("this machine's host name cannot name a task queue, so checkouts on its own disk are not worked in; give it a name in git.host")
		return all
	}
	return append(all, contract.QueueGitHost(host))
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

// known are the names to serve, each once; all if none is given.
func known(names []string) ([]string, error) {
	if len(names) == 0 {
		return QueueNames(), nil
	}
	var once []string
	for _, name := range names {
		if _, ok := queues[name]; !ok {
			return nil, &QueueError{Name: name}
		}
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once, nil
}

// QueueError names a queue that does not exist.
type QueueError struct{ Name string }

func (e *QueueError) Error() string {
	return fmt.Sprintf("there is no queue %q; known queues are %s", e.Name, strings.Join(QueueNames(), ", "))
}

func options(name string, o Options) worker.Options {
	throttle, activities := heartbeatThrottle, o.MaxConcurrentActivities
	if name == queueGit {
		throttle = gitHeartbeatThrottle
		activities = cmp.Or(activities, gitActivities)
	}
	pollers := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{
		InitialNumberOfPollers: 4, MinimumNumberOfPollers: 2, MaximumNumberOfPollers: 32,
	})
	return worker.Options{
		MaxConcurrentActivityExecutionSize: activities,
		WorkflowTaskPollerBehavior:         pollers,
		ActivityTaskPollerBehavior:         pollers,
		WorkerStopTimeout:                  DrainTimeout,
		MaxHeartbeatThrottleInterval:       throttle,
		DefaultHeartbeatThrottleInterval:   throttle,
		DeadlockDetectionTimeout:           deadlockAfter,
		Interceptors:                       append(slices.Clone(o.Interceptors), newSteady(o.Logger), NewErrorGuard(o.Logger)),
	}
}

// activities are those of the outside that a name stands for, by the names under
// which they are registered.
func (w *Workers) activities(name string, o Options) (map[string]any, error) {
	switch name {
	case "discord":
		return discordActivities(o)
	case "telegram":
		return telegramActivities(o)
	case "model":
		return w.modelActivities(o)
	case queueGit:
		return w.gitActivities(o)
	}
	return nil, nil
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
