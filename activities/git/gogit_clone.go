package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/activities/git/internal/files"
	"github.com/holdfast-dev/holdfast/contract"
)

// clone makes a repository, fetches into it as into any other, and writes the
// files of what it checks out.
func (g *goGit) clone(ctx context.Context, r *remote, dir string, s cloneSpec) (head contract.GitHead, err error) {
	patterns := ""
	if len(s.sparse) > 0 {
		if patterns, err = conePatterns(s.sparse); err != nil {
			return head, err
		}
	}
	url, err := address(r)
	if err != nil {
		return head, err
	}
	err = g.session(ctx, r, func(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs) error {
		n, err := newClone(adv, s)
		if err != nil {
			return err
		}
		c, err := n.initialize(dir, url, patterns, g.limits.memory)
		if err != nil {
			return err
		}
		defer c.close()
		if err := n.fetch(ctx, g, session, c, r.progress); err != nil {
			return err
		}
		head, err = n.checkout(ctx, g, c, r.progress)
		return err
	})
	return head, err
}

// newcomer is a clone in the making.
type newcomer struct {
	cloneSpec
	adv *packp.AdvRefs
	// branch is the one that is checked out, empty for a tag or a commit; tag is
	// the tag.
	branch, tag plumbing.ReferenceName
	// at is the object that is checked out, zero in an empty repository.
	at    plumbing.Hash
	bytes int64 // of the pack
}

// newClone decides what is checked out: the branch or tag that was named, else
// what the remote's HEAD stands for.
func newClone(adv *packp.AdvRefs, s cloneSpec) (*newcomer, error) {
	n := &newcomer{cloneSpec: s, adv: adv}
	n.singleBranch = n.singleBranch || n.depth > 0
	if s.ref == "" {
		n.branch, n.at = headBranch(adv)
		return n, nil
	}
	for _, full := range []string{s.ref, "refs/heads/" + s.ref, "refs/tags/" + s.ref} {
		name := plumbing.ReferenceName(full)
		at, ok := adv.References[full]
		if !ok || name.Validate() != nil {
			continue
		}
		switch n.at = at; {
		case name.IsBranch():
			n.branch = name
			return n, nil
		case name.IsTag():
			n.tag = name
			return n, nil
		}
	}
	return nil, errRefNotFound
}

// defaultBranch is that of a repository in which there is nothing yet.
const defaultBranch = plumbing.ReferenceName("refs/heads/master")

// headBranch is the branch that a remote's HEAD stands for, if it says so or a
// branch is at the same commit, as git guesses it too.
func headBranch(adv *packp.AdvRefs) (plumbing.ReferenceName, plumbing.Hash) {
	for _, symref := range adv.Capabilities.Get(capability.SymRef) {
		target, ok := strings.CutPrefix(symref, "HEAD:")
		name := plumbing.ReferenceName(target)
		if at, there := adv.References[target]; ok && there && name.IsBranch() && name.Validate() == nil {
			return name, at
		}
	}
	if adv.Head == nil {
		return defaultBranch, plumbing.ZeroHash
	}
	var same []string
	for name, at := range adv.References {
		if n := plumbing.ReferenceName(name); at == *adv.Head && n.IsBranch() && n.Validate() == nil {
			same = append(same, name)
		}
	}
	slices.Sort(same)
	for _, usual := range []string{"refs/heads/master", "refs/heads/main"} {
		if slices.Contains(same, usual) {
			return plumbing.ReferenceName(usual), *adv.Head
		}
	}
	if len(same) > 0 {
		return plumbing.ReferenceName(same[0]), *adv.Head
	}
	return "", *adv.Head
}

