package git

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/contract"
)

// locate brings what the remote's ref stands for, if it is not here, and asks the
// history. What comes stays in the store as what no ref names.
func (g *goGit) locate(ctx context.Context, r *remote, c *checkout, ref, ours string) (found contract.GitLocated, err error) {
	err = g.session(ctx, r, func(ctx context.Context, session transport.UploadPackSession, adv *packp.AdvRefs) error {
		there, ok := adv.References[ref]
		if !ok {
			return nil
		}
		found.Found = there.String()
		if found.Contains = found.Found == ours; found.Contains {
			return nil
		}
		// A tag is contained in nothing but itself: others may name its commit too.
		commit, err := c.commit(plumbing.NewHash(ours))
		if commit == nil || err != nil {
			return err
		}
		if err := g.receive(ctx, session, adv, &order{wants: []plumbing.Hash{there}}, c, r.progress); err != nil {
			return err
		}
		found.Contains, err = c.isAncestor(ctx, commit.Hash, there)
		return err
	})
	if err != nil {
		return contract.GitLocated{}, err
	}
	return found, nil
}

func (g *goGit) descends(ctx context.Context, c *checkout, tip, base string) (bool, error) {
	return c.isAncestor(ctx, plumbing.NewHash(base), plumbing.NewHash(tip))
}
