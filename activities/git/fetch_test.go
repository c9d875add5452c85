package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

func TestFetchMovesRefsAndSaysWhich(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{Roots: []string{w.root}})
	first := w.refs()["refs/remotes/origin/main"]
	second := w.commit("second")
	run(t, w.author, "tag", "-a", "-m", "one", "v1")
	run(t, w.author, "tag", "light")
	run(t, w.author, "branch", "side", first)
	w.push("main", "side", "v1", "light")
	tag := run(t, w.author, "rev-parse", "v1")
	w.server.Reset()

	got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout})
	if f.Reason != "" {
		t.Fatalf("fetch failed: %+v", f)
	}
	want := contract.GitResult{Outcome: contract.OutcomeFetched, Updated: []contract.GitUpdate{
		{Ref: "refs/remotes/origin/main", Old: first, New: second},
		{Ref: "refs/remotes/origin/side", New: first},
		{Ref: "refs/tags/light", New: second},
		{Ref: "refs/tags/v1", New: tag},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	refs := w.refs()
	for _, u := range want.Updated {
		if refs[u.Ref] != u.New {
			t.Errorf("%s is %q, want %q", u.Ref, refs[u.Ref], u.New)
		}
	}
	w.whole()
	// One discovery, one pack: one flow of requests per attempt.
	if diff := cmp.Diff([]string{githttp.OpFetchRefs, githttp.OpUploadPack}, sent(w.server)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}

	w.server.Reset()
	got, f = fetch(t, a, contract.GitRequest{Dir: w.checkout})
	if f.Reason != "" || got.Outcome != contract.OutcomeUpToDate || len(got.Updated) != 0 {
		t.Errorf("second fetch: %+v, %+v; want up_to_date", got, f)
	}
	if diff := cmp.Diff([]string{githttp.OpFetchRefs}, sent(w.server)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFetchRefs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{})
	second := w.commit("second")
	run(t, w.author, "tag", "v1")
	run(t, w.author, "update-ref", "refs/pull/7/head", second)
	w.push("main:topic/deep", "v1", "refs/pull/7/head")

	for _, tc := range []struct {
		ref     string
		updated string
	}{
		{"topic/deep", "refs/remotes/origin/topic/deep"},
		{"refs/pull/7/head", "refs/remotes/origin/pull/7/head"},
		{"+refs/heads/topic/*:refs/mirror/*", "refs/mirror/deep"},
		{"topic/deep:copy", "refs/heads/copy"},
		{"v1:refs/tags/other", "refs/tags/other"},
	} {
		got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, Ref: tc.ref})
		if f.Reason != "" {
			t.Errorf("%s: %+v", tc.ref, f)
			continue
		}
		moved := map[string]string{}
		for _, u := range got.Updated {
			moved[u.Ref] = u.New
		}
		if moved[tc.updated] != second {
			t.Errorf("%s moved %v, want %s", tc.ref, moved, tc.updated)
		}
	}
	w.whole()

	for _, tc := range []struct{ ref, reason string }{
		{"missing", "not_found"},
		{"refs/heads/missing:refs/x/y", "not_found"},
		{":refs/heads/x", "format"},
		{"a:b:c", "format"},
		{"topic/deep:refs/../../config", "format"},
	} {
		if _, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, Ref: tc.ref}); f.Reason != tc.reason || f.RetrySame {
			t.Errorf("%s: reason %q retry %v, want %q and no retry", tc.ref, f.Reason, f.RetrySame, tc.reason)
		}
	}
}

