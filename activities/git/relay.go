package git

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/holdfast-dev/holdfast/policies"
)

// relay is what the git program asks in place of a remote over HTTP: a server on
// the loopback that passes each request on once, by the worker's own transport.
//
// libcurl, inside the git program, sends a POST again when the connection that
// it reuses is reset, and "Connection: close" does not stop it where the server
// keeps the connection; here a push leaves once, whatever libcurl does (G6). It
// also keeps the credential out of the program's environment, follows no
// redirect to another origin (G9), and knows of every failure what the transport
// knows, so that both engines tell the same of it.
type relay struct {
	remote    *remote
	transport http.RoundTripper
	// limit is the most bytes that a list of refs may have.
	limit    int64
	token    string
	listener net.Listener
	server   http.Server
	serving  sync.WaitGroup
	cancel   context.CancelFunc

	mu     sync.Mutex
	closed bool
	// base is the remote's address, as its redirects have it.
	base string
	// err is what was wrong first.
	err error
	// pushed says that a push has been passed on.
	pushed bool
}

// relayHeader carries the token that the git program has and no one else.
const relayHeader = "Holdfast-Relay"

// maxRedirects is how often a remote may redirect within its origin.
const maxRedirects = 3

// errStatus stands behind an answer whose status, which the transport has
// recorded, says what is wrong.
var errStatus = errors.New("git: the remote answered with an error status")

// startRelay listens. The requests live within ctx and carry its values.
func startRelay(ctx context.Context, transport http.RoundTripper, r *remote, limit int64) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		if listener, err = net.Listen("tcp", "[::1]:0"); err != nil {
			return nil, err
		}
	}
	y := &relay{
		remote: r, transport: transport, limit: limit, token: rand.Text(),
		listener: listener, base: strings.TrimRight(r.url, "/"),
	}
	ctx, y.cancel = context.WithCancel(ctx)
	y.server.Handler = y
	y.server.ErrorLog = log.New(io.Discard, "", 0)
	y.server.BaseContext = func(net.Listener) context.Context { return ctx }
	y.serving.Go(func() { y.server.Serve(listener) }) // ends by close
	return y, nil
}

// close ends all requests and returns when they have ended.
func (y *relay) close() {
	y.mu.Lock()
	y.closed = true
	y.mu.Unlock()
	y.cancel()
	y.server.Close()
	y.serving.Wait()
}

// settings make the git program ask here for what it is told to ask there.
func (y *relay) settings() []setting {
	return []setting{
		{"url.http://" + y.listener.Addr().String() + "/.insteadOf", y.remote.url},
		{"http.extraHeader", relayHeader + ": " + y.token},
	}
}

// failure is the first thing that went wrong on the way to the remote and back.
func (y *relay) failure() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.err
}

// sent reports whether a push was passed on.
func (y *relay) sent() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.pushed
}

func (y *relay) note(err error) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.err == nil {
		y.err = err
	}
	return err
}

// request is one request of the git program.
type request struct {
	*http.Request
	service   string
	discovery bool
	// path is what is added to the remote's address.
	path string
}

func (y *relay) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	if !y.enter() {
		return
	}
	defer y.serving.Done()
	r, ok := readRequest(in)
	switch {
	case subtle.ConstantTimeCompare([]byte(in.Header.Get(relayHeader)), []byte(y.token)) != 1:
		w.WriteHeader(http.StatusForbidden)
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case isProbe(r):
		w.WriteHeader(http.StatusOK)
		return
	}
	resp, err := y.ask(r)
	if err != nil {
		y.refuse(w, in, err)
		return
	}
	defer resp.Body.Close()
	body, err := y.check(r, resp)
	if err != nil {
		y.refuse(w, in, err)
		return
	}
	y.answer(w, r, resp, body)
}

// enter counts a request, unless the relay is closed.
func (y *relay) enter() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if !y.closed {
		y.serving.Add(1)
	}
	return !y.closed
}

func readRequest(in *http.Request) (*request, bool) {
	r := &request{Request: in}
	switch {
	case in.Method == http.MethodGet && in.URL.Path == "/info/refs":
		r.service, r.discovery = in.URL.Query().Get("service"), true
		r.path = "/info/refs?service=" + r.service
	case in.Method == http.MethodPost:
		r.service, r.path = strings.TrimPrefix(in.URL.Path, "/"), in.URL.Path
	}
	return r, r.service == uploadPack || r.service == receivePack
}

const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// isProbe recognises the empty push that the git program sends ahead of a large
// one to see whether it may. That it may is seen when the push itself is sent.
func isProbe(r *request) bool {
	return r.service == receivePack && !r.discovery && r.ContentLength == int64(len("0000"))
}

