package policies

import "time"

// NonceWindow is how long after the first attempt a Discord create may be
// repeated although an earlier answer was lost: so long its nonce makes the
// repeat harmless (C2.1).
const NonceWindow = 2 * time.Minute

// repeatClass says what permits a second request of an operation (C2).
type repeatClass int

const (
	repeatProved     repeatClass = iota // only what is proved not sent
	repeatNonce                         // also what is lost, within the nonce window
	repeatIdempotent                    // everything transient: a repeat changes nothing
	repeatRead                          // the same, and there is no effect to speak of
)

// channelRules is one row of C2: the rule that judges one operation.
type channelRules struct {
	id    string
	class repeatClass
}

func (r channelRules) idempotent() bool { return r.class >= repeatIdempotent }

// effect is what is said of a request whose fate is e, where there was
// anything to do.
func (r channelRules) effect(e Effect) Effect {
	if r.class == repeatRead {
		return EffectNone
	}
	return e
}

// notSent is a verdict on a request that is proved to have done nothing and
// may be repeated.
func (r channelRules) notSent(reason Reason, rule string) Verdict {
	return Verdict{Reason: reason, RetrySame: true, Effect: r.effect(EffectNotSent), Rule: r.id + "/" + rule}
}

// refused is a verdict on a request that the platform refused for good.
func (r channelRules) refused(reason Reason, rule string) Verdict {
	return Verdict{Reason: reason, Permanent: true, Effect: r.effect(EffectNotSent), Rule: r.id + "/" + rule}
}

// achieved is a verdict on a failure that is the outcome that was wanted.
func (r channelRules) achieved(reason Reason, rule string) Verdict {
	return Verdict{Reason: reason, Success: true, Effect: r.effect(EffectSent), Rule: r.id + "/" + rule}
}

// lost is a verdict on a request that may have done its work: repeated only
// where a repeat is harmless.
func (r channelRules) lost(f *Fault, reason Reason, rule string) Verdict {
	v := Verdict{Reason: reason, Effect: r.effect(EffectUnknown), Rule: r.id + "/" + rule, Floor: ChannelFloor(f)}
	switch r.class {
	case repeatIdempotent, repeatRead:
		v.RetrySame = true
	case repeatNonce:
		v.RetrySame = true // withinNonce has the last word
	}
	return v
}

// withinNonce closes the nonce window (C2.1). Once an answer was lost, a
// repeat is harmless only inside the window, the wait before it included; and
// a later refusal does not say that the lost request did nothing.
func (r channelRules) withinNonce(f *Fault, v Verdict) Verdict {
	if r.class != repeatNonce || (v.Effect != EffectUnknown && !f.LostEarlier) {
		return v
	}
	if !v.RetrySame {
		v.Effect = EffectUnknown
		return v
	}
	if v.Floor.Wait > NonceWindow-max(f.SinceFirst, 0) {
		v.RetrySame, v.Effect, v.Rule = false, EffectUnknown, r.id+"/nonce_window_over"
	}
	return v
}

// transport judges a request that got no answer.
func (r channelRules) transport(f *Fault, proves func(*Fault) bool) Verdict {
	switch {
	case certificateFault(f):
		return r.refused(ReasonTLS, "certificate")
	case f.NotStarted, notStartedBy(f, proves):
		return r.notSent(ReasonTimeout, "not_started")
	case transientTransport(f):
		return r.lost(f, ReasonTimeout, "transport")
	}
	return Verdict{Reason: ReasonUnclassified, Effect: r.effect(EffectUnknown), Rule: r.id + "/unclassified"}
}

// unreadable judges an answer of success that could not be read.
func (r channelRules) unreadable(f *Fault) Verdict {
	switch r.class {
	case repeatIdempotent:
		return r.achieved(ReasonUnclassified, "answer_unreadable")
	case repeatRead:
		return Verdict{Reason: ReasonTimeout, RetrySame: true, Effect: EffectNone, Rule: r.id + "/answer_unreadable"}
	}
	return r.lost(f, ReasonTimeout, "receipt_lost")
}

// status judges an answer by its status alone.
func (r channelRules) status(f *Fault, status int) Verdict {
	reason := statusReason(status)
	switch {
	case status >= 500, status == 408:
		return r.lost(f, reason, string(reason))
	case status >= 400:
		return r.refused(reason, string(reason))
	case status >= 300:
		// A redirect is not followed; where it led nobody knows.
		return Verdict{Reason: ReasonUnclassified, Permanent: true, Effect: r.effect(EffectUnknown), Rule: r.id + "/redirect"}
	case status >= 200:
		return r.unreadable(f)
	}
	return Verdict{Reason: ReasonUnclassified, Effect: r.effect(EffectUnknown), Rule: r.id + "/unclassified"}
}

func (r channelRules) rateLimited(f *Fault) Verdict {
	v := r.notSent(ReasonRateLimit, "rate_limit")
	v.Floor = rateLimitFloor(f)
	return v
}
