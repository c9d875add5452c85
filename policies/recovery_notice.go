package policies

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// String is "provider/model".
func (t Target) String() string { return t.Provider + "/" + t.Model }

// Notice is the transient notice shown while a retry waits (M3.12); empty for
// decisions that wait for nothing or stop.
func (r Recovery) Notice(d Decision) string {
	if d.Action != ActionAttempt || d.Attempt < 2 {
		return ""
	}
	return fmt.Sprintf("retrying %s… %d of %d, next in %s", r.Options.Targets[d.Target], d.Attempt, d.Of, roundSeconds(d.Delay))
}

// Summary is what a terminal failure says (M3.12): how many tries over what
// time without a completed response, on which candidates, and the next reset
// time if known.
func (r Recovery) Summary(d Decision, now time.Time) string {
	var tried []string
	tries := 0
	for i, o := range r.State.Outages {
		if o.Tries == 0 {
			continue
		}
		tries += o.Tries
		if name := r.Options.Targets[i].String(); !slices.Contains(tried, name) {
			tried = append(tried, name)
		}
	}
	said := "no completed response after " + count(tries, "try", "tries")
	if !r.State.OutageStarted.IsZero() {
		said += " over " + roundSeconds(now.Sub(r.State.OutageStarted))
	}
	if len(tried) > 0 {
		said += " on " + strings.Join(tried, ", ")
	}
	if !d.ResetAt.IsZero() {
		said += "; next reset at " + d.ResetAt.UTC().Format(time.RFC3339)
	}
	return said
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// roundSeconds shows whole seconds, rounded up, in words a reader expects.
func roundSeconds(d time.Duration) string {
	d = max(d, 0)
	if rest := d % time.Second; rest > 0 {
		d += time.Second - rest
	}
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	return strings.TrimSuffix(d.String(), "0s")
}
