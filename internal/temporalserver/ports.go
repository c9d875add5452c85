package temporalserver

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"
)

// reservation holds a port open until whatever it was reserved for binds it.
type reservation struct {
	net.Listener
	addr netip.AddrPort
}

// reserve binds address. The server cannot be given a listener, so the
// reservation is closed right before the server binds the port itself.
func reserve(address, flag string) (reservation, error) {
	addr, err := parseAddress(address)
	if err != nil {
		return reservation{}, &AddressError{Address: address, Flag: flag, Reason: err.Error()}
	}
	l, err := net.Listen("tcp", addr.String())
	if errors.Is(err, syscall.EADDRINUSE) {
		return reservation{}, &PortInUseError{Address: addr.String(), Flag: flag}
	}
	if err != nil {
		return reservation{}, &AddressError{Address: address, Flag: flag, Reason: err.Error()}
	}
	port := l.Addr().(*net.TCPAddr).Port
	return reservation{Listener: l, addr: netip.AddrPortFrom(addr.Addr(), uint16(port))}, nil
}

// parseAddress reads IP:PORT; "localhost" stands for 127.0.0.1, because the
// server takes IP literals only.
func parseAddress(address string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, errors.New("it is not of the form IP:PORT")
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.AddrPort{}, errors.New("its host is not an IP address")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return netip.AddrPort{}, errors.New("its port is not a number from 0 to 65535")
	}
	return netip.AddrPortFrom(ip, uint16(n)), nil
}

// dialable is where a client on this machine reaches addr.
func dialable(addr netip.AddrPort) netip.AddrPort {
	if !addr.Addr().IsUnspecified() {
		return addr
	}
	if addr.Addr().Is4() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), addr.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), addr.Port())
}
