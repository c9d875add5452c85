package policies

import (
	"math"
	"time"
)

// ModelDelay is the wait before retry n (n from 1) of a model call (P2):
// the exponential step, jittered and capped, but never less than the floor,
// rounded up to a whole millisecond. A floor may exceed the cap.
func ModelDelay(b Budget, n int, floor Floor, random float64) time.Duration {
	step := math.Min(ms(b.Max), ms(b.Min)*math.Exp2(float64(max(n, 1)-1)))
	factor := b.JitterLow + (b.JitterHigh-b.JitterLow)*random
	d := time.Duration(math.Min(ms(b.Max), math.Round(step*factor))) * time.Millisecond
	return max(d, ceilMillis(floor.Wait))
}

// SimpleDelay is the wait before retry n (n from 1) of a "simple" policy (P2).
func SimpleDelay(s Simple, n int, random float64) time.Duration {
	step := math.Min(ms(s.Max), ms(s.Initial)*math.Pow(s.Multiplier, float64(max(n, 1)-1)))
	return time.Duration(math.Round(step*(0.5+0.5*random))) * time.Millisecond
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func ceilMillis(d time.Duration) time.Duration {
	if rest := d % time.Millisecond; rest > 0 && d <= math.MaxInt64-time.Millisecond {
		return d - rest + time.Millisecond
	}
	return d
}
