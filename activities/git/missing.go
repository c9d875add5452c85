package git

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/policies"
)

// errShallowPush is a push of a history of which a part is neither here nor there.
var errShallowPush = refuse(policies.ReasonFormat, "G10/shallow", "the checkout is shallow and the remote does not have what is behind its edge; fetch the whole history first with \"git fetch --unshallow\"")

// lacksHistory is how a remote refuses commits whose parents it does not have.
var lacksHistory = regexp.MustCompile(`^(?:missing necessary objects|shallow update not allowed)`)

// errLostObject is a store that lacks an object which a commit in it needs.
var errLostObject = refuse(policies.ReasonFormat, "G3/checkout", "an object of a commit is not in the checkout; run \"git fsck\" in it, or clone it again")

// missing lists the objects of what that the other side does not have, given some
// that it has: of each commit that is new to it, what its tree has and none of its
// parents' trees has in the same place. Objects that moved may be in the list
// though they are there.
func (c *checkout) missing(ctx context.Context, what plumbing.Hash, there []plumbing.Hash, limit int64) ([]plumbing.Hash, error) {
	w, err := newWalk(c)
	if err != nil {
		return nil, err
	}
	l := &lister{ctx: ctx, c: c, limit: limit, listed: map[plumbing.Hash]bool{}}
	for _, h := range there {
		l.listed[h] = true // is there, and need not be sent
		commit, _, _, err := c.peel(h)
		if err != nil {
			return nil, err
		}
		if commit == nil {
			continue
		}
		v, err := w.visit(commit.Hash)
		if err != nil {
			return nil, err
		}
		w.mark(v)
	}
	commit, end, tags, err := c.peel(what)
	if err != nil {
		return nil, err
	}
	for _, tag := range tags {
		if err := l.add(tag); err != nil {
			return nil, err
		}
	}
	if commit == nil {
		err := l.object(end)
		return l.out, err
	}
	w.whole = len(there) == 0
	fresh, err := w.fresh(ctx, commit.Hash)
	if err != nil {
		return nil, err
	}
	for _, v := range fresh {
		if err := l.add(v.Hash); err != nil {
			return nil, err
		}
	}
	for _, v := range fresh {
		if err := l.commit(v); err != nil {
			return nil, err
		}
	}
	return l.out, nil
}

// fresh are the commits of a history that the other side is not known to have. It
// has what it said it has, and all before.
func (w *walk) fresh(ctx context.Context, tip plumbing.Hash) ([]*visited, error) {
	if err := w.add(tip); err != nil {
		return nil, err
	}
	var met []*visited
	for w.open > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := w.next()
		if !v.there {
			if w.edge[v.Hash] && w.whole {
				return nil, errShallowPush
			}
			if w.edge[v.Hash] {
				// Somewhere behind its tips the other side may have this commit, and
				// will say so if it lacks what comes before.
				v.before = nil
			}
			met = append(met, v)
		}
		for _, parent := range v.parents(w.edge) {
			p, err := w.visit(parent)
			if err != nil {
				return nil, err
			}
			if p == nil && !v.there {
				return nil, errHistory
			}
			if p != nil && v.there {
				w.mark(p)
			}
		}
	}
	out := met[:0]
	for _, v := range met {
		if !v.there {
			out = append(out, v)
		}
	}
	return out, nil
}

// mark notes that the other side has a commit. What was met before it was known
// passes that on to its own parents.
func (w *walk) mark(v *visited) {
	todo := []*visited{v}
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		if v.there {
			continue
		}
		v.there = true
		if v.queued {
			w.open--
			continue // its parents follow when its turn comes
		}
		for _, parent := range v.parents(w.edge) {
			if p, ok := w.seen[parent]; ok {
				todo = append(todo, p)
			}
		}
	}
}

// lister collects objects, each once.
type lister struct {
	ctx    context.Context
	c      *checkout
	limit  int64
	out    []plumbing.Hash
	listed map[plumbing.Hash]bool
}

func (l *lister) add(h plumbing.Hash) error {
	if l.listed[h] {
		return nil
	}
	l.listed[h] = true
	if l.out = append(l.out, h); l.limit > 0 && int64(len(l.out)) > l.limit {
		return errObjectLimit
	}
	return l.ctx.Err()
}

// object lists a tree or a blob, with all that is in it.
func (l *lister) object(h plumbing.Hash) error {
	obj, err := l.c.storage.EncodedObject(plumbing.AnyObject, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return errLostObject
	}
	if err != nil {
		return err
	}
	if obj.Type() == plumbing.TreeObject {
		return l.tree(h, nil)
	}
	return l.add(h)
}

func (l *lister) commit(v *visited) error {
	var before []plumbing.Hash
	for _, parent := range v.before {
		commit, err := l.c.commit(parent)
		if err != nil {
			return err
		}
		if commit != nil {
			before = append(before, commit.TreeHash)
		}
	}
	return l.tree(v.tree, before)
}

// tree lists what a tree has that none of others, in the same place, has.
func (l *lister) tree(h plumbing.Hash, others []plumbing.Hash) error {
	if l.listed[h] {
		return nil
	}
	for _, other := range others {
		if other == h {
			return nil
		}
	}
	if err := l.add(h); err != nil {
		return err
	}
	entries, err := l.c.tree(h)
	if err != nil {
		return err
	}
	known := map[plumbing.Hash]bool{}
	trees := map[string][]plumbing.Hash{}
	for _, other := range others {
		theirs, err := l.c.tree(other)
		if err != nil {
			return err
		}
		for _, e := range theirs {
			known[e.hash] = true
			if e.tree {
				trees[e.name] = append(trees[e.name], e.hash)
			}
		}
	}
	for _, e := range entries {
		switch {
		case e.module, known[e.hash]:
		case e.tree:
			err = l.tree(e.hash, trees[e.name])
		default:
			err = l.add(e.hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// treeEntry is what a tree has under a name.
type treeEntry struct {
	name         string
	hash         plumbing.Hash
	tree, module bool
}

// tree reads a tree.
func (c *checkout) tree(h plumbing.Hash) ([]treeEntry, error) {
	obj, err := c.storage.EncodedObject(plumbing.TreeObject, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, errLostObject
	}
	if err != nil {
		return nil, err
	}
	r, err := obj.Reader()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var out []treeEntry
	for len(content) > 0 {
		mode, rest, ok := bytes.Cut(content, []byte(" "))
		name, rest, more := bytes.Cut(rest, []byte{0})
		e := treeEntry{name: string(name), tree: string(mode) == "40000" || string(mode) == "040000", module: string(mode) == "160000"}
		if !ok || !more || len(rest) < len(e.hash) {
			return nil, errLostObject
		}
		content = rest[copy(e.hash[:], rest):]
		out = append(out, e)
	}
	return out, nil
}
