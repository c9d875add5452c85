package git

import (
	"bytes"
	"context"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/contract"
)

func (g *program) fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	if ref == "HEAD" || ref == "+HEAD" {
		branch, err := g.remoteHead(ctx, r)
		if err != nil {
			return nil, err
		}
		ref = strings.Replace(ref, "HEAD", branch, 1)
	}
	url, err := address(r)
	if err != nil {
		return nil, err
	}
	args, err := fetchArgs(c, url, ref)
	if err != nil {
		return nil, err
	}
	s, err := newShadow(c)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	if err := s.copyRefs(); err != nil {
		return nil, err
	}
	r.progress.enter(phaseListing)
	if err := g.run(ctx, fetchJob(s, r, args)); err != nil {
		return nil, err
	}
	return g.settle(ctx, r, s)
}

// fetchJob is a fetch into a shadow. What it writes is made durable when it is
// moved into the checkout.
func fetchJob(s *shadow, r *remote, args []string) job {
	return job{
		args: args, gitDir: s.dir, remote: r, lock: s.checkout.lock, grows: s.dir, patience: readPatience,
		settings: []setting{{"core.fsync", "none"}},
	}
}

// settle moves what was fetched into the checkout: the objects first.
func (g *program) settle(ctx context.Context, r *remote, s *shadow) ([]contract.GitUpdate, error) {
	updates, err := s.moved()
	if err != nil {
		return nil, checkoutError(err)
	}
	if err := refuseCheckedOut(s.checkout, updates); err != nil {
		return nil, checkoutError(err)
	}
	// Work whose activity has given up must not move refs.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.progress.enter(phaseRefs)
	if err := s.moveObjects(); err != nil {
		return nil, err
	}
	if err := s.moveShallow(); err != nil {
		return nil, err
	}
	if err := moveRefs(s.checkout, updates); err != nil {
		return nil, checkoutError(err)
	}
	return reported(updates), nil
}

// reported are the updates as the result has them, with one more than it may
// hold if there are more.
func reported(updates []update) []contract.GitUpdate {
	updates = updates[:min(len(updates), maxUpdated+1)]
	moved := make([]contract.GitUpdate, len(updates))
	for i, u := range updates {
		moved[i] = contract.GitUpdate{Ref: u.name.String(), Old: oid(u.old), New: oid(u.new)}
	}
	return moved
}

// followTags is a refspec that brings nothing. With a destination in the command
// line, git lets tags follow what is fetched.
const followTags = "refs/holdfast/none/*:refs/holdfast/none/*"

// fetchArgs is the command line of a fetch.
func fetchArgs(c *checkout, url, ref string) ([]string, error) {
	args := []string{"fetch", "--atomic", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-prune", "--progress"}
	if option := c.tagOption(); option == "--tags" || option == "--no-tags" {
		args = append(args, option)
	}
	configured := []config.RefSpec{config.RefSpec("+refs/heads/*:refs/remotes/" + remoteName + "/*")}
	if r, ok := c.config.Remotes[remoteName]; ok && len(r.Fetch) > 0 {
		configured = r.Fetch
	}
	switch name := strings.TrimPrefix(ref, "+"); {
	case ref == "":
		args = append(args, "--", url)
		for _, spec := range configured {
			args = append(args, spec.String())
		}
		return args, nil
	case strings.Contains(name, ":"):
		spec, err := givenRefspec(ref)
		if err != nil {
			return nil, err
		}
		return append(args, "--", url, spec), nil
	case plumbing.ReferenceName("refs/heads/"+name).Validate() != nil || plumbing.IsHash(name):
		return nil, errRefNotFound
	case strings.HasPrefix(name, "refs/"):
		spec := tracking(plumbing.ReferenceName(name), name != ref, configured)
		return append(args, "--", url, spec.String()), nil
	default:
		for _, full := range []string{"refs/" + name, "refs/tags/" + name, "refs/heads/" + name, "refs/remotes/" + name} {
			spec := tracking(plumbing.ReferenceName(full), name != ref, configured)
			args = append(args, "--refmap="+spec.String())
		}
		// "+" keeps a name from being read as a keyword ("tag").
		return append(args, "--", url, "+"+name, followTags), nil
	}
}

// givenRefspec checks a refspec and spells its destination out.
func givenRefspec(ref string) (string, error) {
	spec := config.RefSpec(ref)
	if spec.Validate() != nil || spec.IsDelete() || spec.Src() == "" || strings.HasPrefix(ref, "^") {
		return "", errRefspec
	}
	src, dst, _ := strings.Cut(ref, ":")
	if !strings.HasPrefix(dst, "refs/") {
		dst = "refs/heads/" + dst
	}
	if plumbing.ReferenceName(strings.ReplaceAll(dst, "*", "x")).Validate() != nil {
		return "", errRefspec
	}
	return src + ":" + dst, nil
}

// remoteHead is the branch that a remote's HEAD stands for.
func (g *program) remoteHead(ctx context.Context, r *remote) (string, error) {
	out, err := g.list(ctx, r, []string{"--symref"}, "HEAD")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(out) {
		target, ok := strings.CutPrefix(string(line), "ref: ")
		if ref, name, found := strings.Cut(strings.TrimSpace(target), "\t"); ok && found && name == "HEAD" {
			return ref, nil
		}
	}
	return "", errRefNotFound
}
