package contract

import "time"

// RunInput is one turn of an agent. Fields left empty come from the agent, and
// what the agent leaves empty from the policy profile.
type RunInput struct {
	Agent  string `json:"agent,omitempty"`
	Prompt string `json:"prompt"`
	// Model is the requested "provider/model"; empty means the agent's.
	Model string `json:"model,omitempty"`
	// Policy names a policy profile; empty means the agent's.
	Policy string `json:"policy,omitempty"`
	// MaxRetries overrides the number of retries; null means the policy's.
	MaxRetries *int `json:"max_retries,omitempty"`
	// Deadline bounds the run, as a duration; defaults to "30m".
	Deadline string `json:"deadline,omitempty"`
	// Sink is where live text goes.
	Sink *Sink `json:"sink,omitempty"`
}

// Sink receives the live text of a run (M6). Kind is "none", "log" or "http".
type Sink struct {
	Kind string `json:"kind"`
	// URL of an http sink. The operator's configuration says which are allowed;
	// loopback always is.
	URL string `json:"url,omitempty"`
}

// Candidate is what could serve a model call.
type Candidate struct {
	Provider    string `json:"provider"`
	Model       string `json:"model"`
	AuthProfile string `json:"auth_profile,omitempty"`
}

// String is "provider/model".
func (c Candidate) String() string { return c.Provider + "/" + c.Model }

// Usage counts the tokens of one attempt or of a run.
type Usage struct {
	InputTokens     int64   `json:"input_tokens"`
	OutputTokens    int64   `json:"output_tokens"`
	CachedTokens    int64   `json:"cached_tokens,omitempty"`
	ReasoningTokens int64   `json:"reasoning_tokens,omitempty"`
	Cost            float64 `json:"cost,omitempty"`
}

// Add adds o to u.
func (u *Usage) Add(o Usage) {
	u.InputTokens += o.InputTokens
	u.OutputTokens += o.OutputTokens
	u.CachedTokens += o.CachedTokens
	u.ReasoningTokens += o.ReasoningTokens
	u.Cost += o.Cost
}

// Attempt is the record of one model request, good or bad (M3.15).
type Attempt struct {
	ID         string    `json:"id"`
	Candidate  Candidate `json:"candidate"`
	Streaming  bool      `json:"streaming"`
	Served     string    `json:"served,omitempty"`
	ResponseID string    `json:"response_id,omitempty"`
	Finish     string    `json:"finish,omitempty"`
	Phase      string    `json:"phase,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Rule       string    `json:"rule,omitempty"`
	Status     int       `json:"status,omitempty"`
	FloorMS    *int64    `json:"floor_ms,omitempty"`
	// DelayMS is the wait before this attempt.
	DelayMS int64     `json:"delay_ms"`
	Usage   Usage     `json:"usage"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
}

// RunResult is how a run ended.
type RunResult struct {
	Outcome   Outcome   `json:"outcome"`
	Text      string    `json:"text"`
	Requested string    `json:"requested"`
	Served    string    `json:"served,omitempty"`
	Usage     Usage     `json:"usage"`
	Attempts  []Attempt `json:"attempts"`
	Error     *Error    `json:"error,omitempty"`
}

// RunState answers the "state" query of a run.
type RunState struct {
	State     string `json:"state"`
	Candidate string `json:"candidate,omitempty"`
	Attempt   int    `json:"attempt"`
	// Notice is the transient notice shown while waiting; empty otherwise.
	Notice string `json:"notice,omitempty"`
}
