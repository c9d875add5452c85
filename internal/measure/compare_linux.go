package measure

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// Comparison is of work of ours with a plain program that does the same. The two
// take turns, so that the ratios mean something on a noisy machine.
type Comparison struct {
	// Plain and Ours do the work once each and say what it cost.
	Plain, Ours func() Cost
	// PlainMemory and OurMemory do the same, watched and not timed.
	PlainMemory, OurMemory func() Memory
}

// Run makes as many rounds as b asks for, after one for the memory, and reports
// the medians of ours and of the plain program, and the medians of the ratios of
// the rounds.
func (c Comparison) Run(b *testing.B) {
	const mega = 1 << 20
	plainMemory, ourMemory := c.PlainMemory(), c.OurMemory()
	var plain, ours []Cost
	for i := 0; b.Loop(); i++ {
		if i%2 == 0 {
			plain = append(plain, c.Plain())
			ours = append(ours, c.Ours())
		} else {
			ours = append(ours, c.Ours())
			plain = append(plain, c.Plain())
		}
	}
	wall := func(c Cost) float64 { return milliseconds(c.Wall) }
	cpu := func(c Cost) float64 { return milliseconds(c.CPU) }
	b.ReportMetric(0, "ns/op") // it counts what prepares the rounds
	b.ReportMetric(medianOf(ours, wall), "ms")
	b.ReportMetric(medianOf(plain, wall), "plain-ms")
	b.ReportMetric(medianRatio(ours, plain, wall), "x-plain")
	b.ReportMetric(medianOf(ours, cpu), "cpu-ms")
	b.ReportMetric(medianOf(plain, cpu), "plain-cpu-ms")
	b.ReportMetric(medianRatio(ours, plain, cpu), "cpu-x-plain")
	b.ReportMetric(float64(ourMemory.Largest)/mega, "MB")
	b.ReportMetric(float64(ourMemory.Together)/mega, "together-MB")
	b.ReportMetric(float64(ourMemory.Together-ourMemory.Start)/mega, "more-MB")
	b.ReportMetric(float64(plainMemory.Largest)/mega, "plain-MB")
	b.ReportMetric(float64(plainMemory.Together)/mega, "plain-together-MB")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func medianOf(costs []Cost, of func(Cost) float64) float64 {
	values := make([]float64, len(costs))
	for i, c := range costs {
		values[i] = of(c)
	}
	return median(values)
}

func medianRatio(over, under []Cost, of func(Cost) float64) float64 {
	values := make([]float64, len(over))
	for i := range over {
		values[i] = of(over[i]) / max(of(under[i]), 0.001)
	}
	return median(values)
}

func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
