package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

// Run is one turn of an agent: a model call that may take several attempts on
// several candidates. The failover controller decides after each one; every
// wait is a timer, so that it is visible and ends when the run is cancelled.
func Run(ctx workflow.Context, in contract.RunInput) (contract.RunResult, error) {
	r := &run{in: in, id: workflow.GetInfo(ctx).WorkflowExecution.ID, state: "planning"}
	if err := r.setup(ctx); err != nil {
		return contract.RunResult{}, err
	}
	result := r.run(ctx)
	result.Requested, result.Attempts = r.requested(), r.attempts
	for _, a := range r.attempts {
		result.Usage.Add(a.Usage)
	}
	if result.Attempts == nil {
		result.Attempts = []contract.Attempt{}
	}
	r.state, r.notice = string(result.Outcome), ""
	workflow.SetCurrentDetails(ctx, r.details(result.Error))
	provider, model, _ := strings.Cut(result.Requested, "/")
	return result, recordEnd(ctx, result.Outcome, result.Error,
		contract.AttributeProvider, provider, contract.AttributeModel, model)
}

type run struct {
	in   contract.RunInput
	id   string
	plan transcript.Plan

	recovery policies.Recovery
	messages []transcript.Message
	attempts []contract.Attempt
	deadline time.Time

	state   string
	current string // the candidate at work or waited for
	attempt int
	notice  string // shown while waiting (M3.12)
}

func (r *run) setup(ctx workflow.Context) error {
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryState, func() (contract.RunState, error) {
		return contract.RunState{State: r.state, Candidate: r.current, Attempt: r.attempt, Notice: r.notice}, nil
	}, workflow.QueryHandlerOptions{Description: "What the run is doing, with the notice while it waits"})
	if err != nil {
		return err
	}
	return workflow.SetQueryHandlerWithOptions(ctx, contract.QueryAttempts, func() ([]contract.Attempt, error) {
		return r.attempts, nil
	}, workflow.QueryHandlerOptions{Description: "Every attempt so far, failed ones too"})
}

func (r *run) run(ctx workflow.Context) contract.RunResult {
	if err := r.prepare(ctx); err != nil {
		return r.failed(err)
	}
	r.messages = []transcript.Message{{Role: transcript.RoleUser, Text: r.in.Prompt}}
	now := workflow.Now(ctx)
	decision := r.recovery.Next(policies.Event{Kind: policies.EventStart, Now: now, ReplaySafe: true})
	var last contract.Failure
	for decision.Action == policies.ActionAttempt {
		if err := r.wait(ctx, decision, last); err != nil {
			return r.cancelled()
		}
		answer, err := r.try(ctx, decision)
		if err == nil {
			r.recovery.Next(policies.Event{Kind: policies.EventSucceeded, Now: workflow.Now(ctx)})
			return contract.RunResult{Outcome: contract.OutcomeCompleted, Text: answer.Text, Served: r.served(answer, decision)}
		}
		last = failure.From(err)
		if ctx.Err() != nil || last.Reason == string(policies.ReasonCancelled) {
			return r.cancelled()
		}
		next := r.recovery.Next(r.event(ctx, last, decision))
		r.report(ctx, decision, next, last)
		decision = next
	}
	return r.spent(ctx, decision, last)
}

// prepare takes the run's snapshot of the configuration. It touches nothing
// outside, so it is a local activity.
func (r *run) prepare(ctx workflow.Context) *contract.Error {
	ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: 30 * time.Second,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 3},
		Summary:                "take the configuration",
	})
	if err := workflow.ExecuteLocalActivity(ctx, contract.ActivityModelPlan, r.in).Get(ctx, &r.plan); err != nil {
		f := failure.From(err)
		return &contract.Error{Reason: f.Reason, Message: f.Message, Rule: f.Rule}
	}
	now := workflow.Now(ctx)
	r.deadline = now.Add(r.plan.Deadline)
	r.state = "running"
	o := policies.RecoveryOptions{
		Policy: r.plan.Policy, MaxRetries: r.plan.MaxRetries, Started: now, Deadline: r.deadline,
	}
	for _, t := range r.plan.Targets {
		o.Targets = append(o.Targets, policies.Target{
			Provider: t.Candidate.Provider, Model: t.Candidate.Model, AuthProfile: t.Candidate.AuthProfile,
			ContextWindow: t.ContextWindow,
		})
	}
	r.recovery = policies.NewRecovery(o)
	return nil
}

// event tells the controller of a failed attempt. Without tools nothing has
// happened that a repeat from the start could double, so it is replay-safe.
func (r *run) event(ctx workflow.Context, f contract.Failure, d policies.Decision) policies.Event {
	a := r.attempts[len(r.attempts)-1]
	return policies.Event{
		Kind: policies.EventFailed, Verdict: failure.ToVerdict(f), Phase: policies.Phase(f.Phase),
		Started: a.Started, Ended: a.Ended, Now: workflow.Now(ctx),
		ReplaySafe: true, Streaming: d.Streaming,
		Random: fraction(workflow.GetInfo(ctx).WorkflowExecution.RunID, len(r.attempts)),
	}
}

