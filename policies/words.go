package policies

// Surface is the outside system a request went to. Each has its own table of
// verdicts.
type Surface string

// The surfaces Holdfast speaks to.
const (
	SurfaceModel    Surface = "model"
	SurfaceDiscord  Surface = "discord"
	SurfaceTelegram Surface = "telegram"
	SurfaceGit      Surface = "git"
	SurfaceDelivery Surface = "delivery"
)

// Reason is the class of a failure (P4.13 for the model surface, P4.14 for the
// others).
type Reason string

// Reasons shared by all surfaces.
const (
	ReasonRateLimit    Reason = "rate_limit"
	ReasonServerError  Reason = "server_error"
	ReasonTimeout      Reason = "timeout"
	ReasonAuth         Reason = "auth"
	ReasonPermission   Reason = "permission"
	ReasonFormat       Reason = "format"
	ReasonTLS          Reason = "tls_certificate"
	ReasonWorkerLost   Reason = "worker_lost"
	ReasonUnclassified Reason = "unclassified"
	ReasonCancelled    Reason = "cancelled"
	ReasonDeadline     Reason = "deadline"
)

// Reasons of the model surface.
const (
	ReasonOverloaded        Reason = "overloaded"
	ReasonStreamInterrupted Reason = "stream_interrupted"
	ReasonMalformedStream   Reason = "malformed_stream"
	ReasonDegenerateOutput  Reason = "degenerate_output"
	ReasonEmptyResponse     Reason = "empty_response"
	ReasonOutputLimit       Reason = "output_limit"
	ReasonQuotaExhausted    Reason = "quota_exhausted"
	ReasonBilling           Reason = "billing"
	ReasonAuthPermanent     Reason = "auth_permanent"
	ReasonSessionExpired    Reason = "session_expired"
	ReasonModelNotFound     Reason = "model_not_found"
	ReasonRequestTooLarge   Reason = "request_too_large"
	ReasonContextOverflow   Reason = "context_overflow"
	ReasonRefusal           Reason = "refusal"
)

// Reasons of the channel, Git and delivery surfaces.
const (
	ReasonNotFound    Reason = "not_found"
	ReasonParseError  Reason = "parse_error"
	ReasonMisdirected Reason = "misdirected"
	ReasonConflict    Reason = "conflict"
	ReasonNoSpace     Reason = "no_space"
	ReasonLock        Reason = "lock"
	ReasonKeyConflict Reason = "key_conflict"
)

// Effect says what a request did to the outside.
type Effect string

// Effects. EffectNone is said on the model surface and of reads, where a
// repeat has nothing to double.
const (
	EffectNone    Effect = "none"
	EffectNotSent Effect = "not_sent"
	EffectSent    Effect = "sent"
	EffectUnknown Effect = "unknown"
)

// Phase is how far a request had come when it failed (P4.11).
type Phase string

// Phases in the order in which a request passes through them.
const (
	PhaseConnect    Phase = "connect"
	PhaseHeaders    Phase = "headers"
	PhaseFirstEvent Phase = "first_event"
	PhaseBody       Phase = "body"
)

// Operation names what was asked of the outside. Verdicts of the channel and
// Git surfaces depend on it (C2, G3–G6).
type Operation string

// Operations of the channel surfaces.
const (
	OpCreate  Operation = "create"  // Discord message create with an enforced nonce (C2.1)
	OpSend    Operation = "send"    // new Telegram message, media, poll or sticker (C2.5)
	OpWebhook Operation = "webhook" // Discord webhook, forum thread start, poll by webhook (C2.2)
	OpEdit    Operation = "edit"
	OpDelete  Operation = "delete"
	OpReact   Operation = "react"
	OpPin     Operation = "pin"
	OpTyping  Operation = "typing"
	OpRead    Operation = "read"
	OpWrite   Operation = "write" // any other Discord REST write (C2.4)
	OpPoll    Operation = "poll"  // Telegram getUpdates
)

// Operations of the Git surface.
const (
	OpLsRemote Operation = "ls-remote"
	OpFetch    Operation = "fetch"
	OpClone    Operation = "clone"
	OpPush     Operation = "push"
)
