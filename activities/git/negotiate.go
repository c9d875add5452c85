package git

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/policies"
)

const (
	// maxTips bounds how many of our refs' commits we tell the other side about.
	maxTips = 8192
	// maxWalked bounds how many of their ancestors we add. go-git cannot
	// negotiate in rounds, so what is not told at once is sent again.
	maxWalked = 512
)

// newPlan says what a fetch means to do, given what the remote advertises.
func newPlan(adv *packp.AdvRefs, c *checkout, ref string) (*plan, error) {
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
	p.addTags(c.tagOption())
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

// has reports whether an object is in the store. An unreadable store is an
// error, never a "no" or a "yes".
func (c *checkout) has(h plumbing.Hash) (bool, error) {
	err := c.storage.HasEncodedObject(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// receive asks for what the plan needs and stores it.
func receive(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs, p *plan, c *checkout, progress *progress) error {
	req := packp.NewUploadPackRequestFromCapabilities(adv.Capabilities)
	wanted := map[plumbing.Hash]bool{}
	for _, u := range p.updates {
		here, err := c.has(u.new)
		if err != nil {
			return err
		}
		if !here && !wanted[u.new] {
			wanted[u.new] = true
			req.Wants = append(req.Wants, u.new)
		}
	}
	if len(req.Wants) == 0 {
		return nil
	}
	var err error
	if req.Haves, err = haves(adv, c); err != nil {
		return err
	}
	if err := describe(req, adv, p, c); err != nil {
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
	pack := &packReader{from: demux(req.Capabilities, answer), progress: progress}
	if err := packfile.UpdateObjectStorage(c.storage, pack); err != nil {
		return packError(pack, err)
	}
	return nil
}

// describe adds to a request what the other side should know about us.
func describe(req *packp.UploadPackRequest, adv *packp.AdvRefs, p *plan, c *checkout) error {
	set := func(name capability.Capability) error {
		if !adv.Capabilities.Supports(name) {
			return nil
		}
		return req.Capabilities.Set(name)
	}
	if err := set(capability.NoProgress); err != nil {
		return err
	}
	if len(p.follow) > 0 {
		if err := set(capability.IncludeTag); err != nil {
			return err
		}
	}
	shallows, err := c.storage.Shallow()
	if err != nil || len(shallows) == 0 {
		return err
	}
	if !adv.Capabilities.Supports(capability.Shallow) {
		return refuse(policies.ReasonFormat, "G10/shallow", "the checkout is shallow and the remote cannot serve a shallow one; clone it again in full")
	}
	req.Shallows = shallows
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

// packReader counts a pack on its way, reads the number of objects out of its
// header, and remembers how it ended.
type packReader struct {
	from     io.Reader
	progress *progress
	header   []byte
	err      error // what ended it: io.EOF, or what broke it
}

// packHeader is the length of a pack's header: "PACK", version, objects.
const packHeader = 12

func (p *packReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	p.progress.bytes.Add(int64(n))
	if len(p.header) < packHeader {
		p.header = append(p.header, b[:min(n, packHeader-len(p.header))]...)
		if len(p.header) == packHeader {
			p.progress.objects.Store(int64(binary.BigEndian.Uint32(p.header[8:])))
		}
	}
	if err != nil {
		p.err = err
	}
	return n, err
}

// settle decides, with the objects at hand, which refs move: every ref of the
// plan, whose object must be here, and the tags that came along.
func (p *plan) settle(c *checkout) error {
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
		ok, err := descends(c, u.new, u.old)
		if err != nil {
			return err
		}
		if !ok {
			return refuse(policies.ReasonConflict, "G7/diverged", "the remote branch has diverged from the ref here; use +SRC:DST to replace it")
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
	slices.SortFunc(p.updates, func(a, b update) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return nil
}

func descends(c *checkout, tip, base plumbing.Hash) (bool, error) {
	from, err := object.GetCommit(c.storage, base)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	to, err := object.GetCommit(c.storage, tip)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return from.IsAncestor(to)
}
