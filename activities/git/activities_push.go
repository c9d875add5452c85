package git

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// PushIntent decides what a push of in.Ref would be, in.Expect being its lease,
// and whether it may be made: it finds the local object, reads the remote's ref,
// and compares. Nothing is sent but the one request that reads. The intent is to
// be recorded before it is given to Push (G6). It returns errors of package
// failure only.
func (a *Activities) PushIntent(ctx context.Context, in contract.GitRequest) (contract.GitPushPlan, error) {
	return perform(ctx, a, task[contract.GitPushPlan]{operation: policies.OpRead, in: in, do: a.pushIntent})
}

func (a *Activities) pushIntent(ctx context.Context, in contract.GitRequest, p *progress) (plan contract.GitPushPlan, err error) {
	expect, leased, err := lease(in.Expect)
	if err != nil {
		return plan, err
	}
	err = a.inCheckout(ctx, in.Dir, p, func(ctx context.Context, c *checkout) error {
		spec, err := c.pushSpec(in.Ref)
		if err != nil {
			return err
		}
		r, err := a.remoteOf(ctx, c.pushURL, in, p)
		if err != nil {
			return err
		}
		refs, err := a.engine.lsRemote(ctx, r)
		if err != nil {
			return err
		}
		plan = contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: spec.dst.String(), New: spec.new.String(), Force: leased}}
		for _, ref := range refs {
			if ref.Name == plan.Intent.Ref {
				plan.Found = ref.OID
			}
		}
		plan.Intent.Old = plan.Found
		if leased {
			plan.Intent.Old = expect
		}
		return a.judgePush(ctx, c, &plan)
	})
	return plan, err
}

// judgePush says whether a push may be made, given what the remote has.
func (a *Activities) judgePush(ctx context.Context, c *checkout, plan *contract.GitPushPlan) error {
	in := &plan.Intent
	var err error
	switch {
	case plan.Found == in.New:
		plan.Outcome = contract.OutcomeUpToDate
	case in.Force && plan.Found != in.Old:
		conflict(plan, "G6/lease", "the remote's ref is not what --expect says; look at what it has, and decide anew")
	case in.Force:
		in.Rewinds, err = a.rewinds(ctx, c, in)
	case plan.Found == "":
	case strings.HasPrefix(in.Ref, "refs/tags/"):
		conflict(plan, "G6/tag", "the remote has another tag of that name; choose another name, or say with --expect which object id may be replaced")
	default:
		var forward bool
		if forward, err = a.engine.descends(ctx, c, in.New, in.Old); err == nil && !forward {
			conflict(plan, "G6/not_fast_forward", "the remote has commits that what is to be pushed does not; fetch and bring them together, or say with --expect which object id may be replaced")
		}
	}
	return err
}

// rewinds reports whether New is an ancestor of Old, or may be one because Old is
// not here: what follows upon Old then proves nothing about New.
func (a *Activities) rewinds(ctx context.Context, c *checkout, in *contract.GitPushIntent) (bool, error) {
	if in.Old == "" {
		return false, nil
	}
	here, err := c.has(plumbing.NewHash(in.Old))
	if err != nil || !here {
		return true, err
	}
	return a.engine.descends(ctx, c, in.Old, in.New)
}

func conflict(plan *contract.GitPushPlan, rule, message string) {
	plan.Outcome = contract.OutcomeConflict
	plan.Error = &contract.Error{Reason: string(policies.ReasonConflict), Rule: rule, Message: message}
}

// Push makes the push in.Intent, once. Its result is landed; how a push that
// failed ended is for Locate to find out, unless the failure's effect is not_sent.
// It returns errors of package failure only.
func (a *Activities) Push(ctx context.Context, in contract.GitRequest) (contract.GitResult, error) {
	g := &gate{}
	return perform(ctx, a, task[contract.GitResult]{operation: policies.OpPush, in: in, gate: g,
		do: func(ctx context.Context, in contract.GitRequest, p *progress) (contract.GitResult, error) {
			return a.push(ctx, in, p, g)
		}})
}

func (a *Activities) push(ctx context.Context, in contract.GitRequest, p *progress, g *gate) (contract.GitResult, error) {
	began := false
	err := a.withIntent(ctx, in, p, func(ctx context.Context, r *remote, c *checkout, intent contract.GitPushIntent) error {
		name, oid := plumbing.ReferenceName(intent.Ref), plumbing.NewHash(intent.New)
		if err := c.pushable(name, oid); err != nil {
			return err
		}
		if began = g.pass(); !began {
			return context.Canceled
		}
		return a.engine.push(ctx, r, c, intent)
	})
	switch {
	case err != nil && !began:
		return contract.GitResult{}, &unsentError{err}
	case err != nil:
		return contract.GitResult{}, err
	}
	i := in.Intent
	return contract.GitResult{
		Outcome: contract.OutcomeLanded,
		Push:    &contract.GitPushed{Ref: i.Ref, Old: i.Old, New: i.New, Found: i.New},
	}, nil
}

// Locate reads what the remote has in place of the push in.Intent. It returns
// errors of package failure only.
func (a *Activities) Locate(ctx context.Context, in contract.GitRequest) (contract.GitLocated, error) {
	return perform(ctx, a, task[contract.GitLocated]{operation: policies.OpRead, in: in, do: a.locate})
}

func (a *Activities) locate(ctx context.Context, in contract.GitRequest, p *progress) (located contract.GitLocated, err error) {
	err = a.withIntent(ctx, in, p, func(ctx context.Context, r *remote, c *checkout, intent contract.GitPushIntent) error {
		located, err = a.engine.locate(ctx, r, c, intent.Ref, intent.New)
		return err
	})
	return located, err
}

// withIntent does work for a push that was decided before.
func (a *Activities) withIntent(ctx context.Context, in contract.GitRequest, p *progress,
	work func(context.Context, *remote, *checkout, contract.GitPushIntent) error,
) error {
	i := in.Intent
	if i == nil || !objectID.MatchString(i.New) || i.Old != "" && !objectID.MatchString(i.Old) ||
		!strings.HasPrefix(i.Ref, "refs/") || plumbing.ReferenceName(i.Ref).Validate() != nil {
		return refuse(policies.ReasonFormat, "G6/intent", "the push was not decided before it was asked for; use git.push_intent first")
	}
	return a.inCheckout(ctx, in.Dir, p, func(ctx context.Context, c *checkout) error {
		r, err := a.remoteOf(ctx, c.pushURL, in, p)
		if err != nil {
			return err
		}
		return work(ctx, r, c, *i)
	})
}
