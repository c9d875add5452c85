//go:build unix

package git

import (
	"os"
	"syscall"
)

// dieWithParent kills this process and all that it started, which are a group of
// their own, when the other end of a pipe is closed. The parent alone holds that
// end.
func dieWithParent(fd uintptr) {
	syscall.CloseOnExec(int(fd))
	pipe := os.NewFile(fd, "parent")
	if pipe == nil {
		return
	}
	pipe.Read(make([]byte, 1))
	syscall.Kill(0, syscall.SIGKILL)
}
