package attempt

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server accepts raw connections on the loopback and counts what reached it.
type server struct {
	addr     string
	conns    atomic.Int32
	requests atomic.Int32
}

// serve hands each accepted connection to handle, and closes it after.
func serve(t *testing.T, handle func(s *server, c net.Conn)) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{addr: listener.Addr().String()}
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	running.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			running.Go(func() {
				defer c.Close()
				handle(s, c)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		running.Wait()
	})
	return s
}

// readRequest reads one whole request and counts it. It returns nil when there
// is none.
func (s *server) readRequest(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil
	}
	s.requests.Add(1)
	return req
}

// answer returns a handler that reads one request, writes text and closes.
func answer(text string) func(*server, net.Conn) {
	return func(s *server, c net.Conn) {
		if s.readRequest(bufio.NewReader(c)) == nil {
			return
		}
		_, _ = io.WriteString(c, text)
		awaitClose(c, text)
	}
}

// awaitClose waits for the client to close when the answer says that it will,
// so that the answer is not lost to a reset.
func awaitClose(c net.Conn, text string) {
	if strings.Contains(text, "Connection: close") {
		_, _ = io.Copy(io.Discard, c)
	}
}

// hang reads one request, says so and waits for the client to close.
func hang(got chan<- struct{}, text string) func(*server, net.Conn) {
	return func(s *server, c net.Conn) {
		if s.readRequest(bufio.NewReader(c)) == nil {
			return
		}
		_, _ = io.WriteString(c, text)
		got <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
	}
}

// reset closes a TCP connection with RST.
func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// overTLS lets handle speak inside TLS.
func overTLS(config *tls.Config, handle func(*server, net.Conn)) func(*server, net.Conn) {
	return func(s *server, c net.Conn) {
		inner := tls.Server(c, config)
		if inner.Handshake() == nil {
			handle(s, inner)
		}
	}
}

// authority is a certificate with its key, to sign others.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate for 127.0.0.1 changed by edit, signed by parent or
// by itself.
func issue(t *testing.T, parent *authority, edit func(*x509.Certificate)) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "test"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	if edit != nil {
		edit(template)
	}
	signer := authority{template, key}
	if parent != nil {
		signer = *parent
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.cert, &key.PublicKey, signer.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

func issueCA(t *testing.T) authority {
	return issue(t, nil, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: "test authority"}
		c.IsCA, c.BasicConstraintsValid = true, true
		c.KeyUsage = x509.KeyUsageCertSign
		c.IPAddresses = nil
	})
}

// config serves leaf with the certificates behind it.
func (leaf authority) config(chain ...authority) *tls.Config {
	c := tls.Certificate{Certificate: [][]byte{leaf.cert.Raw}, PrivateKey: leaf.key}
	for _, a := range chain {
		c.Certificate = append(c.Certificate, a.cert.Raw)
	}
	return &tls.Config{Certificates: []tls.Certificate{c}}
}

func (leaf authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(leaf.cert)
	return pool
}

// nameServer is a DNS server on the loopback that answers every question with
// one response code. Its dialer resolves by it.
func nameServer(t *testing.T, rcode byte) func(context.Context, string, string) (net.Conn, error) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(nameAnswer(buf[:n], rcode), from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	return (&net.Dialer{Resolver: resolver}).DialContext
}

// nameAnswer turns a question into an answer without records.
func nameAnswer(question []byte, rcode byte) []byte {
	end := 12 + bytes.IndexByte(question[12:], 0) + 5
	a := bytes.Clone(question[:end])
	a[2], a[3] = 0x81, 0x80|rcode
	binary.BigEndian.PutUint16(a[4:], 1)
	clear(a[6:12])
	return a
}

// client returns a client of ours that is closed with the test.
func client(t *testing.T, o Options) *http.Client {
	t.Helper()
	c := NewClient(o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// post sends one POST through c, reads the answer and returns what a library
// would: its error, from the request or from the body.
func post(ctx context.Context, c *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"text":"hello"}`))
	if err != nil {
		return err
	}
	req.Header.Set("Idempotency-Key", "k1")
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
