// Package temporalserver runs a Temporal server and its web UI inside this
// process, on SQLite.
//
// It is a thin assembly of go.temporal.io/server: four services on loopback,
// one history shard, static membership, one store. What it adds is what an
// operator would otherwise have to know:
//
//   - The store is one file, temporal.db, in WAL mode with synchronous=FULL, so
//     that a receipt once acknowledged survives a power cut, and on one
//     connection, because SQLite has one writer and more of them only wait.
//   - A new file is built aside and renamed, so that it is either whole or
//     absent. Its layout has a number; a file of another layout is refused
//     with a [*SchemaError], never altered.
//   - A lock file keeps a second process out ([*InUseError]).
//   - Ports that are taken are reported before anything starts
//     ([*PortInUseError]).
//   - The settings remove waits that stock settings put into every step: 50 ms
//     per hop after the first twenty (history.transferProcessorMaxPollRPS).
//
// Linking this package costs minutes of compile time once and some 150 MB of
// binary. Only cmd/standalone (through internal/standalone) and the tests of
// internal/e2e import it.
package temporalserver
