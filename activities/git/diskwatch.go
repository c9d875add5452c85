package git

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// diskWatch bounds the disk that an operation takes (G12). It looks often, and
// cheaply, at how much is free, and counts files only when that says that the
// limit may have been reached; now and then in any case, for others may have
// freed what the operation took.
type diskWatch struct {
	// dir is where the operation writes.
	dir   string
	limit int64
	// free is how many bytes can be written below dir.
	free func(dir string) (int64, error)

	// at is a directory on the same file system that exists.
	at    string
	began time.Time
	// used and left are what was counted, and what was free then.
	used, left int64
	counted    time.Time
}

const (
	diskEvery  = 250 * time.Millisecond
	countEvery = 5 * time.Second
)

// watch calls exceed when the limit is passed. It returns when ctx ends.
func (w *diskWatch) watch(ctx context.Context, exceed func(error)) {
	w.began, w.counted = time.Now(), time.Now()
	if w.at = w.dir; !exists(w.at) {
		w.at = filepath.Dir(w.at)
	}
	w.left, _ = w.free(w.at) // where this fails, what is written is counted each time
	ticker := time.NewTicker(diskEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if w.exceeded(ctx) {
			exceed(errDiskLimit)
			return
		}
	}
}

func (w *diskWatch) exceeded(ctx context.Context) bool {
	free, err := w.free(w.at)
	taken := w.used + w.left - free
	if err == nil && taken < w.limit && time.Since(w.counted) < countEvery {
		return false
	}
	w.used, w.left, w.counted = written(ctx, w.dir, w.began), free, time.Now()
	return w.used >= w.limit
}

// clockSlack is how far the clock of a file system may be behind ours.
const clockSlack = 2 * time.Second

// written is how many bytes of disk the files below dir take that have been
// written since a moment.
func written(ctx context.Context, dir string, since time.Time) (total int64) {
	since = since.Add(-clockSlack)
	filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || entry.IsDir() {
			return nil // what has gone takes nothing
		}
		if info, err := entry.Info(); err == nil && !info.ModTime().Before(since) {
			total += diskSize(info)
		}
		return nil
	})
	return total
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
