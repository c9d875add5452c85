package attempt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

func dialing(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

func call(name string, errno syscall.Errno) error { return os.NewSyscallError(name, errno) }

// P4.11: Go errors come out as the codes of the shared vectors.
func TestCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err        error
		code, call string
	}{
		{nil, "", ""},
		{errors.New("anything"), "", ""},
		{dialing(call("connect", syscall.ECONNREFUSED)), "ECONNREFUSED", "connect"},
		{dialing(call("connect", syscall.ENETUNREACH)), "ENETUNREACH", "connect"},
		{dialing(call("connect", syscall.ENETDOWN)), "ENETDOWN", "connect"},
		{dialing(call("connect", syscall.EHOSTUNREACH)), "EHOSTUNREACH", "connect"},
		{dialing(call("connect", syscall.EHOSTDOWN)), "EHOSTDOWN", "connect"},
		{dialing(call("connect", syscall.ETIMEDOUT)), "ETIMEDOUT", "connect"},
		{dialing(syscall.ECONNREFUSED), "ECONNREFUSED", "connect"},
		{&net.OpError{Op: "proxyconnect", Net: "tcp", Err: dialing(call("connect", syscall.ECONNREFUSED))}, "ECONNREFUSED", "connect"},
		{dialing(call("socket", syscall.EMFILE)), "EMFILE", "socket"},
		{&net.OpError{Op: "read", Err: call("read", syscall.ECONNRESET)}, "ECONNRESET", "read"},
		{&net.OpError{Op: "read", Err: call("read", syscall.ETIMEDOUT)}, "ETIMEDOUT", "read"},
		{&net.OpError{Op: "write", Err: call("write", syscall.EPIPE)}, "EPIPE", "write"},
		{&net.OpError{Op: "write", Err: syscall.ENETRESET}, "ENETRESET", "write"},
		{&net.OpError{Op: "read", Err: syscall.ECONNABORTED}, "ECONNABORTED", "read"},
		{syscall.ECONNRESET, "ECONNRESET", ""},
		{syscall.ENOSPC, "", ""},
		{&url.Error{Op: "Post", URL: "http://x", Err: fmt.Errorf("wrapped: %w", dialing(call("connect", syscall.ECONNREFUSED)))}, "ECONNREFUSED", "connect"},
		{errors.Join(errors.New("first"), syscall.EPIPE), "EPIPE", ""},

		{dialing(&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}), "ENOTFOUND", "getaddrinfo"},
		{dialing(&net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}), "EAI_AGAIN", "getaddrinfo"},
		{dialing(&net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}), "EAI_AGAIN", "getaddrinfo"},

		{dialing(os.ErrDeadlineExceeded), "UND_ERR_CONNECT_TIMEOUT", "connect"},
		{&ConnectTimeoutError{}, "UND_ERR_CONNECT_TIMEOUT", "connect"},
		{context.DeadlineExceeded, "ETIMEDOUT", ""},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, "ETIMEDOUT", ""},
		{context.Canceled, "ABORT_ERR", ""},
		{dialing(context.Canceled), "ABORT_ERR", ""},
		{&ProxyError{Status: 407}, "UND_ERR_ABORTED", ""},

		{io.EOF, "UND_ERR_SOCKET", ""},
		{fmt.Errorf("net/http: %w", io.ErrUnexpectedEOF), "UND_ERR_SOCKET", ""},
		{net.ErrClosed, "UND_ERR_SOCKET", ""},
		{errors.New("http: server closed idle connection"), "UND_ERR_SOCKET", ""},
		{errors.New("http2: client connection lost"), "UND_ERR_SOCKET", ""},
		{errors.New(`malformed HTTP response "x"`), "HPE_INVALID_CONSTANT", ""},
		{errors.New("malformed chunked encoding"), "HPE_INVALID_CONSTANT", ""},

		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "ERR_SSL_WRONG_VERSION_NUMBER", ""},
		{http.ErrSchemeMismatch, "ERR_SSL_WRONG_VERSION_NUMBER", ""},
		{&net.OpError{Op: "remote error", Err: tls.AlertError(42)}, "EPROTO", ""},

		{x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, "ERR_TLS_CERT_ALTNAME_INVALID", ""},
		{x509.CertificateInvalidError{Reason: x509.Expired}, "CERT_HAS_EXPIRED", ""},
		{x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign}, "INVALID_CA", ""},
		{x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}, "PATH_LENGTH_EXCEEDED", ""},
		{x509.CertificateInvalidError{Reason: x509.NameMismatch}, "SUBJECT_ISSUER_MISMATCH", ""},
		{x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}, "INVALID_PURPOSE", ""},
		{x509.CertificateInvalidError{Reason: x509.NoValidChains}, "CERT_REJECTED", ""},
		{x509.UnknownAuthorityError{}, "UNABLE_TO_VERIFY_LEAF_SIGNATURE", ""},
		{x509.SystemRootsError{}, "UNABLE_TO_GET_ISSUER_CERT_LOCALLY", ""},
		{&tls.CertificateVerificationError{Err: errors.New("x")}, "CERT_REJECTED", ""},
	} {
		if code, call := Code(c.err); code != c.code || call != c.call {
			t.Errorf("%T %v: %q %q; want %q %q", c.err, c.err, code, call, c.code, c.call)
		}
	}
}

