package git

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/client"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// install gives go-git our HTTP client, once per process: its table of
// protocols is a global map without a lock.
var install sync.Once

// goGit is the engine that works on go-git v5, below its porcelain: sessions and
// the reading of objects are go-git's; what is asked for, how packs are taken in,
// how refs move and how files are written is ours.
type goGit struct {
	transport      http.RoundTripper
	connectTimeout time.Duration
	limits         limits
}

func newGoGit(t http.RoundTripper, connectTimeout time.Duration, l limits) *goGit {
	install.Do(func() {
		c := githttp.NewClient(&http.Client{Transport: wire{}, CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects {
				return errRedirect
			}
			return nil
		}})
		client.InstallProtocol("http", c)
		client.InstallProtocol("https", c)
		registerDialer()
	})
	return &goGit{transport: t, connectTimeout: connectTimeout, limits: l.or(defaultLimits)}
}

func (g *goGit) lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &call{transport: g.transport, limit: MaxOutput}
	session, adv, err := g.discover(withCall(ctx, c), r)
	if err != nil {
		return nil, c.explain(err)
	}
	session.Close() // how the other side takes our leaving changes nothing
	refs := make([]contract.GitRef, 0, len(adv.References)+len(adv.Peeled)+1)
	if adv.Head != nil {
		refs = append(refs, contract.GitRef{Name: "HEAD", OID: adv.Head.String()})
	}
	for name, oid := range adv.References {
		refs = append(refs, contract.GitRef{Name: name, OID: oid.String()})
	}
	for name, oid := range adv.Peeled {
		refs = append(refs, contract.GitRef{Name: name + "^{}", OID: oid.String()})
	}
	sortRefs(refs)
	return refs, nil
}

func (g *goGit) fetch(ctx context.Context, r *remote, c *checkout, ref string) (moved []contract.GitUpdate, err error) {
	err = g.session(ctx, r, func(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs) error {
		if c.partial() {
			return refuse(policies.ReasonFormat, "G3/checkout", "the checkout is a partial clone, which only the git program can fetch into; install it, or clone again in full")
		}
		p, err := newPlan(adv, c, ref, c.tagOption())
		if err != nil {
			return err
		}
		q := &order{wants: p.wants(), tags: len(p.follow) > 0}
		if err := g.receive(ctx, session, adv, q, c, r.progress); err != nil {
			return err
		}
		if err := p.settle(ctx, c); err != nil {
			return err
		}
		if err := refuseCheckedOut(c, p.updates); err != nil {
			return err
		}
		// Work whose activity has given up must not move refs.
		if err := ctx.Err(); err != nil {
			return err
		}
		r.progress.enter(phaseRefs)
		if err := moveRefs(c, p.updates); err != nil {
			return checkoutError(err)
		}
		moved = reported(p.updates)
		return nil
	})
	return moved, err
}

// session reads what a remote has and lets work go on from there.
func (g *goGit) session(ctx context.Context, r *remote, work func(context.Context, transport.UploadPackSession, *packp.AdvRefs) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &call{transport: g.transport, limit: maxAdvertisement}
	ctx = withCall(ctx, c)
	session, adv, err := g.discover(ctx, r)
	if err != nil {
		return c.explain(err)
	}
	defer session.Close() // the pack is checked by its own sum
	return c.explain(work(ctx, session, adv))
}

func oid(h plumbing.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// discover opens a session and reads the refs that the other side has.
func (g *goGit) discover(ctx context.Context, r *remote) (transport.UploadPackSession, *packp.AdvRefs, error) {
	session, err := connect(g, ctx, r, transport.Transport.NewUploadPackSession)
	if err != nil {
		return nil, nil, err
	}
	adv, err := advertised(ctx, session)
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	return session, adv, nil
}

// advertised are the refs that the other side of a session has.
func advertised(ctx context.Context, session transport.Session) (*packp.AdvRefs, error) {
	adv, err := session.AdvertisedReferencesContext(ctx)
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		if cut := c.finish(err == nil || errors.Is(err, transport.ErrEmptyRemoteRepository)); cut != nil {
			return nil, cut
		}
	}
	var odd *packp.ErrUnexpectedData
	switch {
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return packp.NewAdvRefs(), nil
	case errors.As(err, &odd) && strings.HasSuffix(odd.Msg, ": EOF"):
		return nil, errEarlyEOF
	case errors.As(err, &odd), errors.Is(err, pktline.ErrInvalidPktLen):
		return nil, errProtocol
	}
	return adv, err
}

// connect opens a session of one kind.
func connect[S transport.Session](g *goGit, ctx context.Context, r *remote,
	open func(transport.Transport, *transport.Endpoint, transport.AuthMethod) (S, error),
) (none S, err error) {
	endpoint, err := transport.NewEndpoint(r.url)
	if err != nil {
		return none, errEndpoint
	}
	auth, release, err := g.authorize(ctx, r, endpoint)
	if err != nil {
		return none, err
	}
	defer release()
	t, err := client.NewClient(endpoint)
	if err != nil {
		return none, err
	}
	session, err := open(t, endpoint, auth)
	if errors.Is(err, exec.ErrNotFound) {
		return none, errLocalProgram
	}
	if err == nil {
		r.progress.enter(phaseListing)
	}
	return session, err
}

var (
	errEndpoint     = refuse(policies.ReasonFormat, "G9/url", "the remote's URL cannot be read; give an http, https, ssh or file URL")
	errLocalProgram = refuse(policies.ReasonFormat, "G12/local", "a remote on this machine is served by the git program, which is not in PATH; install it, or name the remote by an http, https or ssh URL")
)

// authorize makes the login for an endpoint. release is called once the session
// has been opened.
func (g *goGit) authorize(ctx context.Context, r *remote, endpoint *transport.Endpoint) (auth transport.AuthMethod, release func(), err error) {
	switch r.Transport {
	case policies.GitHTTP:
		return r.creds.httpAuth(), func() {}, nil
	case policies.GitSSH:
		port := endpoint.Port
		if port == 0 {
			port = 22
		}
		auth, end, err := r.creds.sshAuth(ctx, r.User, net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(port)))
		if err != nil {
			return nil, nil, err
		}
		proxy, forget := dialWithin(ctx, g.connectTimeout)
		endpoint.Proxy.URL = proxy
		return auth, func() { forget(); end() }, nil
	}
	return nil, func() {}, nil
}
