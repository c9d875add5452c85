package attempt

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"reflect"
	"strings"
	"syscall"
)

// Codes that stand for more than one Go error.
const (
	codeAborted        = "ABORT_ERR"
	codeTimeout        = "ETIMEDOUT"
	codeConnectTimeout = "UND_ERR_CONNECT_TIMEOUT"
	codeHeadersTimeout = "UND_ERR_HEADERS_TIMEOUT"
	codeBodyTimeout    = "UND_ERR_BODY_TIMEOUT"
	codeSocket         = "UND_ERR_SOCKET"
	codeProxy          = "UND_ERR_ABORTED"
	codeNotTLS         = "ERR_SSL_WRONG_VERSION_NUMBER"
	codeTLSProtocol    = "EPROTO"
	codeGoAway         = "ERR_HTTP2_GOAWAY_SESSION"
	codeHTTP2Stream    = "ERR_HTTP2_STREAM_ERROR"
	codeHTTP2Session   = "ERR_HTTP2_SESSION_ERROR"
	codeMalformed      = "HPE_INVALID_CONSTANT"
)

// errnoNames are the errors of the kernel that a connection can meet.
var errnoNames = map[syscall.Errno]string{
	syscall.ECONNREFUSED:  "ECONNREFUSED",
	syscall.ECONNRESET:    "ECONNRESET",
	syscall.ECONNABORTED:  "ECONNABORTED",
	syscall.EPIPE:         "EPIPE",
	syscall.ETIMEDOUT:     codeTimeout,
	syscall.ENETUNREACH:   "ENETUNREACH",
	syscall.ENETDOWN:      "ENETDOWN",
	syscall.ENETRESET:     "ENETRESET",
	syscall.EHOSTUNREACH:  "EHOSTUNREACH",
	syscall.EHOSTDOWN:     "EHOSTDOWN",
	syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL",
	syscall.EAFNOSUPPORT:  "EAFNOSUPPORT",
	syscall.EACCES:        "EACCES",
	syscall.EPERM:         "EPERM",
	syscall.EMFILE:        "EMFILE",
	syscall.ENFILE:        "ENFILE",
	syscall.ENOBUFS:       "ENOBUFS",
	syscall.ENOTCONN:      "ENOTCONN",
}

// Code translates a Go error of the network into the code, and where there is
// one the system call, by which policies know it: those of Node.js and undici,
// which the shared vectors speak. Both are empty for an error that is not of
// the network.
func Code(err error) (code, call string) {
	if err == nil {
		return "", ""
	}
	if code := certificateCode(err); code != "" {
		return code, ""
	}
	if errors.Is(err, context.Canceled) {
		return codeAborted, ""
	}
	for _, translate := range []func(error) (string, string){ours, nameCode, errnoCode, http2Code, timeoutCode, streamCode, tlsCode} {
		if code, call := translate(err); code != "" {
			return code, call
		}
	}
	return "", ""
}

func ours(err error) (code, call string) {
	if _, ok := errors.AsType[*ConnectTimeoutError](err); ok {
		return codeConnectTimeout, "connect"
	}
	if _, ok := errors.AsType[*ProxyError](err); ok {
		return codeProxy, ""
	}
	return "", ""
}

// nameCode tells a name that does not exist from a lookup that failed for now.
func nameCode(err error) (code, call string) {
	e, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return "", ""
	case e.IsNotFound:
		return "ENOTFOUND", "getaddrinfo"
	}
	return "EAI_AGAIN", "getaddrinfo"
}

func errnoCode(err error) (code, call string) {
	errno, ok := errors.AsType[syscall.Errno](err)
	if !ok {
		return "", ""
	}
	code = errnoNames[errno]
	if code == "" {
		return "", ""
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		return code, e.Syscall
	}
	if e, ok := errors.AsType[*net.OpError](err); ok {
		return code, operationCall(e.Op)
	}
	return code, ""
}

func operationCall(op string) string {
	if op == "dial" {
		return "connect"
	}
	return op
}

func timeoutCode(err error) (code, call string) {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" && e.Timeout() {
		return codeConnectTimeout, "connect"
	}
	if typeIn(err, "http.tlsHandshakeTimeoutError") {
		return codeConnectTimeout, "connect"
	}
	if e, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && e.Timeout() {
		return codeTimeout, ""
	}
	return "", ""
}

