package policies

import (
	"strings"
	"time"
)

// longWindow reports whether a limit is one of days or of a plan rather than
// of seconds (P4.6). A long Retry-After alone proves nothing; a short unit or
// a short hint disproves it.
func (e *evidence) longWindow() bool {
	m := e.marks
	named := e.typed.has(cQuota) || m.any(mQuota, mUsageLimit)
	long := m.has(mLong) || m.has(mPlan) && !m.has(mPlanUpgrade)
	window := long && (e.status == 429 || m.has(mRate) || m.has(mLimit) && m.any(mHit, mReset, mAgain))
	if !named && !window || m.has(mShort) {
		return false
	}
	return e.hinted == "" || e.hint.infinite || e.hint.d > time.Minute
}

// owesMoney reports whether a text or a code speaks of money. "Insufficient
// account balance" is a matter of money only where the provider uses it so;
// others say it of a rate.
func (e *evidence) owesMoney() bool {
	if e.typed.has(cBilling) || e.marks.any(mBilling, mPayment, mSpend) {
		return true
	}
	return e.marks.has(mBalance) && (e.status != 429 || e.provider != anyVendor && e.provider&(xai|kimi) != 0)
}

// overflows reports whether the context did not fit.
func (e *evidence) overflows() bool {
	m := e.marks
	return e.typed.has(cOverflow) || m.has(mOverflow) ||
		m.has(mContext) && m.has(mHit) && !m.any(mShort, mNamesTokens, mNamesRequests)
}

// limited tells the kinds of limit apart (P4.1, P4.6, P4.7).
func (e *evidence) limited(rule string) judgement {
	rate := e.marks.any(mShort, mNamesTokens, mNamesRequests)
	switch {
	case e.asksForMore, e.overflows() && rate && !e.counted:
		return exact(ReasonRequestTooLarge, "P4.7/request_too_large")
	case e.overflows() && !rate:
		return exact(ReasonContextOverflow, "P4.1/context_overflow")
	case e.owesMoney():
		return exact(ReasonBilling, "P4.1/billing")
	case e.longWindow():
		return exact(ReasonQuotaExhausted, "P4.6/long_window")
	}
	return exact(ReasonRateLimit, rule)
}

// denied is 401 and 403 (P4.4).
func (e *evidence) denied(f *Fault) judgement {
	switch m := e.marks; {
	case e.typed.has(cDead), m.any(mDead, mDeadAccount):
		return exact(ReasonAuthPermanent, "P4.4/auth_permanent")
	case e.owesMoney():
		return exact(ReasonBilling, "P4.4/billing")
	case e.status == 403 && (e.typed.has(cQuota) || m.any(mUsageLimit, mQuota) || m.has(mLong) && m.has(mLimit) && m.has(mHit)):
		return exact(ReasonQuotaExhausted, "P4.6/long_window")
	case e.status == 403 && (e.typed.has(cRefusal) || m.has(mRefusal)):
		return exact(ReasonRefusal, "P4.9/refusal")
	case e.status == 401 && e.provider != anyVendor && e.provider&xai != 0 && e.json && strings.EqualFold(e.only, "authentication required"):
		// xAI answers so while its gateway cannot reach its key store.
		return exact(ReasonTimeout, "P4.4/xai_transient")
	}
	return statusRule(e.status, f.Provider)
}

// unpaid is 402: money, unless it is plainly a limit that refills (P4.4).
func (e *evidence) unpaid() judgement {
	m := e.marks
	refilling := exact(ReasonRateLimit, "P4.4/refilling")
	if e.longWindow() {
		refilling = exact(ReasonQuotaExhausted, "P4.6/long_window")
	}
	explicit := e.typed.has(cBilling) || m.any(mBilling, mBalance) ||
		m.has(mHardLimit) && m.has(mLimit) || m.has(mPlanUpgrade) && m.has(mLimit)
	switch {
	case m.has(mRefill) && m.has(mLimit) && !m.has(mBilling):
		return exact(ReasonRateLimit, "P4.4/refilling")
	case explicit:
		return exact(ReasonBilling, "P4.4/billing")
	case e.typed.any(cRate, cThrottle), m.has(mRate),
		m.has(mAgain) && m.has(mUsageLimit),
		m.has(mLong) && m.any(mUsageLimit, mSpend),
		m.has(mLong) && m.has(mLimit) && m.has(mReset),
		m.has(mOrgScope) && m.has(mLimit) && m.any(mSpend, mHit):
		return refilling
	}
	return exact(ReasonBilling, "P4.4/billing")
}

