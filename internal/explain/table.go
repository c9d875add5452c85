package explain

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Table writes the schedule for a reader.
func (s Schedule) Table(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tAT\tWAIT\tCANDIDATE\tATTEMPT\tWHY\tENDED\tRESULT\tFLOOR")
	for i, a := range s.Attempts {
		result := string(a.Reason)
		if result == "" {
			result = "completed"
		}
		candidate := a.Candidate
		if a.Failover {
			candidate = "→ " + candidate
		}
		if !a.Streaming {
			candidate += " (not streaming)"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", i+1, clock(a.StartedMS), clock(a.WaitMS),
			candidate, a.Attempt, a.Of, a.Rule, clock(a.EndedMS), result, a.floor())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, s.Verdict())
	return err
}

// Verdict is how the schedule ended, in one line.
func (s Schedule) Verdict() string {
	if s.Outcome == "completed" {
		return fmt.Sprintf("completed after %s", clock(s.TotalMS))
	}
	return fmt.Sprintf("failed after %s: %s (%s); %s", clock(s.TotalMS), s.Reason, s.Rule, s.Summary)
}

func (a ScheduledAttempt) floor() string {
	switch {
	case a.FloorInfinite:
		return "infinite"
	case a.FloorMS != nil:
		return clock(*a.FloorMS)
	}
	return "-"
}

// clock shows milliseconds as a duration: "0s", "1.25s", "1m30s".
func clock(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }
