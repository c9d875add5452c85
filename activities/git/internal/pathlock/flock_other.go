//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package pathlock

import (
	"errors"
	"os"
)

// lockFile is for systems whose locks a killed holder's programs do not keep.
func lockFile(f *os.File) (bool, error) {
	return false, &os.PathError{Op: "flock", Path: f.Name(), Err: errors.ErrUnsupported}
}