// No URL, query, credential, token or byte of an answer is left in a text.
func TestRedacted(t *testing.T) {
	t.Parallel()
	const botToken = "123456789:AAExampleExampleExampleExampleExamp"
	for _, c := range []struct{ in, want string }{
		{"dial tcp 127.0.0.1:443: connect: connection refused", "dial tcp 127.0.0.1:443: connect: connection refused"},
		{`Post "https://api.telegram.org/bot` + botToken + `/sendMessage": EOF`, "EOF"},
		{"telego: sendMessage: bot" + botToken + "/sendMessage failed", "telego: sendMessage: bot(token)/sendMessage failed"},
		{`proxyconnect tcp: parse "http://user:hunter2@proxy:3128": bad`, `proxyconnect tcp: parse "(url)": bad`},
		{"lookup user:hunter2@proxy: no such host", "lookup (credentials)@proxy: no such host"},
		{"GET /v1/models?key=hunter2&alt=sse failed", "GET /v1/models?(query) failed"},
		{"sent Authorization: Bearer abcdefghijklmnopqrstuvwx", "sent Authorization: Bearer (token)"},
		{"sent Bot MTAxMDEwMTAx.GAbCdE.abcdefghijklmnop", "sent Bot (token)"},
		{"Incorrect API key provided: sk-proj-abcdefghijklmnop1234", "Incorrect API key provided: (token)"},
		{"api_key=hunter2 is wrong", "api_key=(token) is wrong"},
		{`{"api_key":"hunter2hunter2"}`, `{"api_key":"(token)"}`},
		{`net/http: HTTP/1.x transport connection broken: malformed HTTP response "220 hunter2"`, "net/http: HTTP/1.x transport connection broken: malformed HTTP response"},
		{"malformed MIME header line: hunter2", "malformed MIME header line"},
		{`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="hunter2"`, "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=(left out)"},
		{"two\nlines\x1b[31m", "two lines [31m"},
		{"Too Many Requests: retry after 7", "Too Many Requests: retry after 7"},
		{"Rate limit reached. Please try again in 1.5s", "Rate limit reached. Please try again in 1.5s"},
	} {
		if got := Redacted(errors.New(c.in)); got != c.want {
			t.Errorf("%q\n got %q\nwant %q", c.in, got, c.want)
		}
	}
	if Redacted(nil) != "" {
		t.Error("nil has a text")
	}
	relative := &url.Error{Op: "Post", URL: "/hook/hunter2", Err: io.EOF}
	if got := Redacted(fmt.Errorf("send: %w", relative)); got != "send: EOF" {
		t.Errorf("relative URL: %q", got)
	}
	if got := Redacted(errors.New(strings.Repeat("é", 1<<20))); len(got) > maxText || strings.ContainsRune(got, '�') {
		t.Errorf("%d bytes", len(got))
	}
}
