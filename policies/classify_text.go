package policies

import "bytes"

// byCode judges by a typed code that the provider owns and that is not a mere
// wrapper.
func (e *evidence) byCode() (judgement, bool) {
	t := e.typed
	if t == 0 {
		return judgement{}, false
	}
	switch {
	case t.has(cValidation):
		return exact(ReasonFormat, "P4.5/validation"), true
	case t.has(cRefusal):
		return exact(ReasonRefusal, "P4.9/refusal"), true
	case t.has(cModelGone):
		return exact(ReasonModelNotFound, "P4.8/model_not_found"), true
	case t.has(cSession):
		return exact(ReasonSessionExpired, "P4.5/session_expired"), true
	case t.has(cDead):
		return exact(ReasonAuthPermanent, "P4.4/auth_permanent"), true
	case t.any(cQuota, cRate, cThrottle):
		return e.limited("P4.1/rate_limit"), true
	case t.has(cOverflow):
		return exact(ReasonContextOverflow, "P4.8/context_overflow"), true
	case t.has(cBilling):
		return exact(ReasonBilling, "P4.4/billing"), true
	case t.has(cOverload):
		return exact(ReasonOverloaded, "P4.2/overloaded"), true
	case t.has(cTerminated):
		if e.marks.any(mUsageLimit, mQuota) || e.longWindow() {
			return exact(ReasonQuotaExhausted, "P4.6/long_window"), true
		}
		return exact(ReasonPermission, "P4.4/permission"), true
	case t.any(cAuth, cPermission):
		j, _ := e.credentials()
		return j, true
	case t.has(cOutputLimit):
		return exact(ReasonOutputLimit, "P4.13/output_limit"), true
	}
	return judgement{}, false
}

// byContent judges a failure without a status: one inside a 200 stream
// (P4.10), or one of the transport (P4.11).
func (e *evidence) byContent(f *Fault) judgement {
	if e.typed.has(cCertificate) {
		return said(ReasonTLS, "P4.11/tls_certificate")
	}
	if j, ok := e.byCode(); ok {
		return j
	}
	text, ok := e.byText(f)
	if ok && text.weight >= weightText {
		return text
	}
	if phase, ok := e.lost(f); ok {
		return transport(phase)
	}
	switch t := e.typed; {
	case ok:
		return text
	case t.has(cServer):
		return generic(ReasonServerError, "P4.3/server_error")
	case t.has(cTimeout):
		return generic(ReasonTimeout, "P4.3/timeout")
	case t.has(cFormat):
		return generic(ReasonFormat, "P4.5/format")
	}
	return unclassified
}

// lost reports whether a transport code says that the connection failed, and
// in which phase.
func (e *evidence) lost(f *Fault) (Phase, bool) {
	phase := f.Phase
	switch {
	case e.typed.has(cConnect):
		return PhaseConnect, true
	case e.typed.has(cHeaders):
		return PhaseHeaders, true
	case e.typed.has(cBody):
		if phase == "" {
			phase = PhaseBody
		}
		return phase, true
	case e.typed.has(cTransport):
		if f.NotStarted || f.Syscall == "connect" || f.Syscall == "getaddrinfo" {
			phase = PhaseConnect
		}
		return phase, true
	}
	return "", false
}

// byText judges by the families of the text alone, the most telling first.
func (e *evidence) byText(f *Fault) (judgement, bool) {
	if j, ok := e.byConcreteText(); ok {
		return j, true
	}
	m := e.marks
	switch {
	case m.has(mFinishError):
		return generic(ReasonServerError, "P4.3/server_error"), true
	case m.has(mDeadAccount), m.has(mDead) && m.has(mAccount):
		return said(ReasonAuthPermanent, "P4.4/auth_permanent"), true
	case m.has(mAuth):
		return said(ReasonAuth, "P4.4/auth"), true
	case m.has(mPermission):
		return said(ReasonPermission, "P4.4/permission"), true
	case m.has(mStreamEnded) && m.has(mStreamHow) && !m.has(mStreamOther), m.has(mCut) && !m.has(mStreamOther):
		return judgement{reason: ReasonStreamInterrupted, rule: "P4.11/stream_interrupted", weight: weightTransport, phase: f.Phase}, true
	case m.has(mServer):
		return generic(ReasonServerError, "P4.3/server_error"), true
	case m.any(mNetwork, mTimeout):
		return e.slow(f), true
	case m.has(mFormat):
		return generic(ReasonFormat, "P4.5/format"), true
	case m.has(mDelay):
		return said(ReasonRateLimit, "P4.1/rate_limit"), true
	}
	return judgement{}, false
}

