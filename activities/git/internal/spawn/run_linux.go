package spawn

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// rssUnit is what Rusage counts memory in.
const rssUnit = 1024

func attributes(w Watch) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if w != WatchPipe {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}

// awaitExit returns when a program has ended and leaves it to be waited for, so
// that its number, which may be that of its group, cannot be another's yet.
func awaitExit(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// reap waits for the dead of a group that became our children because this
// process is the first of its container.
func reap(pgid int) {
	for {
		pid, err := unix.Wait4(-pgid, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}

// onlyDead reports whether all that is left of a group has ended and waits for
// its parent to look.
func onlyDead(pgid int) bool {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return false
	}
	group := []byte(strconv.Itoa(pgid))
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it is gone
		}
		// "pid (name) state ppid pgrp …", and a name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 3 || !bytes.Equal(fields[2], group) {
			continue
		}
		if state := fields[0][0]; state != 'Z' && state != 'X' {
			return false
		}
	}
	return true
}
