//go:build unix

package files

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonBlock keeps the opening of what has become a pipe from waiting.
const nonBlock = syscall.O_NONBLOCK

// rename moves a file from one directory to another.
func rename(from *os.Root, name string, to *os.Root, as string) error {
	source, err := from.Open(".")
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := to.Open(".")
	if err != nil {
		return err
	}
	defer target.Close()
	if err := unix.Renameat(int(source.Fd()), name, int(target.Fd()), as); err != nil {
		return &os.LinkError{Op: "rename", Old: name, New: as, Err: err}
	}
	return nil
}
