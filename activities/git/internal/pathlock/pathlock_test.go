package pathlock

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

const lockName = "holdfast/lock"

// clock is a clock that stands still until it is moved.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.ns.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// waiter counts the tries of one who waits.
type waiter struct {
	tries chan struct{}
	got   chan *Lock
	err   error
}

// wait begins to wait for the lock.
func wait(ctx context.Context, dir string, o Options) *waiter {
	w := &waiter{tries: make(chan struct{}), got: make(chan *Lock, 1)}
	stop := make(chan struct{})
	o.Poll = time.Millisecond
	o.Waits = func() {
		select {
		case w.tries <- struct{}{}:
		case <-stop:
		}
	}
	go func() {
		defer close(w.got)
		l, err := Acquire(ctx, dir, lockName, o)
		w.err = err
		w.got <- l
	}()
	context.AfterFunc(ctx, func() { close(stop) })
	return w
}

// refused checks that some tries more do not get the lock.
func (w *waiter) refused(t *testing.T) {
	t.Helper()
	for range 5 {
		select {
		case <-w.tries:
		case l := <-w.got:
			t.Fatalf("got %v, %v; want to wait", l, w.err)
		case <-time.After(10 * time.Second):
			t.Fatal("neither got nor waiting")
		}
	}
}

// lock is what the waiter gets in the end.
func (w *waiter) lock(t *testing.T) *Lock {
	t.Helper()
	late := time.After(10 * time.Second)
	for {
		select {
		case <-w.tries:
		case l := <-w.got:
			if l == nil {
				t.Fatal(w.err)
			}
			return l
		case <-late:
			t.Fatal("the lock was not got")
		}
	}
}

func acquire(t *testing.T, dir string, o Options) *Lock {
	t.Helper()
	l, err := Acquire(t.Context(), dir, lockName, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

func read(t *testing.T, dir string) lease {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, lockName))
	if err != nil {
		t.Fatal(err)
	}
	var held lease
	if err := json.Unmarshal(content, &held); err != nil {
		t.Fatal(err)
	}
	return held
}

// leave puts what a holder left behind into the place of the lock. As a holder
// does, it never has the file empty between.
func leave(t *testing.T, dir, content string) {
	t.Helper()
	file := filepath.Join(dir, lockName)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteAt([]byte(content), 0)
		err = errors.Join(err, f.Truncate(int64(len(content))), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func leased(t *testing.T, boot string, expires time.Time) string {
	t.Helper()
	content, err := json.Marshal(lease{Owner: "another", Boot: boot, Token: "t", Expires: expires})
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func closed(t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(10 * time.Second):
		t.Fatal(what)
	}
}

// G11: the lock is held by one, says by whom, and is gone when it is released.
func TestLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	l := acquire(t, dir, Options{Owner: "one", Now: c.Now})
	if held := read(t, dir); held.Owner != "one" || held.Boot != BootID() || !held.Expires.Equal(c.Now().Add(time.Minute)) {
		t.Errorf("lease %+v, want one minute of this kernel's", held)
	}
	if l.Unclean() {
		t.Error("a new lock is unclean")
	}
	w := wait(t.Context(), dir, Options{Owner: "two", Now: c.Now})
	w.refused(t)
	c.advance(time.Hour) // a lease that runs out does not end a lock of this kernel's
	w.refused(t)
	l.Release()
	l.Release()
	second := w.lock(t)
	if second.Unclean() {
		t.Error("a lock that was released is unclean")
	}
	second.Release()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// G11: what else lies in the directory of the lock stays.
func TestReleaseLeavesTheRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := acquire(t, dir, Options{})
	other := filepath.Join(dir, "holdfast", "cloned")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Release()
	if left, err := os.ReadDir(filepath.Dir(other)); err != nil || len(left) != 1 || left[0].Name() != "cloned" {
		t.Errorf("left behind: %v, %v; want the file that is not the lock's", left, err)
	}
}

// G11, G5: who waits can be stopped.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acquire(t, dir, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	w := wait(ctx, dir, Options{})
	w.refused(t)
	cancel()
	for {
		select {
		case <-w.tries:
			continue
		case l := <-w.got:
			if l != nil || !errors.Is(w.err, context.Canceled) {
				t.Errorf("%v, %v; want the end of the context", l, w.err)
			}
		case <-time.After(10 * time.Second):
			t.Error("still waiting")
		}
		return
	}
}

// G11: a lease of another kernel is waited for until it has run out; one of this
// kernel that nobody holds is taken at once.
func TestLeases(t *testing.T) {
	t.Parallel()
	start := newClock().Now()
	for _, tc := range []struct {
		name    string
		content func(t *testing.T) string
		wait    time.Duration
		unclean bool
	}{
		{"of this kernel", func(t *testing.T) string { return leased(t, BootID(), start.Add(time.Hour)) }, 0, true},
		{"of another, over", func(t *testing.T) string { return leased(t, "other", start) }, 0, true},
		{"of another, running", func(t *testing.T) string { return leased(t, "other", start.Add(30*time.Second)) }, 30 * time.Second, true},
		{"of another whose clock is wrong", func(t *testing.T) string { return leased(t, "other", start.Add(time.Hour)) }, time.Minute, true},
		{"unreadable", func(*testing.T) string { return `{"owner":"x` }, time.Minute, true},
		{"empty", func(*testing.T) string { return "" }, 0, false},
	} {
		dir := t.TempDir()
		leave(t, dir, tc.content(t))
		c := newClock()
		w := wait(t.Context(), dir, Options{Now: c.Now})
		if tc.wait > 0 {
			w.refused(t)
			c.advance(tc.wait - time.Second)
			w.refused(t)
			c.advance(time.Second)
		}
		l := w.lock(t)
		if l.Unclean() != tc.unclean {
			t.Errorf("%s: unclean is %v, want %v", tc.name, l.Unclean(), tc.unclean)
		}
		l.Release()
	}
}

