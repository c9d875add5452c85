// Package githttp serves real Git repositories over smart HTTP, with faults in
// front of them.
//
// Behind the fault script stands `git http-backend`, so what a client sees is what
// Git says; the faults are those of the network and of proxies. It needs the git
// program. Fetches are streamed; a push is acted on as a whole before a byte of
// its answer leaves, so that "landed, answer lost" is exactly that.
//
// The effects in the ledger are the refs that a push changed: its content is
// "REF OLD NEW", found by comparing the refs before and after.
package githttp
