package git

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
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

// goGit is the engine that runs inside the worker, on go-git v5.
type goGit struct {
	transport      http.RoundTripper
	connectTimeout time.Duration
}

func newGoGit(t http.RoundTripper, connectTimeout time.Duration) *goGit {
	install.Do(func() {
		c := githttp.NewClient(&http.Client{Transport: wire{}})
		client.InstallProtocol("http", c)
		client.InstallProtocol("https", c)
		registerDialer()
	})
	return &goGit{transport: t, connectTimeout: connectTimeout}
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

func (g *goGit) fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := &call{transport: g.transport, limit: maxAdvertisement}
	moved, err := g.fetchCall(withCall(ctx, call), r, c, ref)
	return moved, call.explain(err)
}

func (g *goGit) fetchCall(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	session, adv, err := g.discover(ctx, r)
	if err != nil {
		return nil, err
	}
	defer session.Close() // the pack is checked by its own sum
	p, err := newPlan(adv, c, ref)
	if err != nil {
		return nil, err
	}
	if err := receive(ctx, session, adv, p, c, r.progress); err != nil {
		return nil, err
	}
	if err := p.settle(c); err != nil {
		return nil, err
	}
	// Work whose activity has given up must not move refs.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.progress.enter(phaseRefs)
	if err := moveRefs(c, p.updates); err != nil {
		return nil, err
	}
	moved := make([]contract.GitUpdate, 0, len(p.updates))
	for _, u := range p.updates {
		moved = append(moved, contract.GitUpdate{Ref: u.name.String(), Old: oid(u.old), New: oid(u.new)})
	}
	return moved, nil
}

func oid(h plumbing.Hash) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// discover opens a session and reads the refs that the other side has.
func (g *goGit) discover(ctx context.Context, r *remote) (transport.UploadPackSession, *packp.AdvRefs, error) {
	endpoint, err := transport.NewEndpoint(r.url)
	if err != nil {
		return nil, nil, refuse(policies.ReasonFormat, "G9/url", "the remote's URL cannot be read; give an http, https, ssh or file URL")
	}
	auth, release, err := g.authorize(ctx, r, endpoint)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	t, err := client.NewClient(endpoint)
	if err != nil {
		return nil, nil, err
	}
	session, err := t.NewUploadPackSession(endpoint, auth)
	if err != nil {
		return nil, nil, err
	}
	r.progress.enter(phaseListing)
	adv, err := session.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return session, packp.NewAdvRefs(), nil
	}
	if err != nil {
		session.Close()
		return nil, nil, err
	}
	return session, adv, nil
}

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
		auth, err := r.creds.sshAuth(r.User, net.JoinHostPort(strings.Trim(endpoint.Host, "[]"), strconv.Itoa(port)))
		if err != nil {
			return nil, nil, err
		}
		endpoint.Proxy.URL, release = dialWithin(ctx, g.connectTimeout)
		return auth, release, nil
	}
	return nil, func() {}, nil
}

// What follows is replaced by the engine's own clone, push and advance.

func (g *goGit) clone(context.Context, *remote, string, cloneSpec) (contract.GitHead, error) {
	return contract.GitHead{}, errNotGit
}

func (g *goGit) push(context.Context, *remote, *checkout, contract.GitPushIntent) error {
	return errNotGit
}

func (g *goGit) locate(context.Context, *remote, *checkout, string, string) (contract.GitLocated, error) {
	return contract.GitLocated{}, errNotGit
}

func (g *goGit) descends(context.Context, *checkout, string, string) (bool, error) {
	return false, errNotGit
}

func (g *goGit) advance(context.Context, *checkout, *progress, string, string) error {
	return errNotGit
}
