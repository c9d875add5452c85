package simulator_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
)

func authority(t *testing.T) *simulator.Authority {
	t.Helper()
	a, err := simulator.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func startTLS(t *testing.T, cfg *tls.Config, err error) *simulator.Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulator.Start(&board{}, simulator.Options{TLS: cfg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// trusting is a client that trusts what the authority's file holds.
func trusting(t *testing.T, a *simulator.Authority) *http.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := a.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		t.Fatal("the file holds no certificate")
	}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// Q1: HTTPS with a certificate of a test authority is trusted by who trusts it;
// other certificates are refused for what is wrong with them.
func TestTLS(t *testing.T) {
	t.Parallel()
	a := authority(t)
	good, err := a.TLS()
	s := startTLS(t, good, err)
	c := trusting(t, a)
	if got := post(t, c, s, "a"); got.Status != 201 || !strings.HasPrefix(s.URL(), "https://") {
		t.Errorf("%s: %+v", s.URL(), got)
	}
	if got := post(t, c, s, "b"); got.Status != 201 {
		t.Errorf("%+v", got)
	}
	if reqs := s.Ledger().Requests(""); !reqs[1].Reused() {
		t.Errorf("the ledger does not see that the second request reused the connection: %+v", reqs)
	}
	var unknown x509.UnknownAuthorityError
	if _, err := client(t).Get(s.URL()); !errors.As(err, &unknown) {
		t.Errorf("without the authority: %v", err)
	}

	wrong, err := a.TLS("git.example")
	var host x509.HostnameError
	if _, err := c.Get(startTLS(t, wrong, err).URL()); !errors.As(err, &host) {
		t.Errorf("certificate of another host: %v", err)
	}
	expired, err := a.ExpiredTLS()
	var invalid x509.CertificateInvalidError
	if _, err := c.Get(startTLS(t, expired, err).URL()); !errors.As(err, &invalid) || invalid.Reason != x509.Expired {
		t.Errorf("expired certificate: %v", err)
	}
}

// Q1: the ends of a connection under TLS: in order with its last alert, torn
// without it, and torn in the handshake, where there is no request to count.
func TestTLSEnds(t *testing.T) {
	t.Parallel()
	a := authority(t)
	cfg, err := a.TLS()
	s := startTLS(t, cfg, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM())
	// Up to version 1.2 the type of a record is seen from outside; 21 is an alert.
	exchange := func() (body string, last byte, err error) {
		raw, err := net.Dial("tcp", s.Addr())
		if err != nil {
			return "", 0, err
		}
		defer raw.Close()
		raw.SetDeadline(time.Now().Add(30 * time.Second))
		seen := &recorder{Conn: raw}
		c := tls.Client(seen, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1", MaxVersion: tls.VersionTLS12})
		if err := c.Handshake(); err != nil {
			return "", seen.lastRecord(), err
		}
		fmt.Fprintf(c, "POST /pins HTTP/1.1\r\nHost: board\r\nContent-Length: 1\r\n\r\na")
		answer, err := io.ReadAll(c)
		_, body, _ = strings.Cut(string(answer), "\r\n\r\n")
		return body, seen.lastRecord(), err
	}
	s.Script(simulator.CutBytes(6))
	if body, last, err := exchange(); body != "pinned" || err != nil || last != 21 {
		t.Errorf("cut: %q, %v, last record %d, want an alert", body, err, last)
	}
	s.Script(simulator.Torn(6))
	if body, last, err := exchange(); body != "pinned" || err != nil || last != 23 {
		t.Errorf("torn: %q, %v, last record %d, want data", body, err, last)
	}
	s.Script(simulator.Reset())
	if body, _, err := exchange(); body != "" || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %q, %v", body, err)
	}
	s.TearHandshakes(1)
	before := s.Connections()
	if _, last, err := exchange(); !errors.Is(err, io.EOF) || last != 0 {
		t.Errorf("torn handshake: %v, record %d, want EOF", err, last)
	}
	if n, reqs := s.Connections()-before, s.Ledger().Requests(""); n != 1 || len(reqs) != 3 {
		t.Errorf("%d connections, %d requests in all, want 1 and 3", n, len(reqs))
	}
	s.Script(simulator.CutBytes(6))
	if body, _, err := exchange(); body != "pinned" || err != nil {
		t.Errorf("after the torn handshake: %q, %v", body, err)
	}
}

// recorder keeps what is read from a connection.
type recorder struct {
	net.Conn
	read []byte
}

func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.read = append(r.read, p[:n]...)
	return n, err
}

// lastRecord is the type of the last TLS record, 0 if there was none.
func (r *recorder) lastRecord() (kind byte) {
	for rest := r.read; len(rest) >= 5; {
		kind = rest[0]
		rest = rest[min(len(rest), 5+int(binary.BigEndian.Uint16(rest[3:]))):]
	}
	return kind
}

// Q1: a slow answer takes its time, byte for byte, and ends with its client.
func TestSlow(t *testing.T) {
	t.Parallel()
	s, c := start(t), client(t)
	s.Script(simulator.Slow(100), simulator.Slow(1))
	began := time.Now()
	got := post(t, c, s, "a")
	if took := time.Since(began); got.Body != "pinned as number 1" || took < 180*time.Millisecond {
		t.Errorf("%+v after %s, want the whole answer after 180 ms or more", got, took)
	}
	done := make(chan result, 1)
	impatient := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 100 * time.Millisecond}
	go func() { done <- post(t, impatient, s, "b") }()
	if r, err := s.Ledger().WaitGone(deadline(t), 2); err != nil || r.Outcome != simulator.Left {
		t.Errorf("%+v, %v", r, err)
	}
	if got := <-done; got.Err == "" {
		t.Errorf("the impatient client got %+v", got)
	}
}

// Q1: a step for reused connections leaves first requests alone.
func TestOnReused(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Script(simulator.Reset().OnReused())
	if got := post(t, client(t), s, "a"); got.Status != 201 {
		t.Errorf("first request of a connection: %+v", got)
	}
	c := client(t)
	if got := post(t, c, s, "b"); got.Status != 201 {
		t.Errorf("first request of another connection: %+v", got)
	}
	if got := post(t, c, s, "c"); got.Err == "" {
		t.Errorf("second request: %+v, want a reset", got)
	}
	if n := len(s.Ledger().Effects("")); n != 2 || len(s.Remaining()) != 0 {
		t.Errorf("%d effects, remaining %v", n, s.Remaining())
	}
}

// Q1: a simulator of something else than HTTP keeps its own ledger.
func TestOwnLedger(t *testing.T) {
	t.Parallel()
	l := simulator.NewLedger()
	n := l.Enter(simulator.Request{Op: "session"}, "secret")
	l.Change(n, func(r *simulator.Request) { r.Outcome = simulator.CutShort })
	l.Enact(simulator.Effect{Kind: "thing", Request: n})
	if err := l.WaitIdle(deadline(t)); err != nil {
		t.Fatal(err)
	}
	r, ok := l.Request(n)
	if !ok || r.Outcome != simulator.CutShort || r.Account != "account-1" || len(l.Effects("thing")) != 1 {
		t.Errorf("%+v, %+v", r, l.Effects(""))
	}
}
