// Package gitssh serves real Git repositories over SSH on a loopback port, with
// faults in front of them. It may stand in front of the directory that a githttp
// host serves as well.
//
// Behind it are git-upload-pack and git-receive-pack, each in a process group of
// its own that ends with its session. A session goes through stations, and a
// [Step] may end it at each:
//
//	connect → authenticate → exec → list of refs → request → effect → answer → end
//
// The ledger has an entry for each connection (operation "connect") and for each
// program that a client asked for (named as the program; the key is the
// repository). The effects are the refs that a push changed, as those of githttp.
// Of a user's key the ledger keeps a label.
package gitssh