// http2StreamError has the shape that net/http's own type converts itself to.
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (http2StreamError) Error() string { return "HTTP/2 stream error" }

// http2Code knows the errors of net/http's HTTP/2, whose types have no exported
// names, by the names of those types.
func http2Code(err error) (code, call string) {
	if typeIn(err, "http.http2GoAwayError") {
		return codeGoAway, ""
	}
	if _, ok := errors.AsType[http2StreamError](err); ok {
		return codeHTTP2Stream, ""
	}
	if typeIn(err, "http.http2ConnectionError") {
		return codeHTTP2Session, ""
	}
	return "", ""
}

// streamCode knows a connection that ended too early, and an answer that is not
// HTTP.
func streamCode(err error) (code, call string) {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return codeSocket, ""
	}
	// Headers that break off inside a name come as a protocol error.
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return codeSocket, ""
	}
	// These net/http errors have nothing but a text.
	text := err.Error()
	switch {
	case strings.Contains(text, "http: server closed idle connection"),
		strings.Contains(text, "http2: client connection lost"),
		strings.Contains(text, "http2: client connection force closed"):
		return codeSocket, ""
	case strings.Contains(text, "malformed HTTP "), strings.Contains(text, "malformed chunked encoding"),
		strings.Contains(text, "invalid byte in chunk length"):
		return codeMalformed, ""
	}
	return "", ""
}

func tlsCode(err error) (code, call string) {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return codeNotTLS, ""
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return codeNotTLS, ""
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return codeTLSProtocol, ""
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return codeTLSProtocol, ""
	}
	return "", ""
}

// certificateCode names what is wrong with the other side's certificate, in
// OpenSSL's words.
func certificateCode(err error) string {
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "ERR_TLS_CERT_ALTNAME_INVALID"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return invalidCode(e)
	}
	if e, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return authorityCode(err, e)
	}
	if _, ok := errors.AsType[x509.SystemRootsError](err); ok {
		return "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
	}
	if _, ok := errors.AsType[x509.InsecureAlgorithmError](err); ok {
		return "CERT_SIGNATURE_FAILURE"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "CERT_REJECTED"
	}
	return ""
}

func invalidCode(e x509.CertificateInvalidError) string {
	switch e.Reason {
	case x509.Expired:
		if strings.Contains(e.Detail, "is before") {
			return "CERT_NOT_YET_VALID"
		}
		return "CERT_HAS_EXPIRED"
	case x509.NotAuthorizedToSign:
		return "INVALID_CA"
	case x509.TooManyIntermediates:
		return "PATH_LENGTH_EXCEEDED"
	case x509.IncompatibleUsage:
		return "INVALID_PURPOSE"
	case x509.NameMismatch:
		return "SUBJECT_ISSUER_MISMATCH"
	}
	return "CERT_REJECTED"
}

// authorityCode looks at the chain that was offered: alone and signed by
// itself, ending in a root nobody knows, or missing its issuer.
func authorityCode(err error, e x509.UnknownAuthorityError) string {
	chain := []*x509.Certificate{e.Cert}
	if v, ok := errors.AsType[*tls.CertificateVerificationError](err); ok && len(v.UnverifiedCertificates) > 0 {
		chain = v.UnverifiedCertificates
	}
	selfSigned := isSelfSigned(chain[len(chain)-1])
	switch {
	case selfSigned && len(chain) == 1:
		return "DEPTH_ZERO_SELF_SIGNED_CERT"
	case selfSigned:
		return "SELF_SIGNED_CERT_IN_CHAIN"
	case len(chain) == 1:
		return "UNABLE_TO_VERIFY_LEAF_SIGNATURE"
	}
	return "UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
}

func isSelfSigned(c *x509.Certificate) bool {
	return c != nil && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

// typeIn reports whether err or an error beneath it has the named type.
func typeIn(err error, name string) bool {
	if err == nil {
		return false
	}
	if reflect.TypeOf(err).String() == name {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return typeIn(e.Unwrap(), name)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if typeIn(inner, name) {
				return true
			}
		}
	}
	return false
}
