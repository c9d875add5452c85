package policies

import (
	"net/http"
	"time"
)

// MaxBody is how much of an error body is looked at (P4): the first 64 KiB.
const MaxBody = 64 << 10

// MaxAnswer is how much of a channel's successful answer is read: 4 MiB. A
// longer one counts as an answer that could not be read.
const MaxAnswer = 4 << 20

// Fault holds the facts of one failed request: what came back, what did not,
// and how far it got. The zero value of a field means "not known".
//
// Header and Body belong to the response of this request alone; a transport
// error of a later attempt does not inherit them (P3).
type Fault struct {
	Surface   Surface
	Provider  string // model surface: whose words these are, e.g. "openai"
	Operation Operation

	Status int         // HTTP status; 0 when no answer came
	Header http.Header // canonical keys
	Body   []byte      // error body, at most MaxBody; nil when it could not be read

	Message string   // text of the error where there is no body, or beside it
	Code    string   // typed code of the body, or a transport code such as "ECONNRESET"
	Type    string   // typed error type of the body
	Details []string // further texts of the same failure (nested messages)

	// Syscall is the call that failed, where a code comes with one ("connect",
	// "getaddrinfo"). For errors of foreign clients it is part of the proof
	// that nothing was sent (D12).
	Syscall string

	Phase Phase

	// NotStarted is the transport's own proof that no connection was ever had,
	// so that no byte of the request can have left (C2). Started is the
	// opposite fact; both false means the transport was not ours.
	NotStarted bool
	Started    bool

	// SinceFirst is the time from the first attempt of this part to this
	// failure. It bounds the nonce window of C2.1.
	SinceFirst time.Duration

	// LostEarlier says that an earlier attempt of the same call lost its
	// answer; a delete that finds nothing is then success (C2.3).
	LostEarlier bool

	// Causes are the errors beneath this one. Every leaf must prove a claim for
	// the whole to prove it.
	Causes []Fault

	// Git surface: the command line (argv[0] included), what it printed to
	// standard error and how it ended.
	Argv        []string
	Stderr      string
	ExitCode    *int
	Termination string // "", "signal", "timeout" or "output_limit"

	Now time.Time // the moment of the failure; dates are read against it
}

// FloorSource says where a floor came from.
type FloorSource string

// Sources of floors (P3).
const (
	FloorRetryAfter   FloorSource = "retry-after"
	FloorRetryAfterMS FloorSource = "retry-after-ms"
	FloorRetryInfo    FloorSource = "retry_info"
	FloorText         FloorSource = "text"
	FloorBucket       FloorSource = "bucket"
	FloorBody         FloorSource = "body"
	FloorDefault      FloorSource = "default"
)

// Floor is the least wait the other side asked for. The zero value is "none
// asked". A floor of zero that was asked for has a Source.
type Floor struct {
	Wait     time.Duration
	Infinite bool // asked for longer than can be represented
	Source   FloorSource
}

// Asked reports whether the other side asked for a wait at all.
func (f Floor) Asked() bool { return f.Source != "" }

// Verdict is what a Fault means.
type Verdict struct {
	Reason    Reason
	RetrySame bool   // the same request may be repeated on the same target, within its budget
	Failover  bool   // another candidate may help
	Permanent bool   // repeating can never help
	Effect    Effect // what the request did to the outside
	Floor     Floor
	Rule      string // id of the rule that decided, e.g. "P4.1/rate_limit"
	Phase     Phase  // how far the request had come, where the rule is about the transport (P4.11)

	// Success says that the failure is the outcome that was wanted: an edit
	// that changes nothing, a delete of what a lost answer already deleted.
	Success bool
}

// Judge says what a fault means, by the rules of its surface. It is total: a
// surface it does not know yields ReasonUnclassified, never a panic.
func Judge(f *Fault) Verdict {
	switch f.Surface {
	case SurfaceModel:
		return JudgeModel(f)
	case SurfaceDiscord:
		return JudgeDiscord(f)
	case SurfaceTelegram:
		return JudgeTelegram(f)
	case SurfaceGit:
		return JudgeGit(f)
	case SurfaceDelivery:
		return JudgeDelivery(f)
	}
	return Verdict{Reason: ReasonUnclassified, Permanent: true, Effect: EffectUnknown, Rule: "P4.14/unknown_surface"}
}