// ask passes a request on and follows redirects within the remote's origin: of
// the discovery only, for hosts that add ".git" or a slash.
func (y *relay) ask(r *request) (*http.Response, error) {
	if r.service == receivePack && !r.discovery {
		if err := y.pushOnce(); err != nil {
			return nil, err
		}
	}
	for range maxRedirects {
		resp, err := y.transport.RoundTrip(y.outgoing(r))
		if err != nil {
			return nil, err
		}
		if resp.StatusCode < 300 || resp.StatusCode >= 400 || resp.Header.Get("Location") == "" {
			return resp, nil
		}
		resp.Body.Close()
		if err := y.redirect(r, resp); err != nil {
			return nil, err
		}
	}
	return nil, errRedirect
}

// pushOnce lets one push pass.
func (y *relay) pushOnce() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.pushed {
		return errors.New("git: a push was to be sent a second time")
	}
	y.pushed = true
	return nil
}

func (y *relay) redirect(r *request, resp *http.Response) error {
	y.mu.Lock()
	defer y.mu.Unlock()
	from, err := url.Parse(y.base)
	if err != nil {
		return errRedirect
	}
	to, err := resp.Location()
	if err != nil || !r.discovery || to.User != nil || !sameOrigin(from, to) {
		return errRedirect
	}
	base, ok := strings.CutSuffix(to.String(), r.path)
	if !ok {
		return errRedirect
	}
	y.base = base
	return nil
}

// outgoing is the request as the remote gets it.
func (y *relay) outgoing(r *request) *http.Request {
	y.mu.Lock()
	address := y.base + r.path
	y.mu.Unlock()
	out := r.Clone(r.Context())
	out.RequestURI, out.Host, out.Close = "", "", false
	out.Header = http.Header{}
	for _, name := range []string{"Accept", "Content-Type", "Content-Encoding", "Git-Protocol", "User-Agent"} {
		if values := r.Header.Values(name); len(values) > 0 {
			out.Header[name] = values
		}
	}
	if r.discovery {
		out.Body, out.ContentLength = nil, 0
	} else {
		out.Body = &sentBody{ReadCloser: r.Body, relay: y, count: r.service == receivePack}
	}
	var err error
	if out.URL, err = url.Parse(address); err != nil {
		out.URL = &url.URL{} // which no transport takes
	}
	if auth, ok := y.remote.creds.httpAuth().(githttp.AuthMethod); ok {
		auth.SetAuth(out)
	}
	return out
}

// sentBody is what the git program sends. That it breaks off is no failure of
// the remote's.
type sentBody struct {
	io.ReadCloser
	relay *relay
	count bool
}

// errBrokenOff is a request that its sender did not finish.
var errBrokenOff = errors.New("git: the program broke off its request")

func (b *sentBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.count {
		b.relay.remote.progress.bytes.Add(int64(n))
	}
	if err != nil && err != io.EOF {
		err = errBrokenOff
	}
	return n, err
}

// check lets through only what is an answer of a Git server.
func (y *relay) check(r *request, resp *http.Response) (io.Reader, error) {
	if resp.StatusCode != http.StatusOK {
		// The beginning of the body is for the record.
		io.Copy(io.Discard, io.LimitReader(resp.Body, policies.MaxBody)) // its end changes nothing
		return nil, errStatus
	}
	kind := "result"
	if r.discovery {
		kind = "advertisement"
	}
	got, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(got), "application/x-"+r.service+"-"+kind) {
		return nil, errNotGit
	}
	body := bufio.NewReaderSize(resp.Body, 64<<10)
	if _, err := body.Peek(1); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, errEmptyReply
	} else if err != nil {
		return nil, err
	}
	if r.discovery {
		return &limitedBody{body: resp.Body, reader: body, left: y.limit, end: errOutputLimit}, nil
	}
	return body, nil
}

// answer passes the body of an answer on as it comes.
func (y *relay) answer(w http.ResponseWriter, r *request, resp *http.Response, body io.Reader) {
	for _, name := range []string{"Content-Type", "Content-Encoding", "Content-Length"} {
		if value := resp.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	count := r.service == uploadPack && !r.discovery
	for {
		n, err := body.Read(buf)
		if count {
			y.remote.progress.bytes.Add(int64(n))
		}
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return // the program has gone, and says why
			}
			flush.Flush() // what it could not send is met by the next Write
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			if r.Context().Err() == nil {
				y.note(err)
			}
			panic(http.ErrAbortHandler)
		}
	}
}

// refuse answers a request that could not be passed on with a status that ends
// the program, whatever the remote's own was: some let it ask again.
func (y *relay) refuse(w http.ResponseWriter, in *http.Request, err error) {
	if in.Context().Err() == nil && !errors.Is(err, errBrokenOff) {
		y.note(err)
	}
	w.WriteHeader(http.StatusBadGateway)
}
