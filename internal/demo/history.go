package demo

import (
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-dev/holdfast/contract"
)

// execution is a workflow as its history tells of it.
type execution struct {
	started, ended time.Time
	calls          []call
}

// call is one activity: one request to the outside and its repeats by the server.
type call struct {
	summary string
	// target is the "provider/model" of a model call.
	target string
	// from and to enclose all its attempts.
	from, to time.Time
	attempts int
	// failures by attempt. Temporal keeps the last two of an activity: that of
	// the attempt before the last, and that of the last.
	failures map[int]contract.Failure
}

// readHistory reads the events of a closed workflow.
func readHistory(events []*historypb.HistoryEvent) (execution, error) {
	if len(events) == 0 {
		return execution{}, fmt.Errorf("the history is empty")
	}
	x := execution{
		started: events[0].GetEventTime().AsTime(),
		ended:   events[len(events)-1].GetEventTime().AsTime(),
	}
	at := map[int64]int{}
	for _, e := range events {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			c, err := scheduled(e, a)
			if err != nil {
				return execution{}, err
			}
			at[e.GetEventId()] = len(x.calls)
			x.calls = append(x.calls, c)
			continue
		}
		id, ended := activityOf(e)
		i, known := at[id]
		if !known {
			continue
		}
		if err := x.calls[i].add(e, ended); err != nil {
			return execution{}, err
		}
	}
	return x, nil
}

func scheduled(e *historypb.HistoryEvent, a *historypb.ActivityTaskScheduledEventAttributes) (call, error) {
	c := call{from: e.GetEventTime().AsTime(), failures: map[int]contract.Failure{}}
	summary, err := summaryOf(e.GetUserMetadata())
	if err != nil {
		return c, fmt.Errorf("summary of event %d: %w", e.GetEventId(), err)
	}
	c.summary = summary
	if c.summary == "" {
		c.summary = a.GetActivityType().GetName()
	}
	if a.GetActivityType().GetName() != contract.ActivityModelAttempt {
		return c, nil
	}
	var in struct {
		Candidate contract.Candidate `json:"candidate"`
	}
	if err := decode(a.GetInput().GetPayloads(), &in); err != nil {
		return c, fmt.Errorf("input of event %d: %w", e.GetEventId(), err)
	}
	c.target = in.Candidate.String()
	return c, nil
}

// activityOf is the activity that an event is about, by the event that scheduled
// it, and whether it closed.
func activityOf(e *historypb.HistoryEvent) (scheduled int64, closed bool) {
	if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
		return a.GetScheduledEventId(), false
	}
	if a := e.GetActivityTaskCompletedEventAttributes(); a != nil {
		return a.GetScheduledEventId(), true
	}
	if a := e.GetActivityTaskFailedEventAttributes(); a != nil {
		return a.GetScheduledEventId(), true
	}
	if a := e.GetActivityTaskTimedOutEventAttributes(); a != nil {
		return a.GetScheduledEventId(), true
	}
	return e.GetActivityTaskCanceledEventAttributes().GetScheduledEventId(), true
}

func (c *call) add(e *historypb.HistoryEvent, closed bool) error {
	if closed {
		c.to = e.GetEventTime().AsTime()
	}
	if a := e.GetActivityTaskStartedEventAttributes(); a != nil {
		c.attempts = int(a.GetAttempt())
		return c.fail(c.attempts-1, a.GetLastFailure())
	}
	if a := e.GetActivityTaskFailedEventAttributes(); a != nil {
		return c.fail(c.attempts, a.GetFailure())
	}
	return nil
}

// fail keeps the verdict on a failed attempt. A failure that carries none is
// not Holdfast's own.
func (c *call) fail(attempt int, f *failurepb.Failure) error {
	if f == nil {
		return nil
	}
	info := f.GetApplicationFailureInfo()
	var said contract.Failure
	if err := decode(info.GetDetails().GetPayloads(), &said); err != nil {
		return fmt.Errorf("failure of attempt %d of %q: %w", attempt, c.summary, err)
	}
	c.failures[attempt] = said
	return nil
}

func summaryOf(m *sdk.UserMetadata) (string, error) {
	if m.GetSummary() == nil {
		return "", nil
	}
	var s string
	err := converter.GetDefaultDataConverter().FromPayload(m.GetSummary(), &s)
	return s, err
}

// decode reads the first of some payloads.
func decode(payloads []*commonpb.Payload, into any) error {
	if len(payloads) == 0 {
		return fmt.Errorf("no payload")
	}
	return converter.GetDefaultDataConverter().FromPayload(payloads[0], into)
}
