package workflows_test

import (
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-dev/holdfast/workers"
)

// cancelledInTransfer is the recorded fetch, had it been cancelled while its
// activity was at work, by a worker that had no grace yet: it asks the activity
// to end, waits for it, and takes what it says.
func cancelledInTransfer(t *testing.T, fetched *historypb.History) *historypb.History {
	t.Helper()
	recorded := proto.CloneOf(fetched).GetEvents()
	at := 0
	for i, e := range recorded {
		if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED {
			at = i + 1
		}
	}
	if at != 6 || len(recorded) != 12 {
		t.Fatalf("the recorded fetch has another shape: %d events", len(recorded))
	}
	scheduled := recorded[at-1].GetActivityTaskStartedEventAttributes().GetScheduledEventId()
	task := func(i int) *historypb.HistoryEvent { return proto.CloneOf(recorded[i]) }
	inserted := []*historypb.HistoryEvent{
		{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionCancelRequestedEventAttributes{
				WorkflowExecutionCancelRequestedEventAttributes: &historypb.WorkflowExecutionCancelRequestedEventAttributes{},
			},
		},
		task(7), task(8), task(9),
		{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCancelRequestedEventAttributes{
				ActivityTaskCancelRequestedEventAttributes: &historypb.ActivityTaskCancelRequestedEventAttributes{
					ScheduledEventId: scheduled, WorkflowTaskCompletedEventId: 10,
				},
			},
		},
	}
	events := append(append(recorded[:at:at], inserted...), recorded[at:]...)
	for i, e := range events {
		e.EventId = int64(i + 1)
		if a := e.GetWorkflowTaskStartedEventAttributes(); a != nil {
			a.ScheduledEventId = e.EventId - 1
		}
		if a := e.GetWorkflowTaskCompletedEventAttributes(); a != nil {
			a.ScheduledEventId, a.StartedEventId = e.EventId-2, e.EventId-1
		}
	}
	return &historypb.History{Events: events}
}

// Q2, G5: a fetch that an older worker was asked to cancel, and which waits for
// its activity however long that takes, goes on in that way.
func TestFetchCancelledBeforeTheGraceReplays(t *testing.T) {
	t.Parallel()
	h := cancelledInTransfer(t, recorded(t)["git-fetch-fetched.json"])
	if err := replay(h, workers.RegisterWorkflows); err != nil {
		t.Error(err)
	}
}
