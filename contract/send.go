package contract

// Format is how the text of a send is marked up.
type Format string

// Formats of text.
const (
	FormatPlain    Format = "plain"
	FormatMarkdown Format = "markdown"
	FormatHTML     Format = "html"
)

// OnUnknown says what becomes of a part whose outcome nobody can find out.
type OnUnknown string

// Choices for a part of unknown outcome (C4).
const (
	OnUnknownReview OnUnknown = "review" // stop and ask an operator; the default
	OnUnknownResend OnUnknown = "resend" // send it again, accepting a possible double
	OnUnknownDrop   OnUnknown = "drop"   // take it as lost and go on
)

// SendInput is one logical send (C1). It is stored whole, so a recovered send
// is the same send.
type SendInput struct {
	// Channel is "discord" or "telegram".
	Channel string `json:"channel"`
	// Account names the account in the configuration.
	Account string `json:"account"`
	// To is the platform's id of the destination: a Discord channel id, a
	// Telegram chat id or @name.
	To   string `json:"to"`
	Text string `json:"text"`
	// Format defaults to plain.
	Format Format `json:"format,omitempty"`
	// ReplyTo is the id of the message that the first part answers.
	ReplyTo string `json:"reply_to,omitempty"`
	// Thread is a Discord thread id or a Telegram message_thread_id.
	Thread string `json:"thread,omitempty"`
	// TTL bounds how long the send may take, as a duration; defaults to "24h".
	TTL string `json:"ttl,omitempty"`
	// OnUnknown defaults to review.
	OnUnknown OnUnknown `json:"on_unknown,omitempty"`
}

// SendResult is how a send ended.
type SendResult struct {
	Outcome  Outcome   `json:"outcome"`
	Receipts []Receipt `json:"receipts"`
	Review   *Review   `json:"review,omitempty"`
	Error    *Error    `json:"error,omitempty"`
}

// Receipt is the platform's own id of one delivered part. Parts count from 1.
type Receipt struct {
	Part      int    `json:"part"`
	MessageID string `json:"message_id"`
	// Plain says that the part was sent without its markup, because the
	// platform could not parse it (C2.7).
	Plain bool `json:"plain,omitempty"`
}

// DeliveredPart is what a review shows of a part that was delivered.
type DeliveredPart struct {
	Part      int    `json:"part"`
	MessageID string `json:"message_id"`
	Text      string `json:"text"`
}

// Review is a part whose outcome is unknown after reconciliation, with what
// was delivered before it.
type Review struct {
	Part      int             `json:"part"`
	Text      string          `json:"text"`
	Delivered []DeliveredPart `json:"delivered"`
	// Rest is the text of the part and of all planned after it, which a retry
	// sends.
	Rest string `json:"rest,omitempty"`
	// Key is the key of the review workflow that takes the operator's word.
	Key string `json:"key,omitempty"`
}

// Part is one message of a planned send.
type Part struct {
	// N counts from 1.
	N       int    `json:"n"`
	Text    string `json:"text"`
	Format  Format `json:"format"`
	ReplyTo string `json:"reply_to,omitempty"`
}

// SendState answers the "state" query of a send.
type SendState struct {
	State    string    `json:"state"`
	Part     int       `json:"part"`
	Parts    int       `json:"parts"`
	Receipts []Receipt `json:"receipts"`
	Notice   string    `json:"notice,omitempty"`
}

// ReviewInput starts a review of one part (C1).
type ReviewInput struct {
	SendID string    `json:"send_id"`
	Send   SendInput `json:"send"`
	Review Review    `json:"review"`
	Error  *Error    `json:"error,omitempty"`
}

// ReviewDecision is an operator's word on a review.
type ReviewDecision struct {
	// Receipt is the message id that a settle records.
	Receipt string `json:"receipt,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Key is the key of the new send that a retry starts; made if empty.
	Key string `json:"key,omitempty"`
}

// ReviewResult is how a review ended: settled, retried, abandoned or expired.
type ReviewResult struct {
	Decision string   `json:"decision"`
	Receipt  *Receipt `json:"receipt,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	// RetryID is the workflow id of the send that a retry started.
	RetryID string `json:"retry_id,omitempty"`
}
