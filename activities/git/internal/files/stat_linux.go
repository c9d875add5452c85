package files

import (
	"io/fs"
	"syscall"
	"time"
)

// stat fills in what only the system knows about a file.
func stat(e *entry, info fs.FileInfo) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	e.CreatedAt = time.Unix(int64(s.Ctim.Sec), int64(s.Ctim.Nsec))
	e.Dev, e.Inode, e.UID, e.GID = uint32(s.Dev), uint32(s.Ino), s.Uid, s.Gid
}
