//go:build !linux

package git

// limitData is for systems that can refuse a process memory; here the watch on
// the memory has to do.
func limitData(int64) {}
