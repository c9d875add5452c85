package simulator

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Now is the clock of the ledger and of the platform. Defaults to time.Now.
	// Delays and stalls always take real time.
	Now func() time.Time
	// TLS makes the server speak HTTPS with these settings; see [Authority].
	TLS *tls.Config
}

// Server puts a platform on a port and applies the fault script. It speaks
// HTTP/1.1.
type Server struct {
	platform Platform
	now      func() time.Time
	ledger   *Ledger
	script   script

	http     *http.Server
	ctx      context.Context
	cancel   context.CancelFunc
	requests sync.WaitGroup

	port port
	tls  *tls.Config

	mu      sync.Mutex
	closed  bool
	gates   map[string]*Gate
	conns   map[*conn]http.ConnState
	accepts int
	tear    int
	nconns  sync.WaitGroup
}

// Start listens and serves. It fails if the address cannot be listened on.
func Start(p Platform, o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		platform: p, now: o.Now, ledger: NewLedger(), ctx: ctx, cancel: cancel,
		gates: map[string]*Gate{}, conns: map[*conn]http.ConnState{},
	}
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState:         s.connState,
		ErrorLog:          log.New(discard{}, "", 0),
	}
	if o.TLS != nil {
		s.tls = s.tearing(o.TLS)
	}
	if err := s.port.open(o.Addr, s.serve); err != nil {
		cancel()
		return nil, fmt.Errorf("simulator: listen on %s: %w", o.Addr, err)
	}
	return s, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// URL is the base of the server's addresses, without a slash at its end.
func (s *Server) URL() string {
	if s.tls != nil {
		return "https://" + s.port.addr
	}
	return "http://" + s.port.addr
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return s.port.addr }

// Ledger is the record of what arrived and what happened.
func (s *Server) Ledger() *Ledger { return s.ledger }

// Script appends steps to the fault script.
func (s *Server) Script(steps ...Step) { s.script.add(steps...) }

// Remaining returns the steps that are not used up, with what is left of their
// counts. A test that ends with steps remaining did not see the faults it wrote.
func (s *Server) Remaining() []Step { return s.script.remaining() }

// Random applies a random script to the requests that no step matches; nil ends it.
func (s *Server) Random(r *Random) { s.script.setRandom(r) }

// Reset empties the script and the ledger and opens every gate. What the platform
// holds stays.
func (s *Server) Reset() {
	s.script.reset()
	s.ledger.Reset()
	s.mu.Lock()
	gates := s.gates
	s.gates = map[string]*Gate{}
	s.mu.Unlock()
	for _, g := range gates {
		g.Release()
	}
}

// Gate returns the gate with a name, shut when it is first asked for.
func (s *Server) Gate(name string) *Gate {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gates[name]
	if g == nil {
		g = newGate(name)
		s.gates[name] = g
	}
	return g
}

// Close ends every connection, held and stalled ones too, and waits until the
// server's goroutines are done. Further calls do nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	s.cancel()
	s.port.close()
	err := s.http.Close()
	s.closeConns(func(http.ConnState) bool { return true })
	s.requests.Wait()
	s.nconns.Wait()
	s.port.wait()
	return err
}

// CloseIdle closes the connections that no request is using.
func (s *Server) CloseIdle() {
	s.closeConns(func(st http.ConnState) bool { return st == http.StateIdle || st == http.StateNew })
}

func (s *Server) closeConns(which func(http.ConnState) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, state := range s.conns {
		if which(state) {
			c.TCPConn.Close()
		}
	}
}

func (s *Server) serve(l net.Listener) {
	l = &counting{Listener: l, server: s}
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	err := s.http.Serve(l)
	if err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		s.cancel()
	}
}

// conn is a connection with its place in the order of connections.
type conn struct {
	*net.TCPConn
	n        int
	requests int
	forget   func()
}

type connKey struct{}

// own is the connection of ours beneath what net/http hands out; nil for none.
func own(c net.Conn) *conn {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	tcp, _ := c.(*conn)
	return tcp
}

// Close closes the connection and takes it off the server's list.
func (c *conn) Close() error {
	c.forget()
	return c.TCPConn.Close()
}

// counting numbers the connections of a listener.
type counting struct {
	net.Listener
	server *Server
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.server.accepted(c.(*net.TCPConn)), nil
}

func (s *Server) accepted(c *net.TCPConn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepts++
	accepted := &conn{TCPConn: c, n: s.accepts}
	s.conns[accepted] = http.StateNew
	s.nconns.Add(1)
	accepted.forget = sync.OnceFunc(func() {
		s.mu.Lock()
		delete(s.conns, accepted)
		s.mu.Unlock()
		s.nconns.Done()
	})
	if s.closed {
		c.Close()
	}
	return accepted
}

func (s *Server) connState(c net.Conn, state http.ConnState) {
	known := own(c)
	s.mu.Lock()
	if _, listed := s.conns[known]; listed {
		s.conns[known] = state
	}
	s.mu.Unlock()
}
