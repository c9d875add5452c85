//go:build !unix

package worktree

import (
	"os"
	"syscall"
)

const nonBlock = 0

// rename can move files within a directory only.
func rename(*os.Root, string, *os.Root, string) error { return syscall.EXDEV }
