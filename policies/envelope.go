package policies

import (
	"math"
	"time"
)

// ChannelInlineFloor is the longest floor that a channel activity waits out as
// its own retry delay; a longer one is a workflow timer (P2).
const ChannelInlineFloor = 60 * time.Second

// longestDelay is the longest wait that can be represented in whole
// milliseconds. Delays saturate there instead of overflowing.
const longestDelay = math.MaxInt64 / time.Millisecond * time.Millisecond

// maxDoublings take any delay past longestDelay.
const maxDoublings = 1000

// Envelope bounds the attempts of one class of request (P1).
type Envelope struct {
	// Attempts counts the first request; fewer than one means one.
	Attempts int
	// Min and Max bound the backoff. A Max of zero means no cap; a Max below Min
	// is taken as Min.
	Min, Max time.Duration
	// Jitter is in 0..1: symmetric around the backoff, upward only on a floor.
	Jitter float64
	// Schedule, where set, replaces the doubling backoff: the delay after failed
	// attempt n is its n-th entry, the last one for every later attempt.
	Schedule []time.Duration
}

// The built-in envelopes of P1. They are values to read, not to configure.
var (
	// EnvelopeChannel is P1.1: Telegram and every channel without its own.
	EnvelopeChannel = Envelope{Attempts: 3, Min: 400 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.1}
	// EnvelopeDiscordSend is P1.2.
	EnvelopeDiscordSend = Envelope{Attempts: 3, Min: 500 * time.Millisecond, Max: 30 * time.Second, Jitter: 0.1}
	// EnvelopeDiscordREST is P1.3: every other Discord REST call.
	EnvelopeDiscordREST = Envelope{Attempts: 3, Min: 500 * time.Millisecond, Max: 5 * time.Minute, Jitter: 0.1}
	// EnvelopeTelegramFlood is P1.4: the floor of a 429 alone says how long.
	EnvelopeTelegramFlood = Envelope{Attempts: 3, Jitter: 0.1}
	// EnvelopeDiscordGateway is P1.5: reconnects of the gateway socket.
	EnvelopeDiscordGateway = Envelope{Attempts: 50, Min: 2 * time.Second, Max: 30 * time.Second}
	// EnvelopeGitRead is P1.8: fetch, ls-remote and clone.
	EnvelopeGitRead = Envelope{Attempts: 2, Min: time.Second, Max: time.Second}
	// EnvelopeDelivery is P1.9: the passes of one delivery.
	EnvelopeDelivery = Envelope{
		Attempts: 5, Min: 5 * time.Second, Max: 10 * time.Minute,
		Schedule: []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute},
	}
)

// The built-in budgets of model calls (P1.6, P1.7); a policy profile may carry
// others.
var (
	BudgetModelRateLimit = Budget{
		Attempts: 16, Min: time.Second, Max: time.Minute, JitterLow: 0.5, JitterHigh: 1.5,
	}
	BudgetModelTransient = Budget{
		Attempts: 9, Window: 90 * time.Second, Min: time.Second, Max: 30 * time.Second, JitterLow: 0.5, JitterHigh: 1.5,
	}
)

// Normalize returns e with every value that cannot be meant made one that can:
// at least one attempt, no negative wait, whole milliseconds, jitter in 0..1
// (0 where it is not a number), Max not below Min.
func (e Envelope) Normalize() Envelope {
	e.Attempts = max(e.Attempts, 1)
	e.Min = wholeMillis(e.Min)
	if e.Max != 0 {
		e.Max = max(wholeMillis(e.Max), e.Min)
	}
	e.Jitter = unit(e.Jitter)
	if len(e.Schedule) > 0 {
		schedule := make([]time.Duration, len(e.Schedule))
		for i, d := range e.Schedule {
			schedule[i] = wholeMillis(d)
		}
		e.Schedule = schedule
	}
	return e
}

// Allows reports whether attempt n, counted from 1, is within the envelope.
func (e Envelope) Allows(n int) bool {
	return n <= max(e.Attempts, 1)
}