// byConcreteText judges by the families that name a cause.
func (e *evidence) byConcreteText() (judgement, bool) {
	m := e.marks
	switch {
	case m == 0:
		return judgement{}, false
	case m.has(mImage):
		return judgement{reason: ReasonUnclassified, rule: "P4.5/image", weight: weightText}, true
	case m.has(mCertificate):
		return said(ReasonTLS, "P4.11/tls_certificate"), true
	case m.has(mUnsupportedInput):
		return said(ReasonFormat, "P4.5/format"), true
	case m.has(mSession):
		return said(ReasonSessionExpired, "P4.5/session_expired"), true
	case e.modelGone():
		return said(ReasonModelNotFound, "P4.8/model_not_found"), true
	case e.asksForMore && m.any(mShort, mNamesTokens, mNamesRequests, mRate):
		return said(ReasonRequestTooLarge, "P4.7/request_too_large"), true
	case e.overflows():
		return said(ReasonContextOverflow, "P4.8/context_overflow"), true
	case m.has(mValidation):
		return said(ReasonFormat, "P4.5/validation"), true
	case m.has(mRefusal):
		return said(ReasonRefusal, "P4.9/refusal"), true
	case m.any(mBilling, mPayment, mBalance, mSpend):
		return said(ReasonBilling, "P4.4/billing"), true
	case e.longWindow():
		return said(ReasonQuotaExhausted, "P4.6/long_window"), true
	case m.any(mRate, mQuota, mUsageLimit):
		return said(ReasonRateLimit, "P4.1/rate_limit"), true
	case m.any(mOverload, mUnavailable):
		return said(ReasonOverloaded, "P4.2/overloaded"), true
	}
	return judgement{}, false
}

// slow is a timeout or a lost connection that only the text tells of.
func (e *evidence) slow(f *Fault) judgement {
	j := transport(f.Phase)
	if f.NotStarted || e.marks.has(mConnect) {
		j = transport(PhaseConnect)
	}
	if e.marks.has(mGenericFailure) {
		j.weight = weightWrapper
	}
	return j
}

func (e *evidence) sessionGone() bool { return e.typed.has(cSession) || e.marks.has(mSession) }

// modelGone reports whether a text or a code says that the model does not
// exist or is not to be had.
func (e *evidence) modelGone() bool {
	if e.typed.has(cModelGone) || e.marks.has(mModelGone) {
		return true
	}
	return e.marks.has(mModel) && e.marks.has(mGone) && nearModelGone(e.norm)
}

var goneWords = [...][]byte{
	[]byte("not found"), []byte("does not exist"), []byte("doesn t exist"), []byte("not exist"), []byte("no longer available"),
	[]byte("deactivated"), []byte("deprecated"), []byte("retired"), []byte("removed"), []byte("decommissioned"), []byte("discontinued"), []byte("shut down"),
	[]byte("is not supported"), []byte("is not available"), []byte("isn t available"), []byte("is unknown"),
}

// nearModelGone reports whether "model" is followed, in the same sentence and
// within 100 bytes, by words that say it is gone. The first 32 mentions count.
func nearModelGone(norm []byte) bool {
	word := []byte("model")
	pos := 0
	for range 32 {
		at := bytes.Index(norm[pos:], word)
		if at < 0 {
			return false
		}
		pos += at + len(word)
		near := norm[pos:min(len(norm), pos+100)]
		if end := bytes.Index(near, []byte(". ")); end >= 0 {
			near = near[:end]
		}
		for _, gone := range goneWords {
			i := bytes.Index(near, gone)
			if i < 0 || bytes.Contains(near[:i], []byte("parameter")) || bytes.HasPrefix(near[i+len(gone):], []byte(" in your")) {
				continue
			}
			return true
		}
	}
	return false
}
