package workflows

import (
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

const (
	// requestLimit is the start-to-close limit of a text request: its own 30 s
	// and a little for the report (C6).
	requestLimit = 35 * time.Second
	// heartbeatTimeout finds a lost worker (C6).
	heartbeatTimeout = 15 * time.Second
)

// route is what a send needs to know of its channel.
type route struct {
	channel  string
	activity string
	envelope policies.Envelope
	limit    policies.ChunkLimit
	// keyed: the platform takes a key that makes a repeat harmless for a while
	// (C2.1).
	keyed bool
	// readable: the platform can be asked what was sent (C4).
	readable bool
}

// routeOf checks a send at planning, before anything leaves.
func routeOf(in contract.SendInput) (route, *contract.Error) {
	if err := in.Validate(); err != nil {
		return route{}, err
	}
	switch in.Channel {
	case "discord":
		return route{
			channel: in.Channel, activity: contract.ActivityDiscordCreateMessage,
			envelope: policies.EnvelopeDiscordSend, limit: plain(policies.ChunkDiscord, in.Format), keyed: true, readable: true,
		}, nil
	case "telegram":
		return route{
			channel: in.Channel, activity: contract.ActivityTelegramSendMessage,
			envelope: policies.EnvelopeChannel, limit: plain(policies.ChunkTelegram, in.Format),
		}, nil
	}
	return route{}, &contract.Error{Reason: string(policies.ReasonFormat), Rule: "C1/plan", Message: "the channel has no route"}
}

// queueOf is the task queue of the outside that a channel's sends touch.
func queueOf(channel string) string {
	if channel == "telegram" {
		return contract.QueueTelegram
	}
	return contract.QueueDiscord
}

// sendAttributes are the search attributes of a send and of what it leaves
// behind (I4).
func sendAttributes(kind, state string, in contract.SendInput) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(keywords(
		contract.AttributeKind, strings.ToLower(kind),
		contract.AttributeChannel, in.Channel,
		contract.AttributeAccount, in.Account,
		contract.AttributeDestination, in.To,
		contract.AttributeState, state,
	)...)
}

// recordEnd makes the end of a workflow searchable, with more attributes as
// name and value in turn.
func recordEnd(ctx workflow.Context, outcome contract.Outcome, err *contract.Error, more ...string) error {
	reason := ""
	if err != nil {
		reason = err.Reason
	}
	return workflow.UpsertTypedSearchAttributes(ctx, keywords(append(more,
		contract.AttributeState, contract.StateDone,
		contract.AttributeOutcome, string(outcome),
		contract.AttributeReason, reason,
	)...)...)
}

// keywords sets attributes given as name and value in turn, leaving out empty
// values.
func keywords(pairs ...string) (updates []temporal.SearchAttributeUpdate) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(pairs[i]).ValueSet(pairs[i+1]))
		}
	}
	return updates
}

// keyOf is the caller's key in a workflow id.
func keyOf(id, prefix string) string { return strings.TrimPrefix(id, prefix) }

// plain tells the cutter when a text has no markup. Discord renders Markdown
// whatever the format says, so there only Telegram's plain text is plain.
func plain(limit policies.ChunkLimit, format contract.Format) policies.ChunkLimit {
	limit.Plain = limit.UTF16 && (format == "" || format == contract.FormatPlain)
	return limit
}
