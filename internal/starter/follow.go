package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/connect"
)

const (
	// startTimeout bounds a start that the server does not answer.
	startTimeout = 15 * time.Second
	// cancelPatience is how long cancelled work is waited for, and how long the
	// server has to take the request.
	cancelPatience = 5 * time.Second
	// waitSlack is how much earlier than we Temporal may see the end of a wait.
	waitSlack = time.Second
)

// begin starts work. The user's interrupt does not break a start off, as nobody
// could tell then whether there is work to cancel: follow cancels it by its id.
func begin[T any](ctx context.Context, s *session, start func(context.Context) (*holdfast.Handle[T], error)) (*holdfast.Handle[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	s.sent = true
	h, err := start(ctx)
	if err != nil {
		return nil, startError(err)
	}
	return h, nil
}

// bounded is ctx with the limit of --wait-timeout.
func (s *session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.globals.WaitTimeout > 0 {
		return context.WithTimeout(ctx, s.globals.WaitTimeout)
	}
	return context.WithCancel(ctx)
}

// over reports whether the limit of ctx has come. Temporal may say so a moment
// before ctx does.
func over(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && unanswered(err) && time.Until(deadline) < waitSlack
}

// unanswered reports whether err says that the server did not answer in time,
// or not at all.
func unanswered(err error) bool {
	return errors.As(err, new(*serviceerror.Unavailable)) || errors.As(err, new(*serviceerror.DeadlineExceeded)) ||
		errors.Is(err, context.DeadlineExceeded)
}

// followed is the end of a piece of work as the starter saw it.
type followed[T any] struct {
	result  T
	started bool // not waited for, or not to its end
}

// follow waits for the result of started work. The user's interrupt cancels it
// and waits a little for its outcome.
func follow[T any](ctx context.Context, s *session, h *holdfast.Handle[T]) (followed[T], error) {
	if !s.globals.Wait && ctx.Err() == nil {
		return followed[T]{started: true}, nil
	}
	wait, give := s.bounded(context.WithoutCancel(ctx))
	defer give()
	asked := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(s.Err, "cancelling", h.ID())
		time.AfterFunc(cancelPatience, give)
		ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
		defer cancel()
		asked <- h.Cancel(ask)
	})
	defer stop()
	if s.Terminal && !s.globals.JSON && !s.viewed {
		line := liveLine(wait, s, h)
		defer line()
	}
	result, err := h.Get(wait)
	switch {
	case err == nil:
		return followed[T]{result: result}, nil
	case ctx.Err() != nil && wait.Err() != nil:
		return followed[T]{}, &workError{h.ID(), h.RunID(), contract.OutcomeCancelled, "cancelled", left(h.ID(), <-asked)}
	case over(wait, err):
		return followed[T]{started: true}, nil
	}
	return followed[T]{}, ended(h.ID(), h.RunID(), err)
}

// left says what became of work that was left after an interrupt.
func left(id string, err error) string {
	if err != nil {
		return fmt.Sprintf("%s could not be asked to stop: %v; it goes on; try again with: starter cancel %s", id, err, id)
	}
	return fmt.Sprintf("%s was asked to stop and has not ended yet; follow it with: starter watch %s", id, id)
}

// lostError says that Temporal stopped answering while work was waited for.
type lostError struct {
	id, runID string
	err       error
}

func (e *lostError) Error() string {
	return fmt.Sprintf("Temporal stopped answering before %s ended; the work is kept and goes on when the server is back; follow it with: starter watch %s: %v",
		e.id, e.id, e.err)
}

func (e *lostError) Unwrap() error { return e.err }

// ended explains work that closed without an answer of its own.
func ended(id, runID string, err error) error {
	var canceled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch {
	case errors.As(err, &canceled):
		return &workError{id, runID, contract.OutcomeCancelled, "cancelled", id + " was cancelled before it could answer"}
	case errors.As(err, &terminated):
		return &workError{id, runID, contract.OutcomeFailed, "unclassified", id + " was terminated by an operator"}
	case unanswered(err):
		return &lostError{id, runID, err}
	}
	return err
}

// startError sorts the errors of a start.
func startError(err error) error {
	var conflict *holdfast.KeyConflictError
	if errors.As(err, &conflict) || errors.As(err, new(*holdfast.InputError)) {
		return &usageError{err}
	}
	if unanswered(err) {
		return &connect.UnreachableError{Address: "the given address", Err: err}
	}
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return usagef("the namespace %q does not exist; name another with --namespace", missing.Namespace)
	}
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) {
		return usagef("Temporal refused the start: %v", err)
	}
	return err
}

// conclude prints started or finished work and returns its exit status.
func conclude[T any](s *session, h *holdfast.Handle[T], f followed[T], outcome func(T) contract.Outcome, show func(T)) error {
	id, run := h.ID(), h.RunID()
	if f.started {
		s.showStarted(id, run)
		return nil
	}
	if s.globals.JSON {
		s.object(&id, &run, f.result)
	} else {
		show(f.result)
	}
	return end(outcome(f.result))
}

// showStarted says that work goes on and is not waited for.
func (s *session) showStarted(id, runID string) {
	if s.globals.JSON {
		s.object(&id, &runID, map[string]any{"outcome": contract.OutcomeStarted})
		return
	}
	printf(s.Out, "started %s\n", id)
}
