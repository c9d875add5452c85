package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/policies"
)

// gitSearch looks for a push that did not say that it landed (G6).
type gitSearch struct {
	*gitPush
	fault     contract.Failure // how the push ended
	failed    time.Time
	cancelled time.Time // zero until the operation was cancelled
	evidence  policies.PushEvidence
	found     string            // what the remote had when it was last read
	unread    *contract.Failure // why it could not be read last, if it could not
	warned    int               // the last reading that was warned of
}

// locate reads the remote until it is known what became of the push. A
// cancellation makes the search short and does not end it: what was pushed is
// never guessed.
func (p *gitPush) locate(ctx workflow.Context, fault contract.Failure) contract.GitResult {
	intent := p.plan.Intent
	s := &gitSearch{gitPush: p, fault: fault, failed: workflow.Now(ctx), evidence: policies.PushEvidence{
		Old: intent.Old, New: intent.New, Rewinds: intent.Rewinds, Failure: failure.ToVerdict(fault),
	}}
	for {
		apart := s.context(ctx)
		s.evidence.Now = workflow.Now(ctx)
		s.evidence.Until = policies.PushReadUntil(s.started.Add(s.limit), s.failed, s.cancelled)
		verdict := policies.LocatePush(s.evidence)
		if verdict.Answer != policies.PushReadRemote {
			return s.end(ctx, verdict)
		}
		if s.wait(apart, verdict.After) == nil {
			s.look(apart)
		}
	}
}

// context is the operation's own until that is cancelled, which cuts a wait or
// a reading short, and one that is not cancelled from then on.
func (s *gitSearch) context(ctx workflow.Context) workflow.Context {
	if ctx.Err() == nil {
		return ctx
	}
	if s.cancelled.IsZero() {
		s.cancelled, s.evidence.Cancelled = workflow.Now(ctx), true
	}
	apart, _ := workflow.NewDisconnectedContext(ctx)
	return apart
}

// wait waits before a reading.
func (s *gitSearch) wait(ctx workflow.Context, delay time.Duration) error {
	coming := len(s.evidence.Reads) + 1
	notice := fmt.Sprintf("the push may have landed (%s): look for it, reading %d", s.fault.Reason, coming)
	if delay > 0 {
		notice = fmt.Sprintf("wait %v: %s", spoken(delay), notice)
	}
	s.show(gitReconciling, notice)
	workflow.SetCurrentDetails(ctx, notice)
	if s.unread != nil && s.warned < coming {
		s.warned = coming
		warnOfGitRetry(ctx, s.operation, *s.unread, delay, "reading", coming)
	}
	if delay <= 0 {
		return ctx.Err()
	}
	return workflow.NewTimerWithOptions(ctx, delay, workflow.TimerOptions{Summary: notice}).Get(ctx, nil)
}

// look reads the remote once. A reading that a cancellation cut short says
// nothing, and is made anew.
func (s *gitSearch) look(ctx workflow.Context) {
	var located contract.GitLocated
	fault := s.call(ctx, gitCall{
		activity: contract.ActivityGitLocate,
		request:  s.request(),
		summary:  summary("git push: look for it, reading %d", len(s.evidence.Reads)+1),
		limit:    policies.PushReadShare(s.evidence.Until.Sub(workflow.Now(ctx))),
		bounded:  true,
	}, &located)
	if fault != nil && ctx.Err() != nil {
		return
	}
	s.unread = fault
	read := policies.PushRead{At: workflow.Now(ctx)}
	if fault != nil {
		verdict := failure.ToVerdict(*fault)
		read.Failure = &verdict
	} else {
		s.found = located.Found
		read.Found, read.Contains = located.Found, located.Contains
	}
	s.evidence.Reads = append(s.evidence.Reads, read)
}

// end says what became of the push.
func (s *gitSearch) end(ctx workflow.Context, verdict policies.PushVerdict) contract.GitResult {
	switch verdict.Answer {
	case policies.PushLanded:
		return s.landed(s.found)
	case policies.PushRefused:
		return gitEnd(ctx, s.fault, 1)
	case policies.PushNotLanded:
		return s.notLanded(ctx, verdict.Rule)
	case policies.PushConflict:
		return s.ended(contract.OutcomeConflict, contract.Error{
			Reason: string(policies.ReasonConflict), Rule: verdict.Rule,
			Message: "the push has not landed, and the remote's ref has moved elsewhere; nothing was overwritten: fetch, merge, and push again",
		})
	}
	return s.needsReview(verdict.Rule)
}

// needsReview is the end where nothing is proved. It names the first cause, and
// why the remote could not be read.
func (s *gitSearch) needsReview(rule string) contract.GitResult {
	message := "it is not known whether the push has landed; start the same push again under a new key (--key), for it reads the remote first. What happened: " + s.fault.Message
	if s.unread != nil {
		message += "; then the remote could not be read: " + s.unread.Message
	}
	return s.ended(contract.OutcomeNeedsReview, contract.Error{
		Reason: s.fault.Reason, Rule: rule, Message: failure.Shorten(message),
	})
}

// notLanded is the end where the remote has what it had before. A host that still
// works on the request, in a slow hook, may let it land later; the lease makes a
// second push harmless then.
func (s *gitSearch) notLanded(ctx workflow.Context, rule string) contract.GitResult {
	later := ""
	if s.fault.Effect != string(policies.EffectNotSent) {
		later = " when the remote was read twice; a host with a slow hook may still take it, which the same lease makes harmless"
	}
	if ctx.Err() != nil {
		return s.ended(contract.OutcomeCancelled, contract.Error{
			Reason: string(policies.ReasonCancelled), Rule: rule, Message: "the operation was cancelled, and the push had not landed" + later,
		})
	}
	return s.ended(contract.OutcomeNotLanded, contract.Error{
		Reason: s.fault.Reason, Rule: rule,
		Message: failure.Shorten("the push had not landed" + later + "; if it is still wanted, push again with the same lease: " + s.fault.Message),
		ResetAt: resetAt(ctx, s.fault),
	})
}

// ended is an end after the one attempt.
func (s *gitSearch) ended(outcome contract.Outcome, e contract.Error) contract.GitResult {
	e.Attempts = 1
	return contract.GitResult{Outcome: outcome, Push: s.pushed(s.found), Error: &e}
}
