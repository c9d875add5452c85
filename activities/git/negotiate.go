package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/activities/git/internal/pack"
	"github.com/holdfast-dev/holdfast/policies"
)

const (
	// maxTips bounds how many of our refs' commits we tell the other side about.
	maxTips = 8192
	// maxWalked bounds how many of their ancestors we add. go-git cannot
	// negotiate in rounds, so what is not told at once is sent again.
	maxWalked = 512
)

// newPlan says what a fetch means to do, given what the remote advertises. Which
// tags come along says an option of git's configuration.
func newPlan(adv *packp.AdvRefs, c *checkout, ref, tags string) (*plan, error) {
	p := &planner{adv: adv, local: map[plumbing.ReferenceName]plumbing.Hash{}, dst: map[plumbing.ReferenceName]bool{}}
	refs, err := c.storage.IterReferences()
	if err != nil {
		return nil, err
	}
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if r.Type() == plumbing.HashReference {
			p.local[r.Name()] = r.Hash()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	head, err := c.storage.Reference(plumbing.HEAD)
	if err == nil && !c.config.Core.IsBare && head.Type() == plumbing.SymbolicReference {
		p.head = head.Target()
	}
	specs, err := p.refspecs(ref, c)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := p.take(spec); err != nil {
			return nil, err
		}
	}
	p.addTags(tags)
	if err := p.checkNames(); err != nil {
		return nil, err
	}
	if err := p.wantTags(c); err != nil {
		return nil, err
	}
	return &p.plan, nil
}

// wantTags turns a tag that may follow into one that is asked for where what it
// points at is here already, so that no pack would bring it.
func (p *planner) wantTags(c *checkout) error {
	rest := p.plan.follow[:0:0]
	for _, u := range p.plan.follow {
		target, ok := p.adv.Peeled[u.name.String()]
		if !ok {
			target = u.new
		}
		here, err := c.has(target)
		if err != nil {
			return err
		}
		if here {
			p.plan.updates = append(p.plan.updates, u)
			continue
		}
		rest = append(rest, u)
	}
	p.plan.follow = rest
	return nil
}

var errShallowRemote = refuse(policies.ReasonFormat, "G10/shallow", "the remote is itself a shallow copy and lacks a part of the history; fetch from the repository that it was made from")

// order is what is asked of a remote, and what it answers.
type order struct {
	// wants are objects that are to be here afterwards.
	wants []plumbing.Hash
	// depth is how many commits of each history to bring; 0 for all.
	depth int
	// tags says that tags are to come along with what they point at.
	tags bool
	// edge is, after a request with a depth, where the history ends.
	edge []plumbing.Hash
	// bytes is the size of the pack that came.
	bytes int64
}

// receive asks for what is not here and stores it.
func (g *goGit) receive(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, q *order, c *checkout, progress *progress) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	wanted := map[plumbing.Hash]bool{}
	for _, h := range q.wants {
		here, err := c.has(h)
		if err != nil {
			return err
		}
		if !here && !wanted[h] {
			wanted[h] = true
			req.Wants = append(req.Wants, h)
		}
	}
	if len(req.Wants) == 0 {
		return nil
	}
	var err error
	if req.Haves, err = haves(adv, c); err != nil {
		return err
	}
	if err := describe(req, adv, q, c); err != nil {
		return err
	}
	progress.enter(phaseReceiving)
	answer, err := session.UploadPack(ctx, req)
	if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
		return errEmptyReply
	}
	if err != nil {
		return err
	}
	defer answer.Close()
	q.edge = answer.Shallows
	return g.store(ctx, demux(req.Capabilities, answer), adv, q, c, progress)
}

