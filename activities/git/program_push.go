package git

import (
	"bytes"
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// push makes one push of a commit by its id. The lease is given always, so that
// the ref moves from what the intent says or not at all; whether it may move to
// what is no descendant was decided with the intent.
func (g *program) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	url, err := address(r)
	if err != nil {
		return &unsentError{err}
	}
	s, err := newShadow(c)
	if err != nil {
		return &unsentError{err}
	}
	defer s.remove()
	if r.Transport == policies.GitSSH {
		if err := g.checkSSH(r); err != nil {
			return &unsentError{err}
		}
	}
	r.progress.enter(phaseConnect)
	out := &limitedBuffer{limit: MaxOutput, full: errOutputLimit}
	sent := r.Transport != policies.GitHTTP // until the relay says so
	err = g.run(ctx, job{
		args: []string{
			"push", "--porcelain", "--no-verify", "--no-signed", "--progress", "--no-recurse-submodules",
			"--force-with-lease=" + p.Ref + ":" + p.Old, "--", url, p.New + ":" + p.Ref,
		},
		gitDir: s.dir, remote: r, lock: c.lock, stdout: out,
		relayed: func(y *relay) { sent = y.sent() },
	})
	if err == nil {
		return nil
	}
	if refused := refusedPush(out.kept); refused != nil {
		return refused
	}
	var failed *programError
	if !sent || errors.As(err, &failed) && failed.unsent {
		return &unsentError{err}
	}
	return err
}

// pushLine is what "git push --porcelain" says of a ref that has not moved:
// "!", the refspec, and why.
var pushLine = regexp.MustCompile(`(?m)^!\t[^\t\n]*\t\[(rejected|remote rejected)\] \((.*)\)$`)

// movedMeanwhile is how a remote says that the ref was not what it should be.
var movedMeanwhile = regexp.MustCompile(`(?i)stale info|fetch first|non-fast-forward|needs force|already exists|cannot lock ref|failed to (?:update|lock)|reference already exists|atomic`)

// refusedPush says why a ref has not moved, if git or the remote says so; that
// is proof that it has not. A remote that did not say how it ended
// ("[remote failure]") proves nothing.
func refusedPush(porcelain []byte) error {
	m := pushLine.FindSubmatch(bytes.TrimSpace(porcelain))
	switch {
	case m == nil:
		return nil
	case string(m[1]) == "rejected", movedMeanwhile.Match(m[2]):
		return &unsentError{errLeaseLost}
	case lacksHistory.Match(m[2]):
		return &unsentError{errShallowPush}
	}
	return &unsentError{errPushRefused}
}

// locate reads a ref of the remote by fetching it into a shadow, where it is seen
// whether it contains ours. The objects are not kept.
func (g *program) locate(ctx context.Context, r *remote, c *checkout, ref, ours string) (contract.GitLocated, error) {
	url, err := address(r)
	if err != nil {
		return contract.GitLocated{}, err
	}
	s, err := newShadow(c)
	if err != nil {
		return contract.GitLocated{}, err
	}
	defer s.remove()
	if err := s.copyRefs(); err != nil {
		return contract.GitLocated{}, err
	}
	r.progress.enter(phaseListing)
	const here = "refs/holdfast/located"
	args := []string{"fetch", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules", "--no-tags", "--progress", "--", url, "+" + ref + ":" + here}
	if err := g.run(ctx, fetchJob(s, r, args)); errors.Is(err, errRefNotFound) {
		return contract.GitLocated{}, nil
	} else if err != nil {
		return contract.GitLocated{}, err
	}
	content, err := s.root.ReadFile(s.name + "/" + here)
	if err != nil {
		return contract.GitLocated{}, checkoutError(err)
	}
	found := contract.GitLocated{Found: strings.TrimSpace(string(content))}
	if found.Contains = found.Found == ours; found.Contains {
		return found, nil
	}
	// A tag is contained in nothing but itself: others may name its commit too.
	if _, err := object.GetCommit(c.storage, plumbing.NewHash(ours)); errors.Is(err, plumbing.ErrObjectNotFound) {
		return found, nil
	} else if err != nil {
		return contract.GitLocated{}, err
	}
	found.Contains, err = g.isAncestor(ctx, s, ours, found.Found)
	return found, err
}
