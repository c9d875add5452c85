package policies

import (
	"slices"
	"time"
)

// failed decides after a failed attempt. What no budget governs comes first.
func (r *Recovery) failed(e Event) Decision {
	reason := e.Verdict.Reason
	switch {
	case reason == ReasonCancelled || reason == ReasonDeadline:
		return r.stop(e, "P4.13/"+string(reason))
	case r.passesDeadline(e, 0):
		return r.stop(e, "P2/deadline")
	case e.Tools.Blocks():
		return r.stop(e, "M3.10/unsettled_tools")
	}
	switch reason {
	case ReasonWorkerLost:
		return r.workerLost(e)
	case ReasonOutputLimit:
		return r.outputLimit(e)
	case ReasonAuth, ReasonSessionExpired:
		if r.mayRefresh(e) {
			return r.refresh(e)
		}
	}
	if r.Options.Policy.Simple != nil {
		return r.simple(e, *r.Options.Policy.Simple)
	}
	return r.byReason(e)
}

// byReason applies the columns "retry" and "failover" of P4.13.
func (r *Recovery) byReason(e Event) Decision {
	reason := e.Verdict.Reason
	rule := "P4.13/" + string(reason)
	switch reason {
	case ReasonRateLimit, ReasonOverloaded, ReasonServerError, ReasonTimeout,
		ReasonStreamInterrupted, ReasonMalformedStream, ReasonDegenerateOutput, ReasonEmptyResponse:
		return r.transient(e)
	case ReasonFormat, ReasonTLS:
		return r.stop(e, rule)
	case ReasonRefusal:
		if !r.Options.Policy.RefusalFailover {
			return r.stop(e, rule)
		}
	case ReasonQuotaExhausted, ReasonBilling, ReasonAuth, ReasonAuthPermanent, ReasonPermission,
		ReasonSessionExpired, ReasonModelNotFound, ReasonRequestTooLarge, ReasonContextOverflow:
	default:
		return r.unclassified(e)
	}
	return r.move(e, rule)
}

// workerLost continues like an interruption, uncharged (M3.17).
func (r *Recovery) workerLost(e Event) Decision {
	if r.State.WorkerLost > maxWorkerLost {
		return r.stop(e, "M3.17/worker_lost")
	}
	return r.attempt(e, r.State.Current, ceilMillis(e.Verdict.Floor.Wait), "M3.17/worker_lost")
}

// outputLimit continues once per run from recorded results, on the same model
// and account, within the count but outside the window (M3.11).
func (r *Recovery) outputLimit(e Event) Decision {
	o := r.here()
	if r.State.OutputContinued {
		return r.stop(e, "M3.11/once_per_run")
	}
	if o.Failures >= r.limit(o) {
		return r.stop(e, r.spentRule())
	}
	r.State.OutputContinued = true
	return r.attempt(e, r.State.Current, ceilMillis(e.Verdict.Floor.Wait), "M3.11/output_limit")
}

// mayRefresh reports whether one attempt after renewing the credential is due.
func (r *Recovery) mayRefresh(e Event) bool {
	o := r.here()
	return r.Options.Targets[r.State.Current].Refreshable && !o.Refreshed &&
		!e.Verdict.Floor.Infinite && o.Failures < r.limit(o)
}

func (r *Recovery) refresh(e Event) Decision {
	wait := ceilMillis(e.Verdict.Floor.Wait)
	if r.passesDeadline(e, wait) {
		return r.move(e, "P2/deadline")
	}
	d := r.attempt(e, r.State.Current, wait, "P4.13/refresh")
	if d.Action == ActionAttempt {
		r.here().Refreshed, d.Refresh = true, true
	}
	return d
}

// unclassified is tried on one other candidate, if nothing can be doubled.
func (r *Recovery) unclassified(e Event) Decision {
	const rule = "P4.13/unclassified"
	e.Verdict.Reason = ReasonUnclassified
	if !e.ReplaySafe || r.State.UnclassifiedMoved {
		return r.stop(e, rule)
	}
	r.State.UnclassifiedMoved = true
	return r.move(e, rule)
}

// transient spends the budget of the candidate, then moves on.
func (r *Recovery) transient(e Event) Decision {
	o := r.here()
	reason, floor := e.Verdict.Reason, e.Verdict.Floor
	if floor.Infinite {
		return r.move(e, "P3/infinite_floor")
	}
	if reason == ReasonEmptyResponse && o.Empty > maxEmptyRetries {
		return r.move(e, "P4.13/empty_response")
	}
	if r.aboveCap(e) {
		return r.move(e, "P5/floor_above_cap")
	}
	budget, rule := r.Options.Policy.Transient, "P1.7/transient"
	if reason == ReasonRateLimit {
		budget, rule = r.Options.Policy.RateLimit, "P1.6/rate_limit"
	}
	delay := ModelDelay(budget, o.Failures, floor, e.Random)
	if spent := r.spent(o, reason, delay); spent != "" {
		return r.budgetSpent(e, spent)
	}
	if early := r.moveEarly(e, o, delay); early != "" {
		return r.move(e, early)
	}
	if r.passesDeadline(e, delay) {
		return r.move(e, "P2/deadline")
	}
	return r.attempt(e, r.State.Current, delay, rule)
}

