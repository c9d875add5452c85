package simulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// exchange is one request on its way through the stations of the package comment.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	conn   *conn
	id     Identity
	n      int
	step   Step
	body   []byte
	read   bool
	sent   bool // some byte of an answer may have left
	over   bool // the ledger has the outcome
}

// ServeHTTP serves one request; it is the server's own handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.requests.Add(1)
	}
	s.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler)
	}
	defer s.requests.Done()
	if strings.HasPrefix(r.URL.Path, adminPrefix) {
		s.serveAdmin(w, r)
		return
	}
	x := &exchange{server: s, w: w, r: r}
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok {
		x.conn = own(c)
	}
	x.run()
}

func (x *exchange) run() {
	x.begin()
	defer x.refuse()
	defer x.finish(NoAnswer) // a handler that panics got no further
	if x.step.Unread {
		if x.pause(x.step.HoldBefore, x.step.DelayBefore) {
			x.end()
		}
		return
	}
	if !x.readBody() {
		x.gone()
		return
	}
	x.id = x.server.platform.Identify(x.r, x.body)
	x.note(func(r *Request) { r.Key, r.Path, r.Op = x.id.Key, x.id.Path, x.id.Op })
	if !x.pause(x.step.HoldBefore, x.step.DelayBefore) {
		return
	}
	answer := x.effect()
	if !x.pause(x.step.HoldAfter, x.step.DelayAfter) {
		return
	}
	x.deliver(answer)
}

// begin enters the request in the ledger and picks its step. A request that only
// its body can name has no operation before, so that who waits for a request of an
// operation finds it with its step taken.
func (x *exchange) begin() {
	s := x.server
	x.id = s.platform.Identify(x.r, nil)
	entry := Request{At: s.now(), Method: x.r.Method, Path: x.id.Path, Op: x.id.Op, Key: x.id.Key}
	if x.conn != nil {
		x.conn.requests++
		entry.Conn, entry.ConnRequest = x.conn.n, x.conn.requests
	}
	if x.id.Undecided {
		entry.Op = ""
	}
	x.n = s.ledger.Enter(entry, x.id.Credential)
	reused := entry.Reused()
	step, found, needBody := s.script.take(x.r.Method, x.id, reused, false)
	if needBody && x.readBody() {
		x.id = s.platform.Identify(x.r, x.body)
		step, found, _ = s.script.take(x.r.Method, x.id, reused, true)
	}
	if found {
		x.step = step
	}
	x.note(func(r *Request) {
		r.Op, r.Key = x.id.Op, x.id.Key
		if found {
			r.Step = step.name()
		}
	})
}

func (s Step) name() string {
	if s.Note != "" {
		return s.Note
	}
	return "unnamed step"
}

func (x *exchange) note(change func(*Request)) { x.server.ledger.Change(x.n, change) }

// readBody reads the body once; it is false where the client broke off.
func (x *exchange) readBody() bool {
	if x.read {
		return true
	}
	body, err := io.ReadAll(x.r.Body)
	x.note(func(r *Request) { r.BodyBytes, r.BodyRead = int64(len(body)), err == nil })
	if err != nil {
		return false
	}
	x.body, x.read = body, true
	return true
}

// pause holds the request at a gate, then waits; it is false, and the exchange
// over, where the client left or the server closed meanwhile.
func (x *exchange) pause(gate string, d Duration) bool {
	ctx := x.r.Context()
	if gate != "" && !x.server.Gate(gate).wait(x.n, ctx.Done(), x.server.ctx.Done()) || !x.sleep(time.Duration(d)) {
		x.gone()
		return false
	}
	return true
}

func (x *exchange) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-x.r.Context().Done():
	case <-x.server.ctx.Done():
	}
	return false
}

// effect hands the request to the platform as often as the step says.
func (x *exchange) effect() Answer {
	var answer Answer
	for range x.step.effects() {
		r := x.r.Clone(context.WithoutCancel(x.r.Context()))
		r.Body = io.NopCloser(bytes.NewReader(x.body))
		answer = x.server.platform.Serve(&Call{
			Request: r, Body: x.body, Identity: x.id, N: x.n,
			ledger: x.server.ledger, now: x.server.now,
		})
	}
	if x.step.Status != 0 {
		return x.step.scripted()
	}
	return answer
}

// gone ends an exchange whose client has left, or whose server is closing.
func (x *exchange) gone() {
	if x.server.ctx.Err() == nil {
		x.note(func(r *Request) { r.GoneAt = x.server.now() })
	}
	x.finish(Left)
	x.sever(EndFIN)
}

// finish writes the outcome; only the first one counts.
func (x *exchange) finish(o Outcome) {
	if x.over {
		return
	}
	x.over = true
	x.note(func(r *Request) { r.Outcome = o })
}

// end ends the connection as the step says, after what has been sent.
func (x *exchange) end() {
	if x.sent {
		http.NewResponseController(x.w).Flush()
		x.finish(CutShort)
	} else {
		x.finish(NoAnswer)
	}
	if x.step.End == EndStall {
		x.stall()
		x.sever(EndFIN)
		return
	}
	x.sever(x.step.End)
}

// stall keeps silent until the client leaves, the time is over or the server closes.
func (x *exchange) stall() {
	over := make(<-chan time.Time)
	if x.step.StallFor > 0 {
		t := time.NewTimer(time.Duration(x.step.StallFor))
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
	case <-x.server.ctx.Done():
	case <-x.r.Context().Done():
		if x.server.ctx.Err() == nil {
			x.note(func(r *Request) { r.GoneAt = x.server.now() })
		}
	}
}

// sever takes the connection from net/http and closes it as the step says.
func (x *exchange) sever(how End) {
	c, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	tcp := own(c)
	if tcp == nil {
		c.Close()
		return
	}
	defer tcp.Close() // not c's, which for TLS says a last word
	if how == EndRST {
		tcp.SetLinger(0)
		return
	}
	if secure, ok := c.(*tls.Conn); ok && how != EndTorn {
		secure.CloseWrite()
	}
	// Closing a socket with unread bytes sends a RST; to be a FIN, the rest of
	// the request must be drained until the client closes too.
	tcp.CloseWrite()
	if !x.read {
		x.drain(tcp)
	}
}

func (x *exchange) drain(c net.Conn) {
	const patience = 2 * time.Second
	c.SetReadDeadline(time.Now().Add(patience))
	stop := context.AfterFunc(x.server.ctx, func() { c.SetReadDeadline(time.Now()) })
	defer stop()
	io.Copy(io.Discard, c)
}

func (x *exchange) refuse() {
	if x.step.RefuseFor > 0 {
		// It fails only once the server is closed.
		_ = x.server.RefuseFor(time.Duration(x.step.RefuseFor))
	}
}
