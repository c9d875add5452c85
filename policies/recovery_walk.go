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
	knownModel                   // another auth profile of a model visited before
	sibling                      // another model of the same provider, not configured
	elsewhere                    // a configured candidate
	stranger                     // a sibling of a model that did not fail
)

func (r *Recovery) relation(i int) relation {
	failed, t := r.Options.Targets[r.State.Current], r.Options.Targets[i]
	switch {
	case sameModel(failed, t):
		return otherProfile
	case t.Sibling && t.Provider == failed.Provider:
		return sibling
	case t.Sibling:
		return stranger
	}
	for j, o := range r.State.Outages {
		if o.Visited && sameModel(r.Options.Targets[j], t) {
			return knownModel
		}
	}
	return elsewhere
}

func sameModel(a, b Target) bool { return a.Provider == b.Provider && a.Model == b.Model }

// rank orders the walk by the reason of the failure (M3.6, P4.13).
func (r *Recovery) rank(e Event, i int) int {
	rel := r.relation(i)
	switch e.Verdict.Reason {
	case ReasonContextOverflow, ReasonRequestTooLarge:
		return r.rankByWindow(i)
	case ReasonRefusal:
		return r.rankRefusal(i, rel)
	case ReasonRateLimit:
		return r.rankRotated(rel, r.State.RateLimitRotations)
	case ReasonOverloaded:
		if r.Options.Policy.Rotations > 0 {
			return r.rankRotated(rel, r.State.OverloadRotations)
		}
		// It is the model that is overloaded, whoever asks.
		return ranks{otherProfile: 2, knownModel: 2, sibling: 0, elsewhere: 1}.of(rel)
	case ReasonModelNotFound:
		return ranks{elsewhere: 0, knownModel: 0}.of(rel)
	case ReasonUnclassified:
		return ranks{elsewhere: 0, otherProfile: 1, knownModel: 1}.of(rel)
	case ReasonFormat, ReasonTLS:
		return ranks{elsewhere: 0, sibling: 1}.of(rel)
	}
	return ranks{otherProfile: 0, knownModel: 1, elsewhere: 1}.of(rel)
}

// ranks lists the relations a walk enters, first those of the lowest rank.
type ranks map[relation]int

func (rs ranks) of(rel relation) int {
	if rank, ok := rs[rel]; ok {
		return rank
	}
	return excluded
}

// rankRotated walks the auth profiles first, as many as the policy grants.
func (r *Recovery) rankRotated(rel relation, used int) int {
	limit := r.Options.Policy.Rotations
	if limit > 0 && used >= limit && r.hasFallback() && (rel == otherProfile || rel == knownModel) {
		return excluded
	}
	return ranks{otherProfile: 0, sibling: 1, knownModel: 2, elsewhere: 2}.of(rel)
}

// rankByWindow admits windows larger than every one that was too small. The
// simple profiles, which fail over on every permanent error, also try a window
// that nobody stated.
func (r *Recovery) rankByWindow(i int) int {
	small := r.Options.Targets[r.State.Current].ContextWindow
	for j, o := range r.State.Outages {
		if o.Visited && (o.Reason == ReasonContextOverflow || o.Reason == ReasonRequestTooLarge) {
			small = max(small, r.Options.Targets[j].ContextWindow)
		}
	}
	window := r.Options.Targets[i].ContextWindow
	known := small > 0 && window > 0
	switch {
	case known && window > small:
		return 0
	case !known && r.Options.Policy.Simple != nil && r.relation(i) == elsewhere:
		return 1
	}
	return excluded
}

// rankRefusal goes to the same vendor first, never to the same model.
func (r *Recovery) rankRefusal(i int, rel relation) int {
	if rel != sibling && rel != elsewhere {
		return excluded
	}
	if r.Options.Targets[i].Provider == r.Options.Targets[r.State.Current].Provider {
		return 0
	}
	return 1
}

// hasFallback reports whether another model is configured at all.
func (r *Recovery) hasFallback() bool {
	requested := r.Options.Targets[0]
	for _, t := range r.Options.Targets[1:] {
		if !sameModel(requested, t) {
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
	if r.relation(to) != otherProfile {
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
