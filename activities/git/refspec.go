package git

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/holdfast-dev/holdfast/policies"
)

// update is one local ref and what the remote says it should be.
type update struct {
	name  plumbing.ReferenceName
	old   plumbing.Hash // zero for a new ref
	new   plumbing.Hash
	force bool // may go to a commit that is no descendant of old
}

// plan is what a fetch means to do to the refs of a checkout.
type plan struct {
	updates []update
	// follow are tags that are new here and are set if the object they name
	// arrives with the rest.
	follow []update
}

// planner turns an advertisement into a plan.
type planner struct {
	adv   *packp.AdvRefs
	local map[plumbing.ReferenceName]plumbing.Hash
	head  plumbing.ReferenceName // the branch checked out; "" for a bare repository
	plan  plan
	dst   map[plumbing.ReferenceName]bool
}

// refspecs are the refspecs of a fetch: those that ref stands for, or those of
// origin.
func (p *planner) refspecs(ref string, c *checkout) ([]config.RefSpec, error) {
	configured := []config.RefSpec{config.RefSpec("+refs/heads/*:refs/remotes/" + remoteName + "/*")}
	if r, ok := c.config.Remotes[remoteName]; ok && len(r.Fetch) > 0 {
		configured = r.Fetch
	}
	if ref == "" {
		return configured, nil
	}
	if strings.Contains(ref, ":") {
		spec := config.RefSpec(ref)
		if spec.Validate() != nil || spec.IsDelete() || spec.Src() == "" {
			return nil, refuse(policies.ReasonFormat, "G3/refspec", "--ref is no refspec that can be fetched; use a branch, a tag, a full ref name or SRC:DST")
		}
		return []config.RefSpec{spec}, nil
	}
	forced := strings.HasPrefix(ref, "+")
	src, ok := p.expand(strings.TrimPrefix(ref, "+"))
	if !ok {
		return nil, errRefNotFound
	}
	return []config.RefSpec{tracking(src, forced, configured)}, nil
}

// tracking is the refspec that keeps a remote ref where the checkout's
// configuration, else git's custom, says.
func tracking(src plumbing.ReferenceName, forced bool, configured []config.RefSpec) config.RefSpec {
	for _, spec := range configured {
		if spec.Match(src) {
			return refspec(src, spec.Dst(src), forced || spec.IsForceUpdate())
		}
	}
	if src.IsTag() {
		return refspec(src, src, forced)
	}
	short := strings.TrimPrefix(strings.TrimPrefix(src.String(), "refs/heads/"), "refs/")
	return refspec(src, plumbing.NewRemoteReferenceName(remoteName, short), true)
}

func refspec(src, dst plumbing.ReferenceName, force bool) config.RefSpec {
	spec := src.String() + ":" + dst.String()
	if force {
		spec = "+" + spec
	}
	return config.RefSpec(spec)
}

// expand finds the remote ref that a short name means, by git's own rules, and
// the branch that HEAD stands for.
func (p *planner) expand(name string) (plumbing.ReferenceName, bool) {
	if name == "HEAD" {
		for _, symref := range p.adv.Capabilities.Get(capability.SymRef) {
			if target, ok := strings.CutPrefix(symref, "HEAD:"); ok {
				name = target
			}
		}
	}
	for _, rule := range plumbing.RefRevParseRules {
		full := strings.ReplaceAll(rule, "%s", name)
		if _, ok := p.adv.References[full]; ok {
			return plumbing.ReferenceName(full), true
		}
	}
	return "", false
}

// take adds to the plan what a refspec asks for.
func (p *planner) take(spec config.RefSpec) error {
	if spec.IsWildcard() {
		for _, name := range p.advertised() {
			if spec.Match(name) {
				if err := p.add(spec.Dst(name), p.adv.References[name.String()], spec.IsForceUpdate()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	want, err := p.source(spec.Src())
	if err != nil {
		return err
	}
	dst := spec.Dst("")
	if !strings.HasPrefix(dst.String(), "refs/") {
		dst = plumbing.NewBranchReferenceName(dst.String())
	}
	if dst.Validate() != nil {
		return refuse(policies.ReasonFormat, "G3/refspec", "--ref names a local ref that git does not allow")
	}
	return p.add(dst, want, spec.IsForceUpdate())
}

// source is the object that the left side of a refspec names.
func (p *planner) source(src string) (plumbing.Hash, error) {
	if plumbing.IsHash(src) {
		if c := p.adv.Capabilities; !c.Supports(capability.AllowReachableSHA1InWant) && !c.Supports(capability.AllowTipSHA1InWant) {
			return plumbing.ZeroHash, refuse(policies.ReasonFormat, "G3/refspec", "the remote does not serve commits by their id; name a branch or a tag with --ref")
		}
		return plumbing.NewHash(src), nil
	}
	full, ok := p.expand(src)
	if !ok {
		return plumbing.ZeroHash, errRefNotFound
	}
	return p.adv.References[full.String()], nil
}

// advertised are the names of the remote's refs in order. Names that git would
// not write are dropped, as git drops them: a name is a path here, and the
// remote chose it (G12).
func (p *planner) advertised() []plumbing.ReferenceName {
	var names []plumbing.ReferenceName
	for name := range p.adv.References {
		if n := plumbing.ReferenceName(name); strings.HasPrefix(name, "refs/") && n.Validate() == nil {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func (p *planner) add(name plumbing.ReferenceName, want plumbing.Hash, force bool) error {
	if !strings.HasPrefix(name.String(), "refs/") || name.Validate() != nil || p.dst[name] {
		return nil
	}
	p.dst[name] = true
	old := p.local[name]
	if old == want {
		return nil
	}
	if name == p.head && !old.IsZero() {
		return refuse(policies.ReasonConflict, "G3/checked_out", "the fetch would move the branch that is checked out; fetch into a remote-tracking ref instead")
	}
	if name.IsTag() && !old.IsZero() && !force {
		return refuse(policies.ReasonConflict, "G3/tag", "a tag of the same name is here and differs; delete it or use +SRC:DST to replace it")
	}
	p.plan.updates = append(p.plan.updates, update{name: name, old: old, new: want, force: force || name.IsTag()})
	return nil
}

// addTags adds all tags of the remote ("--tags"), or those that may follow.
// A tag that is here already stays as it is.
func (p *planner) addTags(option string) {
	if option == "--no-tags" {
		return
	}
	for _, name := range p.advertised() {
		if _, here := p.local[name]; !name.IsTag() || here || p.dst[name] {
			continue
		}
		u := update{name: name, new: p.adv.References[name.String()], force: true}
		if option == "--tags" {
			p.dst[name] = true
			p.plan.updates = append(p.plan.updates, u)
			continue
		}
		p.plan.follow = append(p.plan.follow, u)
	}
}

// checkNames refuses a plan in which one ref's name would be the directory of
// another's.
func (p *planner) checkNames() error {
	all := make(map[plumbing.ReferenceName]bool, len(p.local)+len(p.plan.updates))
	for name := range p.local {
		all[name] = true
	}
	for _, u := range p.plan.updates {
		all[u.name] = true
	}
	for name := range all {
		s := name.String()
		for i := strings.LastIndexByte(s, '/'); i > len("refs"); i = strings.LastIndexByte(s[:i], '/') {
			if all[plumbing.ReferenceName(s[:i])] {
				return refuse(policies.ReasonConflict, "G3/ref_names", "a ref of the remote and a ref here cannot both exist, for one's name is the other's directory; run \"git remote prune origin\" in the checkout")
			}
		}
	}
	return nil
}
