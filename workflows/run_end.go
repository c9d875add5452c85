package workflows

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
	"github.com/holdfast-dev/holdfast/policies"
)

func (r *run) failed(err *contract.Error) contract.RunResult {
	return contract.RunResult{Outcome: contract.OutcomeFailed, Error: err}
}

func (r *run) cancelled() contract.RunResult {
	return contract.RunResult{Outcome: contract.OutcomeCancelled, Error: &contract.Error{
		Reason: string(policies.ReasonCancelled), Rule: "M3.13/cancelled", Message: "the run was cancelled", Attempts: len(r.attempts),
	}}
}

// spent is the one terminal failure (M3.12): how many tries over what time, on
// which candidates, the next reset time if known, and the provider's guidance.
func (r *run) spent(ctx workflow.Context, d policies.Decision, last contract.Failure) contract.RunResult {
	e := &contract.Error{
		Reason: last.Reason, Rule: last.Rule, Attempts: len(r.attempts),
		Message: r.recovery.Summary(d, workflow.Now(ctx)),
	}
	if last.Message != "" {
		e.Message += ": " + last.Message
	}
	if !d.ResetAt.IsZero() {
		e.ResetAt = d.ResetAt.UTC().Format(time.RFC3339)
	}
	return r.failed(e)
}

func (r *run) requested() string {
	if len(r.plan.Targets) == 0 {
		return r.in.Model
	}
	return r.plan.Targets[0].Candidate.String()
}

// served names what answered: the model that the response says, at the
// provider that was asked.
func (r *run) served(a transcript.Answer, d policies.Decision) string {
	c := r.plan.Targets[d.Target].Candidate
	if a.Served != "" {
		c.Model = a.Served
	}
	return c.String()
}

// details is what the Temporal web UI shows of the run, in Markdown.
func (r *run) details(err *contract.Error) string {
	d := "**" + r.state + "**"
	if r.current != "" {
		d += " " + cut(r.current, 200)
	}
	if r.notice != "" {
		d += "\n\n" + cut(r.notice, 1000)
	}
	if err != nil {
		d += "\n\n" + cut(err.Message, 4000)
	}
	if len(r.attempts) > 0 {
		d += "\n\n| attempt | candidate | wait | outcome |\n| --- | --- | --- | --- |"
	}
	from := max(0, len(r.attempts)-maxRows)
	if from > 0 {
		d += fmt.Sprintf("\n| … | %d more | | |", from)
	}
	for i, a := range r.attempts[from:] {
		outcome := a.Reason
		if outcome == "" {
			outcome = "completed"
		}
		d += fmt.Sprintf("\n| %d | %s | %s | %s |", from+i+1, cut(a.Candidate.String(), 150), round(time.Duration(a.DelayMS)*time.Millisecond), outcome)
	}
	return d
}

// fraction is the jitter of the n-th retry: a number in [0,1) that is the same
// in every replay and differs between runs.
func fraction(seed string, n int) float64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", seed, n))
	return float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
}
