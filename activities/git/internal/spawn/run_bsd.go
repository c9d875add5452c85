//go:build unix && !linux

package spawn

import (
	"os/exec"
	"syscall"
)

// rssUnit is what Rusage counts memory in.
const rssUnit = 1

func attributes(Watch) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit returns when a program has ended. These systems cannot tell it
// without forgetting the program's number, so for an instant a signal could
// reach another group of that number.
func awaitExit(cmd *exec.Cmd) {
	cmd.Wait() // its error is how the program ended, which the result says
}

func reap(int) {}

// onlyDead cannot tell, and the group's end is waited for.
func onlyDead(int) bool { return false }
