package starter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
)

// watchEvery is how often watched work is asked for its state.
const watchEvery = 300 * time.Millisecond

// CancelCmd is "cancel".
type CancelCmd struct {
	ID string `arg:"" help:"Workflow id, such as send/KEY."`
}

// Run asks the work to stop.
func (c *CancelCmd) Run(s *session, ctx context.Context) error {
	holdfast, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	return c.ask(ctx, s, holdfast.Temporal())
}

func (c *CancelCmd) ask(ctx context.Context, s *session, temporal client.Client) error {
	s.sent = true
	if err := temporal.CancelWorkflow(ctx, c.ID, ""); err != nil {
		if errors.As(err, new(*serviceerror.NotFound)) && hasEnded(ctx, temporal, c.ID) {
			return usagef("%s has ended already; see its result with: starter watch %s", c.ID, c.ID)
		}
		return unknownWork(c.ID, err)
	}
	if s.globals.JSON {
		s.object(&c.ID, nil, map[string]any{"outcome": contract.OutcomeCompleted, "requested": "cancel"})
		return nil
	}
	fmt.Fprintln(s.Out, "asked", c.ID, "to stop; follow it with: starter watch", c.ID)
	return nil
}

// hasEnded reports whether Temporal still keeps work that has ended.
func hasEnded(ctx context.Context, temporal client.Client, id string) bool {
	d, err := temporal.DescribeWorkflowExecution(ctx, id, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

func unknownWork(id string, err error) error {
	if errors.As(err, new(*serviceerror.NotFound)) {
		return usagef("there is no work %q; ids look like send/KEY, run/KEY, git-fetch/KEY", id)
	}
	return startError(err)
}

// WatchCmd is "watch".
type WatchCmd struct {
	ID string `arg:"" help:"Workflow id, such as send/KEY."`
}

// Run prints each new state, and the result at the end; with --json as JSON
// lines.
func (c *WatchCmd) Run(s *session, ctx context.Context) error {
	holdfast, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	w := &watch{session: s, id: c.ID, temporal: holdfast.Temporal()}
	return w.follow(ctx)
}

type watch struct {
	session  *session
	id       string
	temporal client.Client
	runID    string
	last     string
}

// follow looks until the work has ended, the time of --wait-timeout is over or
// the user interrupts.
func (w *watch) follow(ctx context.Context) error {
	wait, cancel := w.session.bounded(ctx)
	defer cancel()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		done, err := w.look(wait)
		switch {
		case done && err == nil, errors.As(err, new(*endError)), errors.As(err, new(*workError)):
			return err
		case ctx.Err() != nil:
			return &workError{w.id, w.runID, contract.OutcomeCancelled, "cancelled", "no longer watching " + w.id + ", which is not cancelled"}
		case over(wait, err) && w.runID != "":
			w.session.showStarted(w.id, w.runID)
			return nil
		case err != nil:
			return err
		}
		select {
		case <-wait.Done():
		case <-tick.C:
		}
	}
}

// look prints the state if it is new; done when the work has ended.
func (w *watch) look(ctx context.Context) (done bool, err error) {
	d, err := w.temporal.DescribeWorkflowExecution(ctx, w.id, "")
	if err != nil {
		return true, unknownWork(w.id, err)
	}
	info := d.GetWorkflowExecutionInfo()
	w.runID = info.GetExecution().GetRunId()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return true, w.end(ctx, w.runID)
	}
	var state json.RawMessage
	value, err := w.temporal.QueryWorkflow(ctx, w.id, "", contract.QueryState)
	if err == nil && value.Get(&state) == nil && string(state) != w.last {
		w.last = string(state)
		if w.session.globals.JSON {
			fmt.Fprintln(w.session.Out, w.last)
		} else {
			printf(w.session.Out, "%s\n", w.last)
		}
	}
	return false, nil
}

func (w *watch) end(ctx context.Context, runID string) error {
	var result json.RawMessage
	if err := w.temporal.GetWorkflow(ctx, w.id, runID).Get(ctx, &result); err != nil {
		return ended(w.id, runID, err)
	}
	var outcome struct {
		Outcome contract.Outcome `json:"outcome"`
	}
	_ = json.Unmarshal(result, &outcome)
	if outcome.Outcome == "" {
		outcome.Outcome = contract.OutcomeCompleted
	}
	if w.session.globals.JSON {
		w.session.object(&w.id, &runID, result)
	} else {
		printf(w.session.Out, "%s\n", result)
	}
	return end(outcome.Outcome)
}
