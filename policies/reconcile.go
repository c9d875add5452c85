package policies

import (
	"slices"
	"strings"
	"time"
)

const (
	// ReconcileLooks is how many looks prove an absence, ReconcileGap how far
	// apart they are (C4).
	ReconcileLooks = 2
	ReconcileGap   = 2 * time.Second

	// ClockMargin is how far the platform's clock may be behind ours for a
	// message made since the recorded start to be known as such.
	ClockMargin = 10 * time.Second

	// anchorMargin is how far before the recorded start a made-up anchor lies,
	// for clocks that differ.
	anchorMargin = 5 * time.Minute
)

// AnchorKind says after what a reconciliation reads (C4).
type AnchorKind string

// Kinds of anchor, strongest first.
const (
	AnchorPart  AnchorKind = "part"  // the receipt of the part before
	AnchorLane  AnchorKind = "lane"  // the last receipt of the lane
	AnchorStart AnchorKind = "start" // the recorded start minus 5 min
)

// Anchor is the id that a reconciliation reads after.
type Anchor struct {
	Kind AnchorKind
	ID   string
}

// ReconcileAnchor picks the anchor of an unknown part: the receipt of the part
// before it, else the last of its lane, else a snowflake made of the recorded
// start of the part minus 5 min.
func ReconcileAnchor(part, lane string, started time.Time) Anchor {
	switch {
	case part != "":
		return Anchor{AnchorPart, part}
	case lane != "":
		return Anchor{AnchorLane, lane}
	}
	return Anchor{AnchorStart, Snowflake(started.Add(-anchorMargin))}
}

// SeenMessage is one message of a channel as a look saw it.
type SeenMessage struct {
	ID          string
	AuthorID    string
	Content     string
	Attachments int
}

// Look is one reading of the channel.
type Look struct {
	// Failed says that the channel could not be read.
	Failed bool
	// After holds the messages after the anchor. More says that there are
	// further ones that were not read.
	After []SeenMessage
	More  bool
	// Before holds what a read just before the anchor saw, where one was made.
	Before []SeenMessage
}

// Reconciliation holds what is known of an unknown part.
type Reconciliation struct {
	Anchor Anchor
	// Self is our author id; Content and Attachments are what was sent.
	Self        string
	Content     string
	Attachments int
	// Receipted are the ids already known to belong to other parts or sends.
	Receipted []string
	// StartID is the snowflake of the recorded start, less ClockMargin; optional.
	// A message like ours that is older is taken for an earlier one with the same
	// words, which proves nothing.
	StartID string
	// Looks in the order they were taken, ReconcileGap apart.
	Looks []Look
}

// ReconcileAnswer is what became of an unknown part.
type ReconcileAnswer string

// Answers of a reconciliation.
const (
	ReconcileFound      ReconcileAnswer = "found"
	ReconcileAbsent     ReconcileAnswer = "absent_proved" // a replay is allowed
	ReconcileLookAgain  ReconcileAnswer = "look_again"
	ReconcileUnresolved ReconcileAnswer = "unresolved" // needs_review
)

// ReconcileVerdict is the answer, with the receipt where it was found and the
// wait where another look is wanted.
type ReconcileVerdict struct {
	Answer  ReconcileAnswer
	Receipt string
	After   time.Duration
	Rule    string
}

// Reconcile decides what became of a Discord part whose answer was lost (C4).
// Absence is proof only in two looks that were complete and saw some message:
// an empty answer can mean a missing permission.
func Reconcile(r Reconciliation) ReconcileVerdict {
	id, twin := r.find()
	switch {
	case id != "":
		return ReconcileVerdict{Answer: ReconcileFound, Receipt: id, Rule: "C4/found"}
	case r.Self == "" || (r.matchable() == "" && r.Attachments == 0):
		return ReconcileVerdict{Answer: ReconcileUnresolved, Rule: "C4/nothing_to_compare"}
	case len(r.Looks) == 0:
		return ReconcileVerdict{Answer: ReconcileLookAgain, Rule: "C4/first_look"}
	case len(r.Looks) < ReconcileLooks:
		return ReconcileVerdict{Answer: ReconcileLookAgain, After: ReconcileGap, Rule: "C4/second_look"}
	case twin:
		return ReconcileVerdict{Answer: ReconcileUnresolved, Rule: "C4/older_twin"}
	}
	for _, look := range r.Looks[len(r.Looks)-ReconcileLooks:] {
		switch {
		case look.Failed:
			return ReconcileVerdict{Answer: ReconcileUnresolved, Rule: "C4/unreadable"}
		case look.More:
			return ReconcileVerdict{Answer: ReconcileUnresolved, Rule: "C4/incomplete"}
		case len(look.After) == 0 && len(look.Before) == 0:
			return ReconcileVerdict{Answer: ReconcileUnresolved, Rule: "C4/nothing_seen"}
		}
	}
	return ReconcileVerdict{Answer: ReconcileAbsent, Rule: "C4/absent"}
}

// find looks for our message among all that was seen after the anchor: the
// oldest one since the recorded start. twin says that there is one like it that
// is older, so that its absence since is no proof either: the platform's clock
// could be further behind than ClockMargin.
func (r Reconciliation) find() (id string, twin bool) {
	for _, look := range r.Looks {
		for _, m := range look.After {
			switch {
			case !r.matches(m):
			case r.StartID != "" && compareSnowflakes(m.ID, r.StartID) < 0:
				twin = true
			case id == "" || compareSnowflakes(m.ID, id) < 0:
				id = m.ID
			}
		}
	}
	return id, twin
}

func (r Reconciliation) matches(m SeenMessage) bool {
	switch {
	case m.ID == "" || r.Self == "" || m.AuthorID != r.Self:
		return false
	case r.Anchor.ID != "" && compareSnowflakes(m.ID, r.Anchor.ID) <= 0:
		return false
	case slices.Contains(r.Receipted, m.ID):
		return false
	case r.matchable() == "" && r.Attachments == 0:
		return false
	}
	return matchableContent(m.Content) == r.matchable() && m.Attachments == r.Attachments
}

func (r Reconciliation) matchable() string { return matchableContent(r.Content) }

// matchableContent is content as Discord keeps it: without blanks around it,
// with plain line ends.
func matchableContent(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// compareSnowflakes orders ids by number, without a limit to their length.
func compareSnowflakes(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
