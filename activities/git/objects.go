package git

import (
	"container/heap"
	"context"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/holdfast-dev/holdfast/policies"
)

// errNoFiles is a ref that stands for no commit where one is to be checked out.
var errNoFiles = refuse(policies.ReasonFormat, "G3/no_commit", "the ref stands for no commit, so there are no files to check out; name a branch, or a tag of a commit")

// errHistory is a checkout in which a commit misses its parent, and is not the
// edge of a shallow history.
var errHistory = refuse(policies.ReasonFormat, "G3/checkout", "the history of the checkout has a gap; run \"git fsck\" in it, or clone it again")

// has reports whether an object is in the store. An unreadable store is an
// error, never a "no" or a "yes".
func (c *checkout) has(h plumbing.Hash) (bool, error) {
	err := c.storage.HasEncodedObject(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) && c.borrows {
		_, err = c.storage.EncodedObject(plumbing.AnyObject, h)
	}
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return false, nil
	}
	return err == nil, err
}

// commit reads a commit, nil for an object that is not here or is none.
func (c *checkout) commit(h plumbing.Hash) (*object.Commit, error) {
	commit, err := object.GetCommit(c.storage, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, nil
	}
	return commit, err
}

// peel is what an object stands for, which may be a tag of a tag, and the tags on
// the way. The commit is nil if it stands for none.
func (c *checkout) peel(h plumbing.Hash) (commit *object.Commit, end plumbing.Hash, tags []plumbing.Hash, err error) {
	for range maxTagDepth {
		commit, err := c.commit(h)
		if commit != nil || err != nil {
			return commit, h, tags, err
		}
		tag, err := object.GetTag(c.storage, h)
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return nil, h, tags, nil
		}
		if err != nil {
			return nil, h, tags, err
		}
		tags = append(tags, h)
		h = tag.Target
	}
	return nil, h, tags, nil
}

// maxTagDepth bounds tags of tags.
const maxTagDepth = 50

// shallow are the commits whose parents need not be here.
func (c *checkout) shallow() (map[plumbing.Hash]bool, error) {
	edge, err := c.storage.Shallow()
	if err != nil {
		return nil, err
	}
	set := make(map[plumbing.Hash]bool, len(edge))
	for _, h := range edge {
		set[h] = true
	}
	return set, nil
}

// isAncestor reports whether base is tip or an ancestor of it. What is no commit
// here is none.
func (c *checkout) isAncestor(ctx context.Context, base, tip plumbing.Hash) (bool, error) {
	if from, err := c.commit(base); from == nil || err != nil {
		return false, err
	}
	w, err := newWalk(c)
	if err != nil {
		return false, err
	}
	if from, err := c.commit(tip); from == nil || err != nil {
		return false, err
	} else if err := w.add(from.Hash); err != nil {
		return false, err
	}
	for w.queue.Len() > 0 {
		at := w.next()
		if at.Hash == base {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		for _, parent := range at.parents(w.edge) {
			if err := w.add(parent); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}

// walk goes through the history of commits, the newest first.
type walk struct {
	c     *checkout
	edge  map[plumbing.Hash]bool
	seen  map[plumbing.Hash]*visited
	queue byDate
	// open is how many of the queue may be new to the other side.
	open int
	// whole says that the other side has nothing, and needs all of a history.
	whole bool
}

// visited is a commit of a walk, without its texts.
type visited struct {
	plumbing.Hash
	tree   plumbing.Hash
	before []plumbing.Hash
	date   int64
	// there says that the other side has the commit, and with it all before.
	there  bool
	queued bool
}

func newWalk(c *checkout) (*walk, error) {
	edge, err := c.shallow()
	return &walk{c: c, edge: edge, seen: map[plumbing.Hash]*visited{}}, err
}

// parents of a commit; at the edge of a shallow history there are none.
func (v *visited) parents(edge map[plumbing.Hash]bool) []plumbing.Hash {
	if edge[v.Hash] {
		return nil
	}
	return v.before
}

// add queues a commit that has to be here, once.
func (w *walk) add(h plumbing.Hash) error {
	v, err := w.visit(h)
	if err != nil {
		return err
	}
	if v == nil {
		return errHistory
	}
	return nil
}

// visit reads a commit and queues it, once; nil for one that is not here.
func (w *walk) visit(h plumbing.Hash) (*visited, error) {
	if v, ok := w.seen[h]; ok {
		return v, nil
	}
	commit, err := w.c.commit(h)
	if commit == nil || err != nil {
		return nil, err
	}
	v := &visited{Hash: h, tree: commit.TreeHash, before: commit.ParentHashes, date: commit.Committer.When.Unix(), queued: true}
	w.seen[h] = v
	heap.Push(&w.queue, v)
	w.open++
	return v, nil
}

func (w *walk) next() *visited {
	v := heap.Pop(&w.queue).(*visited)
	v.queued = false
	if !v.there {
		w.open--
	}
	return v
}

// byDate is a heap of commits with the newest at its top.
type byDate []*visited

func (q byDate) Len() int           { return len(q) }
func (q byDate) Less(i, j int) bool { return q[i].date > q[j].date }
func (q byDate) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(v any)        { *q = append(*q, v.(*visited)) }
func (q *byDate) Pop() any {
	old := *q
	v := old[len(old)-1]
	*q = old[:len(old)-1]
	return v
}
