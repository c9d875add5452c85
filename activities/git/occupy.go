package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pathlock"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// checkoutLock is the file of a checkout's lock in its common directory.
const checkoutLock = "holdfast/lock"

// Failures of the lock of a checkout or of a clone's target (G11).
var (
	errLockLost = &localError{reason: policies.ReasonLock, rule: "G11/lost", retry: true,
		message: "another worker took the checkout over, for this one had not renewed its lock in time; the operation was ended"}
	errLockTaken = refuse(policies.ReasonFormat, "G12/lock", "something else lies in the place of the checkout's lock; remove the entry \"holdfast\" from its git directory, or, for a clone, the one named like its target that ends with \".holdfast\"")
	errNoLocks   = refuse(policies.ReasonFormat, "G11/lock", "this system, or the file system of the checkout, has no file locks; use another for managed checkouts")
	errMoved     = refuse(policies.ReasonConflict, "G11/moved", "another repository came into the place of the checkout while its lock was waited for; try again")
)

// errWrongHost is a checkout that another host may have on its disk (G11).
var errWrongHost = refuse(policies.ReasonFormat, "G11/host", "the checkout is in no directory that git.shared_roots declares, so only the worker on its own host can work in it; name that host with --host")

// place is where a repository is, before it is opened.
type place struct{ gitDir, common string }

// find finds a repository that lies in the roots with all of its parts and may be
// worked in from the task queue that the activity came by.
func (a *Activities) find(ctx context.Context, dir string) (place, error) {
	if dir != "" {
		if err := a.onHost(ctx, nearest(dir)); err != nil {
			return place{}, err
		}
	}
	gitDir, err := findGitDir(dir, a.roots)
	if err != nil {
		return place{}, err
	}
	common, err := commonDir(gitDir, a.roots)
	if err != nil {
		return place{}, err
	}
	for _, part := range []string{gitDir, common} {
		if err := a.onHost(ctx, part); err != nil {
			return place{}, err
		}
	}
	return place{gitDir, common}, nil
}

// nearest is a path as far as it can be resolved: what another host has on its
// disk may not be there on this one.
func nearest(dir string) string {
	if real, err := realPath(dir); err == nil {
		return real
	}
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// onHost checks that a resolved path is on the disk of whoever serves the
// activity's task queue: on the queue that all hosts serve, in a shared root.
func (a *Activities) onHost(ctx context.Context, real string) error {
	if activity.GetInfo(ctx).TaskQueue != contract.QueueGit || len(a.shared) > 0 && a.shared.hold(real) {
		return nil
	}
	return errWrongHost
}

// inCheckout does work in a checkout while nobody else does (G11). What a holder
// that died left behind is removed before, and what the work leaves, after. The
// context of the work ends if the lock is lost.
func (a *Activities) inCheckout(ctx context.Context, dir string, p *progress, work func(context.Context, *checkout) error) error {
	at, err := a.find(ctx, dir)
	if err != nil {
		return err
	}
	return a.locked(ctx, at.common, checkoutLock, p, func(ctx context.Context, lock *pathlock.Lock) error {
		if err := sweepWork(at.common); err != nil {
			return checkoutError(err)
		}
		c, err := openCheckout(dir, a.roots)
		if err != nil {
			return err
		}
		if c.common != at.common || c.gitDir != at.gitDir {
			return errMoved
		}
		c.lock = lock.File()
		err = work(ctx, c)
		c.close()
		if ctx.Err() == nil || !errors.Is(context.Cause(ctx), errLockLost) {
			sweepWork(at.common) // if not all of it goes, the next holder tries again
		}
		return err
	})
}

// locked does work under the lock whose file is name below dir.
func (a *Activities) locked(ctx context.Context, dir, name string, p *progress, work func(context.Context, *pathlock.Lock) error) error {
	before := p.phase.Load()
	o := a.locks
	o.Owner, o.Waits = a.owner(ctx), func() { p.enter(phaseLock) }
	lock, err := pathlock.Acquire(ctx, dir, name, o)
	switch {
	case errors.Is(err, pathlock.ErrNotALock):
		return errLockTaken
	case errors.Is(err, errors.ErrUnsupported):
		return errNoLocks
	case ctx.Err() != nil && lock == nil:
		return ctx.Err()
	case err != nil:
		return placeError(err)
	}
	defer lock.Release()
	p.enter(before)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-lock.Lost():
			cancel(errLockLost)
		case <-stop:
		}
	}()
	err = work(ctx, lock)
	if err != nil && errors.Is(context.Cause(ctx), errLockLost) {
		return errLockLost
	}
	return err
}

// placeError says of an error that stands for itself nowhere else that it was met
// on the disk of the checkout, and not at the remote.
func placeError(err error) error {
	var local *localError
	if err == nil || errors.As(err, &local) || localFault(err) != nil {
		return err
	}
	return refuse(policies.ReasonFormat, "G11/place", "the checkout, or the directory above it, could not be read or written; check that it is a directory and that its disk works")
}

// owner says whose a lock is, to a person who looks into its file.
func (a *Activities) owner(ctx context.Context) string {
	return fmt.Sprintf("%s: %.200s", a.host, activity.GetInfo(ctx).WorkflowExecution.ID)
}
