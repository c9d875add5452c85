//go:build !unix

package files

import (
	"os"
	"syscall"
)

const nonBlock = 0

// rename can move no file from one directory to another.
func rename(*os.Root, string, *os.Root, string) error { return syscall.EXDEV }