// G11: as long as a holder on another host renews, its lock is waited for.
func TestRenewedLeaseIsWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	leave(t, dir, leased(t, "other", c.Now().Add(time.Minute)))
	w := wait(t.Context(), dir, Options{Now: c.Now})
	for range 5 {
		w.refused(t)
		leave(t, dir, leased(t, "other", c.Now().Add(80*time.Second)))
		w.refused(t)
		c.advance(20 * time.Second)
	}
	w.refused(t)
	c.advance(time.Minute)
	w.lock(t).Release()
}

// G11: the lease is renewed.
func TestRenewal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := newClock()
	l := acquire(t, dir, Options{Now: c.Now, Renew: time.Millisecond})
	for range 3 {
		c.advance(20 * time.Second)
		for deadline := time.Now().Add(10 * time.Second); !read(t, dir).Expires.Equal(c.Now().Add(time.Minute)); {
			if time.Now().After(deadline) {
				t.Fatal("the lease was not renewed")
			}
		}
	}
	select {
	case <-l.Lost():
		t.Error("lost without cause")
	default:
	}
}

// G11: a holder whose lock was taken, or whose file was removed, is told, and
// leaves the new holder's lock alone.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(t *testing.T, dir string){
		"taken":   func(t *testing.T, dir string) { leave(t, dir, leased(t, "other", time.Now().Add(time.Hour))) },
		"spoiled": func(t *testing.T, dir string) { leave(t, dir, "x") },
		"removed": func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "holdfast")); err != nil {
				t.Error(err)
			}
		},
		"replaced": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
				t.Error(err)
			}
			leave(t, dir, leased(t, "other", time.Now().Add(time.Hour)))
		},
	} {
		dir := t.TempDir()
		l := acquire(t, dir, Options{Renew: time.Millisecond})
		take(t, dir)
		closed(t, l.Lost(), name+": the loss was not noticed")
		l.Release()
		if _, err := os.Stat(filepath.Join(dir, lockName)); (err == nil) != (name != "removed") {
			t.Errorf("%s: after the release: %v", name, err)
		}
	}
}

// G12: links in the place of the lock lead nowhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		make func(dir, outside string) error
	}{
		{"directory to outside", func(dir, outside string) error { return os.Symlink(outside, filepath.Join(dir, "holdfast")) }},
		{"directory to inside", func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "x"), 0o700), os.Symlink("x", filepath.Join(dir, "holdfast")))
		}},
		{"file to outside", func(dir, outside string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "holdfast"), 0o700), os.Symlink(filepath.Join(outside, "file"), filepath.Join(dir, lockName)))
		}},
		{"file to inside", func(dir, _ string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "holdfast"), 0o700), os.WriteFile(filepath.Join(dir, "config"), []byte("x"), 0o600), os.Symlink("../config", filepath.Join(dir, lockName)))
		}},
		{"directory is a file", func(dir, _ string) error { return os.WriteFile(filepath.Join(dir, "holdfast"), nil, 0o600) }},
		{"file is a directory", func(dir, _ string) error { return os.MkdirAll(filepath.Join(dir, lockName), 0o700) }},
	} {
		dir, outside := t.TempDir(), t.TempDir()
		if err := tc.make(dir, outside); err != nil {
			t.Fatal(err)
		}
		l, err := Acquire(t.Context(), dir, lockName, Options{})
		if !errors.Is(err, ErrNotALock) {
			t.Errorf("%s: %v, %v; want ErrNotALock", tc.name, l, err)
		}
		if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
			t.Errorf("%s: outside: %v, %v", tc.name, left, err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "config")); err == nil && string(content) != "x" {
			t.Errorf("%s: another file was written to: %s", tc.name, content)
		}
	}
	if _, err := Acquire(t.Context(), filepath.Join(t.TempDir(), "missing"), lockName, Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is missing: %v", err)
	}
}

// G11: however many come and go at once, there is never more than one holder.
func TestManyHoldersOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const holders, times = 8, 25
	var crew sync.WaitGroup
	for range holders {
		crew.Go(func() {
			if err := holdOften(t.Context(), dir, times); err != nil {
				t.Error(err)
			}
		})
	}
	const processes = 3
	for range processes {
		p := start(t, "often", dir)
		crew.Go(func() {
			if said := p.rest(); said != "done" {
				t.Errorf("a process said %q", said)
			}
		})
	}
	crew.Wait()
	content, err := os.ReadFile(filepath.Join(dir, "count"))
	if want := strings.Repeat("x", times*(holders+processes)); err != nil || string(content) != want {
		t.Errorf("%d turns, %v; want %d", len(content), err, len(want))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "holdfast*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// holdOften takes the lock again and again and looks each time whether it is
// alone.
func holdOften(ctx context.Context, dir string, times int) error {
	for range times {
		l, err := Acquire(ctx, dir, lockName, Options{Poll: time.Millisecond})
		if err != nil {
			return err
		}
		err = alone(dir)
		if l.Unclean() {
			err = errors.Join(err, errors.New("a released lock is unclean"))
		}
		l.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func alone(dir string) error {
	inside := filepath.Join(dir, "inside")
	f, err := os.OpenFile(inside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	count, err := os.OpenFile(filepath.Join(dir, "count"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = count.WriteString("x")
		count.Close()
	}
	return errors.Join(err, os.Remove(inside))
}
