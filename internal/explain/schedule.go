package explain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// Scenario is one model call whose attempts fail as scripted. An attempt that
// no failure is scripted for completes.
type Scenario struct {
	Policy   policies.Policy
	Targets  []policies.Target // the first is the requested one
	Failures []Failure
	// Took is how long every attempt takes.
	Took time.Duration
	// Deadline bounds the run from its start; 0 means none.
	Deadline   time.Duration
	MaxRetries *int
	// Unsafe says that something was done that a repeat from the start could
	// double: the attempts are not replay-safe.
	Unsafe bool
	// Seed makes the jitter; the same seed gives the same schedule.
	Seed uint64
}

// Failure scripts what some attempts end with.
type Failure struct {
	Candidate string // "provider/model"; empty: of any candidate
	Reason    policies.Reason
	Floor     policies.Floor
	Times     int // 0: for ever
}

// Schedule is what recovery makes of a scenario. Times are milliseconds since
// the start of the call.
type Schedule struct {
	Policy   string             `json:"policy"`
	Seed     uint64             `json:"seed"`
	Attempts []ScheduledAttempt `json:"attempts"`
	Outcome  string             `json:"outcome"` // completed or failed
	Reason   policies.Reason    `json:"reason,omitempty"`
	Rule     string             `json:"rule"` // that ended it
	TotalMS  int64              `json:"total_ms"`
	// ResetMS is when the other side said it would serve again.
	ResetMS    *int64 `json:"reset_ms,omitempty"`
	DeadlineMS *int64 `json:"deadline_ms,omitempty"`
	Summary    string `json:"summary,omitempty"`
}

// ScheduledAttempt is one request of a Schedule. Rule is what sent it; Reason
// and the floor are what it ended with.
type ScheduledAttempt struct {
	Candidate string `json:"candidate"`
	Attempt   int    `json:"attempt"`
	Of        int    `json:"of"`
	WaitMS    int64  `json:"wait_ms"`
	StartedMS int64  `json:"started_ms"`
	EndedMS   int64  `json:"ended_ms"`
	Streaming bool   `json:"streaming"`
	Failover  bool   `json:"failover,omitempty"`
	Rule      string `json:"rule"`

	Reason        policies.Reason `json:"reason,omitempty"`
	FloorMS       *int64          `json:"floor_ms,omitempty"`
	FloorInfinite bool            `json:"floor_infinite,omitempty"`
}

// epoch is the start of every scenario; only differences are shown.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Plan runs the scenario through recovery. The error says what the scenario
// lacks.
func Plan(s Scenario) (Schedule, error) {
	if len(s.Targets) == 0 {
		return Schedule{}, errors.New("a scenario needs a candidate")
	}
	out := Schedule{Policy: s.Policy.Name, Seed: s.Seed, Attempts: []ScheduledAttempt{}}
	options := policies.RecoveryOptions{
		Policy: s.Policy, Targets: s.Targets, MaxRetries: s.MaxRetries, Started: epoch,
	}
	if s.Deadline > 0 {
		options.Deadline = epoch.Add(s.Deadline)
		out.DeadlineMS = since(options.Deadline)
	}
	r := policies.NewRecovery(options)
	random := rand.New(rand.NewPCG(s.Seed, s.Seed))
	script := slices.Clone(s.Failures)
	now := epoch
	event := policies.Event{Kind: policies.EventStart, Now: now, ReplaySafe: !s.Unsafe}
	for {
		d := r.Next(event)
		if d.Action == policies.ActionStop {
			out.end(&r, event, d, now)
			return out, nil
		}
		event = s.attempt(&out, d, now, &script)
		event.Random = random.Float64()
		now = event.Now
	}
}

// attempt plays the request that d decided for.
func (s *Scenario) attempt(out *Schedule, d policies.Decision, now time.Time, script *[]Failure) policies.Event {
	target := s.Targets[d.Target]
	started := now.Add(d.Delay)
	event := policies.Event{
		Kind: policies.EventSucceeded, Started: started, Ended: started.Add(s.Took), Now: started.Add(s.Took),
		ReplaySafe: !s.Unsafe, Streaming: d.Streaming, Phase: policies.PhaseBody,
	}
	a := ScheduledAttempt{
		Candidate: label(target), Attempt: d.Attempt, Of: d.Of, WaitMS: d.Delay.Milliseconds(),
		StartedMS: *since(started), EndedMS: *since(event.Ended), Streaming: d.Streaming, Failover: d.Failover, Rule: d.Rule,
	}
	if f, ok := take(script, target); ok {
		event.Kind = policies.EventFailed
		event.Verdict = policies.Verdict{Reason: f.Reason, Floor: f.Floor}
		a.Reason, a.FloorInfinite = f.Reason, f.Floor.Infinite
		if f.Floor.Asked() && !f.Floor.Infinite {
			ms := wholeMS(f.Floor.Wait)
			a.FloorMS = &ms
		}
	}
	out.Attempts = append(out.Attempts, a)
	return event
}

