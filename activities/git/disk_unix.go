//go:build linux || darwin || freebsd

package git

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeBytes is how much can still be written to the file system of a directory.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

// diskSize is what a file takes on disk: a sparse file less than its length.
func diskSize(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Blocks) * 512
	}
	return info.Size()
}
