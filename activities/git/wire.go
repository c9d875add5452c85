package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/policies"
)

// call is what rides with the HTTP requests of one operation. go-git has one
// HTTP client per process, so it travels in their context.
type call struct {
	transport http.RoundTripper
	// limit is the most bytes that a list of refs may have.
	limit int64

	mu        sync.Mutex
	err       error
	redirects int
	// list is the body of a list of refs, of which go-git reads as much as it wants.
	list *limitedBody
}

// finish reads the rest of a list of refs: what is behind its last line may still
// be missing. It returns what was wrong.
func (c *call) finish(read bool) error {
	c.mu.Lock()
	list := c.list
	c.list = nil
	c.mu.Unlock()
	if list == nil {
		return nil
	}
	defer list.Close()
	if !read {
		return nil
	}
	_, err := io.Copy(io.Discard, list)
	return err
}

// beginsList checks the first line of a list of refs, whose line feed some servers
// leave out.
func beginsList(r *bufio.Reader, service string) error {
	first := "# service=" + service
	line, err := r.Peek(4 + len(first))
	short := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !short {
		return err
	}
	for _, n := range []int{len(first) + 5, len(first) + 4} {
		switch want := fmt.Sprintf("%04x%s", n, first); {
		case string(line) == want:
			return nil
		case short && strings.HasPrefix(want, string(line)):
			return errEarlyEOF
		}
	}
	return errProtocol
}

// listBody is closed by who holds it.
type listBody struct{ *limitedBody }

func (listBody) Close() error { return nil }

// sentOn counts a redirect, and reports whether it was one too many.
func (c *call) sentOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.redirects++
	return c.redirects > maxRedirects
}

type callKey struct{}

func withCall(ctx context.Context, c *call) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

// note keeps the first error that is ours: go-git turns some errors of a body
// into text.
func (c *call) note(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	return err
}

// explain is the error of our own that stands behind err, else err.
func (c *call) explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err != nil {
		return c.err
	}
	return err
}

// wire is the transport beneath go-git's HTTP client, and of the pushes that go
// past it. It lets through only what
// is an answer of a Git server: go-git takes an empty pack for "up to date" and
// writes refs to objects it does not have, follows redirects, reads without
// limit, and cannot tell a login page from a broken list of refs.
type wire struct{}

func (wire) RoundTrip(req *http.Request) (*http.Response, error) {
	c, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		return nil, errors.New("git: a request outside an operation")
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	discovery := req.Method == http.MethodGet
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		if err = checkRedirect(req, resp, discovery); c.sentOn() {
			err = errRedirect
		}
	case resp.StatusCode != http.StatusOK:
		resp.Body = &limitedBody{body: resp.Body, reader: resp.Body, left: policies.MaxBody, end: io.EOF}
	case !isGitAnswer(req, resp):
		err = errNotGit
	default:
		err = c.guard(req, resp, discovery)
	}
	if err != nil {
		resp.Body.Close()
		return nil, c.note(err)
	}
	return resp, nil
}

// guard refuses an answer without a body, and a list of refs that does not begin as
// one: go-git would take both for success.
func (c *call) guard(req *http.Request, resp *http.Response, discovery bool) error {
	r := bufio.NewReader(resp.Body)
	if _, err := r.Peek(1); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEmptyReply
	} else if err != nil {
		return err
	}
	b := &limitedBody{body: resp.Body, reader: notedReader{r, c}, left: -1}
	if !discovery {
		resp.Body = b
		return nil
	}
	if err := beginsList(r, req.URL.Query().Get("service")); err != nil {
		return err
	}
	b.left, b.end, b.note = c.limit, errOutputLimit, c.note
	c.mu.Lock()
	c.list = b
	c.mu.Unlock()
	resp.Body = listBody{b}
	return nil
}

// notedReader keeps what broke a body, of which go-git may say that it was not
// what it should be.
type notedReader struct {
	from io.Reader
	call *call
}

func (r notedReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.call.note(err)
	}
	return n, err
}

// isGitAnswer reports whether the body is what the smart protocol answers to a
// request.
func isGitAnswer(req *http.Request, resp *http.Response) bool {
	want := req.URL.Query().Get("service") + "-advertisement"
	if req.Method != http.MethodGet {
		want = path.Base(req.URL.Path) + "-result"
	}
	got, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(got), "application/x-"+want)
}

// checkRedirect lets the discovery request be sent on within its origin, for
// hosts that add ".git" or a slash. Anything else would take the operation, and
// perhaps its credential, somewhere that nobody named (G9).
func checkRedirect(req *http.Request, resp *http.Response, discovery bool) error {
	if resp.Header.Get("Location") == "" {
		return nil // an odd status, which go-git reports
	}
	to, err := resp.Location()
	if err != nil || !discovery || to.User != nil || !sameOrigin(req.URL, to) {
		return errRedirect
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// limitedBody is a body of which at most left bytes are read, then end is
// returned. A negative left is no limit.
type limitedBody struct {
	body   io.Closer
	reader io.Reader
	left   int64
	end    error
	note   func(error) error
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.reader.Read(p)
	}
	if b.left == 0 {
		return b.ended(p)
	}
	n, err := b.reader.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// ended is at the limit: a body that is just as long has ended by itself.
func (b *limitedBody) ended(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if n, err := b.reader.Read(p[:1]); n == 0 {
		return 0, err
	}
	if b.note != nil {
		return 0, b.note(b.end)
	}
	return 0, b.end
}

func (b *limitedBody) Close() error { return b.body.Close() }
