// Package pathlock is a lock on a path: one holder at a time among all the
// workers, and the programs they start, that see the same file (G11).
//
// The lock is a kernel lock (flock) on a file, so that it ends with the last
// process that has the file open: a holder that is killed leaves it to the
// programs it started and gave the file to, and once those have ended too it is
// free at once. The file also holds a lease, which its holder renews: where the
// kernel lock is another kernel's, on storage that several hosts see, only the
// lease says whether the holder lives. A lease of this kernel's that nobody
// holds the kernel lock to is a dead holder's; one of another kernel is waited
// for until it has run out. Hosts that share storage need clocks that agree to
// within half a lease.
//
// Whoever releases a lock removes its file. A file that was removed while others
// had it open is no lock any more; they look for that once they have it.
package pathlock

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"
)

// ErrNotALock is what Acquire returns where something else is in the place of
// the lock's file or its directory.
var ErrNotALock = errors.New("pathlock: what is in the place of the lock is no lock")

// Options of a lock. The zero value is what a worker needs.
type Options struct {
	// Owner says to a person who looks into the file who the holder is.
	Owner string
	// BootID names the running kernel. Defaults to BootID().
	BootID string
	// Lease is how long a holder of another kernel is believed to live without
	// renewing. Defaults to 60 s.
	Lease time.Duration
	// Renew is the time between two renewals. Defaults to a third of Lease.
	Renew time.Duration
	// Poll is the time between two tries. Defaults to 25 ms.
	Poll time.Duration
	// Waits is called after every try that did not get the lock; optional.
	Waits func()
	// Now is the clock of leases. Defaults to time.Now.
	Now func() time.Time
}

