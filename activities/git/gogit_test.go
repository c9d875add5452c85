package git

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// branchy gives the author's copy a history with merges: names are its commits.
func (w *world) branchy() map[string]string {
	w.t.Helper()
	ids := map[string]string{"root": run(w.t, w.author, "rev-parse", "HEAD")}
	on := func(name string, args ...string) {
		run(w.t, w.author, args...)
		ids[name] = run(w.t, w.author, "rev-parse", "HEAD")
	}
	file := func(name string) {
		if err := os.WriteFile(filepath.Join(w.author, name), []byte(name+"\n"), 0o600); err != nil {
			w.t.Fatal(err)
		}
		run(w.t, w.author, "add", name)
	}
	file("left")
	on("left", "commit", "-q", "-m", "left")
	run(w.t, w.author, "checkout", "-q", "-b", "right", ids["root"])
	file("right")
	on("right", "commit", "-q", "-m", "right")
	on("merge", "merge", "-q", "--no-edit", ids["left"])
	file("top")
	on("top", "commit", "-q", "-m", "top")
	run(w.t, w.author, "checkout", "-q", "--orphan", "alone")
	on("alone", "commit", "-q", "-m", "alone")
	return ids
}

// G6, G7: who descends from whom is what git says, also at the edge of a shallow
// history, where a gap that is none of it is an error.
func TestDescends(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.branchy()
	c := openAt(t, w.author)
	defer c.close()
	for tip, tipID := range ids {
		for base, baseID := range ids {
			want := strings.Contains(run(t, w.author, "rev-list", tipID), baseID)
			got, err := c.isAncestor(t.Context(), plumbing.NewHash(baseID), plumbing.NewHash(tipID))
			if err != nil || got != want {
				t.Errorf("%s from %s: %v, %v, want %v", tip, base, got, err, want)
			}
		}
	}
	tree := plumbing.NewHash(run(t, w.author, "rev-parse", "HEAD^{tree}"))
	for _, base := range []plumbing.Hash{{1}, tree} {
		if got, err := c.isAncestor(t.Context(), base, plumbing.NewHash(ids["top"])); got || err != nil {
			t.Errorf("from what is no commit: %v, %v", got, err)
		}
	}

	run(t, w.author, "push", "-q", "-f", "origin", ids["top"]+":refs/heads/main")
	shallow := filepath.Join(w.root, "shallow")
	run(t, w.root, "clone", "-q", "--depth", "1", w.url(), shallow)
	run(t, shallow, "fetch", "-q", w.author, "alone") // something else that is here
	edge := openAt(t, shallow)
	defer edge.close()
	if got, err := edge.isAncestor(t.Context(), plumbing.NewHash(ids["alone"]), plumbing.NewHash(ids["top"])); got || err != nil {
		t.Errorf("across the edge: %v, %v", got, err)
	}
	if err := os.Remove(filepath.Join(shallow, ".git", "shallow")); err != nil {
		t.Fatal(err)
	}
	gap := openAt(t, shallow)
	defer gap.close()
	if _, err := gap.isAncestor(t.Context(), plumbing.NewHash(ids["alone"]), plumbing.NewHash(ids["top"])); !errors.Is(err, errHistory) {
		t.Errorf("a gap: %v", err)
	}
}

// G6: what is sent is all that the other side lacks, and nothing of what a commit
// shares with its parents.
func TestMissingObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.branchy()
	run(t, w.author, "tag", "-a", "-m", "tag", "v1", ids["top"])
	run(t, w.author, "tag", "-a", "-m", "tag", "v2", "v1")
	ids["tag"] = run(t, w.author, "rev-parse", "v2")
	c := openAt(t, w.author)
	defer c.close()
	list := func(args ...string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(run(t, w.author, append([]string{"rev-list", "--objects"}, args...)...)) {
			id, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			set[id] = true
		}
		delete(set, "")
		return set
	}
	for what, id := range ids {
		for have, there := range map[string][]string{
			"nothing": nil, "root": {ids["root"]}, "left": {ids["left"]}, "both": {ids["left"], ids["right"]}, "merge": {ids["merge"]}, "alone": {ids["alone"]},
			"all": {ids["top"], ids["alone"]}, "tag": {ids["tag"]}, "unknown": {strings.Repeat("1", 40), ids["root"]},
		} {
			var hashes []plumbing.Hash
			without := []string{id}
			for _, h := range there {
				hashes = append(hashes, plumbing.NewHash(h))
				if h != strings.Repeat("1", 40) {
					without = append(without, "^"+h)
				}
			}
			got, err := c.missing(t.Context(), plumbing.NewHash(id), hashes, 0)
			if err != nil {
				t.Errorf("%s for who has %s: %v", what, have, err)
				continue
			}
			all, sent := list(id), map[string]bool{}
			for _, h := range got {
				if !all[h.String()] || sent[h.String()] {
					t.Errorf("%s for who has %s: %s is sent, and is not of it or was sent before", what, have, h)
				}
				sent[h.String()] = true
			}
			for h := range list(without...) {
				if !sent[h] && h != there0(there) {
					t.Errorf("%s for who has %s: %s is not sent", what, have, h)
				}
			}
		}
	}
	small, err := c.missing(t.Context(), plumbing.NewHash(ids["top"]), []plumbing.Hash{plumbing.NewHash(ids["merge"])}, 0)
	if err != nil || len(small) != 3 {
		t.Errorf("one commit with one new file: %d objects, %v; want the commit, its tree and the file", len(small), err)
	}
	if _, err := c.missing(t.Context(), plumbing.NewHash(ids["top"]), nil, 2); !errors.Is(err, errObjectLimit) {
		t.Errorf("more objects than the limit: %v", err)
	}
}

