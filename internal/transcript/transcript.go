// Package transcript holds the provider-neutral words of a model call: the
// messages of a conversation, the request made of a model, and its answer. It
// knows no dialect; each dialect maps to and from these types.
package transcript

import (
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// Role says who speaks.
type Role string

// Roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of a transcript.
type Message struct {
	Role Role   `json:"role"`
	Text string `json:"text"`
}

// Request is one model attempt: one HTTP request to one candidate. It names
// its auth profile; the worker resolves the secret.
type Request struct {
	// RunID is the workflow's id, AttemptID the attempt's own: the run's id and
	// the number of the attempt, the same after a reset.
	RunID     string `json:"run_id"`
	AttemptID string `json:"attempt_id"`

	Candidate       contract.Candidate `json:"candidate"`
	System          string             `json:"system,omitempty"`
	Messages        []Message          `json:"messages"`
	MaxOutputTokens int64              `json:"max_output_tokens,omitempty"`
	Temperature     *float64           `json:"temperature,omitempty"`
	ReasoningEffort string             `json:"reasoning_effort,omitempty"`
	Streaming       bool               `json:"streaming"`
	// SilenceToken is the plan's.
	SilenceToken string         `json:"silence_token,omitempty"`
	Sink         *contract.Sink `json:"sink,omitempty"`
}

// Answer is what came back. On a failure the same type holds what was complete
// when it happened (M2.10).
type Answer struct {
	Text       string         `json:"text"`
	Served     string         `json:"served,omitempty"`
	ResponseID string         `json:"response_id,omitempty"`
	Finish     string         `json:"finish,omitempty"`
	Usage      contract.Usage `json:"usage"`
}

// Plan is a run's snapshot of its configuration, taken when it starts: what is
// reloaded later does not change it.
type Plan struct {
	Targets []Target `json:"targets"`
	// Policy is the effective policy profile.
	Policy policies.Policy `json:"policy"`

	System          string        `json:"system,omitempty"`
	MaxOutputTokens int64         `json:"max_output_tokens,omitempty"`
	Temperature     *float64      `json:"temperature,omitempty"`
	ReasoningEffort string        `json:"reasoning_effort,omitempty"`
	MaxRetries      *int          `json:"max_retries,omitempty"`
	Deadline        time.Duration `json:"deadline"`
	// SilenceToken is an answer that counts as one although it says nothing
	// (P4.12).
	SilenceToken string `json:"silence_token,omitempty"`
}

// Target is one candidate of the plan with what a decision needs of it.
type Target struct {
	Candidate contract.Candidate `json:"candidate"`
	// NoStream asks for a whole answer instead of a stream.
	NoStream      bool `json:"no_stream,omitempty"`
	ContextWindow int  `json:"context_window,omitempty"`
	// Prices in currency units per million tokens; 0 when not configured.
	InputPrice  float64 `json:"input_price,omitempty"`
	OutputPrice float64 `json:"output_price,omitempty"`
}

// Cost of u at the target's prices.
func (t Target) Cost(u contract.Usage) float64 {
	return (float64(u.InputTokens)*t.InputPrice + float64(u.OutputTokens)*t.OutputPrice) / 1e6
}

// Notice is what a run tells its sink while it waits (M3.12).
type Notice struct {
	RunID     string         `json:"run_id"`
	Candidate string         `json:"candidate"`
	Reason    string         `json:"reason"`
	Attempt   int            `json:"attempt"`
	Of        int            `json:"of"`
	WaitMS    int64          `json:"wait_ms"`
	Text      string         `json:"text"`
	Sink      *contract.Sink `json:"sink"`
}
