//go:build unix

package spawn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

type ending struct {
	result Result
	err    error
}

// run keeps one operating-system thread for the program's whole life, for the
// kernel takes the end of the thread that started it for our end.
func run(ctx context.Context, c Command) (Result, error) {
	done := make(chan ending, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p := process{command: c, failed: make(chan struct{})}
		result, err := p.run(ctx)
		done <- ending{result, err}
	}()
	end := <-done
	return end.result, end.err
}

// process is a program that runs.
type process struct {
	command Command
	cmd     *exec.Cmd
	// watch is the shell that leads the group; nil without one.
	watch *exec.Cmd
	group int
	// ours are the ends of pipes that stay here, theirs those that the program
	// has and that are closed here once it runs.
	ours, theirs []*os.File
	copies       sync.WaitGroup

	mu sync.Mutex
	// err is the first error of a writer; failed is closed with it.
	err    error
	failed chan struct{}
}

func (p *process) run(ctx context.Context) (Result, error) {
	defer func() { closeAll(p.ours); closeAll(p.theirs) }()
	pumps, err := p.prepare()
	if err != nil {
		return Result{}, err
	}
	if err := p.start(); err != nil {
		return Result{}, err
	}
	for _, pump := range pumps {
		p.copies.Go(pump)
	}
	exited := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- p.supervise(ctx, exited) }()
	awaitExit(p.cmd)
	close(exited)
	cause := <-ended

	killGroup(p.group, syscall.SIGKILL)
	p.cmd.Wait() // its error is how the program ended, which the result says
	if p.watch != nil {
		p.watch.Wait() // was killed
	}
	err = awaitGroup(p.group)
	p.drain()
	result := p.result()
	if cause != nil {
		result.End = Killed
		return result, cause
	}
	if err == nil {
		err = p.failure()
	}
	return result, err
}

// start starts the watch and, in its group, the program.
func (p *process) start() error {
	if p.command.Watch == WatchShell {
		if err := p.startWatch(); err != nil {
			return err
		}
		p.group = p.watch.Process.Pid
	}
	p.cmd.SysProcAttr = attributes(p.command.Watch)
	p.cmd.SysProcAttr.Pgid = p.group
	if err := p.cmd.Start(); err != nil {
		if p.watch != nil {
			killGroup(p.group, syscall.SIGKILL)
			p.watch.Wait()
		}
		return err
	}
	if p.watch == nil {
		p.group = p.cmd.Process.Pid
	}
	closeAll(p.theirs)
	p.theirs = nil
	return nil
}

// startWatch starts a shell that leads a new group and reads from a pipe that
// nobody writes to and whose other end is only here, so that the read ends when
// this process does. It ignores the signal that asks the group to end.
func (p *process) startWatch() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p.ours = append(p.ours, w)
	p.watch = &exec.Cmd{
		Path: shell, Args: []string{shell, "-c", "trap '' TERM HUP INT; read -r line; kill -KILL 0"},
		Env: []string{}, Dir: "/", Stdin: r, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}
	return p.watch.Start()
}

const shell = "/bin/sh"

// limited makes a shell of a command that limits itself and then becomes the
// program. Limiting fails only where less is allowed already.
func limited(cmd *exec.Cmd, limit int64) {
	script := fmt.Sprintf("ulimit -d %d 2>/dev/null\nexec \"$@\"", max(limit>>10, 1))
	cmd.Args = append([]string{shell, "-c", script, shell, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = shell
}

// prepare makes the command and its pipes. What it returns is to run beside the
// program.
func (p *process) prepare() (pumps []func(), err error) {
	c := p.command
	path, err := exec.LookPath(c.Path)
	if err != nil {
		return nil, err
	}
	p.cmd = exec.Command(path, c.Args...)
	p.cmd.Env, p.cmd.Dir, p.cmd.ExtraFiles = c.Env, c.Dir, c.Files
	if p.cmd.Env == nil {
		p.cmd.Env = []string{}
	}
	if c.DataLimit > 0 {
		limited(p.cmd, c.DataLimit)
	}
	if c.Watch == WatchPipe {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.theirs, p.ours = append(p.theirs, r), append(p.ours, w)
		p.cmd.ExtraFiles = append(c.Files[:len(c.Files):len(c.Files)], r)
	}
	in, err := p.input()
	if err != nil {
		return nil, err
	}
	out, err := p.output(&p.cmd.Stdout, c.Stdout)
	if err != nil {
		return nil, err
	}
	diag, err := p.output(&p.cmd.Stderr, c.Stderr)
	if err != nil {
		return nil, err
	}
	for _, pump := range []func(){in, out, diag} {
		if pump != nil {
			pumps = append(pumps, pump)
		}
	}
	return pumps, nil
}

func (p *process) input() (pump func(), err error) {
	from := p.command.Stdin
	if file, ok := from.(*os.File); from == nil || ok {
		if ok {
			p.cmd.Stdin = file
		}
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs, p.ours = append(p.theirs, r), append(p.ours, w)
	p.cmd.Stdin = r
	return func() {
		io.Copy(w, from) // a program that does not read its input says why itself
		w.Close()
	}, nil
}

func (p *process) output(theirs *io.Writer, to io.Writer) (pump func(), err error) {
	if to == nil {
		return nil, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs, p.ours = append(p.theirs, w), append(p.ours, r)
	*theirs = w
	return func() {
		if _, err := io.Copy(to, r); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			p.fail(err)
		}
		r.Close()
	}, nil
}

func (p *process) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
		close(p.failed)
	}
}

func (p *process) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// supervise ends the program when the context or a writer says so, and returns
// that cause; nil if the program ended before. It signals nobody once the
// program has exited.
func (p *process) supervise(ctx context.Context, exited <-chan struct{}) error {
	var cause error
	select {
	case <-exited:
		return nil
	case <-ctx.Done():
		cause = context.Cause(ctx)
	case <-p.failed:
		cause = p.failure()
	}
	killGroup(p.group, syscall.SIGTERM)
	timer := time.NewTimer(p.command.Grace)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
		killGroup(p.group, syscall.SIGKILL)
	}
	return cause
}

// drainTime is how long output is waited for that a process outside the group
// might still write.
const drainTime = time.Second

// drain waits for the rest of the output. The group is gone, so its pipes have
// ended, unless something left the group and took them along.
func (p *process) drain() {
	for _, f := range p.ours {
		f.SetDeadline(time.Now().Add(drainTime)) // no pipe of a closed end needs one
	}
	p.copies.Wait()
}

func (p *process) result() Result {
	state := p.cmd.ProcessState
	r := Result{ExitCode: state.ExitCode(), User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.End, r.Signal = Signalled, status.Signal()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		r.MaxRSS = int64(usage.Maxrss) * rssUnit
	}
	return r
}

// killGroup signals a group; one that is gone needs no signal.
func killGroup(pgid int, signal syscall.Signal) { syscall.Kill(-pgid, signal) }

// groupGone reports whether no process of a group exists, dead ones that nobody
// has waited for included.
func groupGone(pgid int) bool { return errors.Is(syscall.Kill(-pgid, 0), syscall.ESRCH) }

// goneTime bounds the wait for a group that was killed.
const goneTime = 5 * time.Second

// awaitGroup returns when no process of a killed group runs any more.
func awaitGroup(pgid int) error {
	deadline := time.Now().Add(goneTime)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		reap(pgid)
		if groupGone(pgid) {
			return nil
		}
		if onlyDead(pgid) {
			reap(pgid)
			return nil
		}
		if time.Now().After(deadline) {
			return errLeft
		}
		time.Sleep(pause)
	}
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