// there0 is the first of what the other side has, which git lists and we do not
// send if it is just what is asked for.
func there0(there []string) string {
	if len(there) == 0 {
		return ""
	}
	return there[0]
}

// A push whose remote has what is behind the edge of a shallow checkout works,
// whether it tells so or not; one whose remote has not is refused, by us before
// anything is sent if it has nothing at all.
func TestPushOfShallow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.commit(fmt.Sprint(i))
	}
	w.push("main")
	shallow := filepath.Join(w.root, "shallow")
	run(t, w.root, "clone", "-q", "--depth", "1", w.url(), shallow)
	next := run(t, shallow, "commit-tree", "-p", "HEAD", "-m", "next", "HEAD^{tree}")
	old := run(t, shallow, "rev-parse", "HEAD")
	e, c := newIsolated(limits{}), openAt(t, shallow)
	ctx, rec := recorded(t)
	if err := e.push(ctx, remoteAt(t, w.url(), Credentials{}), c, contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: next}); err != nil {
		t.Errorf("to the remote that it came from: %+v", failureOf(t, policies.OpPush, rec, err))
	}
	// The remote has moved on, and tells no more of the commit at the edge.
	w.commit("meanwhile")
	run(t, w.author, "push", "-q", "-f", "origin", "main")
	for name, edge := range map[string]string{"topic": next, "edge": old} {
		ref := "refs/heads/" + name
		ctx, rec := recorded(t)
		if err := e.push(ctx, remoteAt(t, w.url(), Credentials{}), c, contract.GitPushIntent{Ref: ref, New: edge}); err != nil {
			t.Errorf("%s to the remote that moved on: %+v", name, failureOf(t, policies.OpPush, rec, err))
		}
		if got := run(t, w.bare, "rev-parse", ref); got != edge {
			t.Errorf("%s is %s, want %s", name, got, edge)
		}
	}
	run(t, w.bare, "fsck", "--strict")
	// Another one has a history, and not ours.
	run(t, w.root, "init", "-q", "--bare", filepath.Join(w.root, "srv", "other.git"))
	other := filepath.Join(w.root, "other")
	run(t, w.root, "init", "-q", other)
	run(t, other, "commit", "-q", "--allow-empty", "-m", "other")
	run(t, other, "push", "-q", filepath.Join(w.root, "srv", "other.git"), "HEAD:refs/heads/other")
	otherCtx, otherRec := recorded(t)
	err := e.push(otherCtx, remoteAt(t, w.server.RepoURL("other.git"), Credentials{}), c, contract.GitPushIntent{Ref: "refs/heads/main", New: next})
	if f := failureOf(t, policies.OpPush, otherRec, err); f.Rule != "G10/shallow" || f.Effect != "not_sent" {
		t.Errorf("to one of another history: %+v", f)
	}
	run(t, w.root, "init", "-q", "--bare", filepath.Join(w.root, "srv", "empty.git"))
	w.server.Reset()
	err = e.push(ctx, remoteAt(t, w.server.RepoURL("empty.git"), Credentials{}), c, contract.GitPushIntent{Ref: "refs/heads/main", New: next})
	if f := failureOf(t, policies.OpPush, rec, err); f.Rule != "G10/shallow" || f.Effect != "not_sent" {
		t.Errorf("to an empty one: %+v", f)
	}
	for _, op := range sent(w.server) {
		if op == githttp.OpReceivePack {
			t.Error("something was sent")
		}
	}
	workIsEmpty(t, filepath.Join(shallow, ".git"))
}

