package policies

import "time"

// excluded is the rank of a target that the walk does not enter.
const excluded = -1

// next is the target to move to after the current one failed for reason: the
// lowest rank among those that this model call has not visited and that are
// ready, in the order of RecoveryOptions.Targets (M3.6).
func (r *Recovery) next(e Event) (target int, ok bool) {
	best := excluded
	for i := range r.Options.Targets {
		if r.State.Outages[i].Visited || r.dead(i) || !ready(e, i) {
			continue
		}
		rank := r.rank(e, i)
		if rank == excluded || (best != excluded && rank >= best) {
			continue
		}
		best, target = rank, i
	}
	return target, best != excluded
}

func ready(e Event, target int) bool {
	return target >= len(e.Health) || !e.Health[target].Until.After(e.Now)
}

// relation is how a target stands to the one that failed.
type relation int

const (
	otherProfile relation = iota // same model, another auth profile
	sibling                      // another model of the same provider, not configured
	elsewhere                    // a configured candidate
	stranger                     // a sibling of a model that did not fail
)

func relate(failed, t Target) relation {
	switch {
	case t.Provider == failed.Provider && t.Model == failed.Model:
		return otherProfile
	case t.Sibling && t.Provider == failed.Provider:
		return sibling
	case t.Sibling:
		return stranger
	}
	return elsewhere
}

// rank orders the walk by the reason of the failure (M3.6, P4.13).
func (r *Recovery) rank(e Event, i int) int {
	failed, t := r.Options.Targets[r.State.Current], r.Options.Targets[i]
	rel := relate(failed, t)
	switch e.Verdict.Reason {
	case ReasonContextOverflow, ReasonRequestTooLarge:
		return r.rankByWindow(failed, t)
	case ReasonRefusal:
		return rankRefusal(failed, t, rel)
	case ReasonRateLimit:
		if rel == otherProfile && r.rotationsSpent(r.State.RateLimitRotations) {
			return excluded
		}
		return pick(rel, 0, 1, 2)
	case ReasonOverloaded:
		return r.rankOverloaded(rel)
	case ReasonModelNotFound:
		return pick(rel, excluded, excluded, 0)
	case ReasonUnclassified:
		return pick(rel, 1, excluded, 0)
	case ReasonFormat, ReasonTLS:
		return pick(rel, excluded, 1, 0)
	}
	return pick(rel, 0, excluded, 1)
}

func pick(rel relation, profile, sib, other int) int {
	switch rel {
	case otherProfile:
		return profile
	case sibling:
		return sib
	case elsewhere:
		return other
	}
	return excluded
}

// rankOverloaded leaves other auth profiles of an overloaded model for last,
// since it is the model that is overloaded, unless the policy rotates.
func (r *Recovery) rankOverloaded(rel relation) int {
	if r.Options.Policy.Rotations == 0 {
		return pick(rel, 2, 0, 1)
	}
	if rel == otherProfile && r.rotationsSpent(r.State.OverloadRotations) {
		return excluded
	}
	return pick(rel, 0, 1, 2)
}

// rankByWindow admits larger context windows only. The simple profiles, which
// fail over on every permanent error, also try a window that is not known.
func (r *Recovery) rankByWindow(failed, t Target) int {
	known := failed.ContextWindow > 0 && t.ContextWindow > 0
	switch {
	case known && t.ContextWindow > failed.ContextWindow:
		return 0
	case !known && r.Options.Policy.Simple != nil && relate(failed, t) == elsewhere:
		return 1
	}
	return excluded
}

// rankRefusal goes to the same vendor first.
func rankRefusal(failed, t Target, rel relation) int {
	switch {
	case rel == otherProfile || rel == stranger:
		return excluded
	case t.Provider == failed.Provider:
		return 0
	}
	return 1
}

func (r *Recovery) rotationsSpent(used int) bool {
	limit := r.Options.Policy.Rotations
	return limit > 0 && used >= limit && r.hasFallback()
}

// hasFallback reports whether another model is configured at all.
func (r *Recovery) hasFallback() bool {
	requested := r.Options.Targets[0]
	for _, t := range r.Options.Targets[1:] {
		if relate(requested, t) != otherProfile {
			return true
		}
	}
	return false
}

// dead reports whether this model call has already learnt that target i cannot
// serve: its auth profile or its model was refused on another target.
func (r *Recovery) dead(i int) bool {
	t := r.Options.Targets[i]
	for j, o := range r.State.Outages {
		if !o.Visited || r.Options.Targets[j].Provider != t.Provider {
			continue
		}
		failed := r.Options.Targets[j]
		if blamesCredential(o.Reason) && failed.AuthProfile == t.AuthProfile {
			return true
		}
		if o.Reason == ReasonModelNotFound && failed.Model == t.Model {
			return true
		}
	}
	return false
}

func blamesCredential(reason Reason) bool {
	switch reason {
	case ReasonBilling, ReasonAuth, ReasonAuthPermanent, ReasonSessionExpired, ReasonQuotaExhausted:
		return true
	}
	return false
}

// countRotation remembers a move to another auth profile of the same model.
func (r *Recovery) countRotation(to int, reason Reason) {
	if relate(r.Options.Targets[r.State.Current], r.Options.Targets[to]) != otherProfile {
		return
	}
	switch reason {
	case ReasonRateLimit:
		r.State.RateLimitRotations++
	case ReasonOverloaded:
		r.State.OverloadRotations++
	}
}

// nextReset is the earliest moment, after now, at which a target of this model
// call said it would serve again, or is released; zero if none is known.
func (r *Recovery) nextReset(e Event) time.Time {
	var first time.Time
	consider := func(t time.Time) {
		if t.After(e.Now) && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	for i, o := range r.State.Outages {
		consider(o.ResetAt)
		if i < len(e.Health) {
			consider(e.Health[i].Until)
		}
	}
	return first
}
