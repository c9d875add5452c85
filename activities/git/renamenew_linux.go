package git

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// renameNew renames, and fails with fs.ErrExist where something is in the way.
func renameNew(root *os.Root, from, to string) error {
	source, err := root.Open(filepath.Dir(from))
	if err != nil {
		return err
	}
	defer source.Close()
	dest, err := root.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer dest.Close()
	err = unix.Renameat2(int(source.Fd()), filepath.Base(from), int(dest.Fd()), filepath.Base(to), unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not on this file system
		return renameChecked(root, from, to)
	}
	if err != nil {
		return &os.PathError{Op: "rename", Path: to, Err: err}
	}
	return nil
}
