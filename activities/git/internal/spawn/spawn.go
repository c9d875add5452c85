// Package spawn runs a program so that nothing of it outlives the call, nor the
// process that made it.
//
// The program has a process group of its own. When the context ends, the group
// is asked to end and, after a grace, killed; when the program ends, what is left
// of its group is killed. When this process dies, the kernel kills the program
// (on Linux), and a watch kills the rest of the group: the programs that the
// program started, which the kernel does not know as ours.
package spawn

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// DefaultGrace is the time between asking a group to end and killing it.
const DefaultGrace = 2 * time.Second

// Watch is who kills the group when this process dies.
type Watch int

const (
	// WatchNone leaves it to the kernel, which kills the program only.
	WatchNone Watch = iota
	// WatchShell starts a shell in the group that waits for this process's end and
	// then kills the group. It is for programs that are not ours.
	WatchShell
	// WatchPipe gives the program, behind Files, the read end of a pipe that ends
	// with this process. The program then kills its group, itself included; the
	// kernel does not, for it would come first and know only the program.
	WatchPipe
)

// Command is a program to run.
type Command struct {
	// Path of the program, absolute or to be found in PATH.
	Path string
	// Args are its arguments, without its name.
	Args []string
	// Env is its whole environment; nothing is inherited.
	Env []string
	// Dir is its directory. Defaults to that of this process.
	Dir string

	// Stdin is read by the program. A file is handed over as it is; of any other
	// reader, Read must come to an end. Defaults to nothing.
	Stdin io.Reader
	// Stdout and Stderr are given what the program writes. An error of theirs
	// ends the program. Default to nothing.
	Stdout, Stderr io.Writer
	// Files are inherited as file descriptors 3, 4, …, and not by the watch.
	Files []*os.File

	// DataLimit is the most memory that each process of the group may have, in
	// bytes: RLIMIT_DATA. Defaults to no limit.
	DataLimit int64
	// Grace defaults to DefaultGrace.
	Grace time.Duration
	// Watch defaults to WatchNone.
	Watch Watch
}

// End is how a program came to its end.
type End int

const (
	// Exited by itself.
	Exited End = iota
	// Killed by us: the context ended, or a writer failed.
	Killed
	// Signalled by somebody else, or by the kernel.
	Signalled
)

// Result of a program that was started.
type Result struct {
	End End
	// ExitCode is -1 for a program that a signal ended.
	ExitCode int
	// Signal is what ended the program, 0 if it exited.
	Signal syscall.Signal
	// User and System are the processor time of the program and of those that it
	// started and waited for.
	User, System time.Duration
	// MaxRSS is the most memory that one of them held, in bytes.
	MaxRSS int64
}

// Run runs a program to its end. The error is that of a program that could not
// be started, the cause of the context's end or the error of a writer if one of
// these ended the program; nil for a program that ended otherwise, however that
// was. When Run returns, no process of the group is left.
func Run(ctx context.Context, c Command) (Result, error) {
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if ctx.Err() != nil {
		return Result{}, context.Cause(ctx)
	}
	return run(ctx, c)
}

// errLeft is for a group that survives its killing, as a process does that waits
// for a broken disk.
var errLeft = errors.New("spawn: a process could not be killed; look for a file system that does not answer")