// take uses up the first scripted failure of target.
func take(script *[]Failure, target policies.Target) (Failure, bool) {
	for i, f := range *script {
		if f.Candidate != "" && f.Candidate != target.String() && f.Candidate != label(target) {
			continue
		}
		switch f.Times {
		case 0:
		case 1:
			*script = slices.Delete(slices.Clone(*script), i, i+1)
		default:
			(*script)[i].Times--
		}
		return f, true
	}
	return Failure{}, false
}

func (out *Schedule) end(r *policies.Recovery, last policies.Event, d policies.Decision, now time.Time) {
	out.Outcome, out.Rule, out.TotalMS = "completed", d.Rule, *since(now)
	if last.Kind == policies.EventSucceeded {
		return
	}
	out.Outcome, out.Reason = "failed", last.Verdict.Reason
	out.Summary = r.Summary(d, now)
	if !d.ResetAt.IsZero() {
		out.ResetMS = since(d.ResetAt)
		// The calendar of a scenario is made up; only the distance means anything.
		shown := d
		shown.ResetAt = time.Time{}
		out.Summary = fmt.Sprintf("%s; next reset in %s", r.Summary(shown, now), clock(d.ResetAt.Sub(now).Milliseconds()))
	}
}

func since(t time.Time) *int64 {
	ms := t.Sub(epoch).Milliseconds()
	return &ms
}

// label is "provider/model", with "#auth-profile" where there is one.
func label(t policies.Target) string {
	if t.AuthProfile == "" {
		return t.String()
	}
	return t.String() + "#" + t.AuthProfile
}

// ParseTarget reads "provider/model" or "provider/model#auth-profile".
func ParseTarget(s string) (policies.Target, error) {
	name, auth, _ := strings.Cut(s, "#")
	provider, model, ok := strings.Cut(name, "/")
	if !ok || provider == "" || model == "" {
		return policies.Target{}, fmt.Errorf("candidate %q: want PROVIDER/MODEL or PROVIDER/MODEL#AUTH-PROFILE", s)
	}
	return policies.Target{Provider: provider, Model: model, AuthProfile: auth}, nil
}

// modelReasons are the reasons a scenario may script.
var modelReasons = []string{
	string(policies.ReasonRateLimit), string(policies.ReasonOverloaded), string(policies.ReasonServerError),
	string(policies.ReasonTimeout), string(policies.ReasonStreamInterrupted), string(policies.ReasonMalformedStream),
	string(policies.ReasonDegenerateOutput), string(policies.ReasonEmptyResponse), string(policies.ReasonWorkerLost),
	string(policies.ReasonOutputLimit), string(policies.ReasonQuotaExhausted), string(policies.ReasonBilling),
	string(policies.ReasonAuth), string(policies.ReasonAuthPermanent), string(policies.ReasonPermission),
	string(policies.ReasonSessionExpired), string(policies.ReasonModelNotFound), string(policies.ReasonRequestTooLarge),
	string(policies.ReasonContextOverflow), string(policies.ReasonRefusal), string(policies.ReasonFormat),
	string(policies.ReasonTLS), string(policies.ReasonUnclassified), string(policies.ReasonCancelled),
	string(policies.ReasonDeadline),
}

// ParseFailure reads "[CANDIDATE=]REASON[@FLOOR][*[TIMES]]": "rate_limit@20s*3"
// is three rate limits that ask for 20 s each, "server_error*" an outage without
// end. FLOOR is a duration or "inf".
func ParseFailure(s string) (Failure, error) {
	f := Failure{Times: 1}
	rest := s
	if candidate, after, ok := strings.Cut(rest, "="); ok {
		if _, err := ParseTarget(candidate); err != nil {
			return f, fmt.Errorf("failure %q: %w", s, err)
		}
		f.Candidate, rest = candidate, after
	}
	rest, times, repeated := strings.Cut(rest, "*")
	if repeated {
		f.Times = 0
		if times != "" {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 {
				return f, fmt.Errorf("failure %q: %q is not a number of times", s, times)
			}
			f.Times = n
		}
	}
	reason, floor, floored := strings.Cut(rest, "@")
	if !slices.Contains(modelReasons, reason) {
		return f, fmt.Errorf("failure %q: unknown reason %q%s; want one of %s", s, reason, hint(reason, modelReasons), strings.Join(modelReasons, ", "))
	}
	f.Reason = policies.Reason(reason)
	if !floored {
		return f, nil
	}
	f.Floor.Source = policies.FloorRetryAfter
	if floor == "inf" {
		f.Floor.Infinite = true
		return f, nil
	}
	wait, err := time.ParseDuration(floor)
	if err != nil || wait < 0 {
		return f, fmt.Errorf("failure %q: floor %q: want a duration such as 20s, or inf", s, floor)
	}
	f.Floor.Wait = wait
	return f, nil
}
