package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/simulator"
)

// BrokenError says that Holdfast did not do what the demo shows. The output
// names each broken promise where it happened.
type BrokenError struct{ Promises []string }

func (e *BrokenError) Error() string {
	return "the demo did not go as promised: " + strings.Join(e.Promises, "; ")
}

// Run shows what Holdfast does, with the simulators of r as the outside: it
// plays each story, prints its timeline to r.Out, and ends with the count of
// effects and what to try next. A promise that was not kept is a [BrokenError],
// returned when all stories have been told.
func Run(ctx context.Context, r *standalone.Ready) error {
	if r.World == nil {
		return errNoWorld
	}
	s := &stage{ready: r, client: holdfast.New(r.Client), id: strings.ToLower(holdfast.NewKey()[:6])}
	out := newPrinter(r.Out)
	out.legend()
	var all []told
	broken := &BrokenError{}
	for i, story := range stories() {
		out.title(i+1, story.title)
		t, err := story.play(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return errors.Join(out.err, fmt.Errorf("story %d: %w", i+1, err))
		}
		out.story(t)
		all = append(all, t)
		broken.Promises = append(broken.Promises, t.broken...)
	}
	out.closing(s, all)
	switch {
	case out.err != nil:
		return fmt.Errorf("write the demo: %w", out.err)
	case len(broken.Promises) > 0:
		return broken
	}
	return nil
}

// stage is where the stories are played.
type stage struct {
	ready  *standalone.Ready
	client *holdfast.Client
	// id is new in every demo, so that no key was used before.
	id string

	review   *contract.Review // left by the send that needs one
	checkout string
}

func (s *stage) key(name string) string { return "demo-" + s.id + "-" + name }

func (s *stage) servers() map[string]*simulator.Server {
	servers := s.ready.World.Servers()
	servers["backup"] = s.ready.World.Backup.Server
	return servers
}

// mark remembers where each ledger ends.
func (s *stage) mark() map[string]int {
	marks := map[string]int{}
	for name, server := range s.servers() {
		if all := server.Ledger().Requests(""); len(all) > 0 {
			marks[name] = all[len(all)-1].N
		}
	}
	return marks
}

// since is what a ledger gained after a mark.
func (s *stage) since(marks map[string]int, name string) ledger {
	l := ledger{Name: name}
	from := s.servers()[name].Ledger()
	for _, r := range from.Requests("") {
		if r.N > marks[name] {
			l.Requests = append(l.Requests, r)
		}
	}
	for _, e := range from.Effects("") {
		if e.Request > marks[name] {
			l.Effects = append(l.Effects, e)
		}
	}
	return l
}

// follow waits for the end of a piece of work and hears both witnesses. err is
// that of the start.
func follow[T any](ctx context.Context, s *stage, marks map[string]int, h *holdfast.Handle[T], err error, names ...string) (T, told, error) {
	var result T
	if err != nil {
		return result, told{}, err
	}
	t := told{id: h.ID()}
	if result, err = h.Get(ctx); err != nil {
		return result, t, err
	}
	events, err := s.history(ctx, h.ID(), h.RunID())
	if err != nil {
		return result, t, err
	}
	x, err := readHistory(events)
	if err != nil {
		return result, t, fmt.Errorf("history of %s: %w", h.ID(), err)
	}
	for _, name := range names {
		if err := s.servers()[name].Ledger().WaitIdle(ctx); err != nil {
			return result, t, err
		}
		t.ledgers = append(t.ledgers, s.since(marks, name))
	}
	var strays []simulator.Request
	t.lines, strays = timeline(x, t.ledgers)
	t.expect(len(strays) == 0, "%s to the outside belong to no attempt in the history", plural(len(strays), "request"))
	for _, l := range t.lines {
		t.expect(!l.decision.undercut(), "%s was repeated before the time that was asked for", l.request)
	}
	return result, t, nil
}

func (s *stage) history(ctx context.Context, id, runID string) ([]*historypb.HistoryEvent, error) {
	var events []*historypb.HistoryEvent
	iter := s.ready.Client.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iter.HasNext() {
		e, err := iter.Next()
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}
