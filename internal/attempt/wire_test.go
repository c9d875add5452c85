package attempt

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/policies"
)

// facts are what a test says of one request.
type facts struct {
	NotStarted, Started bool
	Code, Syscall       string
	Status              int
	Phase               policies.Phase
	Body                string // of the fault; "nil" for nil
	End                 BodyEnd
	Requests            int // that the record saw
	Arrived             int // that the server read whole
}

func factsOf(r *Record, err error, s *server) facts {
	f := r.Fault(policies.SurfaceDiscord, err, time.Now())
	end, _ := r.BodyEnd()
	body := "nil"
	if f.Body != nil {
		body = string(f.Body)
	}
	x := facts{f.NotStarted, f.Started, f.Code, f.Syscall, f.Status, f.Phase, body, end, r.Requests(), 0}
	if s != nil {
		x.Arrived = int(s.requests.Load())
	}
	return x
}

// notSent are the facts of a request that got no connection.
func notSent(code, syscall string) facts {
	return facts{NotStarted: true, Code: code, Syscall: syscall, Phase: policies.PhaseConnect, Body: "nil", Requests: 1}
}

// lost are the facts of a request that was written and not answered.
func lost(code, syscall string) facts {
	return facts{Started: true, Code: code, Syscall: syscall, Phase: policies.PhaseHeaders, Body: "nil", Requests: 1, Arrived: 1}
}

func answered(status int, code string, phase policies.Phase, body string, end BodyEnd) facts {
	return facts{Started: true, Code: code, Status: status, Phase: phase, Body: body, End: end, Requests: 1, Arrived: 1}
}

// C2: not sent is proved by the hooks of the transport, in every way in which a
// connection can fail to be; anything later is started. P4.11: the phase.
func TestWire(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		handle func(*server, net.Conn) // nil: nobody listens
		scheme string                  // default http
		o      Options
		want   facts
		clean  bool // the library sees no error
	}{
		{name: "refused", want: notSent("ECONNREFUSED", "connect")},
		{name: "not TLS, HTTP", scheme: "https", handle: greet("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), want: notSent("ERR_SSL_WRONG_VERSION_NUMBER", "")},
		{name: "not TLS, other", scheme: "https", handle: greet("SSH-2.0-OpenSSH_9.2 Connection: close\r\n"), want: notSent("ERR_SSL_WRONG_VERSION_NUMBER", "")},
		{name: "reset in the handshake", scheme: "https", handle: resetAfterHello, want: notSent("ECONNRESET", "read")},
		{name: "closed in the handshake", scheme: "https", handle: closeAfterHello, want: notSent("UND_ERR_SOCKET", "")},
		{name: "silent in the handshake", scheme: "https", o: Options{ConnectTimeout: 20 * time.Millisecond}, handle: swallow, want: notSent("UND_ERR_CONNECT_TIMEOUT", "connect")},
		{name: "dial hangs", o: Options{ConnectTimeout: 20 * time.Millisecond, Dial: hangingDial}, handle: swallow, want: notSent("UND_ERR_CONNECT_TIMEOUT", "connect")},

		{name: "reset after the request", handle: resetAfterRequest, want: lost("ECONNRESET", "read")},
		{name: "closed after the request", handle: answer(""), want: lost("UND_ERR_SOCKET", "")},
		{name: "closed inside the headers", handle: answer("HTTP/1.1 200 OK\r\nContent-Le"), want: lost("UND_ERR_SOCKET", "")},
		{name: "not HTTP", handle: answer("220 secret-banner ESMTP\r\n\r\n"), want: lost("HPE_INVALID_CONSTANT", "")},

		// C2: a body that cannot be read leaves status and headers in force.
		{name: "429 cut", handle: answer("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n{\"retry_after\": 7"),
			want: answered(429, "UND_ERR_SOCKET", policies.PhaseBody, `{"retry_after": 7`, BodyError)},
		{name: "429 cut before its body", handle: answer("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 100\r\n\r\n"),
			want: answered(429, "UND_ERR_SOCKET", policies.PhaseFirstEvent, "nil", BodyError)},
		{name: "429 HTML", clean: true, handle: answer("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 15\r\n\r\n<html>no</html>"),
			want: answered(429, "", policies.PhaseBody, "<html>no</html>", BodyEOF)},
		{name: "502 empty", clean: true, handle: answer("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"),
			want: answered(502, "", policies.PhaseFirstEvent, "", BodyEOF)},
		{name: "502 empty, to the close", clean: true, handle: answer("HTTP/1.1 502 Bad Gateway\r\n\r\n"),
			want: answered(502, "", policies.PhaseFirstEvent, "", BodyEOF)},
		{name: "503 chunks cut", handle: answer("HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nwo"),
			want: answered(503, "UND_ERR_SOCKET", policies.PhaseBody, "hellowo", BodyError)},
		{name: "bad chunks", handle: answer("HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n\r\n"),
			want: answered(503, "HPE_INVALID_CONSTANT", policies.PhaseBody, "hello", BodyError)},
		// Bodies of answers that are no errors are never kept.
		{name: "200", clean: true, handle: answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
			want: answered(200, "", policies.PhaseBody, "nil", BodyEOF)},
		{name: "200 cut", handle: answer("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"),
			want: answered(200, "UND_ERR_SOCKET", policies.PhaseBody, "nil", BodyError)},
		{name: "200 chunks cut", handle: answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
			want: answered(200, "UND_ERR_SOCKET", policies.PhaseBody, "nil", BodyError)},
		// A followed 307 would send the POST again.
		{name: "307", clean: true, handle: answer("HTTP/1.1 307 Temporary Redirect\r\nLocation: /again\r\nContent-Length: 2\r\n\r\nno"),
			want: answered(307, "", policies.PhaseBody, "nil", BodyEOF)},
	} {
		for _, fresh := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/fresh=%v", c.name, fresh), func(t *testing.T) {
				t.Parallel()
				s := &server{addr: deadAddress(t)}
				if c.handle != nil {
					s = serve(t, c.handle)
				}
				scheme := c.scheme
				if scheme == "" {
					scheme = "http"
				}
				o := c.o
				o.Fresh = fresh
				record := New()
				err := post(With(t.Context(), record), client(t, o), scheme+"://"+s.addr+"/x")
				if (err == nil) != c.clean {
					t.Errorf("error of the library: %v", err)
				}
				if diff := cmp.Diff(c.want, factsOf(record, err, s)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if c.want.Status == 429 && record.Fault(policies.SurfaceDiscord, err, time.Now()).Header.Get("Retry-After") != "7" {
					t.Error("Retry-After is lost")
				}
			})
		}
	}
}

