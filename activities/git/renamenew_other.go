//go:build !linux

package git

import "os"

// renameNew renames, and fails with fs.ErrExist where something is in the way.
func renameNew(root *os.Root, from, to string) error { return renameChecked(root, from, to) }
