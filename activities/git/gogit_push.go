package git

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pack"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// errNoReport is a remote that does not say what became of a push.
var errNoReport = refuse(policies.ReasonFormat, "G6/no_report", "the remote cannot say what becomes of a push, so nothing was pushed; push to a host that reports it")

// push makes a pack of what the remote lacks and sends it with one command. All
// that fails before the first byte of that is not sent; a report that the ref
// has not moved is proof as well; anything else may have happened.
func (g *goGit) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	return g.pushBegun(ctx, r, c, p, func() {})
}

// pushBegun is push, and says when it is about to send.
func (g *goGit) pushBegun(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent, begins func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := &call{transport: g.transport, limit: maxAdvertisement}
	ctx = withCall(ctx, call)
	push := &push{engine: g, remote: r, checkout: c, begins: begins, name: plumbing.ReferenceName(p.Ref), old: plumbing.NewHash(p.Old), new: plumbing.NewHash(p.New)}
	err := call.explain(push.make(ctx))
	if err != nil && !push.begun {
		return &unsentError{err}
	}
	return err
}

// push is one push of one ref.
type push struct {
	engine   *goGit
	remote   *remote
	checkout *checkout
	name     plumbing.ReferenceName
	old, new plumbing.Hash
	// edge says that commits are sent whose parents are not here.
	edge bool
	// begun says that the request may have left, and begins is called before.
	begun  bool
	begins func()
}

func (p *push) make(ctx context.Context) error {
	endpoint, err := transport.NewEndpoint(p.remote.url)
	if err != nil {
		return errEndpoint
	}
	session, err := connect(p.engine, ctx, p.remote, func(t transport.Transport, e *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
		endpoint = e // where a redirect leads to is written into it
		return t.NewReceivePackSession(e, auth)
	})
	if err != nil {
		return err
	}
	defer session.Close()
	adv, err := advertised(ctx, session)
	if err != nil {
		return err
	}
	switch there := adv.References[p.name.String()]; {
	case there == p.new:
		return nil // an earlier push of it has arrived
	case there != p.old:
		return errLeaseLost
	case !adv.Capabilities.Supports(capability.ReportStatus):
		return errNoReport
	}
	return p.withPack(ctx, adv, func(pack *os.File) error {
		req := p.request(adv)
		// Work whose activity has given up must not push.
		if err := ctx.Err(); err != nil {
			return err
		}
		p.remote.progress.enter(phaseSending)
		body := &countedReader{from: pack, progress: p.remote.progress}
		p.begun = true
		p.begins()
		if p.remote.Transport == policies.GitHTTP {
			return p.post(ctx, endpoint, req, pack, body)
		}
		req.Packfile = io.NopCloser(body)
		report, err := session.ReceivePack(ctx, req)
		return p.judge(report, err)
	})
}

// withPack makes a pack of what the remote does not have, in a file that is gone
// afterwards.
func (p *push) withPack(ctx context.Context, adv *packp.AdvRefs, use func(*os.File) error) error {
	there := make([]plumbing.Hash, 0, len(adv.References))
	seen := map[plumbing.Hash]bool{}
	for _, h := range adv.References {
		if !seen[h] {
			seen[h] = true
			there = append(there, h)
		}
	}
	objects, err := p.checkout.missing(ctx, p.new, there, p.engine.limits.objects)
	if err != nil {
		return err
	}
	edge, err := p.checkout.shallow()
	if err != nil {
		return err
	}
	p.edge = slices.ContainsFunc(objects, func(h plumbing.Hash) bool { return edge[h] })
	root, err := os.OpenRoot(p.checkout.common)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := newWork(root)
	if err != nil {
		return checkoutError(err)
	}
	defer root.RemoveAll(dir)
	file, err := root.OpenFile(filepath.Join(dir, "pack"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	progress := p.remote.progress
	progress.objects.Store(int64(len(objects)))
	deltas := adv.Capabilities.Supports(capability.OFSDelta)
	to := &limitedWriter{to: file, left: p.engine.limits.disk}
	if err := pack.Write(ctx, to, p.checkout.storage, objects, deltas, func() { progress.done.Add(1) }); err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return use(file)
}

// limitedWriter writes so many bytes and no more.
type limitedWriter struct {
	to   io.Writer
	left int64
}

func (w *limitedWriter) Write(b []byte) (int, error) {
	if w.left -= int64(len(b)); w.left < 0 {
		return 0, errDiskLimit
	}
	return w.to.Write(b)
}

// request is the command that moves the ref.
func (p *push) request(adv *packp.AdvRefs) *packp.ReferenceUpdateRequest {
	req := packp.NewReferenceUpdateRequestFromCapabilities(adv.Capabilities)
	for _, name := range []capability.Capability{capability.Sideband64k, capability.OFSDelta, capability.Quiet} {
		if adv.Capabilities.Supports(name) {
			req.Capabilities.Set(name) // these take no arguments, so it cannot fail
		}
	}
	req.Commands = []*packp.Command{{Name: p.name, Old: p.old, New: p.new}}
	return req
}

// maxReport bounds the answer to a push, in which there are the words of hooks.
const maxReport = 16 << 20

// post makes the one request by HTTP. go-git would hold the pack in memory, and
// would let net/http repeat the request on its own.
func (p *push) post(ctx context.Context, endpoint *transport.Endpoint, command *packp.ReferenceUpdateRequest, file *os.File, pack io.Reader) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	var head bytes.Buffer
	if err := command.Encode(&head); err != nil {
		return err
	}
	size := int64(head.Len()) + info.Size()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String()+"/"+transport.ReceivePackServiceName, io.NopCloser(io.MultiReader(&head, pack)))
	if err != nil {
		return errEndpoint
	}
	req.ContentLength, req.GetBody = size, nil
	req.Header.Set("Content-Type", "application/x-"+transport.ReceivePackServiceName+"-request")
	req.Header.Set("Accept", "application/x-"+transport.ReceivePackServiceName+"-result")
	req.Header.Set("User-Agent", capability.DefaultAgent())
	if auth, ok := p.remote.creds.httpAuth().(githttp.AuthMethod); ok {
		auth.SetAuth(req)
	}
	resp, err := wire{}.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := githttp.NewErr(resp); err != nil {
		return err
	}
	report := packp.NewReportStatus()
	err = report.Decode(demux(command.Capabilities, io.LimitReader(resp.Body, maxReport)))
	return p.judge(report, err)
}

// judge says what a report of the remote means. Its word on the ref counts, even
// if the connection did not end as it should; without it, nothing is known.
func (p *push) judge(report *packp.ReportStatus, err error) error {
	if report != nil && report.UnpackStatus != "" && report.UnpackStatus != "ok" {
		return &unsentError{p.rejected(report.UnpackStatus)}
	}
	if report != nil {
		for _, status := range report.CommandStatuses {
			switch {
			case status.ReferenceName != p.name:
			case status.Status == "ok":
				return nil
			default:
				return &unsentError{p.rejected(status.Status)}
			}
		}
	}
	if err != nil && err != io.EOF {
		return err
	}
	return errEarlyEOF
}

// rejected says why a remote did not move a ref.
func (p *push) rejected(text string) error {
	switch {
	case movedMeanwhile.MatchString(text):
		return errLeaseLost
	case p.edge && lacksHistory.MatchString(text):
		return errShallowPush
	}
	return errPushRefused
}
