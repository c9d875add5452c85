package measure

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Cost is what something took.
type Cost struct {
	Wall time.Duration `json:"wall"`
	// CPU is user and system time, with that of the processes that were started
	// and have ended.
	CPU time.Duration `json:"cpu"`
}

// Program runs a program to its end. A program that fails is an error with what
// it wrote to standard error.
func Program(cmd *exec.Cmd) (Cost, error) {
	began := time.Now()
	_, err := cmd.Output()
	wall := time.Since(began)
	if err != nil {
		return Cost{}, explain(cmd, err)
	}
	// The kernel adds up what a process waited for.
	return Cost{Wall: wall, CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, nil
}

// ProgramMemory runs a program to its end and says what memory it had.
func ProgramMemory(cmd *exec.Cmd) (Memory, error) {
	if err := cmd.Start(); err != nil {
		return Memory{}, err
	}
	stop := Watch(cmd.Process.Pid)
	err := cmd.Wait()
	m := stop()
	if err != nil {
		return Memory{}, explain(cmd, err)
	}
	return m, nil
}

func explain(cmd *exec.Cmd, err error) error {
	if exit, ok := err.(*exec.ExitError); ok {
		return fmt.Errorf("%v: %w: %s", cmd.Args, err, exit.Stderr)
	}
	return fmt.Errorf("%v: %w", cmd.Args, err)
}

// Self measures what this process and the processes that it starts take until
// the returned function is called. Processes that have not ended by then are
// left out.
func Self() func() Cost {
	before := spent()
	began := time.Now()
	return func() Cost {
		wall := time.Since(began)
		return Cost{Wall: wall, CPU: spent() - before}
	}
}

func spent() (cpu time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			panic(err) // for an argument that does not exist
		}
		cpu += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return cpu
}

// ForgetPeak makes the most memory that this process has had what it has now.
func ForgetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// Spent is the processor time that another process and its ended children have
// taken so far, to 10 ms.
func Spent(pid int) (time.Duration, error) {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on every Linux
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The program's name, in parentheses, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 15 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks time.Duration
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}
