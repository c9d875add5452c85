//go:build !unix

package simulator

import "net"

// holder does nothing where a socket cannot be kept bound without listening; the
// port is free while it refuses.
type holder struct{}

func (*holder) hold(*net.TCPAddr) error { return nil }

func (*holder) listen(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

func (*holder) drop() {}
