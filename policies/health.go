package policies

import (
	"maps"
	"time"
)

// HealthScope is what a failure is remembered against (P4.13, last column).
type HealthScope string

// Scopes of health. Each is a key of its own: what one auth profile is blamed
// for says nothing about another.
const (
	ScopeNothing      HealthScope = ""
	ScopeAuthProfile  HealthScope = "auth_profile"       // (provider, auth profile)
	ScopeProfileModel HealthScope = "auth_profile_model" // (endpoint, auth profile, model)
	ScopeModel        HealthScope = "model"              // (endpoint, model)
)

// Health is what is remembered of one auth profile or model. It is plain data
// with no clock: a workflow stores it and passes the time in. A success clears
// it to its zero value.
type Health struct {
	Until  time.Time `json:"until,omitzero"`
	Reason Reason    `json:"reason,omitempty"`
	// Model narrows the window to one model; empty means all of them. A failure
	// of another model widens it, nothing narrows it again.
	Model string `json:"model,omitempty"`
	// Timed says that the other side named the time, so that a probe would only
	// ask again what was answered.
	Timed bool `json:"timed,omitempty"`
	// Counts are the consecutive failures by reason.
	Counts    map[Reason]int `json:"counts,omitempty"`
	LastProbe time.Time      `json:"last_probe,omitzero"`
}

// HealthFailure is one failure as health sees it.
type HealthFailure struct {
	Reason Reason
	Floor  Floor
	Model  string // where the failure is about one model only
	// Started says that the provider had begun to answer. A timeout before that
	// is the network's, not the auth profile's.
	Started bool
	Now     time.Time
}

// Scope says what reason is remembered against under p, and whether at all:
// rate limits and overloads need provider timing unless p has a ladder for them.
func (p HealthPolicy) Scope(b HealthFailure) HealthScope {
	switch b.Reason {
	case ReasonRateLimit:
		if b.timed() || len(p.Transient) > 0 {
			return ScopeProfileModel
		}
	case ReasonOverloaded:
		if b.timed() || len(p.Transient) > 0 {
			return ScopeModel
		}
	case ReasonTimeout:
		if len(p.Transient) > 0 && b.Started {
			return ScopeProfileModel
		}
	case ReasonQuotaExhausted, ReasonPermission:
		if b.Model != "" {
			return ScopeProfileModel
		}
		return ScopeAuthProfile
	case ReasonBilling, ReasonAuth, ReasonAuthPermanent, ReasonSessionExpired:
		return ScopeAuthProfile
	case ReasonModelNotFound:
		return ScopeModel
	}
	return ScopeNothing
}

func (b HealthFailure) timed() bool { return b.Floor.Asked() && !b.Floor.Infinite }

// Cooldown is how long the consecutive-th failure for reason (from 1) leaves an
// auth profile or model alone where the other side named no time; 0 means not
// at all. session_expired has no length of its own: it lasts until the
// credential is refreshed, and is looked at again on the auth ladder.
func (p HealthPolicy) Cooldown(reason Reason, consecutive int) time.Duration {
	switch reason {
	case ReasonRateLimit, ReasonOverloaded, ReasonTimeout:
		return rung(p.Transient, consecutive)
	case ReasonAuth, ReasonSessionExpired:
		return rung(p.Auth, consecutive)
	case ReasonBilling:
		return doubling(p.BillingMin, p.BillingMax, consecutive)
	case ReasonAuthPermanent, ReasonPermission:
		return doubling(p.BlockMin, p.BlockMax, consecutive)
	case ReasonQuotaExhausted:
		return p.Quota
	case ReasonModelNotFound:
		return p.ModelGone
	}
	return 0
}

// rung is the n-th step of a ladder whose last step repeats.
func rung(ladder []time.Duration, n int) time.Duration {
	if len(ladder) == 0 {
		return 0
	}
	return ladder[min(max(n, 1), len(ladder))-1]
}

func doubling(first, last time.Duration, n int) time.Duration {
	d := first
	for i := 1; i < n && d < last; i++ {
		d *= 2
	}
	return min(d, last)
}

// After returns h with b added. A running window is neither extended by
// repeats nor shortened by a weaker reason; only a stronger reason replaces it.
// A zero time is no clock, and changes nothing.
func (h Health) After(p HealthPolicy, b HealthFailure) Health {
	if b.Now.IsZero() || p.Scope(b) == ScopeNothing {
		return h
	}
	running := h.Until.After(b.Now)
	if !running {
		h = h.Expire(b.Now)
	} else {
		h.widen(b.Model)
	}
	h.Counts = maps.Clone(h.Counts)
	if h.Counts == nil {
		h.Counts = map[Reason]int{}
	}
	h.Counts[b.Reason]++
	if running && strength(b.Reason) <= strength(h.Reason) {
		return h
	}
	until := b.Now.Add(p.window(b, h.Counts[b.Reason]))
	if running && until.Before(h.Until) {
		until = h.Until
	}
	if !running {
		h.Model = b.Model
	}
	h.Until, h.Reason, h.Timed = until, b.Reason, b.timed()
	return h
}

// window is the provider's own timing where it gave one, else the ladder.
func (p HealthPolicy) window(b HealthFailure, consecutive int) time.Duration {
	if b.timed() {
		return b.Floor.Wait
	}
	return p.Cooldown(b.Reason, consecutive)
}

func (h *Health) widen(model string) {
	if h.Model != model {
		h.Model = ""
	}
}

// Expire clears a window that is over. The count of rate limits survives until
// a success; the others start again.
func (h Health) Expire(now time.Time) Health {
	if now.IsZero() || h.Until.After(now) {
		return h
	}
	kept := Health{LastProbe: h.LastProbe}
	if n := h.Counts[ReasonRateLimit]; n > 0 {
		kept.Counts = map[Reason]int{ReasonRateLimit: n}
	}
	return kept
}

// Ready reports whether model may be tried at now.
func (h Health) Ready(model string, now time.Time) bool {
	return !h.Until.After(now) || (h.Model != "" && h.Model != model)
}

// Errors is the number of consecutive failures of every reason but rate limits,
// which are counted by themselves.
func (h Health) Errors() int {
	n := 0
	for reason, c := range h.Counts {
		if reason != ReasonRateLimit {
			n += c
		}
	}
	return n
}

// Probe reports whether a half-open probe may test the window now: one that has
// no provider timing, at most once in p.ProbeEvery, and not for a credential
// that was refused, which asking again does not mend. The caller records the
// probe in LastProbe.
func (h Health) Probe(p HealthPolicy, now time.Time) bool {
	if h.Timed || p.ProbeEvery <= 0 || now.IsZero() {
		return false
	}
	if h.Reason == ReasonAuth || h.Reason == ReasonAuthPermanent {
		return false
	}
	return h.LastProbe.IsZero() || now.Sub(h.LastProbe) >= p.ProbeEvery
}

// strength orders reasons by how long they are meant to last.
func strength(reason Reason) int {
	switch reason {
	case ReasonBilling, ReasonAuthPermanent, ReasonPermission:
		return 4
	case ReasonQuotaExhausted, ReasonModelNotFound:
		return 3
	case ReasonAuth, ReasonSessionExpired:
		return 2
	case "":
		return 0
	}
	return 1
}
