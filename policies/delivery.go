package policies

import "regexp"

var (
	deliveryAbsentText = regexp.MustCompile(`(?i)no conversation reference|\b(?:chat|user|channel|recipient) (?:was )?not found|\bunknown (?:channel|user|chat)\b` +
		`|chat_id is empty|empty destination|recipient is not (?:a )?valid|recipient not valid|invalid recipient|ambiguous.{0,64}\brecipient`)
	deliveryDeniedText = regexp.MustCompile(`(?i)\bbot\b.{0,64}\bnot\b.{0,32}\bmember|blocked by the user|\bbot was kicked|\bwas kicked from|\buser\b.{0,256}\bnot in (?:the )?room`)

	adapterNotReadyText = regexp.MustCompile(`(?i)outbound not configured for channel|adapter.{0,64}not (?:ready|configured|available|connected)`)
)

// JudgeDelivery judges the failure of a producer or adapter that sends by
// itself: permanent refusals (D10), proof that nothing left (D12), and
// otherwise an unknown outcome that is reconciled before any replay.
func JudgeDelivery(f *Fault) Verdict {
	r := channelRules{"D12", repeatProved}
	status := answeredStatus(f, telegramStatus)
	switch {
	case f.NotStarted:
		return r.transport(f, provesDelivery)
	case status == 429:
		return r.rateLimited(f)
	case status == 421:
		return r.notSent(ReasonMisdirected, "misdirected")
	case status >= 500, status == 408:
		return r.status(f, status)
	case telegramSays(f, deliveryAbsentText):
		return permanentDelivery(ReasonNotFound, "not_found")
	case telegramSays(f, deliveryDeniedText):
		return permanentDelivery(ReasonPermission, "permission")
	case status >= 400:
		reason := statusReason(status)
		return permanentDelivery(reason, string(reason))
	case status != 0:
		return r.status(f, status)
	case !f.Started && telegramSays(f, adapterNotReadyText):
		return Verdict{Reason: ReasonUnclassified, RetrySame: true, Effect: EffectNotSent, Rule: "D10/adapter_not_ready"}
	}
	return r.transport(f, provesDelivery)
}

func permanentDelivery(reason Reason, rule string) Verdict {
	return channelRules{"D10", repeatProved}.refused(reason, rule)
}

// provesDelivery is stricter than the channels: a foreign code proves nothing
// without the call that failed.
func provesDelivery(f *Fault) bool {
	if deliveryProof[f.Code] {
		return true
	}
	return deliveryNotStarted[f.Code] && (f.Syscall == "connect" || f.Syscall == "getaddrinfo")
}