// initialize makes an empty repository that follows the remote.
func (n *newcomer) initialize(dir, url, patterns string, memory int64) (*checkout, error) {
	gitDir := filepath.Join(dir, ".git")
	for _, sub := range []string{"objects/info", packDir, "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(gitDir, filepath.FromSlash(sub)), 0o777); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(gitDir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	head := "ref: " + string(defaultBranch) + "\n"
	if n.branch != "" {
		head = "ref: " + string(n.branch) + "\n"
	}
	contents := map[string]string{"HEAD": head, "config": n.configuration(url, patterns != "")}
	if patterns != "" {
		contents[sparseFile] = patterns
	}
	for name, content := range contents {
		if err := writeSynced(root, name, content); err != nil {
			return nil, err
		}
	}
	c, err := openDirs(gitDir, gitDir, memory)
	if err != nil {
		return nil, err
	}
	c.worktree, c.lock = dir, n.lock
	return c, nil
}

// configuration is what git would write for such a clone.
func (n *newcomer) configuration(url string, sparse bool) string {
	var b strings.Builder
	line := func(key, value string) { b.WriteString("\t" + key + " = " + value + "\n") }
	b.WriteString("[core]\n")
	line("repositoryformatversion", "0")
	line("filemode", "true")
	line("bare", "false")
	line("logallrefupdates", "true")
	if sparse {
		line("sparseCheckout", "true")
		line("sparseCheckoutCone", "true")
	}
	b.WriteString("[remote " + quoted(remoteName) + "]\n")
	line("url", value(url))
	if spec := n.refspec(); spec != "" {
		line("fetch", value(spec))
	}
	if n.noTags {
		line("tagOpt", "--no-tags")
	}
	if n.branch != "" {
		b.WriteString("[branch " + quoted(n.branch.Short()) + "]\n")
		line("remote", remoteName)
		line("merge", value(string(n.branch)))
	}
	return b.String()
}

// value is one of git's configuration, in quotes where it needs them.
func value(s string) string {
	if strings.ContainsAny(s, "#;\"\\\n\t") || strings.TrimSpace(s) != s {
		return quoted(s)
	}
	return s
}

// quoted is a value, or the name of a section, of git's configuration.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// refspec is what later fetches follow; empty for one commit, which cannot move.
func (n *newcomer) refspec() string {
	switch {
	case !n.singleBranch:
		return "+refs/heads/*:refs/remotes/" + remoteName + "/*"
	case n.branch != "":
		return "+" + string(n.branch) + ":" + string(n.tracking(n.branch))
	case n.tag != "":
		return "+" + string(n.tag) + ":" + string(n.tag)
	}
	return ""
}

func (n *newcomer) tracking(branch plumbing.ReferenceName) plumbing.ReferenceName {
	return plumbing.NewRemoteReferenceName(remoteName, branch.Short())
}

// fetch brings the objects and sets the refs, HEAD excepted.
func (n *newcomer) fetch(ctx context.Context, g *goGit, session transport.UploadPackSession, c *checkout, p *progress) error {
	plan := &plan{}
	if spec := n.refspec(); spec != "" && len(n.adv.References) > 0 {
		tags := ""
		switch {
		case n.noTags:
			tags = "--no-tags"
		case !n.singleBranch:
			tags = "--tags"
		}
		var err error
		if plan, err = newPlan(n.adv, c, "", tags); err != nil {
			return err
		}
	}
	q := &order{wants: plan.wants(), depth: n.depth, tags: len(plan.follow) > 0}
	if !n.at.IsZero() {
		q.wants = append(q.wants, n.at)
	}
	if err := g.receive(ctx, session, n.adv, q, c, p); err != nil {
		return err
	}
	n.bytes = q.bytes
	if err := plan.settle(ctx, c); err != nil {
		return err
	}
	if edge := slices.Concat(q.edge, n.adv.Shallows); len(edge) > 0 {
		if err := c.storage.SetShallow(edge); err != nil {
			return err
		}
	}
	if n.branch != "" && !n.at.IsZero() {
		plan.updates = append(plan.updates, update{name: n.branch, new: n.at})
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p.enter(phaseRefs)
	if err := moveRefs(c, plan.updates); err != nil {
		return err
	}
	return n.remoteHead(c, plan)
}

// remoteHead notes which branch is the remote's own, if it is followed.
func (n *newcomer) remoteHead(c *checkout, plan *plan) error {
	branch, at := headBranch(n.adv)
	to := n.tracking(branch)
	if branch == "" || at.IsZero() || !slices.ContainsFunc(plan.updates, func(u update) bool { return u.name == to }) {
		return nil
	}
	root, err := os.OpenRoot(c.common)
	if err != nil {
		return err
	}
	defer root.Close()
	// Where there are many refs, none of them has made the directory.
	if err := root.MkdirAll("refs/remotes/"+remoteName, 0o777); err != nil {
		return err
	}
	return writeSynced(root, "refs/remotes/"+remoteName+"/HEAD", "ref: "+string(to)+"\n")
}

// checkout writes the files, and HEAD where it is no branch.
func (n *newcomer) checkout(ctx context.Context, g *goGit, c *checkout, p *progress) (contract.GitHead, error) {
	if n.at.IsZero() {
		return contract.GitHead{Ref: string(n.branch)}, nil
	}
	commit, _, _, err := c.peel(n.at)
	if err != nil {
		return contract.GitHead{}, err
	}
	if commit == nil {
		return contract.GitHead{}, errNoFiles
	}
	if n.branch == "" {
		if err := os.WriteFile(filepath.Join(c.gitDir, "HEAD"), []byte(commit.Hash.String()+"\n"), 0o666); err != nil {
			return contract.GitHead{}, err
		}
	}
	cone, err := c.cone()
	if err != nil {
		return contract.GitHead{}, err
	}
	p.enter(phaseFiles)
	o := files.Options{Cone: cone, Fresh: true, Disk: max(g.limits.disk-n.bytes, 1)}
	if err := g.write(ctx, c, p, o, plumbing.ZeroHash, commit.TreeHash, func() {}); err != nil {
		return contract.GitHead{}, err
	}
	// Nothing of ours is left in what the user gets.
	if err := os.RemoveAll(filepath.Join(c.common, "holdfast")); err != nil {
		return contract.GitHead{}, err
	}
	return contract.GitHead{Ref: string(n.branch), OID: commit.Hash.String()}, nil
}
