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
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// DefaultConnectTimeout is the limit on getting a connection (M2.2).
const DefaultConnectTimeout = 10 * time.Second

// maxHeaderBytes bounds the headers of an answer, which are kept.
const maxHeaderBytes = 1 << 20

// Options configure a Transport.
type Options struct {
	// Fresh makes every request travel alone, for requests that must not be
	// doubled: HTTP/1.1 on a new connection, without a way for net/http to
	// repeat the body, and without Idempotency-Key and X-Idempotency-Key
	// headers, which make it repeat. Defaults to false: connections are pooled
	// and HTTP/2 is spoken where the server offers it.
	Fresh bool

	// ConnectTimeout bounds everything up to having a connection: DNS,
	// dialling, a proxy's CONNECT and the TLS handshake together. Defaults to
	// DefaultConnectTimeout; negative means no limit.
	ConnectTimeout time.Duration

	// TLS is the configuration of TLS, cloned. Defaults to the standard
	// library's.
	TLS *tls.Config

	// RootCAs are the authorities to trust instead of those of TLS. Defaults
	// to none: those of TLS, or the system's.
	RootCAs *x509.CertPool

	// Proxy returns the proxy of a request. Defaults to none; the environment
	// is not read.
	Proxy func(*http.Request) (*url.URL, error)

	// Dial makes connections. Defaults to a net.Dialer. It must end with its
	// context.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// MaxIdlePerHost is how many idle connections are kept to one host.
	// Defaults to 16. Fresh keeps none.
	MaxIdlePerHost int

	// IdleTimeout is how long an idle connection is kept. Defaults to 90 s.
	IdleTimeout time.Duration

	// Now is the clock of the time stamps. Defaults to time.Now.
	Now func() time.Time
}

// Transport is an http.RoundTripper that keeps a Record of each request whose
// context carries one.
type Transport struct {
	base           *http.Transport
	fresh          bool
	connectTimeout time.Duration
	now            func() time.Time
}

// ConnectTimeoutError says that no connection was had within the limit, so
// that nothing was sent.
type ConnectTimeoutError struct {
	Limit time.Duration
}

func (e *ConnectTimeoutError) Error() string {
	return fmt.Sprintf("no connection within %v: check that the host is reachable", e.Limit)
}

// Timeout reports true, as net.Error has it.
func (e *ConnectTimeoutError) Timeout() bool { return true }

// ProxyError says that a proxy refused to connect to the host, so that nothing
// was sent.
type ProxyError struct {
	Status int // the proxy's HTTP status
}

func (e *ProxyError) Error() string {
	return fmt.Sprintf("the proxy refused the connection with status %d: check its address, its credentials and its rules", e.Status)
}

// NewTransport returns a Transport over an http.Transport of its own.
func NewTransport(o Options) *Transport {
	t := &Transport{fresh: o.Fresh, connectTimeout: o.ConnectTimeout, now: o.Now}
	if t.connectTimeout == 0 {
		t.connectTimeout = DefaultConnectTimeout
	}
	if t.now == nil {
		t.now = time.Now
	}

	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!o.Fresh)
	t.base = &http.Transport{
		Proxy:                  o.Proxy,
		OnProxyConnectResponse: checkProxy,
		DialContext:            limitDial(o.Dial, t.connectTimeout),
		TLSClientConfig:        tlsConfig(o),
		TLSHandshakeTimeout:    max(t.connectTimeout, 0),
		DisableKeepAlives:      o.Fresh,
		MaxIdleConnsPerHost:    o.MaxIdlePerHost,
		IdleConnTimeout:        o.IdleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		Protocols:              protocols,
	}
	if t.base.MaxIdleConnsPerHost == 0 {
		t.base.MaxIdleConnsPerHost = 16
	}
	if t.base.IdleConnTimeout == 0 {
		t.base.IdleConnTimeout = 90 * time.Second
	}
	return t
}

