package git

import "golang.org/x/sys/unix"

// limitData has the system refuse more memory than so many bytes. The race
// detector needs more than any limit would allow.
func limitData(limit int64) {
	if raceDetector {
		return
	}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &l); err != nil {
		return
	}
	if l.Cur = uint64(limit); l.Max < l.Cur {
		return // less is allowed already
	}
	unix.Setrlimit(unix.RLIMIT_DATA, &l) // the watch on the memory is there as well
}
