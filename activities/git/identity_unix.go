//go:build unix

package git

import (
	"io/fs"
	"strconv"
	"syscall"
)

// identity tells a file from another that came into its place; empty if it
// cannot.
func identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(uint64(st.Ino), 10) + ":" + strconv.FormatInt(info.ModTime().UnixNano(), 10)
}

// disk names the file system of a file.
func disk(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Dev)
	}
	return 0
}
