package policies

import "time"

// Policy is one policy profile: a named set of numbers that drives the whole
// engine. The embedded ones live in policies/profiles.
type Policy struct {
	Name string

	// RateLimit and Transient are the budgets of one outage (P1.6, P1.7).
	RateLimit Budget
	Transient Budget

	// SuccessResets says what a completed response resets: "all" (count,
	// backoff and window) or "window" (the count is bounded over the whole run).
	SuccessResets string
	// MaxRetryDelay is the longest rate-limit floor that is waited for while a
	// replay-safe attempt has somewhere else to go; 0 switches the cap off (P5).
	MaxRetryDelay time.Duration
	// FloorAboveCap is "rotate" (never wait) or "wait" (wait when there is no
	// fallback).
	FloorAboveCap string
	// SwitchAfter is how many retries one candidate gets before the next one is
	// tried while another is ready; 0 means its whole budget (M3.6).
	SwitchAfter int
	// SwitchWait is the longest wait that still counts as one of the SwitchAfter
	// short retries: while another candidate is ready, a longer one moves on at
	// once; 0 means any wait counts (fast-failover).
	SwitchWait time.Duration
	// GuardAttempts bounds the attempts since the last completed response
	// (M3.1).
	GuardAttempts int
	// NonStreamingAfter is how many stream failures in a row make the next
	// attempt non-streaming; 0 means never (M3.7).
	NonStreamingAfter int
	// MoveAfterOverloads is how many overloads in a row move on to the next
	// model; 0 means never (M3.7).
	MoveAfterOverloads int

	// Rotations is how many auth-profile rotations rate limits and overloads get
	// each per model call before the next model, where one is configured; 0
	// means that every auth profile is walked (M3.6). Where it is set, an
	// overload rotates before it goes to a sibling.
	Rotations int
	// SpentTimeout is what a timeout at the end of the budget does: "failover"
	// or "surface" (openclaw-classic).
	SpentTimeout string
	// RefusalFailover is the operator's consent to try a refused request on
	// another candidate, same vendor first (P4.13).
	RefusalFailover bool

	// Simple, where set, replaces the budgets above by the small per-call
	// policy of the "simple" profiles.
	Simple *Simple

	Health    HealthPolicy
	ToolRetry ToolRetry
}

// Budget is an envelope for model calls: attempts count the first request.
type Budget struct {
	Attempts int
	Window   time.Duration // 0: none
	Min      time.Duration
	Max      time.Duration
	// JitterLow and JitterHigh bound the factor a delay is multiplied by.
	JitterLow, JitterHigh float64
}

// Simple is the per-call policy of the "simple" profiles.
type Simple struct {
	Retries    int
	Initial    time.Duration
	Multiplier float64
	Max        time.Duration
	Retryable  []Reason
	// RespectRetryAfter lets a floor of at most RetryAfterCap be waited for.
	// Without it a failure that asks for more than the own delay is not
	// retried on the same candidate: a floor is never undercut (P2).
	RespectRetryAfter bool
	RetryAfterCap     time.Duration
	// FailoverPermanent lets permanent errors fail over when a fallback is
	// configured.
	FailoverPermanent bool
}

// HealthPolicy says how long a blamed auth profile or model is left alone (P6).
type HealthPolicy struct {
	// Transient is the ladder of cooldowns after rate limits and overloads;
	// empty means that only provider timing cools down.
	Transient  []time.Duration
	Auth       []time.Duration
	Quota      time.Duration
	ModelGone  time.Duration
	BillingMin time.Duration
	BillingMax time.Duration
	BlockMin   time.Duration // auth_permanent, permission
	BlockMax   time.Duration
	ProbeEvery time.Duration
}

// ToolRetry is P8.
type ToolRetry struct {
	Enabled           bool
	MaxRetries        int
	RetryableTools    []string
	NonRetryableTools []string
}
