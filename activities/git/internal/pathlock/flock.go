//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package pathlock

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the kernel lock of a file, and reports false if another has it.
func lockFile(f *os.File) (bool, error) {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case errors.Is(err, syscall.ENOLCK): // a network file system without them
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: errors.ErrUnsupported}
		case !errors.Is(err, syscall.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}