func (o *Options) setDefaults() {
	if o.BootID == "" {
		o.BootID = BootID()
	}
	if o.Lease == 0 {
		o.Lease = 60 * time.Second
	}
	if o.Renew == 0 {
		o.Renew = o.Lease / 3
	}
	if o.Poll == 0 {
		o.Poll = 25 * time.Millisecond
	}
	if o.Waits == nil {
		o.Waits = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// lease is the content of the file while the lock is held.
type lease struct {
	Owner   string    `json:"owner"`
	Boot    string    `json:"boot"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
}

// maxLease bounds what is read of a file.
const maxLease = 4 << 10

// Lock is a lock that is held.
type Lock struct {
	root *os.Root
	name string
	file *os.File
	o    Options

	lease   lease
	unclean bool

	release sync.Once
	stop    chan struct{}
	kept    chan struct{} // closed when the renewal has ended
	lost    chan struct{}
}

// Acquire waits for the lock whose file is name, a path below dir. The directory
// of the file is made if it is missing, and removed with the file when it is
// empty then. Nothing outside dir is touched, whatever links lie in it.
//
// It returns the error of ctx if that ends first, ErrNotALock, errors.
// ErrUnsupported where there are no kernel locks, and errors of the file system.
func Acquire(ctx context.Context, dir, name string, o Options) (*Lock, error) {
	o.setDefaults()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	a := &acquirer{root: root, name: name, o: o}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
			continue
		case <-timer.C:
		}
		var l *Lock
		if l, err = a.try(); l != nil {
			go l.keep()
			return l, nil
		}
		o.Waits()
		timer.Reset(o.Poll)
	}
	root.Close()
	return nil, err
}

// acquirer is one who waits for a lock.
type acquirer struct {
	root *os.Root
	name string
	o    Options
	// seen is the lease that is waited for, and since when it has not changed.
	seen  []byte
	since time.Time
}

// try takes the lock if it is free. Neither a lock nor an error means that it is
// not, or that its file has just been removed.
func (a *acquirer) try() (*Lock, error) {
	f, err := a.open()
	if f == nil {
		return nil, err
	}
	l, err := a.take(f)
	if l == nil {
		f.Close()
	}
	return l, err
}

// open opens the file, and makes it and its directory if need be. No file and no
// error means that the directory went away meanwhile.
func (a *acquirer) open() (*os.File, error) {
	if dir := path.Dir(a.name); dir != "." {
		if err := a.root.Mkdir(dir, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		info, err := a.root.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, ErrNotALock
		}
	}
	if info, err := a.root.Lstat(a.name); err == nil && !info.Mode().IsRegular() {
		return nil, ErrNotALock
	}
	f, err := a.root.OpenFile(a.name, os.O_RDWR|os.O_CREATE, 0o666)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// take locks an open file, unless it is locked, no longer in its place, or
// leased to another kernel.
func (a *acquirer) take(f *os.File) (*Lock, error) {
	if locked, err := lockFile(f); err != nil || !locked {
		return nil, err
	}
	if placed, err := inPlace(a.root, a.name, f); err != nil || !placed {
		return nil, err
	}
	content, err := readFile(f)
	if err != nil || !a.free(content) {
		return nil, err
	}
	l := &Lock{
		root: a.root, name: a.name, file: f, o: a.o,
		lease:   lease{Owner: a.o.Owner, Boot: a.o.BootID, Token: rand.Text()},
		unclean: len(content) > 0,
		stop:    make(chan struct{}), kept: make(chan struct{}), lost: make(chan struct{}),
	}
	if err := l.write(); err != nil {
		f.Truncate(0) // half a lease would be waited for
		return nil, err
	}
	return l, nil
}

// free reports whether the lease in a file that we have locked is over. One that
// does not change for as long as a lease lasts is over whatever it says: its
// holder's clock is wrong, or it died while it wrote.
func (a *acquirer) free(content []byte) bool {
	if len(content) == 0 {
		return true
	}
	held, err := parse(content)
	now := a.o.Now()
	if err == nil && (held.Boot == a.o.BootID || !now.Before(held.Expires)) {
		return true
	}
	if !bytes.Equal(content, a.seen) {
		a.seen, a.since = content, now
	}
	return now.Sub(a.since) >= a.o.Lease
}

// File is the locked file, to be given to every program that works under the
// lock. It must not be closed.
func (l *Lock) File() *os.File { return l.file }

// Unclean reports whether the holder before died with the lock, so that what it
// was making is still there.
func (l *Lock) Unclean() bool { return l.unclean }

// Lost is closed when the lock was taken from us, or its file was removed: the
// work under it must end.
func (l *Lock) Lost() <-chan struct{} { return l.lost }

// Release gives the lock up. Every program that was given the file must have
// ended. A lock that was lost is left to its new holder.
func (l *Lock) Release() {
	l.release.Do(func() {
		close(l.stop)
		<-l.kept
		if ours, err := l.ours(); ours && err == nil {
			l.root.Remove(l.name) // if it stays, the next holder finds it unclean
		}
		l.file.Close()
		if dir := path.Dir(l.name); dir != "." {
			l.root.Remove(dir) // unless something is in it
		}
		l.root.Close()
	})
}

// keep renews the lease until the lock is released or lost.
func (l *Lock) keep() {
	defer close(l.kept)
	ticker := time.NewTicker(l.o.Renew)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			if !l.renew() {
				close(l.lost)
				return
			}
		}
	}
}

// renew reports whether the lock is still ours. A disk that fails is borne until
// the lease is over.
func (l *Lock) renew() bool {
	ours, err := l.ours()
	if err == nil && ours {
		err = l.write()
	}
	if err != nil {
		return l.o.Now().Before(l.lease.Expires)
	}
	return ours
}

// ours reports whether the file is in its place and has our lease in it.
func (l *Lock) ours() (bool, error) {
	if placed, err := inPlace(l.root, l.name, l.file); err != nil || !placed {
		return false, err
	}
	content, err := readFile(l.file)
	if err != nil {
		return false, err
	}
	held, err := parse(content)
	return err == nil && held.Token == l.lease.Token, nil
}

// write writes the lease, from now on.
func (l *Lock) write() error {
	next := l.lease
	next.Expires = l.o.Now().Add(l.o.Lease)
	content, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if _, err := l.file.WriteAt(append(content, '\n'), 0); err != nil {
		return err
	}
	if err := l.file.Truncate(int64(len(content)) + 1); err != nil {
		return err
	}
	l.lease = next
	return nil
}

func readFile(f *os.File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, maxLease))
}

// parse reads the lease at the beginning of a file; what follows it is the rest
// of a longer one.
func parse(content []byte) (held lease, err error) {
	err = json.NewDecoder(bytes.NewReader(content)).Decode(&held)
	return held, err
}

// inPlace reports whether an open file is still what lies under its name.
func inPlace(root *os.Root, name string, f *os.File) (bool, error) {
	there, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	open, err := f.Stat()
	if err != nil {
		return false, err
	}
	return there.Mode().IsRegular() && os.SameFile(there, open), nil
}