// A ref that git itself would not move is a conflict, and no other ref moves.
func TestFetchConflicts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		ref  string
		set  func(w *world)
	}{
		{"diverged", "refs/heads/main:refs/local/main", func(w *world) {
			other := run(t, w.checkout, "commit-tree", "-m", "other", "HEAD^{tree}")
			run(t, w.checkout, "update-ref", "refs/local/main", other)
		}},
		{"checked out", "+refs/heads/main:refs/heads/main", func(*world) {}},
		{"tag differs", "refs/tags/v1:refs/tags/v1", func(w *world) {
			run(t, w.author, "tag", "v1")
			w.push("v1")
			run(t, w.checkout, "tag", "v1")
		}},
		{"name is a directory", "refs/heads/main:refs/local/main", func(w *world) {
			run(t, w.checkout, "update-ref", "refs/local/main/deep", "HEAD")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			w.push("main")
			tc.set(w)
			before := w.refs()
			_, f := fetch(t, newActivities(t, Config{}), contract.GitRequest{Dir: w.checkout, Ref: tc.ref})
			if f.Reason != "conflict" || f.RetrySame {
				t.Errorf("failure %+v, want conflict without retry", f)
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Errorf("refs moved (-before +after):\n%s", diff)
			}
			w.whole()
		})
	}
}

// A tag that is here already is never moved by a tag that follows.
func TestFollowedTagsNeverMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run(t, w.checkout, "tag", "v1")
	before := w.refs()["refs/tags/v1"]
	w.commit("second")
	run(t, w.author, "tag", "v1")
	w.push("main", "v1")
	if _, f := fetch(t, newActivities(t, Config{}), contract.GitRequest{Dir: w.checkout}); f.Reason != "" {
		t.Fatalf("fetch failed: %+v", f)
	}
	if got := w.refs()["refs/tags/v1"]; got != before {
		t.Errorf("tag moved from %s to %s", before, got)
	}
}

func TestFetchIntoBareWorktreeAndShallow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{Roots: []string{w.root}})
	for _, text := range []string{"a", "b", "c"} {
		w.commit(text)
	}
	w.push("main")
	bare, linked, shallow := filepath.Join(w.root, "bare.git"), filepath.Join(w.root, "linked"), filepath.Join(w.root, "shallow")
	run(t, w.root, "clone", "-q", "--mirror", w.url(), bare)
	run(t, w.checkout, "worktree", "add", "-q", "-b", "linked", linked)
	run(t, w.root, "clone", "-q", "--depth", "1", w.url(), shallow)
	// Bring back what only the history beyond the shallow edge holds. With a
	// bitmap the remote knows exactly what a full history would have.
	run(t, w.bare, "repack", "-adbq")
	run(t, w.author, "checkout", "-q", "HEAD~3", "--", "file")
	run(t, w.author, "commit", "-q", "-m", "revert")
	next := run(t, w.author, "rev-parse", "HEAD")
	w.push("main")

	for _, tc := range []struct{ dir, ref string }{
		{bare, "refs/heads/main"}, {linked, "refs/remotes/origin/main"}, {shallow, "refs/remotes/origin/main"},
	} {
		got, f := fetch(t, a, contract.GitRequest{Dir: tc.dir})
		if f.Reason != "" || len(got.Updated) != 1 || got.Updated[0].Ref != tc.ref || got.Updated[0].New != next {
			t.Errorf("%s: %+v, %+v; want %s at %s", tc.dir, got, f, tc.ref, next)
			continue
		}
		run(t, tc.dir, "fsck", "--strict", "--no-dangling")
		run(t, tc.dir, "rev-list", "--objects", next)
	}
}

// G12: local remotes work, as file URLs and as paths.
func TestLocalRemotes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{})
	for _, url := range []string{"file://" + w.bare, w.bare} {
		next := w.commit("to " + url)
		w.push("main")
		got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: url})
		if f.Reason != "" || len(got.Updated) != 1 || got.Updated[0].New != next {
			t.Errorf("fetch %s: %+v, %+v", url, got, f)
		}
		if got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: url}); f.Reason != "" || got.Outcome != contract.OutcomeUpToDate {
			t.Errorf("second fetch %s: %+v, %+v", url, got, f)
		}
		list, f := lsRemote(t, a, contract.GitRequest{URL: url, Ref: "main"})
		if f.Reason != "" || len(list.Refs) != 1 || list.Refs[0].OID != next {
			t.Errorf("ls-remote %s: %+v, %+v", url, list, f)
		}
	}
	w.whole()
	_, f := lsRemote(t, a, contract.GitRequest{URL: filepath.Join(w.root, "nothing")})
	if f.Reason != "not_found" || f.RetrySame {
		t.Errorf("a path without repository: %+v, want not_found", f)
	}
}

