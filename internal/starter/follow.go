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

// cancelPatience is how long the outcome of cancelled work is waited for.
const cancelPatience = 5 * time.Second

// followed is the end of a piece of work as the starter saw it.
type followed[T any] struct {
	result  T
	started bool // not waited for, or not to its end
}

// follow waits for the result of started work. The user's interrupt cancels it
// and waits a little for its outcome.
func follow[T any](ctx context.Context, s *session, h *holdfast.Handle[T]) (followed[T], error) {
	if !s.globals.Wait {
		return followed[T]{started: true}, nil
	}
	wait := context.WithoutCancel(ctx)
	if s.globals.WaitTimeout > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(wait, s.globals.WaitTimeout)
		defer cancel()
	}
	wait, give := context.WithCancel(wait)
	defer give()
	stop := context.AfterFunc(ctx, func() {
		fmt.Fprintln(s.Err, "cancelling", h.ID())
		_ = h.Cancel(context.WithoutCancel(ctx))
		time.AfterFunc(cancelPatience, give)
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
		return followed[T]{}, &workError{h.ID(), h.RunID(), contract.OutcomeCancelled, "cancelled", fmt.Sprintf(
			"%s was asked to stop and has not ended yet; follow it with: starter watch %s", h.ID(), h.ID())}
	case wait.Err() != nil, s.globals.WaitTimeout > 0 && errors.As(err, new(*serviceerror.DeadlineExceeded)):
		// Temporal may see the end of the wait a moment before we do.
		return followed[T]{started: true}, nil
	}
	return followed[T]{}, ended(h.ID(), h.RunID(), err)
}

// ended explains work that closed without an answer of its own.
func ended(id, runID string, err error) error {
	var canceled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	switch {
	case errors.As(err, &canceled):
		return &workError{id, runID, contract.OutcomeCancelled, "cancelled", id + " was cancelled before it could answer"}
	case errors.As(err, &terminated):
		return &workError{id, runID, contract.OutcomeFailed, "unclassified", id + " was terminated by an operator"}
	case errors.As(err, new(*serviceerror.Unavailable)):
		return &connect.UnreachableError{Address: "the given address", Err: err}
	}
	return err
}

// startError sorts the errors of a start.
func startError(err error) error {
	var conflict *holdfast.KeyConflictError
	if errors.As(err, &conflict) || errors.As(err, new(*holdfast.InputError)) {
		return &usageError{err}
	}
	if errors.As(err, new(*serviceerror.Unavailable)) || errors.Is(err, context.DeadlineExceeded) {
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
		if s.globals.JSON {
			s.object(&id, &run, map[string]any{"outcome": contract.OutcomeStarted})
		} else {
			fmt.Fprintln(s.Out, "started", id)
		}
		return nil
	}
	if s.globals.JSON {
		s.object(&id, &run, f.result)
	} else {
		show(f.result)
	}
	return end(outcome(f.result))
}
