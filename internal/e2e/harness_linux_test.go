package e2e

import "syscall"

// processAttributes ends a role with the test binary, should that be killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
