package workflows_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/workers"
)

// recorded are the histories of testdata by their names.
func recorded(t *testing.T) map[string]*historypb.History {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.json")
	if err != nil {
		t.Fatal(err)
	}
	histories := map[string]*historypb.History{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		histories[filepath.Base(file)] = h
	}
	return histories
}

func started(h *historypb.History) *historypb.WorkflowExecutionStartedEventAttributes {
	return h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
}

// replay runs the workflow of a history against it, with the registrations of
// the real workers.
func replay(h *historypb.History, register func(worker.WorkflowRegistry)) error {
	replayer := worker.NewWorkflowReplayer()
	register(replayer)
	return replayer.ReplayWorkflowHistoryWithOptions(silent{}, h, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started(h).GetWorkflowId(), RunID: started(h).GetOriginalExecutionRunId()},
	})
}

// silent is a log that says nothing.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}

// Q2: replay of recorded histories: the workflows as they are give the commands
// that they gave when the histories were recorded, so work that is under way
// survives a new version. testdata/README.md says how they are recorded.
func TestRecordedHistories(t *testing.T) {
	t.Parallel()
	for name, h := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := replay(h, workers.RegisterWorkflows); err != nil {
				t.Error(err)
			}
		})
	}
}

// Q2: every workflow that workers register has a recorded history.
func TestEveryWorkflowIsRecorded(t *testing.T) {
	t.Parallel()
	missing := workers.Workflows()
	for _, h := range recorded(t) {
		delete(missing, started(h).GetWorkflowType().GetName())
	}
	if len(missing) > 0 {
		t.Errorf("workflows without a recorded history: %v; see testdata/README.md", slices.Sorted(maps.Keys(missing)))
	}
}

// The replay can fail: a workflow that begins with another step than the recorded
// ones does not pass for any of them.
func TestReplaySeesChanges(t *testing.T) {
	t.Parallel()
	changed := func(r worker.WorkflowRegistry) {
		for name := range workers.Workflows() {
			r.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
				return workflow.Sleep(ctx, 1)
			}, workflow.RegisterOptions{Name: name})
		}
	}
	for name, h := range recorded(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if replay(h, changed) == nil {
				t.Error("another workflow passes for the recorded one")
			}
		})
	}
}