// notFound is 404 (P4.8).
func (e *evidence) notFound(f *Fault) judgement {
	switch m := e.marks; {
	case e.typed.has(cValidation):
		return exact(ReasonFormat, "P4.5/validation")
	case e.overflows():
		return exact(ReasonContextOverflow, "P4.8/context_overflow")
	case m.has(mUnsupportedInput):
		return exact(ReasonFormat, "P4.5/format")
	case e.modelGone():
		return exact(ReasonModelNotFound, "P4.8/model_not_found")
	case m.has(mUnavailable):
		return exact(ReasonOverloaded, "P4.2/overloaded")
	case e.sessionGone():
		return exact(ReasonSessionExpired, "P4.5/session_expired")
	}
	if j, ok := e.credentials(); ok {
		return j
	}
	if e.marks.any(mFormat, mValidation) {
		return exact(ReasonFormat, "P4.5/format")
	}
	return statusRule(404, f.Provider)
}

// gone is 410 (P4.5).
func (e *evidence) gone(f *Fault) judgement {
	switch {
	case e.sessionGone():
		return exact(ReasonSessionExpired, "P4.5/session_expired")
	case e.modelGone():
		return exact(ReasonModelNotFound, "P4.8/model_not_found")
	}
	if j, ok := e.credentials(); ok {
		return j
	}
	return statusRule(410, f.Provider)
}

// credentials judges by what a text says about money and credentials.
func (e *evidence) credentials() (judgement, bool) {
	switch m := e.marks; {
	case e.owesMoney():
		return exact(ReasonBilling, "P4.4/billing"), true
	case e.typed.has(cDead), m.has(mDeadAccount), m.has(mDead) && m.has(mAccount):
		return exact(ReasonAuthPermanent, "P4.4/auth_permanent"), true
	case e.typed.has(cAuth), m.has(mAuth):
		return exact(ReasonAuth, "P4.4/auth"), true
	case e.typed.has(cPermission), m.has(mPermission):
		return exact(ReasonPermission, "P4.4/permission"), true
	}
	return judgement{}, false
}

// tooLarge is 413 (P4.7, P4.8): too much for the model, or for a minute.
func (e *evidence) tooLarge() judgement {
	if e.marks.any(mShort, mNamesTokens, mNamesRequests) {
		if e.counted && !e.asksForMore {
			return e.limited("P4.1/rate_limit")
		}
		return exact(ReasonRequestTooLarge, "P4.7/request_too_large")
	}
	return exact(ReasonContextOverflow, "P4.8/context_overflow")
}

// broken is 5xx but 529 (P4.2, P4.3).
func (e *evidence) broken(f *Fault) judgement {
	switch {
	case e.typed.has(cValidation):
		return exact(ReasonFormat, "P4.5/validation")
	case e.overflows():
		return exact(ReasonContextOverflow, "P4.8/context_overflow")
	case e.typed.has(cOverload), e.marks.any(mOverload, mUnavailable):
		return exact(ReasonOverloaded, "P4.2/overloaded")
	}
	if j, ok := e.byCode(); ok {
		return j
	}
	return statusRule(e.status, f.Provider)
}

// rejected is 400, 422 and every other 4xx that has a body (P4.5).
func (e *evidence) rejected(f *Fault) judgement {
	if e.typed.has(cValidation) {
		return exact(ReasonFormat, "P4.5/validation")
	}
	prose, spoke := e.byText(f)
	if j, ok := e.byCode(); ok {
		switch j.reason {
		case ReasonRateLimit, ReasonOverloaded:
			agrees := spoke && (prose.reason == ReasonRateLimit || prose.reason == ReasonOverloaded || prose.reason == ReasonTimeout)
			j.noRepeat = len(e.raw) > 0 && !agrees && !e.typed.has(cThrottle)
		}
		return j
	}
	if e.status == 409 {
		return statusRule(409, f.Provider)
	}
	if e.marks.has(mValidation) && prose.reason != ReasonContextOverflow {
		return exact(ReasonFormat, "P4.5/validation")
	}
	if spoke {
		switch prose.reason {
		case ReasonServerError, ReasonTLS, ReasonUnclassified:
		case ReasonTimeout, ReasonStreamInterrupted:
			if !e.marks.any(mFieldWord, mFormat) {
				return prose
			}
		default:
			return prose
		}
	}
	return generic(ReasonFormat, "P4.5/format")
}
