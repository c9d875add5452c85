package policies

import (
	"encoding/json"
	"regexp"
	"strings"
)

// Discord error codes that decide (JSON error codes of the Discord API).
const discordUnknownMessage = "10008"

var (
	discordRateLimitNames = codes("RateLimitError RateLimited")
	unknownMessageText    = regexp.MustCompile(`(?i)\bunknown message\b`)
)

// discordRules finds the row of C2 for an operation. What is not known is
// judged as a write that nobody may repeat blindly.
func discordRules(op Operation) channelRules {
	switch op {
	case OpCreate:
		return channelRules{"C2.1", repeatNonce}
	case OpWebhook, OpSend:
		return channelRules{"C2.2", repeatProved}
	case OpEdit, OpDelete, OpReact, OpPin, OpTyping:
		return channelRules{"C2.3", repeatIdempotent}
	case OpRead, OpPoll:
		return channelRules{"C2.3", repeatRead}
	}
	return channelRules{"C2.4", repeatProved}
}

// JudgeDiscord is C2.1–C2.4: what a failed Discord REST request means and
// whether it may be repeated. The effect is that of this request, but for a
// create with LostEarlier, where it is that of the part: the nonce window is
// closed for good once it has passed with an answer lost.
func JudgeDiscord(f *Fault) Verdict {
	r := discordRules(f.Operation)
	return r.withinNonce(f, r.discord(f))
}

func (r channelRules) discord(f *Fault) Verdict {
	if f.NotStarted {
		return r.transport(f, provesDiscord)
	}
	status := answeredStatus(f, httpStatus)
	switch {
	case status == 429, status == 0 && discordRateLimited(r, f):
		return r.discordRateLimit(f)
	case status == 421, status == 0 && faultText(f, misdirectedText):
		return r.notSent(ReasonMisdirected, "misdirected")
	case status == 0:
		return r.transport(f, provesDiscord)
	case status == 404 && f.LostEarlier && discordMessageGone(f):
		return r.goneAfterLoss(f)
	}
	return r.status(f, status)
}

// discordRateLimit judges a 429. Writes of C2.4 wait for up to the longest
// delay of their envelope; a longer floor ends them, proved not sent.
func (r channelRules) discordRateLimit(f *Fault) Verdict {
	v := r.rateLimited(f)
	if r.id == "C2.4" && v.Floor.Wait > EnvelopeDiscordREST.Max {
		v.RetrySame, v.Rule = false, r.id+"/rate_limit_too_long"
	}
	return v
}

// goneAfterLoss judges "unknown message" after an answer was lost: a delete
// has done its work; a create whose message was deleted meanwhile is left to
// reconciliation.
func (r channelRules) goneAfterLoss(f *Fault) Verdict {
	switch f.Operation {
	case OpDelete:
		return r.achieved(ReasonNotFound, "deleted_already")
	case OpCreate:
		return Verdict{Reason: ReasonNotFound, Effect: EffectUnknown, Rule: r.id + "/created_and_gone"}
	}
	return r.refused(ReasonNotFound, "not_found")
}

func provesDiscord(f *Fault) bool { return discordNotStarted[f.Code] }

func discordRateLimited(r channelRules, f *Fault) bool {
	if anyCause(f, func(f *Fault) bool { return discordRateLimitNames[f.Type] || discordRateLimitNames[f.Code] }) {
		return true
	}
	return r.idempotent() && !f.Started && faultText(f, rateLimitText)
}

// discordMessageGone reports whether the answer says that the message is not
// there (10008), and not that the channel or anything else is not.
func discordMessageGone(f *Fault) bool {
	return anyCause(f, func(f *Fault) bool {
		var body struct {
			Code json.Number `json:"code"`
		}
		if len(f.Body) > 0 && lenientJSON(f.Body, &body) && body.Code != "" {
			return body.Code.String() == discordUnknownMessage
		}
		return f.Code == discordUnknownMessage || matchesText(unknownMessageText, f.Message)
	})
}

// DiscordLimit is what a Discord 429 limits: the whole account, or one bucket.
type DiscordLimit struct {
	Global bool
	// Bucket is the platform's name of the bucket; empty where it gave none.
	Bucket string
}

// DiscordRateLimit says what the 429 in f limits (C2): the body's global flag
// or the X-RateLimit-Global and X-RateLimit-Scope headers speak for the
// account, anything else for the bucket.
func DiscordRateLimit(f *Fault) DiscordLimit {
	var body struct {
		Global bool `json:"global"`
	}
	global := len(f.Body) > 0 && lenientJSON(f.Body, &body) && body.Global
	return DiscordLimit{
		Global: global || strings.EqualFold(f.Header.Get("X-RateLimit-Global"), "true") ||
			strings.EqualFold(f.Header.Get("X-RateLimit-Scope"), "global"),
		Bucket: f.Header.Get("X-RateLimit-Bucket"),
	}
}
