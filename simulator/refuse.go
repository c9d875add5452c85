package simulator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Refuse makes the port refuse connections until release is called, and closes
// the connections that no request is using; requests in progress go on. Calls
// nest: the port is back when every release has been called.
//
// The listener is really closed. In its place, where the system allows (Linux,
// macOS, BSD), the port stays bound by a socket that does not listen, so that the
// kernel refuses and gives the port to no program that asks for a free one.
func (s *Server) Refuse() (release func(), err error) {
	if err := s.port.refuse(); err != nil {
		return nil, fmt.Errorf("simulator: refuse on %s: %w", s.port.addr, err)
	}
	s.CloseIdle()
	return sync.OnceFunc(func() { s.port.release(s.serve) }), nil
}

// RefuseFor refuses connections for d.
func (s *Server) RefuseFor(d time.Duration) error {
	release, err := s.Refuse()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(s.ctx, release)
	time.AfterFunc(d, func() { stop(); release() })
	return nil
}

// RefuseDials refuses the next n connections and returns a dial function for the
// client under test. A server cannot count connections that its kernel refused,
// so the count is taken where they are made: the function really dials, and the
// port is back once n of its dials have been refused.
func (s *Server) RefuseDials(n int) (func(ctx context.Context, network, addr string) (net.Conn, error), error) {
	if n < 1 {
		return nil, errors.New("simulator: RefuseDials needs a count of 1 or more")
	}
	release, err := s.Refuse()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if errors.Is(err, syscall.ECONNREFUSED) {
			mu.Lock()
			defer mu.Unlock()
			if n--; n == 0 {
				release()
			}
		}
		return c, err
	}, nil
}

// port is an address that can be listened on, or held without listening.
type port struct {
	mu       sync.Mutex
	addr     string
	listener net.Listener
	served   chan struct{} // closed when the listener's serve has returned
	refusals int
	holder   holder
	closed   bool
	serving  sync.WaitGroup
}

func (p *port) open(addr string, serve func(net.Listener)) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.addr = l.Addr().String()
	p.start(l, serve)
	return nil
}

func (p *port) start(l net.Listener, serve func(net.Listener)) {
	served := make(chan struct{})
	p.listener, p.served = l, served
	p.serving.Go(func() {
		defer close(served)
		serve(l)
	})
}

func (p *port) refuse() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return net.ErrClosed
	}
	if p.refusals++; p.refusals > 1 {
		return nil
	}
	addr := p.listener.Addr().(*net.TCPAddr)
	p.listener.Close()
	<-p.served // an Accept under way keeps the socket open
	p.listener = nil
	return p.holder.hold(addr)
}

func (p *port) release(serve func(net.Listener)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refusals--; p.refusals > 0 || p.closed {
		return
	}
	l, err := p.holder.listen(p.addr)
	if err != nil {
		// The address was taken from us: the port goes on refusing, which the
		// client under test will report.
		return
	}
	p.start(l, serve)
}

func (p *port) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.listener != nil {
		p.listener.Close()
	}
	p.holder.drop()
}

func (p *port) wait() { p.serving.Wait() }
