package git

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// HeartbeatEvery is the time between two heartbeats of a Git activity.
const HeartbeatEvery = 500 * time.Millisecond

// task is what one activity does.
type task[T any] struct {
	operation policies.Operation
	in        contract.GitRequest
	do        func(context.Context, contract.GitRequest, *progress) (T, error)
	// gate is what a push has to pass before it begins; nil for other work.
	gate *gate
}

// gate is passed by a push that begins, or shut by an activity that gives up
// before, whichever comes first.
type gate struct{ state atomic.Int32 }

func (g *gate) pass() bool { return g.state.CompareAndSwap(0, 1) }
func (g *gate) shut() bool { return g.state.CompareAndSwap(0, 2) }

// ending is what the work of one activity came to.
type ending[T any] struct {
	result T
	err    error
}

// perform does a task within its limit, with heartbeats, and returns at once when
// the limit passes or the activity is cancelled. Work left behind then ends by
// itself: its processes are killed, it moves no ref once its context is done, and
// it holds the lock of its checkout until it has cleaned up, so that the next
// attempt waits for it.
func perform[T any](ctx context.Context, a *Activities, t task[T]) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(t.in.LimitMS)*time.Millisecond)
	defer cancel()
	rec := attempt.New()
	p := &progress{}
	p.enter(phaseConnect)
	done := make(chan ending[T], 1)
	a.work.Go(func() {
		result, err := t.do(attempt.With(ctx, rec), t.in, p)
		done <- ending[T]{result, err}
	})

	ticker := time.NewTicker(a.heartbeat)
	defer ticker.Stop()
	for {
		select {
		case end := <-done:
			return finish(ctx, a, t, rec, p, end)
		case <-ctx.Done():
			select {
			case end := <-done:
				return finish(ctx, a, t, rec, p, end)
			default:
				var none T
				return none, a.interrupted(ctx, t.operation, t.gate, p)
			}
		case <-ticker.C:
			activity.RecordHeartbeat(ctx, p.snapshot())
		}
	}
}

// finish is how an activity whose work has ended ends. A failure after the end
// of the context is of that end.
func finish[T any](ctx context.Context, a *Activities, t task[T], rec *attempt.Record, p *progress, end ending[T]) (T, error) {
	var none T
	switch {
	case end.err == nil:
		return end.result, nil
	case ctx.Err() != nil:
		return none, a.interrupted(ctx, t.operation, t.gate, p)
	}
	return none, a.fail(t.operation, rec, end.err)
}

// interrupted says why the context ended the work: the operation's time is
// spent, the worker is stopping, or the work was cancelled.
func (a *Activities) interrupted(ctx context.Context, op policies.Operation, g *gate, p *progress) error {
	unsent := g != nil && g.shut()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return report(a.timeout(op, unsent, p))
	}
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		f := (&localError{
			reason: policies.ReasonWorkerLost, rule: "G3/worker_lost", retry: true,
			message: "the worker stopped before the operation ended",
		}).failure()
		if unsent {
			f.Effect = string(policies.EffectNotSent)
		}
		return report(f)
	default:
		return temporal.NewCanceledError()
	}
}

func (a *Activities) timeout(op policies.Operation, unsent bool, p *progress) contract.Failure {
	fault := policies.Fault{Surface: policies.SurfaceGit, Operation: op, Termination: "timeout"}
	message := "the operation's time was spent; give it more with --timeout"
	if p.phase.Load() == phaseLock {
		message = "the operation's time was spent waiting for another one that works in the same checkout; try again later, or give it more time with --timeout"
	}
	f := failure.FromVerdict(&fault, a.judge(&fault), message)
	if unsent {
		f.Effect = string(policies.EffectNotSent)
	}
	return f
}

// Wait waits for the work that activities left behind when they were cancelled
// or ran out of time, or for the end of ctx. It is for a worker that has stopped:
// no activity may start meanwhile.
func (a *Activities) Wait(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		a.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
