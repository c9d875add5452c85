package contract

// Workflow type names. A workflow's id is its prefix and the caller's key:
// "send/K", "run/K", "git-fetch/K".
const (
	WorkflowSend        = "Send"
	WorkflowReview      = "Review"
	WorkflowRun         = "Run"
	WorkflowGitLsRemote = "GitLsRemote"
	WorkflowGitFetch    = "GitFetch"
	WorkflowGitClone    = "GitClone"
	WorkflowGitPush     = "GitPush"
	WorkflowGitSync     = "GitSync"
)

// Prefixes of workflow ids.
const (
	PrefixSend        = "send/"
	PrefixReview      = "review/"
	PrefixRun         = "run/"
	PrefixGitLsRemote = "git-ls-remote/"
	PrefixGitFetch    = "git-fetch/"
	PrefixGitClone    = "git-clone/"
	PrefixGitPush     = "git-push/"
	PrefixGitSync     = "git-sync/"
)

// Activity type names: the outside system, a dot, and the one request made.
const (
	ActivityDiscordCreateMessage = "discord.create_message"
	ActivityDiscordListMessages  = "discord.list_messages"
	ActivityDiscordCurrentUser   = "discord.current_user"
	ActivityTelegramSendMessage  = "telegram.send_message"
	ActivityModelAttempt         = "model.attempt"
	ActivityModelPlan            = "model.plan"
	ActivityModelNotice          = "model.notice"
	ActivityGitLsRemote          = "git.ls_remote"
	ActivityGitFetch             = "git.fetch"
	ActivityGitClone             = "git.clone"
	ActivityGitPushIntent        = "git.push_intent"
	ActivityGitPush              = "git.push"
	ActivityGitLocate            = "git.locate"
	ActivityGitFastForward       = "git.fast_forward"
)

// Task queues. Work runs, workflow and activities alike, on the queue of the
// outside it touches, so that an activity can start eagerly on the worker that
// scheduled it; what touches nothing outside runs on QueueWorkflows.
const (
	QueueWorkflows = "holdfast-workflows"
	QueueDiscord   = "holdfast-discord"
	QueueTelegram  = "holdfast-telegram"
	QueueModel     = "holdfast-model"
	QueueGit       = "holdfast-git"
)

// QueueGitHost is the task queue of the managed checkouts on one host's disk
// (G11). Work in a checkout of a shared root, and work that needs no checkout,
// runs on QueueGit.
func QueueGitHost(host string) string {
	if host == "" {
		return QueueGit
	}
	return QueueGit + "-" + host
}

// Queries that workflows answer.
const (
	QueryState    = "state"
	QueryAttempts = "attempts"
	QueryParts    = "parts"
)

// Updates that a review takes from an operator (C1).
const (
	UpdateSettle  = "settle"
	UpdateRetry   = "retry"
	UpdateAbandon = "abandon"
)

// Search attributes (I4), all of type Keyword.
const (
	AttributeKind        = "HoldfastKind"
	AttributeChannel     = "HoldfastChannel"
	AttributeAccount     = "HoldfastAccount"
	AttributeDestination = "HoldfastDestination"
	AttributeProvider    = "HoldfastProvider"
	AttributeModel       = "HoldfastModel"
	AttributeState       = "HoldfastState"
	AttributeOutcome     = "HoldfastOutcome"
	AttributeReason      = "HoldfastReason"
)

// Values of AttributeState. A send that holds a long floor is waiting, and a
// review needs a decision for as long as it is open.
const (
	StateRunning     = "running"
	StateWaiting     = "waiting"
	StateNeedsReview = "needs_review"
	StateDone        = "done"
)

// SearchAttributes lists every search attribute that must be registered.
func SearchAttributes() []string {
	return []string{
		AttributeKind, AttributeChannel, AttributeAccount, AttributeDestination,
		AttributeProvider, AttributeModel, AttributeState, AttributeOutcome, AttributeReason,
	}
}

// MemoPayloadHash is the memo field that holds the hash of a workflow's input.
// A second start under the same key is answered with the first result only if
// the hash is the same; otherwise it is refused.
const MemoPayloadHash = "holdfast_payload_hash"