// NewClient returns a client over NewTransport(o). It follows no redirect (the
// answer is the redirect itself), keeps no cookies and has no limit on the
// whole request: limits belong to the context.
func NewClient(o Options) *http.Client {
	return &http.Client{
		Transport: NewTransport(o),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// limitDial ends a dial in time. net/http lets a dial go on when its request
// has been given up, so the limit of the request does not end it.
func limitDial(dial dialFunc, limit time.Duration) dialFunc {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	if limit < 0 {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, address)
	}
}

func tlsConfig(o Options) *tls.Config {
	config := &tls.Config{}
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	if o.RootCAs != nil {
		config.RootCAs = o.RootCAs
	}
	return config
}

func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return &ProxyError{Status: resp.StatusCode}
}

// CloseIdleConnections closes the pooled connections that are not in use.
func (t *Transport) CloseIdleConnections() { t.base.CloseIdleConnections() }

// errReleased ends the context of a request whose body has ended.
var errReleased = errors.New("the request has ended")

// RoundTrip sends one request and keeps its facts in the Record of its context.
// Its errors are those of http.Transport, *ConnectTimeoutError and *ProxyError.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	record := From(req.Context())
	if record == nil {
		record = New()
	}
	x := record.begin(t.now())

	ctx, cancel := context.WithCancelCause(req.Context())
	connect := connectLimit{limit: t.connectTimeout, cancel: cancel}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			record.getConn()
			connect.start()
		},
		GotConn: func(httptrace.GotConnInfo) {
			record.gotConn(x, t.now())
			connect.stop()
		},
	})

	resp, err := t.base.RoundTrip(t.prepare(req.WithContext(ctx)))
	connect.stop()
	if err != nil {
		record.failed(x, err)
		cancel(errReleased)
		return nil, err
	}
	record.answered(x, resp, t.now())
	resp.Body = watch(resp.Body, record, x, t.now, func() { cancel(errReleased) })
	resp.Request = req
	return resp, nil
}

// connectLimit cancels a request that waits too long for a connection.
type connectLimit struct {
	limit  time.Duration // negative: none
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
}

func (l *connectLimit) start() {
	if l.limit < 0 {
		return
	}
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(l.limit, func() {
		l.cancel(&ConnectTimeoutError{Limit: l.limit})
	})
}

func (l *connectLimit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
}

// prepare takes from a request what would let net/http repeat it. It changes
// its argument, which is already a shallow copy, but not the shared header.
func (t *Transport) prepare(req *http.Request) *http.Request {
	if !t.fresh {
		return req
	}
	req.GetBody = nil
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if _, ok := req.Header[name]; ok {
			req.Header = req.Header.Clone()
			req.Header.Del(name)
		}
	}
	return req
}

// body notes how the body of an answer is read. Close may be called while a
// Read is waiting, which ends it.
type body struct {
	io.ReadCloser
	record  *Record
	x       *exchange
	now     func() time.Time
	release func()
}

// duplex is the body of an answer that switched protocols.
type duplex struct {
	*body
	io.Writer
}

func watch(inner io.ReadCloser, record *Record, x *exchange, now func() time.Time, release func()) io.ReadCloser {
	if inner == nil || inner == http.NoBody {
		release()
		return inner
	}
	b := &body{ReadCloser: inner, record: record, x: x, now: now, release: release}
	if w, ok := inner.(io.Writer); ok {
		return duplex{b, w}
	}
	return b
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
		b.record.read(b.x, p[:n], BodyOpen, nil, b.now())
		return n, nil
	case err == io.EOF:
		b.record.read(b.x, p[:n], BodyEOF, nil, b.now())
	default:
		b.record.read(b.x, p[:n], BodyError, err, b.now())
	}
	b.release()
	return n, err
}

func (b *body) Close() error {
	// Noted first, so that a Read that this ends is not taken for a fault.
	b.record.read(b.x, nil, BodyClosed, nil, b.now())
	err := b.ReadCloser.Close()
	b.release()
	return err
}
