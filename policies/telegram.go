package policies

import (
	"encoding/json"
	"regexp"
	"strings"
)

var (
	telegramParseText = regexp.MustCompile(`(?i)can'?t parse entities|\bRICH_MESSAGE_[A-Z0-9_]+`)

	telegramUnmodifiedText = regexp.MustCompile(`(?i)message is not modified|\bMESSAGE_NOT_MODIFIED\b`)
	telegramDeletedText    = regexp.MustCompile(`(?i)message to delete not found`)
	telegramTargetText     = regexp.MustCompile(`(?i)message to (?:edit|delete|pin|unpin|react|be replied) not found|message (?:can'?t|cannot|can not) be edited` +
		`|\bMESSAGE_ID_INVALID\b`)
	telegramAbsentText = regexp.MustCompile(`(?i)(?:chat|user|channel|message thread|topic) not found|\b(?:PEER|CHAT|USER|CHANNEL)_ID_INVALID\b|message to (?:reply|forward|copy) not found` +
		`|message to be replied not found`)
	telegramDeniedText = regexp.MustCompile(`(?i)not enough rights|have no rights|need administrator rights|\bCHAT_(?:WRITE|SEND_[A-Z]+)_FORBIDDEN\b` +
		`|\bCHAT_ADMIN_REQUIRED\b|message can'?t be deleted`)
)

// telegramRules finds the row of C2 for an operation. What is not known is
// judged as a send.
func telegramRules(op Operation) channelRules {
	switch op {
	case OpEdit, OpDelete, OpReact, OpPin, OpTyping:
		return channelRules{"C2.6", repeatIdempotent}
	case OpRead, OpPoll:
		return channelRules{"C2.6", repeatRead}
	}
	return channelRules{"C2.5", repeatProved}
}

// telegramAnswer is the Bot API's answer to a failed call.
type telegramAnswer struct {
	ErrorCode   int    `json:"error_code"`
	Description string `json:"description"`
	Parameters  struct {
		MigrateToChatID json.Number     `json:"migrate_to_chat_id"`
		RetryAfter      json.RawMessage `json:"retry_after"`
	} `json:"parameters"`
}

func readTelegramAnswer(f *Fault) (answer telegramAnswer) {
	if len(f.Body) > 0 {
		lenientJSON(f.Body, &answer)
	}
	return answer
}

// telegramStatus is the Bot API's own error_code, else the HTTP status: a
// proxy may have changed the latter.
func telegramStatus(f *Fault) int {
	if code := plausibleStatus(readTelegramAnswer(f).ErrorCode); code >= 400 {
		return code
	}
	if status := httpStatus(f); status != 0 {
		return status
	}
	if code, ok := ParseStatus(f.Code); ok && code >= 400 {
		return code
	}
	return 0
}

// JudgeTelegram is C2.5–C2.7: what a failed Bot API call means and whether it
// may be repeated.
func JudgeTelegram(f *Fault) Verdict {
	r := telegramRules(f.Operation)
	if f.NotStarted {
		return r.transport(f, provesTelegram)
	}
	status := answeredStatus(f, telegramStatus)
	switch {
	case telegramRateLimited(r, f, status):
		return r.rateLimited(f)
	case status == 421, status == 0 && faultText(f, misdirectedText):
		return r.notSent(ReasonMisdirected, "misdirected")
	case status == 0 || status >= 400 && status < 500:
		if v, ok := r.telegramText(f, status); ok {
			return v
		}
	}
	if status == 0 {
		return r.transport(f, provesTelegram)
	}
	return r.status(f, status)
}

// telegramText judges what the platform said in words. It describes most
// refusals as 400 and tells them apart in the description only.
func (r channelRules) telegramText(f *Fault, status int) (Verdict, bool) {
	says := func(text *regexp.Regexp) bool { return telegramSays(f, text) }
	_, migrated := TelegramMigration(f)
	switch {
	case says(telegramParseText):
		return Verdict{Reason: ReasonParseError, Effect: r.effect(EffectNotSent), Rule: "C2.7/parse_error"}, true
	case migrated:
		return Verdict{Reason: ReasonMisdirected, Effect: r.effect(EffectNotSent), Rule: "C2/migrated"}, true
	case r.idempotent() && says(telegramUnmodifiedText):
		return r.achieved(ReasonUnclassified, "not_modified"), true
	case f.Operation == OpDelete && f.LostEarlier && says(telegramDeletedText):
		return r.achieved(ReasonNotFound, "deleted_already"), true
	case r.idempotent() && says(telegramTargetText):
		return r.refused(ReasonNotFound, "target_gone"), true
	case status != 400:
		return Verdict{}, false
	case says(telegramAbsentText):
		return r.refused(ReasonNotFound, "not_found"), true
	case says(telegramDeniedText):
		return r.refused(ReasonPermission, "permission"), true
	}
	return Verdict{}, false
}

// telegramSays matches the descriptions of the answers and the texts of the
// errors of f.
func telegramSays(f *Fault, text *regexp.Regexp) bool {
	described := func(f *Fault) bool { return matchesText(text, readTelegramAnswer(f).Description) }
	return faultText(f, text) || anyCause(f, described)
}

// telegramRateLimited reports flood control: error_code 429, or a retry_after
// with words of 429 beside it. For what may be repeated anyway the words are
// enough.
func telegramRateLimited(r channelRules, f *Fault, status int) bool {
	if status != 0 {
		return status == 429
	}
	if f.Started || !telegramSays(f, rateLimitText) {
		return false
	}
	return r.idempotent() || ChannelFloor(f).Asked()
}

func provesTelegram(f *Fault) bool { return telegramNotStarted[f.Code] }

// TelegramMigration returns the chat id that a group moved to, where the
// answer says that it did. The send is retargeted once and the id remembered
// (C2).
func TelegramMigration(f *Fault) (chatID string, ok bool) {
	anyCause(f, func(f *Fault) bool {
		chatID = readTelegramAnswer(f).Parameters.MigrateToChatID.String()
		return chatID != ""
	})
	if !allDigits(strings.TrimPrefix(chatID, "-")) {
		return "", false
	}
	return chatID, true
}