// A checkout that borrows objects from another has them.
func TestBorrowedObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	shared := filepath.Join(w.root, "shared")
	run(t, w.root, "clone", "-q", "--shared", w.author, shared)
	old := run(t, shared, "rev-parse", "HEAD")
	next := run(t, shared, "commit-tree", "-p", "HEAD", "-m", "next", "HEAD^{tree}")
	c := openAt(t, shared)
	defer c.close()
	for _, id := range []string{old, next} {
		if here, err := c.has(plumbing.NewHash(id)); !here || err != nil {
			t.Errorf("%s: %v, %v", id, here, err)
		}
	}
	if here, err := c.has(plumbing.Hash{1}); here || err != nil {
		t.Errorf("what is nowhere: %v, %v", here, err)
	}
	ctx, rec := recorded(t)
	if err := newIsolated(limits{}).push(ctx, remoteAt(t, w.url(), Credentials{}), c, contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: next}); err != nil {
		t.Errorf("push: %+v", failureOf(t, policies.OpPush, rec, err))
	}
}

// G10: what a clone checks out where the remote's HEAD says little.
func TestCloneOfOddHeads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.refs()["refs/heads/main"]
	next := w.commit("second")
	w.push("main:other", "main:zebra")
	run(t, w.author, "tag", "-a", "-m", "x", "v1")
	run(t, w.author, "tag", "tree", "HEAD^{tree}")
	w.push("v1", "tree")
	for name, tc := range map[string]struct {
		set  []string
		spec cloneSpec
		want contract.GitHead
		err  error
	}{
		"on a commit of branches": {[]string{"update-ref", "--no-deref", "HEAD", next}, cloneSpec{}, contract.GitHead{Ref: "refs/heads/other", OID: next}, nil},
		"on no branch's commit":   {[]string{"update-ref", "--no-deref", "HEAD", first + "~0"}, cloneSpec{}, contract.GitHead{Ref: "refs/heads/main", OID: first}, nil},
		"on a branch that is not": {[]string{"symbolic-ref", "HEAD", "refs/heads/none"}, cloneSpec{}, contract.GitHead{Ref: "refs/heads/master"}, nil},
		"a tag, without tags":     {nil, cloneSpec{ref: "v1", noTags: true}, contract.GitHead{OID: next}, nil},
		"a tag of a tree":         {nil, cloneSpec{ref: "tree"}, contract.GitHead{}, errNoFiles},
		"nothing of that name":    {nil, cloneSpec{ref: "v"}, contract.GitHead{}, errRefNotFound},
	} {
		if tc.set != nil {
			run(t, w.bare, append([]string{"--git-dir=."}, tc.set...)...)
		}
		dir := filepath.Join(w.root, strings.ReplaceAll(name, " ", "-"))
		ctx, _ := recorded(t)
		got, err := newIsolated(limits{}).clone(ctx, remoteAt(t, w.url(), Credentials{}), dir, tc.spec)
		if got != tc.want || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, tc.want, tc.err)
			continue
		}
		if err == nil {
			run(t, dir, "fsck", "--strict", "--no-dangling")
			if status := run(t, dir, "status", "--porcelain"); status != "" {
				t.Errorf("%s: git status: %s", name, status)
			}
		}
	}
}

// A repository in a form that is not known here is refused, and forms that make
// no difference are not.
func TestRepositoryFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct {
		settings [][2]string
		known    bool
	}{
		"own configuration of worktrees": {[][2]string{{"extensions.worktreeConfig", "true"}}, true},
		"partial clone":                  {[][2]string{{"core.repositoryformatversion", "1"}, {"extensions.partialClone", "origin"}}, true},
		"SHA-256":                        {[][2]string{{"core.repositoryformatversion", "1"}, {"extensions.objectFormat", "sha256"}}, false},
		"reftable":                       {[][2]string{{"core.repositoryformatversion", "1"}, {"extensions.refStorage", "reftable"}}, false},
		"of the future":                  {[][2]string{{"core.repositoryformatversion", "2"}}, false},
		"unknown extension":              {[][2]string{{"core.repositoryformatversion", "1"}, {"extensions.new", "true"}}, false},
	} {
		dir := filepath.Join(w.root, strings.ReplaceAll(name, " ", "-"))
		run(t, w.root, "clone", "-q", w.bare, dir)
		config := filepath.Join(dir, ".git", "config")
		for _, s := range tc.settings {
			run(t, w.root, "config", "--file", config, s[0], s[1])
		}
		c, err := openCheckout(dir, nil)
		if (err == nil) != tc.known || err != nil && !errors.Is(err, errFormat) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			c.close()
		}
	}
}

// G9: a checkout's configuration does not decide where its remote is but by
// naming it.
func TestAddressesAreTakenLiterally(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run(t, w.checkout, "config", "url.http://elsewhere.invalid/.insteadOf", w.server.URL()+"/")
	c := w.open()
	defer c.close()
	if url, err := c.originURL(); err != nil || url != w.url() {
		t.Errorf("origin is %s, %v", url, err)
	}
}
