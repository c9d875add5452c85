package policies

// Retry says how far a reason may be retried on the same candidate (P4.13).
type Retry string

// Ways to retry on the same candidate.
const (
	RetryNever        Retry = "never"
	RetryBudget       Retry = "budget"        // within the budget of the outage
	RetryTwice        Retry = "twice"         // two retries
	RetryUncharged    Retry = "uncharged"     // three times, without a charge
	RetryAfterRefresh Retry = "after_refresh" // once, with a fresh token
	RetryContinue     Retry = "continue"      // continued once per run (M3.11)
)

// FailoverWhen says when a reason moves on to another candidate (P4.13).
type FailoverWhen string

// Moments of failover.
const (
	FailoverNever        FailoverWhen = "never"
	FailoverYes          FailoverWhen = "yes"
	FailoverBudgetSpent  FailoverWhen = "budget_spent"
	FailoverAtOnce       FailoverWhen = "at_once"
	FailoverOtherPayer   FailoverWhen = "other_payer"   // at once, to another provider or auth profile
	FailoverLargerWindow FailoverWhen = "larger_window" // to a candidate with a larger window
	FailoverOptIn        FailoverWhen = "opt_in"        // only if the operator opted in
	FailoverReplaySafe   FailoverWhen = "replay_safe"   // to one other candidate, if replay-safe
)

// Blame says who is remembered for a failure (P4.13, P6).
type Blame string

// What a failure may be blamed on.
const (
	BlameNothing              Blame = ""
	BlameEndpointProfileModel Blame = "endpoint+auth_profile+model"
	BlameEndpointModel        Blame = "endpoint+model"
	BlameAuthProfile          Blame = "auth_profile"
	BlameAuthProfileModel     Blame = "auth_profile+model"
)

// Until says which clock ends a blame; the lengths are those of
// [HealthPolicy].
type Until string

// Ends of a blame.
const (
	UntilNothing        Until = ""
	UntilProviderTiming Until = "provider_timing" // only as long as the provider said
	UntilReset          Until = "reset"           // the reset it names, else HealthPolicy.Quota
	UntilBilling        Until = "billing"         // HealthPolicy.BillingMin doubling to BillingMax
	UntilAuth           Until = "auth"            // the ladder HealthPolicy.Auth
	UntilBlock          Until = "block"           // HealthPolicy.BlockMin doubling to BlockMax
	UntilRefresh        Until = "refresh"         // until the credential is refreshed
	UntilModelGone      Until = "model_gone"      // HealthPolicy.ModelGone
)

// Disposition is what a reason of the model surface permits (P4.13).
type Disposition struct {
	Retry    Retry
	Failover FailoverWhen
	// Permanent says that the same request to the same candidate cannot
	// succeed until a person or a configuration changes something.
	Permanent bool
	Blames    Blame
	Until     Until
}

// DispositionOf returns the row of P4.13 for a reason. A reason that the model
// surface does not have gets the row of [ReasonUnclassified].
func DispositionOf(r Reason) Disposition {
	switch r {
	case ReasonRateLimit:
		return Disposition{RetryBudget, FailoverYes, false, BlameEndpointProfileModel, UntilProviderTiming}
	case ReasonOverloaded:
		return Disposition{RetryBudget, FailoverYes, false, BlameEndpointModel, UntilProviderTiming}
	case ReasonServerError, ReasonTimeout, ReasonStreamInterrupted, ReasonMalformedStream, ReasonDegenerateOutput:
		return Disposition{RetryBudget, FailoverBudgetSpent, false, BlameNothing, UntilNothing}
	case ReasonEmptyResponse:
		return Disposition{RetryTwice, FailoverYes, false, BlameNothing, UntilNothing}
	case ReasonWorkerLost:
		return Disposition{RetryUncharged, FailoverNever, false, BlameNothing, UntilNothing}
	case ReasonOutputLimit:
		return Disposition{RetryContinue, FailoverNever, false, BlameNothing, UntilNothing}
	case ReasonQuotaExhausted:
		return Disposition{RetryNever, FailoverAtOnce, false, BlameAuthProfile, UntilReset}
	case ReasonBilling:
		return Disposition{RetryNever, FailoverOtherPayer, true, BlameAuthProfile, UntilBilling}
	case ReasonAuth:
		return Disposition{RetryAfterRefresh, FailoverAtOnce, false, BlameAuthProfile, UntilAuth}
	case ReasonAuthPermanent:
		return Disposition{RetryNever, FailoverAtOnce, true, BlameAuthProfile, UntilBlock}
	case ReasonPermission:
		return Disposition{RetryNever, FailoverAtOnce, true, BlameAuthProfileModel, UntilBlock}
	case ReasonSessionExpired:
		return Disposition{RetryAfterRefresh, FailoverAtOnce, false, BlameAuthProfile, UntilRefresh}
	case ReasonModelNotFound:
		return Disposition{RetryNever, FailoverAtOnce, true, BlameEndpointModel, UntilModelGone}
	case ReasonRequestTooLarge, ReasonContextOverflow:
		return Disposition{RetryNever, FailoverLargerWindow, true, BlameNothing, UntilNothing}
	case ReasonRefusal:
		return Disposition{RetryNever, FailoverOptIn, true, BlameNothing, UntilNothing}
	case ReasonFormat, ReasonTLS:
		return Disposition{RetryNever, FailoverNever, true, BlameNothing, UntilNothing}
	case ReasonCancelled, ReasonDeadline:
		return Disposition{RetryNever, FailoverNever, false, BlameNothing, UntilNothing}
	}
	return Disposition{RetryNever, FailoverReplaySafe, false, BlameNothing, UntilNothing}
}

// retriesSame reports whether the same request may be repeated as it is; a
// repeat after a token refresh is not the same request.
func (d Disposition) retriesSame() bool {
	switch d.Retry {
	case RetryNever, RetryAfterRefresh:
		return false
	}
	return true
}

// failsOver reports whether another candidate may help without anybody's
// leave.
func (d Disposition) failsOver() bool {
	return d.Failover != FailoverNever && d.Failover != FailoverOptIn
}
