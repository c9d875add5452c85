// Package measure says what work costs in wall time, processor time and memory,
// with all processes that it starts, and compares it with a plain program that
// does the same. It is for benchmarks, on Linux.
package measure