// G3, G12: what is no checkout, or lies outside the roots, is refused before
// anything is sent.
func TestCheckoutsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := t.TempDir()
	run(t, outside, "clone", "-q", w.bare, "repo")
	if err := os.Symlink(filepath.Join(outside, "repo"), filepath.Join(w.root, "link")); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(w.root, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, ".git"), []byte("gitdir: "+filepath.Join(outside, "repo", ".git")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lone := filepath.Join(w.root, "lone")
	run(t, w.root, "init", "-q", lone)
	a := newActivities(t, Config{Roots: []string{w.root}})
	w.server.Reset()
	for _, tc := range []struct{ name, dir, url, reason, hint string }{
		{"not named", "", w.url(), "format", "--dir"},
		{"missing", filepath.Join(w.root, "missing"), w.url(), "not_found", "clone"},
		{"no repository", filepath.Join(w.root, "srv"), w.url(), "not_found", "clone"},
		{"outside", filepath.Join(outside, "repo"), w.url(), "format", "git.roots"},
		{"by link", filepath.Join(w.root, "link"), w.url(), "format", "git.roots"},
		{"by git file", elsewhere, w.url(), "format", "git.roots"},
		{"parent", filepath.Join(w.root, ".."), w.url(), "format", "git.roots"},
		{"no origin", lone, "", "format", "--url"},
	} {
		_, f := fetch(t, a, contract.GitRequest{Dir: tc.dir, URL: tc.url})
		if f.Reason != tc.reason || f.RetrySame || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v, want %s and a word on %s", tc.name, f, tc.reason, tc.hint)
		}
	}
	if ops := sent(w.server); len(ops) != 0 {
		t.Errorf("requests were sent: %v", ops)
	}
	if _, err := New(Config{Roots: []string{filepath.Join(w.root, "missing")}}); err == nil {
		t.Error("New accepted a root that does not exist")
	}
}

// The list is that of "git ls-remote": HEAD first, by name, peeled tags, and the
// same patterns.
func TestLsRemoteListsAsGitDoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run(t, w.author, "tag", "-a", "-m", "one", "v1")
	run(t, w.author, "branch", "topic/main")
	w.push("v1", "topic/main")
	a := newActivities(t, Config{})
	for _, pattern := range []string{"", "main", "heads/main", "refs/heads/*", "v?", "v1*", "ain", "(", "missing"} {
		args := []string{"ls-remote", "-q", w.url()}
		if pattern != "" {
			args = append(args, pattern)
		}
		var want []contract.GitRef
		for line := range strings.Lines(run(t, w.root, args...)) {
			oid, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
			want = append(want, contract.GitRef{Name: name, OID: oid})
		}
		got, f := lsRemote(t, a, contract.GitRequest{URL: w.url(), Ref: pattern})
		if diff := cmp.Diff(want, got.Refs); diff != "" || f.Reason != "" || got.Outcome != contract.OutcomeListed {
			t.Errorf("%q (-git +ours):\n%s%+v", pattern, diff, f)
		}
	}

	empty := filepath.Join(w.root, "srv", "empty.git")
	run(t, w.root, "init", "-q", "--bare", empty)
	got, f := lsRemote(t, a, contract.GitRequest{URL: w.server.RepoURL("empty.git")})
	if f.Reason != "" || got.Outcome != contract.OutcomeListed || len(got.Refs) != 0 {
		t.Errorf("empty repository: %+v, %+v", got, f)
	}
	got, f = fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: w.server.RepoURL("empty.git")})
	if f.Reason != "" || got.Outcome != contract.OutcomeUpToDate {
		t.Errorf("fetch of an empty repository: %+v, %+v", got, f)
	}
}
