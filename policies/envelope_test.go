package policies

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBuiltInEnvelopes(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	// P1.1–P1.5, P1.8, P1.9: attempts and the delays without jitter.
	for _, tc := range []struct {
		id       string
		envelope Envelope
		attempts int
		delays   []time.Duration
	}{
		{"P1.1", EnvelopeChannel, 3, []time.Duration{400 * ms, 800 * ms, 1600 * ms}},
		{"P1.2", EnvelopeDiscordSend, 3, []time.Duration{500 * ms, time.Second, 2 * time.Second}},
		{"P1.3", EnvelopeDiscordREST, 3, []time.Duration{500 * ms, time.Second, 2 * time.Second}},
		{"P1.5", EnvelopeDiscordGateway, 50, []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second}},
		{"P1.8", EnvelopeGitRead, 2, []time.Duration{time.Second, time.Second}},
		{"P1.9", EnvelopeDelivery, 5, []time.Duration{5 * time.Second, 25 * time.Second, 2 * time.Minute, 10 * time.Minute, 10 * time.Minute}},
	} {
		if !tc.envelope.Allows(tc.attempts) || tc.envelope.Allows(tc.attempts+1) {
			t.Errorf("%s: want %d attempts", tc.id, tc.attempts)
		}
		for i, want := range tc.delays {
			if got := tc.envelope.Delay(i+1, Floor{}, 0.5); got != want {
				t.Errorf("%s: delay %d = %v, want %v", tc.id, i+1, got, want)
			}
		}
	}
	if got := EnvelopeDiscordSend.Delay(1000, Floor{}, 1); got != 30*time.Second {
		t.Errorf("P1.2: late delay %v, want the cap", got)
	}
	if got := EnvelopeDiscordREST.Delay(1000, Floor{}, 0.5); got != 5*time.Minute {
		t.Errorf("P1.3: late delay %v, want the cap", got)
	}
	// P1.4: the floor itself, jitter upward only.
	flood := Floor{Wait: 45 * time.Second, Source: FloorBody}
	if low, high := EnvelopeTelegramFlood.Delay(1, flood, 0), EnvelopeTelegramFlood.Delay(1, flood, 1); low != 45*time.Second || high != 49500*ms {
		t.Errorf("P1.4: %v..%v", low, high)
	}
}

func TestDelayWithFloor(t *testing.T) {
	t.Parallel()
	asked := func(d time.Duration) Floor { return Floor{Wait: d, Source: FloorRetryAfter} }
	// P2: max(floor, min), upward only, ceil to whole milliseconds.
	for _, tc := range []struct {
		name     string
		envelope Envelope
		floor    time.Duration
		random   float64
		want     time.Duration
	}{
		{"fraction rounds up", Envelope{Max: 10 * time.Millisecond}, 1400 * time.Microsecond, 0, 2 * time.Millisecond},
		{"fraction with jitter", Envelope{Max: 10 * time.Millisecond, Jitter: 0.5}, 1400 * time.Microsecond, 0, 2 * time.Millisecond},
		{"zero is raised to min", EnvelopeChannel, 0, 0, 400 * time.Millisecond},
		{"below min", EnvelopeDiscordSend, time.Millisecond, 1, 550 * time.Millisecond},
		{"above max is not shortened", EnvelopeChannel, 45 * time.Second, 0, 45 * time.Second},
		{"above 60 s is not shortened", EnvelopeChannel, 40 * time.Minute, 0, 40 * time.Minute},
		{"a schedule is a least wait too", EnvelopeDelivery, time.Second, 0, 25 * time.Second},
	} {
		if got := tc.envelope.Delay(2, asked(tc.floor), tc.random); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestNormalize(t *testing.T) {
	t.Parallel()
	// P2: NaN, infinite, negative or fractional config is never slept.
	for _, jitter := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
		e := Envelope{Attempts: -3, Min: -time.Hour, Max: -time.Second, Jitter: jitter, Schedule: []time.Duration{-1}}.Normalize()
		if e.Attempts != 1 || e.Min != 0 || e.Max != 0 || e.Jitter != 0 || e.Schedule[0] != 0 {
			t.Errorf("jitter %v: %+v", jitter, e)
		}
	}
	huge := Budget{Min: math.MaxInt64, Max: math.MaxInt64, JitterLow: 0.5, JitterHigh: 1.5}
	if got := ModelDelay(huge, math.MaxInt, Floor{}, 1); got != longestDelay {
		t.Errorf("the longest backoff is %v", got)
	}
	if got := EnvelopeChannel.Delay(math.MaxInt, Floor{}, 0.5); got != EnvelopeChannel.Max {
		t.Errorf("the last delay is %v", got)
	}
	e := Envelope{Min: 1500 * time.Microsecond, Max: time.Millisecond, Jitter: 7}.Normalize()
	if e.Min != 2*time.Millisecond || e.Max != e.Min || e.Jitter != 1 {
		t.Errorf("%+v", e)
	}
}

func TestModelDelayLadder(t *testing.T) {
	t.Parallel()
	// P2, P1.6: the ladder of the middle, and both ends of the jitter.
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := ModelDelay(BudgetModelRateLimit, i+1, Floor{}, 0.5); got != want*time.Second {
			t.Errorf("delay %d = %v, want %v", i+1, got, want*time.Second)
		}
	}
	if low, high := ModelDelay(BudgetModelTransient, 1, Floor{}, 0), ModelDelay(BudgetModelTransient, 1, Floor{}, 1); low != 500*time.Millisecond || high != 1500*time.Millisecond {
		t.Errorf("P1.7: jitter band %v..%v", low, high)
	}
	floor := Floor{Wait: 90*time.Second + 1, Source: FloorRetryAfter}
	if got := ModelDelay(BudgetModelTransient, 1, floor, 1); got != 90*time.Second+time.Millisecond {
		t.Errorf("P2: a floor above the cap gives %v", got)
	}
}

