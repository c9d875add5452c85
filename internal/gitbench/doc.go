// Package gitbench compares managed Git with the plain git program on repositories
// that are made for it. It is for benchmarks, on Linux.
package gitbench