func greet(text string) func(*server, net.Conn) {
	return func(_ *server, c net.Conn) {
		_, _ = io.WriteString(c, text)
		awaitClose(c, text)
	}
}

func resetAfterHello(_ *server, c net.Conn) {
	_, _ = io.ReadFull(c, make([]byte, 5))
	reset(c)
}

// closeAfterHello reads the whole hello first, since closing before would reset.
func closeAfterHello(_ *server, c net.Conn) {
	header := make([]byte, 5)
	_, _ = io.ReadFull(c, header)
	_, _ = io.ReadFull(c, make([]byte, int(header[3])<<8|int(header[4])))
}

func swallow(_ *server, c net.Conn) { _, _ = io.Copy(io.Discard, c) }

func hangingDial(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func resetAfterRequest(s *server, c net.Conn) {
	if s.readRequest(bufio.NewReader(c)) != nil {
		reset(c)
	}
}

// deadAddress is an address where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	return l.Addr().String()
}

// C2: a name that does not resolve.
func TestWireNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rcode byte
		code  string
	}{{3, "ENOTFOUND"}, {2, "EAI_AGAIN"}} {
		record := New()
		err := post(With(t.Context(), record), client(t, Options{Fresh: true, Dial: nameServer(t, c.rcode)}), "http://nowhere.invalid/x")
		if diff := cmp.Diff(notSent(c.code, "getaddrinfo"), factsOf(record, err, nil)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// C2, P4.11: certificates are looked at before anything is sent.
func TestWireCertificates(t *testing.T) {
	t.Parallel()
	ca, unknown := issueCA(t), issueCA(t)
	self := issue(t, nil, nil)
	middle := issue(t, &unknown, func(c *x509.Certificate) {
		c.Subject.CommonName = "middle"
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
	})
	signed := func(edit func(*x509.Certificate)) authority { return issue(t, &ca, edit) }
	expired := signed(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) })
	early := signed(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Minute) })
	elsewhere := signed(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 9)} })
	purpose := signed(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} })
	stranger := issue(t, &unknown, nil)
	far := issue(t, &middle, nil)
	good := signed(nil)

	for _, c := range []struct {
		leaf  authority
		chain []authority
		code  string
	}{
		{expired, nil, "CERT_HAS_EXPIRED"},
		{early, nil, "CERT_NOT_YET_VALID"},
		{elsewhere, nil, "ERR_TLS_CERT_ALTNAME_INVALID"},
		{purpose, nil, "INVALID_PURPOSE"},
		{self, nil, "DEPTH_ZERO_SELF_SIGNED_CERT"},
		{stranger, nil, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"},
		{stranger, []authority{unknown}, "SELF_SIGNED_CERT_IN_CHAIN"},
		{far, []authority{middle}, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"},
		{good, nil, ""},
	} {
		s := serve(t, overTLS(c.leaf.config(c.chain...), answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")))
		want := notSent(c.code, "")
		if c.code == "" {
			want = answered(200, "", policies.PhaseFirstEvent, "nil", BodyEOF)
		}
		record := New()
		err := post(With(t.Context(), record), client(t, Options{Fresh: true, RootCAs: ca.pool()}), "https://"+s.addr+"/x")
		if diff := cmp.Diff(want, factsOf(record, err, s)); diff != "" {
			t.Errorf("%s, %v (-want +got):\n%s", c.code, err, diff)
		}
	}
}

// C2, P4.11: a limit or a cancellation that strikes after the request was
// written leaves it started; the code names the phase.
func TestWireGivenUp(t *testing.T) {
	t.Parallel()
	const headers = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"
	for _, c := range []struct {
		name, text string
		read       int // bytes of the body read before giving up
		cause      error
		want       facts
	}{
		{"deadline before headers", "", 0, context.DeadlineExceeded, lost("UND_ERR_HEADERS_TIMEOUT", "")},
		{"cancelled before headers", "", 0, context.Canceled, lost("ABORT_ERR", "")},
		{"deadline after headers", headers, 0, context.DeadlineExceeded, answered(200, "UND_ERR_BODY_TIMEOUT", policies.PhaseFirstEvent, "nil", BodyError)},
		{"deadline in the body", headers + "hello", 5, context.DeadlineExceeded, answered(200, "UND_ERR_BODY_TIMEOUT", policies.PhaseBody, "nil", BodyError)},
		{"cancelled in the body", headers + "hello", 5, context.Canceled, answered(200, "ABORT_ERR", policies.PhaseBody, "nil", BodyError)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan struct{}, 1)
			s := serve(t, hang(got, c.text))
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.text == "" {
				go func() {
					<-got
					cancel(c.cause)
				}()
			}
			record := New()
			resp, err := get(With(ctx, record), client(t, Options{Fresh: true}), "http://"+s.addr)
			if err == nil {
				defer resp.Body.Close()
				_, _ = io.ReadFull(resp.Body, make([]byte, c.read))
				cancel(c.cause)
				_, err = io.ReadAll(resp.Body)
			}
			if diff := cmp.Diff(c.want, factsOf(record, err, s)); diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func get(ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// C2: a context that was done before is neither not sent nor started.
func TestWireCancelledBefore(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		record := New()
		err := post(With(ctx, record), client(t, Options{Fresh: true}), "http://"+s.addr+"/x")
		want := facts{Code: "ABORT_ERR", Phase: policies.PhaseConnect, Body: "nil"}
		if diff := cmp.Diff(want, factsOf(record, err, s)); diff != "" || s.conns.Load() != 0 {
			t.Errorf("%v, %d connections (-want +got):\n%s", err, s.conns.Load(), diff)
		}
	}
}

// M2.3: closing the body ends a Read that waits, and is known as our own doing.
func TestWireCloseWhileReading(t *testing.T) {
	t.Parallel()
	got := make(chan struct{}, 1)
	s := serve(t, hang(got, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"))
	record := New()
	resp, err := get(With(t.Context(), record), client(t, Options{}), "http://"+s.addr)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	read := make(chan error)
	go func() {
		_, err := io.Copy(io.Discard, resp.Body)
		read <- err
	}()
	if record.LastByteAt().IsZero() {
		t.Error("no time of the last byte")
	}
	_ = resp.Body.Close()
	err = <-read
	if end, endErr := record.BodyEnd(); err == nil || end != BodyClosed || endErr != nil {
		t.Errorf("read gave %v; the body ended %q, %v", err, end, endErr)
	}
	if err := record.Err(); err != nil {
		t.Errorf("closing is no error of the transport: %v", err)
	}
}

// A proxy that refuses has not sent the request; a plain one has it.
func TestWireProxy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target, text string
		want         facts
	}{
		{"https://example.invalid/x", "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", facts{NotStarted: true, Code: "UND_ERR_ABORTED", Phase: policies.PhaseConnect, Body: "nil", Requests: 1, Arrived: 1}},
		{"http://example.invalid/x", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", answered(502, "", policies.PhaseBody, "no", BodyEOF)},
	} {
		s := serve(t, answer(c.text))
		proxy := &url.URL{Scheme: "http", Host: s.addr, User: url.UserPassword("user", "hunter2hunter2")}
		record := New()
		err := post(With(t.Context(), record), client(t, Options{Fresh: true, Proxy: http.ProxyURL(proxy)}), c.target)
		if diff := cmp.Diff(c.want, factsOf(record, err, s)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if text := record.Fault(policies.SurfaceDiscord, err, time.Now()).Message; strings.Contains(text, "hunter2") {
			t.Errorf("credentials of the proxy in %q", text)
		}
	}
}

// M2.2: the limit covers what net/http limits to a minute of its own, a proxy
// that does not answer.
func TestWireProxySilent(t *testing.T) {
	t.Parallel()
	s := serve(t, swallow)
	proxy := http.ProxyURL(&url.URL{Scheme: "http", Host: s.addr})
	record := New()
	err := post(With(t.Context(), record), client(t, Options{Fresh: true, Proxy: proxy, ConnectTimeout: 20 * time.Millisecond}), "https://example.invalid/x")
	if diff := cmp.Diff(notSent("UND_ERR_CONNECT_TIMEOUT", "connect"), factsOf(record, err, s)); diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