// wait holds a retry's delay, with the one transient notice of M3.12.
func (r *run) wait(ctx workflow.Context, d policies.Decision, last contract.Failure) error {
	r.current = r.plan.Targets[d.Target].Candidate.String()
	r.attempt = d.Attempt
	if d.Delay <= 0 {
		return ctx.Err()
	}
	r.notice = r.recovery.Notice(d)
	if r.notice == "" {
		r.notice = fmt.Sprintf("%s in %s", r.current, round(d.Delay))
	}
	r.state = "waiting"
	workflow.SetCurrentDetails(ctx, r.details(nil))
	r.tell(ctx, d, last)
	err := workflow.NewTimerWithOptions(ctx, d.Delay, workflow.TimerOptions{
		Summary: summary("wait %s: %s, attempt %d of %d", round(d.Delay), last.Reason, d.Attempt, d.Of),
	}).Get(ctx, nil)
	r.state, r.notice = "running", ""
	workflow.SetCurrentDetails(ctx, r.details(nil))
	return err
}

// tell posts the notice to the run's sink. It is not waited for: a sink never
// delays the run.
func (r *run) tell(ctx workflow.Context, d policies.Decision, last contract.Failure) {
	if r.in.Sink == nil || r.in.Sink.Kind != "http" {
		return
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout:    5 * time.Second,
		ScheduleToCloseTimeout: max(d.Delay, 5*time.Second),
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                "tell the sink of the wait",
	})
	workflow.ExecuteActivity(ctx, contract.ActivityModelNotice, transcript.Notice{
		RunID: r.id, Candidate: r.current, Reason: last.Reason, Attempt: d.Attempt, Of: d.Of,
		WaitMS: failure.CeilMS(d.Delay), Text: r.notice, Sink: r.in.Sink,
	})
}

// try makes one attempt and keeps its record, good or bad (M3.15).
func (r *run) try(ctx workflow.Context, d policies.Decision) (transcript.Answer, error) {
	target := r.plan.Targets[d.Target]
	d.Streaming = d.Streaming && !target.NoStream
	record := contract.Attempt{
		ID: fmt.Sprintf("%s/%d", r.id, len(r.attempts)+1), Candidate: target.Candidate,
		Streaming: d.Streaming, DelayMS: failure.CeilMS(d.Delay), Started: workflow.Now(ctx),
	}
	left := max(r.deadline.Sub(record.Started), time.Second)
	actx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: left,
		StartToCloseTimeout:    left + requestLimit, // the deadline speaks first
		HeartbeatTimeout:       heartbeatTimeout,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                summary("%s attempt %d of %d", cut(target.Candidate.String(), 300), d.Attempt, d.Of),
	})
	var answer transcript.Answer
	err := workflow.ExecuteActivity(actx, contract.ActivityModelAttempt, transcript.Request{
		RunID: r.id, AttemptID: record.ID, Candidate: target.Candidate,
		System: r.plan.System, Messages: r.messages, MaxOutputTokens: r.plan.MaxOutputTokens,
		Temperature: r.plan.Temperature, ReasoningEffort: r.plan.ReasoningEffort,
		Streaming: d.Streaming, SilenceToken: r.plan.SilenceToken, Sink: r.in.Sink,
	}).Get(ctx, &answer)
	if err != nil {
		_ = failure.Partial(err, &answer)
		f := failure.From(err)
		record.Phase, record.Reason, record.Rule, record.Status, record.FloorMS = f.Phase, f.Reason, f.Rule, f.Status, f.FloorMS
	}
	record.Ended = workflow.Now(ctx)
	record.Served, record.ResponseID, record.Finish = answer.Served, answer.ResponseID, answer.Finish
	record.Usage = answer.Usage
	record.Usage.Cost = target.Cost(answer.Usage)
	r.attempts = append(r.attempts, record)
	return answer, err
}

// report writes the one line per scheduled retry or failover (I5).
func (r *run) report(ctx workflow.Context, was, next policies.Decision, f contract.Failure) {
	if next.Action != policies.ActionAttempt {
		return
	}
	log := workflow.GetLogger(ctx)
	from, to := r.plan.Targets[was.Target].Candidate, r.plan.Targets[next.Target].Candidate
	if next.Failover {
		log.Warn(fmt.Sprintf("[FAILOVER] %s -> %s reason=%s", from, to, f.Reason), "rule", next.Rule)
		return
	}
	log.Warn(failure.RetryLine(to.String(), next.Attempt, next.Of, f, next.Delay), "rule", next.Rule)
}