func TestSimpleDelay(t *testing.T) {
	t.Parallel()
	// P2: min(initial·multiplier^(n−1), max) · (0.5 + 0.5·r)
	s := Simple{Initial: time.Second, Multiplier: 2, Max: 30 * time.Second}
	for _, tc := range []struct {
		n      int
		random float64
		want   time.Duration
	}{{1, 0, 500 * time.Millisecond}, {3, 1, 4 * time.Second}, {40, 0.5, 22500 * time.Millisecond}, {math.MaxInt, 1, 30 * time.Second}} {
		if got := SimpleDelay(s, tc.n, tc.random); got != tc.want {
			t.Errorf("SimpleDelay(%d, %v) = %v, want %v", tc.n, tc.random, got, tc.want)
		}
	}
}

// anyFloat draws every float, the ones that are no numbers included.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1, 2}))
}

func anyDuration() *rapid.Generator[time.Duration] {
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "any")) }),
		rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "usual"))
		}),
	)
}

func anyEnvelope() *rapid.Generator[Envelope] {
	return rapid.Custom(func(t *rapid.T) Envelope {
		return Envelope{
			Attempts: rapid.Int().Draw(t, "attempts"), Min: anyDuration().Draw(t, "min"), Max: anyDuration().Draw(t, "max"),
			Jitter: anyFloat().Draw(t, "jitter"), Schedule: rapid.SliceOfN(anyDuration(), 0, 4).Draw(t, "schedule"),
		}
	})
}

func TestDelayProperties(t *testing.T) {
	t.Parallel()
	// P2: no delay overflows or goes below zero, for any n, config and random
	// number; a floor is never undercut, not by a millisecond.
	rapid.Check(t, func(t *rapid.T) {
		e, n, random := anyEnvelope().Draw(t, "envelope"), rapid.Int().Draw(t, "n"), anyFloat().Draw(t, "random")
		floor := Floor{Wait: anyDuration().Draw(t, "floor"), Source: FloorBody, Infinite: rapid.Bool().Draw(t, "infinite")}
		b := Budget{Min: e.Min, Max: e.Max, JitterLow: anyFloat().Draw(t, "low"), JitterHigh: anyFloat().Draw(t, "high")}
		s := Simple{Initial: e.Min, Max: e.Max, Multiplier: anyFloat().Draw(t, "multiplier")}
		for name, d := range map[string]time.Duration{
			"channel": e.Delay(n, Floor{}, random), "channel floor": e.Delay(n, floor, random),
			"model": ModelDelay(b, n, Floor{}, random), "model floor": ModelDelay(b, n, floor, random),
			"simple": SimpleDelay(s, n, random),
		} {
			if d < 0 || d%time.Millisecond != 0 {
				t.Fatalf("%s: %v", name, d)
			}
		}
		if least := min(floor.Wait, longestDelay); e.Delay(n, floor, random) < least || ModelDelay(b, n, floor, random) < least {
			t.Fatalf("a floor of %v is undercut", floor.Wait)
		}
	})
}

func TestJitterBand(t *testing.T) {
	t.Parallel()
	// P2: jitter is symmetric and clamped without a floor, upward only with one.
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{
			Min: time.Duration(rapid.Int64Range(1, 5000).Draw(t, "min")) * time.Millisecond,
			Max: time.Duration(rapid.Int64Range(5000, 600_000).Draw(t, "max")) * time.Millisecond, Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		}
		n, random := rapid.IntRange(1, 40).Draw(t, "n"), rapid.Float64Range(0, 1).Draw(t, "random")
		nominal := float64(min(e.Min<<(n-1), e.Max))
		if e.Min<<(n-1)>>(n-1) != e.Min {
			nominal = float64(e.Max)
		}
		slack := float64(time.Millisecond)
		d := float64(e.Delay(n, Floor{}, random))
		if d < float64(e.Min) || d > float64(e.Max) || d < nominal*(1-e.Jitter)-slack || d > nominal*(1+e.Jitter)+slack {
			t.Fatalf("delay %v of nominal %v", time.Duration(d), time.Duration(nominal))
		}
		floor := Floor{Wait: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "floor")), Source: FloorBody}
		base := float64(max(floor.Wait, e.Min))
		if d := float64(e.Delay(n, floor, random)); d < base || d > base*(1+e.Jitter)+slack {
			t.Fatalf("delay %v of floor %v", time.Duration(d), floor.Wait)
		}
	})
}