// aboveCap reports whether P5 forbids waiting for the floor.
func (r *Recovery) aboveCap(e Event) bool {
	p := r.Options.Policy
	if e.Verdict.Reason != ReasonRateLimit || p.MaxRetryDelay <= 0 || e.Verdict.Floor.Wait <= p.MaxRetryDelay {
		return false
	}
	if !e.ReplaySafe {
		return false
	}
	if _, ok := r.next(e); ok {
		return true
	}
	return p.FloorAboveCap != "wait" || r.hasFallback()
}

// limit is the number of attempts o's target has in this outage (M3.2, M3.4).
func (r *Recovery) limit(o *Outage) int {
	p := r.Options.Policy
	ceiling := min(p.RateLimit.Attempts, maxRateLimitAttempts)
	n := p.Transient.Attempts
	switch {
	case p.Simple != nil:
		ceiling, n = maxRateLimitAttempts, p.Simple.Retries+1
	case o.SawRateLimit:
		n = ceiling
	}
	if r.Options.MaxRetries != nil {
		n = min(max(*r.Options.MaxRetries, 0), r.guard()) + 1
	}
	if o.SawRateLimit {
		n = min(n, ceiling)
	}
	return max(n, 1)
}

// spent names the rule by which another retry after delay is refused, or "".
func (r *Recovery) spent(o *Outage, reason Reason, delay time.Duration) string {
	if o.Failures >= r.limit(o) {
		return r.spentRule()
	}
	window := r.Options.Policy.Transient.Window
	if window <= 0 || reason == ReasonRateLimit {
		return ""
	}
	used := o.WindowUsed
	if o.SawRateLimit {
		used = 0
	}
	if used+delay > window {
		return "M3.2/window_spent"
	}
	return ""
}

func (r *Recovery) spentRule() string {
	if r.Options.MaxRetries != nil {
		return "M3.4/max_retries"
	}
	return "M3.3/budget_spent"
}

func (r *Recovery) budgetSpent(e Event, rule string) Decision {
	if e.Verdict.Reason == ReasonTimeout && r.Options.Policy.SpentTimeout == "surface" {
		return r.stop(e, rule)
	}
	return r.move(e, rule)
}

// moveEarly names the rule by which the candidate is left before its budget is
// spent, or "". All of them need another candidate that is ready.
func (r *Recovery) moveEarly(e Event, o *Outage, delay time.Duration) string {
	if _, ok := r.next(e); !ok {
		return ""
	}
	p := r.Options.Policy
	switch {
	case r.halfSpent(e):
		return "M3.5/half_deadline"
	case p.SwitchAfter > 0 && (o.Failures > p.SwitchAfter || p.SwitchWait > 0 && delay > p.SwitchWait):
		return "M3.6/switch_after"
	case p.MoveAfterOverloads > 0 && o.Overloads >= p.MoveAfterOverloads:
		return "M3.7/overloads"
	case e.TPM && e.ReplaySafe && (o.Failures > tpmRetries || e.Now.Add(delay).Sub(o.TPMSince) > tpmWindow):
		return "P6/tokens_per_minute"
	}
	return ""
}

// halfSpent is M3.5.
func (r *Recovery) halfSpent(e Event) bool {
	o := r.Options
	if o.Deadline.IsZero() || o.MaxRetries != nil || o.ExplicitTimeout || !e.ReplaySafe {
		return false
	}
	return e.Now.Sub(o.Started) >= o.Deadline.Sub(o.Started)/2
}

// simple is the per-call policy of the "simple" profiles.
func (r *Recovery) simple(e Event, s Simple) Decision {
	o, reason, floor := r.here(), e.Verdict.Reason, e.Verdict.Floor
	if !slices.Contains(s.Retryable, reason) {
		return r.simplePermanent(e, s)
	}
	if floor.Infinite {
		return r.move(e, "P3/infinite_floor")
	}
	if s.RetryAfterCap > 0 && floor.Wait > s.RetryAfterCap {
		return r.move(e, "simple/retry_after_cap")
	}
	if o.Failures >= r.limit(o) {
		return r.move(e, "simple/retries_spent")
	}
	delay, wait := SimpleDelay(s, o.Failures, e.Random), ceilMillis(floor.Wait)
	if wait > delay && !s.RespectRetryAfter {
		return r.move(e, "simple/retry_after_not_respected")
	}
	delay = max(delay, wait)
	if r.passesDeadline(e, delay) {
		return r.move(e, "P2/deadline")
	}
	return r.attempt(e, r.State.Current, delay, "simple/retry")
}

func (r *Recovery) simplePermanent(e Event, s Simple) Decision {
	if !s.FailoverPermanent {
		return r.stop(e, "simple/permanent")
	}
	return r.move(e, "simple/permanent")
}