// store takes in a pack, which is seen in the checkout only when all of it was
// checked.
func (g *goGit) store(ctx context.Context, from io.Reader, adv *packp.AdvRefs, q *order, c *checkout, progress *progress) error {
	edge, err := c.shallow()
	if err != nil {
		return err
	}
	for _, h := range slices.Concat(q.edge, adv.Shallows) {
		edge[h] = true
	}
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()
	dir, err := newWork(root)
	if err != nil {
		return err
	}
	defer root.RemoveAll(dir)
	source := &countedReader{from: from, progress: progress}
	got, err := pack.Receive(ctx, source, pack.Options{
		Limits: pack.Limits{Memory: g.limits.memory, Disk: g.limits.disk, Objects: g.limits.objects},
		Dir:    filepath.Join(c.common, dir), Has: c.has, Shallow: edge,
		Counted: func(n int) { progress.objects.Store(int64(n)) },
		Scanned: func() { progress.done.Add(1) },
		Resolving: func(n int) {
			progress.enter(phaseResolving)
			progress.done.Store(0)
			progress.objects.Store(int64(n))
		},
		Resolved: func() { progress.done.Add(1) },
	})
	if err != nil {
		return packError(err, len(adv.Shallows) > 0)
	}
	q.bytes = got.Bytes
	if err := root.MkdirAll(packDir, 0o777); err != nil {
		return checkoutError(err)
	}
	if err := got.Install(filepath.Join(c.common, filepath.FromSlash(packDir))); err != nil {
		return err
	}
	c.storage.Reindex()
	return nil
}

// packDir is where a repository keeps its packs.
const packDir = "objects/pack"

// describe adds to a request what the other side should know about us.
func describe(req *packp.UploadPackRequest, adv *packp.AdvRefs, q *order, c *checkout) error {
	set := func(name capability.Capability) error {
		if !adv.Capabilities.Supports(name) {
			return nil
		}
		return req.Capabilities.Set(name)
	}
	if err := set(capability.NoProgress); err != nil {
		return err
	}
	if q.tags {
		if err := set(capability.IncludeTag); err != nil {
			return err
		}
	}
	shallows, err := c.storage.Shallow()
	if err != nil || len(shallows) == 0 && q.depth == 0 {
		return err
	}
	if !adv.Capabilities.Supports(capability.Shallow) {
		return refuse(policies.ReasonFormat, "G10/shallow", "the remote cannot serve a shallow history; clone it again in full, without --depth")
	}
	req.Shallows = shallows
	if q.depth > 0 {
		req.Depth = packp.DepthCommits(q.depth)
	}
	return req.Capabilities.Set(capability.Shallow)
}

// haves are commits that we have with all their ancestors: what the remote
// advertises and is here, the tips of our refs, and some of the ancestors of
// those that the remote may not know.
func haves(adv *packp.AdvRefs, c *checkout) ([]plumbing.Hash, error) {
	common := map[plumbing.Hash]bool{}
	for _, h := range adv.References {
		common[h] = true
	}
	refs, err := c.storage.IterReferences()
	if err != nil {
		return nil, err
	}
	seen := map[plumbing.Hash]bool{}
	var out, queue []plumbing.Hash
	err = refs.ForEach(func(r *plumbing.Reference) error {
		if h := r.Hash(); r.Type() == plumbing.HashReference && !seen[h] && len(queue) < maxTips {
			seen[h] = true
			queue = append(queue, h)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for limit := len(queue) + maxWalked; len(queue) > 0 && len(out) < limit; queue = queue[1:] {
		commit, err := object.GetCommit(c.storage, queue[0])
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			continue // a tag, or beyond the edge of a shallow checkout
		}
		if err != nil {
			return nil, err
		}
		out = append(out, commit.Hash)
		if common[commit.Hash] {
			continue
		}
		for _, parent := range commit.ParentHashes {
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return out, nil
}

func demux(caps *capability.List, r io.Reader) io.Reader {
	switch {
	case caps.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// countedReader counts the bytes of a pack on its way.
type countedReader struct {
	from     io.Reader
	progress *progress
}

func (r *countedReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.progress.bytes.Add(int64(n))
	return n, err
}

// wants are the objects that a plan needs.
func (p *plan) wants() []plumbing.Hash {
	out := make([]plumbing.Hash, len(p.updates))
	for i, u := range p.updates {
		out[i] = u.new
	}
	return out
}

// settle decides, with the objects at hand, which refs move: every ref of the
// plan, whose object must be here, and the tags that came along.
func (p *plan) settle(ctx context.Context, c *checkout) error {
	for _, u := range p.updates {
		here, err := c.has(u.new)
		if err != nil {
			return err
		}
		if !here {
			return errMissingObjects
		}
		if u.force || u.old.IsZero() {
			continue
		}
		ok, err := c.isAncestor(ctx, u.old, u.new)
		if err != nil {
			return err
		}
		if !ok {
			return errDiverged
		}
	}
	for _, u := range p.follow {
		here, err := c.has(u.new)
		if err != nil {
			return err
		}
		if here {
			p.updates = append(p.updates, u)
		}
	}
	return nil
}
