package contract

// Outcome is how a piece of work ended.
type Outcome string

// Outcomes of all kinds of work (I1).
const (
	OutcomeDelivered          Outcome = "delivered"
	OutcomeDeliveredElsewhere Outcome = "delivered_elsewhere"
	OutcomeCompleted          Outcome = "completed"
	OutcomeListed             Outcome = "listed"
	OutcomeFetched            Outcome = "fetched"
	OutcomeUpToDate           Outcome = "up_to_date"
	OutcomeCloned             Outcome = "cloned"
	OutcomeSynced             Outcome = "synced"
	OutcomeLanded             Outcome = "landed"
	OutcomeStarted            Outcome = "started"

	OutcomeRejected Outcome = "rejected"
	OutcomeNotSent  Outcome = "not_sent"
	OutcomeExpired  Outcome = "expired"
	OutcomeFailed   Outcome = "failed"

	OutcomeNotLanded Outcome = "not_landed"
	OutcomeConflict  Outcome = "conflict"
	OutcomeDiverged  Outcome = "diverged"

	OutcomeNeedsReview Outcome = "needs_review"
	OutcomeCancelled   Outcome = "cancelled"
)

// Exit statuses of the starter (I1).
const (
	ExitOK          = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNeedsReview = 3
	ExitUnreachable = 4
	ExitCancelled   = 130
)

// ExitStatus maps an outcome to the starter's exit status.
func (o Outcome) ExitStatus() int {
	switch o {
	case OutcomeDelivered, OutcomeDeliveredElsewhere, OutcomeCompleted, OutcomeListed,
		OutcomeFetched, OutcomeUpToDate, OutcomeCloned, OutcomeSynced, OutcomeLanded, OutcomeStarted:
		return ExitOK
	case OutcomeNeedsReview:
		return ExitNeedsReview
	case OutcomeCancelled:
		return ExitCancelled
	}
	return ExitFailed
}

// Error says why work did not reach its good outcome. It holds no secret, no
// header and no raw body of the other side.
type Error struct {
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	Rule     string `json:"rule,omitempty"`
	Attempts int    `json:"attempts"`
	// ResetAt is the time (RFC 3339) at which the other side said it would
	// serve again, where it said so.
	ResetAt string `json:"reset_at,omitempty"`
}

func (e *Error) Error() string { return e.Reason + ": " + e.Message }

// Failure is the verdict on one failed attempt as it travels from an activity
// to its workflow, in the details of an ApplicationError. It is far below the
// server's 4 KiB limit for stored failures.
type Failure struct {
	Surface   string `json:"surface"`
	Reason    string `json:"reason"`
	Rule      string `json:"rule"`
	RetrySame bool   `json:"retry_same,omitempty"`
	Failover  bool   `json:"failover,omitempty"`
	Permanent bool   `json:"permanent,omitempty"`
	Effect    string `json:"effect,omitempty"`
	Phase     string `json:"phase,omitempty"`
	Status    int    `json:"status,omitempty"`
	// FloorMS is the least wait the other side asked for, in milliseconds; null
	// when it asked for none.
	FloorMS       *int64 `json:"floor_ms,omitempty"`
	FloorInfinite bool   `json:"floor_infinite,omitempty"`
	FloorSource   string `json:"floor_source,omitempty"`
	// Message is our own summary, or the provider's guidance, shortened.
	Message string `json:"message,omitempty"`
	// Attempts is how many requests this activity has made, the failed one
	// included.
	Attempts int `json:"attempts,omitempty"`
	// DelayMS is the delay chosen for the next attempt when a workflow timer
	// has to wait it out.
	DelayMS int64 `json:"delay_ms,omitempty"`
	// MigrateTo is the chat id that Telegram says a group has moved to.
	MigrateTo string `json:"migrate_to,omitempty"`
	// ExitCode is that of the git program, where one ran (G8).
	ExitCode int `json:"exit_code,omitempty"`
}
