package demo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
)

// ledger is what a simulator saw of one story.
type ledger struct {
	Name     string
	Requests []simulator.Request
	Effects  []simulator.Effect
}

// line is one request on the wire: what the outside did with it, and what
// Holdfast decided then.
type line struct {
	at      time.Duration // since the work was started
	request string
	answer  string
	// effects are what the request changed outside.
	effects  []simulator.Effect
	decision *decision

	target string // the candidate of a model call
	sent   time.Time
	over   time.Time // when the answer came, or the request was made
}

// decision is what followed a failed request.
type decision struct {
	failure contract.Failure
	// again: the same request was made once more. moved: the work went to
	// another candidate. Neither: it stopped here.
	again bool
	moved string
	// waited lies between the failed request and the next one.
	waited time.Duration
}

// arrival is a request with the effects it had.
type arrival struct {
	simulator.Request
	effects []simulator.Effect
}

// timeline joins the two witnesses. Requests that no attempt in the history
// accounts for come back as strays.
func timeline(x execution, ledgers []ledger) (lines []line, strays []simulator.Request) {
	arrivals := arrivalsOf(ledgers)
	for _, c := range x.calls {
		var own []arrival
		own, arrivals = split(arrivals, c)
		lines = append(lines, c.lines(x.started, own)...)
	}
	for i := range lines {
		if i+1 < len(lines) {
			lines[i].follow(lines[i+1])
		}
	}
	for _, a := range arrivals {
		strays = append(strays, a.Request)
	}
	return lines, strays
}

func arrivalsOf(ledgers []ledger) []arrival {
	var all []arrival
	for _, l := range ledgers {
		for _, r := range l.Requests {
			a := arrival{Request: r}
			for _, e := range l.Effects {
				if e.Request == r.N {
					a.effects = append(a.effects, e)
				}
			}
			all = append(all, a)
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int { return a.At.Compare(b.At) })
	return all
}

// split takes the requests that arrived while c was open.
func split(all []arrival, c call) (own, rest []arrival) {
	for _, a := range all {
		if a.At.Before(c.from) || a.At.After(c.to) {
			rest = append(rest, a)
		} else {
			own = append(own, a)
		}
	}
	return own, rest
}

// lines are the requests of one activity. An activity that the server repeated
// makes one request per attempt; one that ran once may make several.
func (c call) lines(start time.Time, own []arrival) []line {
	var lines []line
	for i, a := range own {
		l := line{
			at: a.At.Sub(start), request: c.summary, target: c.target, answer: answerOf(a.Request), effects: a.effects,
			sent: a.At, over: cmp.Or(a.AnsweredAt, a.At),
		}
		attempt, last := 1, i == len(own)-1
		if c.attempts > 1 {
			attempt = min(i+1, c.attempts)
			last = attempt < c.attempts || last
		}
		if attempt > 1 {
			l.request += ", again"
		}
		if f, failed := c.failures[attempt]; failed && last {
			l.decision = &decision{failure: f}
		}
		if c.attempts <= 1 && len(own) > 1 {
			name, _, _ := strings.Cut(a.Op, "?")
			l.request += ": " + name
		}
		lines = append(lines, l)
	}
	return lines
}

// follow completes the decision on l by the request that came next.
func (l *line) follow(next line) {
	if l.decision == nil {
		return
	}
	l.decision.waited = next.sent.Sub(l.over)
	if next.target != l.target {
		l.decision.moved = next.target
		return
	}
	l.decision.again = true
}

// answerOf says what the client got: the fault as the script names it, or the
// status.
func answerOf(r simulator.Request) string {
	if r.Step != "" && r.Step != simulator.Pass().Note {
		return r.Step
	}
	switch r.Outcome {
	case simulator.Answered:
		return fmt.Sprint(r.Status)
	case simulator.CutShort:
		return fmt.Sprintf("%d, cut short", r.Status)
	}
	return string(r.Outcome)
}

// why says in words what a decision rests on.
func (d *decision) why() string {
	f := d.failure
	switch {
	case d.moved != "" && f.RetrySame:
		return "on to " + d.moved
	case d.moved != "":
		return "waiting cannot help, so on to " + d.moved
	case f.Effect == string(policies.EffectUnknown) && d.again:
		return "it may have been written; its nonce makes a repeat harmless, so once more"
	case f.Effect == string(policies.EffectUnknown):
		return "it may have been written, and a repeat could double it, so no repeat"
	case f.Effect == string(policies.EffectNotSent) && d.again:
		return "proved not sent, so the same part once more"
	case d.again:
		return "nothing that a repeat could double, so once more"
	}
	return "no repeat"
}

// wait says how long the next request was held back, and how long the other
// side had asked for.
func (d *decision) wait() string {
	if !d.again && d.moved == "" {
		return ""
	}
	s := "waited " + seconds(d.waited)
	if floor, asked := d.floor(); asked && d.again {
		s += fmt.Sprintf(" (at least %s was asked for)", seconds(floor))
	}
	return s
}

// floor is the least wait that the other side asked for.
func (d *decision) floor() (wait time.Duration, asked bool) {
	if d.failure.FloorMS == nil {
		return 0, false
	}
	return time.Duration(*d.failure.FloorMS) * time.Millisecond, true
}

// undercut says whether the same request came again sooner than was asked for (P2).
func (d *decision) undercut() bool {
	if d == nil || !d.again {
		return false
	}
	floor, _ := d.floor()
	return d.waited < floor
}

// doubled are the effects that happened more than once with the same content in
// the same place.
func doubled(effects []simulator.Effect) []simulator.Effect {
	var twice []simulator.Effect
	seen := map[string]int{}
	for _, e := range effects {
		k := strings.Join([]string{e.Kind, e.Key, e.Content}, "\x00")
		if seen[k]++; seen[k] == 2 {
			twice = append(twice, e)
		}
	}
	return twice
}

func seconds(d time.Duration) string {
	return fmt.Sprintf("%.2f s", d.Seconds())
}