// Delay says how long to wait after failed attempt n, counted from 1, given
// what the other side asked for and a random number in [0,1) (P2). It is a
// whole number of milliseconds, never negative, and never below an asked
// floor, however long; what becomes of a floor that is too long to wait for is
// the caller's decision.
func (e Envelope) Delay(n int, floor Floor, random float64) time.Duration {
	e, random = e.Normalize(), unit(random)
	if floor.Asked() {
		return e.floorDelay(n, floor, random)
	}
	if len(e.Schedule) > 0 {
		return e.scheduled(n)
	}
	limit := e.Max
	if limit == 0 {
		limit = longestDelay
	}
	base := math.Min(doubled(e.Min, n), millis(limit))
	jittered := fromMillis(math.Round(base * (1 + (2*random-1)*e.Jitter)))
	return min(max(jittered, e.Min), limit)
}

func (e Envelope) floorDelay(n int, floor Floor, random float64) time.Duration {
	if floor.Infinite {
		return longestDelay
	}
	base := max(floor.Wait, e.Min, e.scheduled(n))
	// Binary fractions must not cost a millisecond: 45 s · 1.1 is 49.5 s.
	jittered := fromMillis(math.Ceil(millis(base)*(1+random*e.Jitter) - 1e-6))
	return max(jittered, ceilMillis(base))
}

func (e Envelope) scheduled(n int) time.Duration {
	if n < 1 || len(e.Schedule) == 0 {
		return 0
	}
	return e.Schedule[min(n, len(e.Schedule))-1]
}

// ModelDelay is the delay after failed attempt n of a model call (P2): the
// jittered backoff of b, capped, or the floor where that is longer. A floor
// may exceed the cap. Where b has no jitter factors the backoff is unjittered.
func ModelDelay(b Budget, n int, floor Floor, random float64) time.Duration {
	least, limit := wholeMillis(b.Min), wholeMillis(b.Max)
	if limit == 0 {
		limit = longestDelay
	}
	base := math.Min(millis(limit), doubled(least, n))
	backoff := min(limit, fromMillis(math.Round(base*b.factor(unit(random)))))
	switch {
	case !floor.Asked():
		return backoff
	case floor.Infinite:
		return longestDelay
	}
	return max(backoff, ceilMillis(floor.Wait))
}

// factor is what random in 0..1 multiplies a backoff by.
func (b Budget) factor(random float64) float64 {
	low, high := b.JitterLow, b.JitterHigh
	if !finite(low) || !finite(high) || low < 0 || high <= 0 || high < low {
		return 1
	}
	return low + random*(high-low)
}

// SimpleDelay is the backoff after failed attempt n of the "simple" profiles
// (P2): min(initial·multiplier^(n−1), max), times 0.5 to 1.
func SimpleDelay(s Simple, n int, random float64) time.Duration {
	multiplier := s.Multiplier
	if !finite(multiplier) || multiplier <= 0 {
		multiplier = 1
	}
	initial, limit := wholeMillis(s.Initial), wholeMillis(s.Max)
	if limit == 0 {
		limit = longestDelay
	}
	if initial == 0 {
		return 0
	}
	base := math.Min(millis(initial)*math.Pow(multiplier, float64(max(n, 1)-1)), millis(limit))
	return fromMillis(math.Round(base * (0.5 + 0.5*unit(random))))
}

// doubled is least·2^(n−1) in milliseconds, infinite where that overflows.
func doubled(least time.Duration, n int) float64 {
	return math.Ldexp(millis(least), min(max(n, 1)-1, maxDoublings))
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// fromMillis is a whole number of milliseconds as a duration, within
// 0..longestDelay.
func fromMillis(ms float64) time.Duration {
	switch {
	case !(ms > 0):
		return 0
	case ms >= float64(longestDelay/time.Millisecond):
		return longestDelay
	}
	return time.Duration(ms) * time.Millisecond
}

// ceilMillis rounds up to a whole millisecond.
func ceilMillis(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	if d >= longestDelay {
		return longestDelay
	}
	return (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
}

// wholeMillis rounds a configured duration to a whole millisecond, and a
// negative one to zero.
func wholeMillis(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return min(d.Round(time.Millisecond), longestDelay)
}

// unit clamps x to 0..1; what is not a finite number is 0.
func unit(x float64) float64 {
	if !finite(x) {
		return 0
	}
	return math.Min(math.Max(x, 0), 1)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
