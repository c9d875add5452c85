package policies

import (
	"slices"
	"time"
)

// saturationTail is how long a tokens-per-minute exhaustion is remembered after
// its latest floor (P6).
const saturationTail = time.Minute

// SaturatedUntil is when an organisation's tokens per minute are taken to have
// refilled: one minute after the latest floor. Earlier memories are never
// shortened.
func SaturatedUntil(earlier, now time.Time, floor Floor) time.Time {
	until := now.Add(floor.Wait).Add(saturationTail)
	if until.Before(earlier) {
		return earlier
	}
	return until
}

// AuthProfileState is one auth profile as selection sees it.
type AuthProfileState struct {
	Name  string
	OAuth bool // else an API key
	// Subscription says that a plan pays, not the account of an API key.
	Subscription bool
	Account      string
	CooledUntil  time.Time
	LastUsed     time.Time
}

// AuthProfileRules are the operator's choices in a selection.
type AuthProfileRules struct {
	// Pin names the only auth profile that may be used; empty: none.
	Pin string
	// AllowOtherAccount lets a subscription fall back to an API key of another
	// account.
	AllowOtherAccount bool
}

// SelectAuthProfiles orders the auth profiles of one provider for a run (P6):
// the pinned one alone, else usable before cooled, OAuth before API key, least
// recently used first; cooled ones by their release. Where there are
// subscriptions, API keys of other accounts are left out unless allowed.
func SelectAuthProfiles(profiles []AuthProfileState, rules AuthProfileRules, now time.Time) []AuthProfileState {
	if rules.Pin != "" {
		return slices.DeleteFunc(slices.Clone(profiles), func(p AuthProfileState) bool { return p.Name != rules.Pin })
	}
	ordered := slices.Clone(profiles)
	slices.SortStableFunc(ordered, func(a, b AuthProfileState) int { return compareProfiles(a, b, now) })
	if rules.AllowOtherAccount {
		return ordered
	}
	var accounts []string
	for _, p := range ordered {
		if p.Subscription {
			accounts = append(accounts, p.Account)
		}
	}
	if len(accounts) == 0 {
		return ordered
	}
	return slices.DeleteFunc(ordered, func(p AuthProfileState) bool {
		return !p.OAuth && !p.Subscription && !slices.Contains(accounts, p.Account)
	})
}

func compareProfiles(a, b AuthProfileState, now time.Time) int {
	aCooled, bCooled := a.CooledUntil.After(now), b.CooledUntil.After(now)
	switch {
	case aCooled != bCooled:
		return before(bCooled)
	case aCooled && !a.CooledUntil.Equal(b.CooledUntil):
		return a.CooledUntil.Compare(b.CooledUntil)
	case a.OAuth != b.OAuth:
		return before(a.OAuth)
	}
	return a.LastUsed.Compare(b.LastUsed)
}

// before is the order of two of which the first goes first if a holds.
func before(a bool) int {
	if a {
		return -1
	}
	return 1
}
