package policies

import (
	"maps"
	"time"
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

// Blames says what f is remembered against under p (P4.13): rate limits and
// overloads only with provider timing, unless p has a ladder for them, which
// then covers timeouts too; quota and permission narrow to the model they name.
func (p HealthPolicy) Blames(f HealthFailure) Blame {
	d := DispositionOf(f.Reason)
	switch {
	case d.Until == UntilProviderTiming && !f.timed() && len(p.Transient) == 0:
		return BlameNothing
	case f.Reason == ReasonTimeout && len(p.Transient) > 0 && f.Started:
		return BlameEndpointProfileModel
	case f.Reason == ReasonQuotaExhausted && f.Model != "":
		return BlameAuthProfileModel
	case f.Reason == ReasonPermission && f.Model == "":
		return BlameAuthProfile
	}
	return d.Blames
}

func (f HealthFailure) timed() bool { return f.Floor.Asked() && !f.Floor.Infinite }

// Cooldown is how long the consecutive-th failure for reason (from 1) leaves an
// auth profile or model alone where the other side named no time; 0 means not
// at all. session_expired has no length of its own: it lasts until the
// credential is refreshed, and is looked at again on the auth ladder.
func (p HealthPolicy) Cooldown(reason Reason, consecutive int) time.Duration {
	switch DispositionOf(reason).Until {
	case UntilProviderTiming:
		return rung(p.Transient, consecutive)
	case UntilAuth, UntilRefresh:
		return rung(p.Auth, consecutive)
	case UntilBilling:
		return doubling(p.BillingMin, p.BillingMax, consecutive)
	case UntilBlock:
		return doubling(p.BlockMin, p.BlockMax, consecutive)
	case UntilReset:
		return p.Quota
	case UntilModelGone:
		return p.ModelGone
	}
	if reason == ReasonTimeout {
		return rung(p.Transient, consecutive)
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

// After returns h with f added. A running window is neither extended by
// repeats nor shortened by a weaker reason; only a stronger reason replaces it.
// A zero time is no clock, and changes nothing.
func (h Health) After(p HealthPolicy, f HealthFailure) Health {
	if f.Now.IsZero() || p.Blames(f) == BlameNothing {
		return h
	}
	running := h.Until.After(f.Now)
	if !running {
		h = h.Expire(f.Now)
	} else {
		h.widen(f.Model)
	}
	h.Counts = maps.Clone(h.Counts)
	if h.Counts == nil {
		h.Counts = map[Reason]int{}
	}
	h.Counts[f.Reason]++
	if running && strength(f.Reason) <= strength(h.Reason) {
		return h
	}
	until := f.Now.Add(p.window(f, h.Counts[f.Reason]))
	if running && until.Before(h.Until) {
		until = h.Until
	}
	if !running {
		h.Model = f.Model
	}
	h.Until, h.Reason, h.Timed = until, f.Reason, f.setsTime()
	return h
}

// window is the provider's own timing where that decides, else the ladder, and
// never less than what was asked for.
func (p HealthPolicy) window(f HealthFailure, consecutive int) time.Duration {
	if f.setsTime() {
		return f.Floor.Wait
	}
	ladder := p.Cooldown(f.Reason, consecutive)
	if f.timed() {
		return max(ladder, f.Floor.Wait)
	}
	return ladder
}

// setsTime reports whether the other side's timing is the whole answer: for a
// refused credential or an empty account it is not.
func (f HealthFailure) setsTime() bool {
	switch DispositionOf(f.Reason).Until {
	case UntilProviderTiming, UntilReset, UntilNothing:
		return f.timed()
	}
	return false
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
