// Package e2e holds the tests of whole flows: an embedded server, real workers,
// and processes that are killed. It is the one test package that links the
// server.
//
// A test of a flow has a [stage]: simulators, a server in memory, the real workers
// with a configuration that points at the simulators, and clients. At its end
// all that the server knows is scanned for credentials, and every history is
// replayed. With -record the histories that tests keep are written for the
// replay tests; see workflows/testdata/README.md.
//
// Tests of the server itself share one server in memory ([shared] in harness_test.go) and keep
// apart by ids and task queues of their own ([unique]). A test that kills
// something runs it as a separate operating-system process: the test binary
// starts itself again with HOLDFAST_E2E_ROLE set, and TestMain then runs the role
// of that name instead of the tests. A file adds a role with
//
//	func init() { registerRole("worker", func(ctx context.Context) error { … }) }
//
// A role takes its parameters from the environment, says on standard output what
// the test waits for, and ends when its context is done (SIGTERM or interrupt).
package e2e
