//go:build unix

package simulator

import (
	"net"
	"os"
	"syscall"
	"time"
)

// holder keeps a port bound without listening on it.
type holder struct{ file *os.File }

func (h *holder) hold(addr *net.TCPAddr) error {
	family, sockaddr := sockaddrOf(addr)
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	// Connections that were accepted on the port are still open, so the bind
	// needs SO_REUSEADDR.
	err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	if err == nil {
		err = os.NewSyscallError("bind", bind(fd, sockaddr))
	}
	if err != nil {
		syscall.Close(fd)
		return err
	}
	h.file = os.NewFile(uintptr(fd), "refusing socket")
	return nil
}

// bind takes the port that was listened on. A process that is being started has a
// copy of the closed listener for a moment, which is waited out.
func bind(fd int, sockaddr syscall.Sockaddr) error {
	const patience = 2 * time.Second
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		err := syscall.Bind(fd, sockaddr)
		if err != syscall.EADDRINUSE || time.Since(began) > patience {
			return err
		}
	}
}

// listen turns the held socket into a listener; the port is never free between.
func (h *holder) listen(addr string) (net.Listener, error) {
	if h.file == nil {
		return net.Listen("tcp", addr)
	}
	defer h.drop()
	if err := syscall.Listen(int(h.file.Fd()), syscall.SOMAXCONN); err != nil {
		return nil, os.NewSyscallError("listen", err)
	}
	return net.FileListener(h.file)
}

func (h *holder) drop() {
	if h.file != nil {
		h.file.Close()
		h.file = nil
	}
}

func sockaddrOf(addr *net.TCPAddr) (int, syscall.Sockaddr) {
	if ip := addr.IP.To4(); ip != nil {
		return syscall.AF_INET, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(ip)}
	}
	sa := &syscall.SockaddrInet6{Port: addr.Port}
	copy(sa.Addr[:], addr.IP.To16())
	return syscall.AF_INET6, sa
}
