package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// refsIn are the refs of a repository, one a line.
func refsIn(t *testing.T, dir string) string {
	t.Helper()
	return run(t, dir, "for-each-ref", "--format=%(objectname) %(refname)")
}

// What a fetch brings, by each way of saying what to fetch. Where plain git does
// the same for the same words, the refs are compared with its.
func TestProgramFetchBrings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run(t, w.author, "tag", "-a", "-m", "x", "v1")
	w.commit("second")
	run(t, w.author, "tag", "v2")
	run(t, w.author, "checkout", "-q", "-b", "tag")
	w.commit("third")
	run(t, w.author, "tag", "-a", "-m", "y", "v3")
	w.push("main", "refs/heads/tag", "v1", "v2", "v3", "main:refs/pull/1/head")
	g := newTestProgram(t, limits{})
	for _, tc := range []struct {
		ref   string
		plain []string // what git fetch is told for the same; nil if it has no words for it
		moved string
	}{
		{"", []string{"origin"}, "refs/remotes/origin/main refs/remotes/origin/tag refs/tags/v1 refs/tags/v2 refs/tags/v3"},
		{"main", []string{w.url(), "+refs/heads/main:refs/remotes/origin/main"}, "refs/remotes/origin/main refs/tags/v1 refs/tags/v2"},
		{"HEAD", []string{w.url(), "+refs/heads/main:refs/remotes/origin/main"}, "refs/remotes/origin/main refs/tags/v1 refs/tags/v2"},
		{"refs/heads/tag", []string{w.url(), "+refs/heads/tag:refs/remotes/origin/tag"}, "refs/remotes/origin/tag refs/tags/v1 refs/tags/v2 refs/tags/v3"},
		{"tag", nil, "refs/remotes/origin/tag refs/tags/v1 refs/tags/v2 refs/tags/v3"},
		{"v3", nil, "refs/tags/v1 refs/tags/v2 refs/tags/v3"},
		{"refs/tags/v2", nil, "refs/tags/v1 refs/tags/v2"},
		{"pull/1/head", nil, "refs/remotes/origin/pull/1/head refs/tags/v1 refs/tags/v2"},
		{"refs/pull/1/head", nil, "refs/remotes/origin/pull/1/head refs/tags/v1 refs/tags/v2"},
		{"main:copy", []string{w.url(), "main:copy"}, "refs/heads/copy refs/tags/v1 refs/tags/v2"},
		{"+refs/heads/*:refs/mirror/*", []string{w.url(), "+refs/heads/*:refs/mirror/*"}, "refs/mirror/main refs/mirror/tag refs/tags/v1 refs/tags/v2 refs/tags/v3"},
	} {
		t.Run("ref "+tc.ref, func(t *testing.T) {
			t.Parallel()
			dir, twin := t.TempDir(), t.TempDir()
			for _, to := range []string{dir, twin} {
				if out, err := exec.Command("cp", "-a", w.checkout+"/.", to).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			ctx, rec := recorded(t)
			got, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), openAt(t, dir), tc.ref)
			if err != nil {
				t.Fatalf("%+v", failureOf(t, policies.OpFetch, rec, err))
			}
			var names []string
			for _, u := range got {
				names = append(names, u.Ref)
				if u.New != run(t, dir, "rev-parse", u.Ref) {
					t.Errorf("%s is told to be %s", u.Ref, u.New)
				}
			}
			if strings.Join(names, " ") != tc.moved {
				t.Errorf("moved %v, want %s", names, tc.moved)
			}
			if tc.plain != nil {
				run(t, twin, append([]string{"fetch", "-q"}, tc.plain...)...)
				if diff := cmp.Diff(refsIn(t, twin), refsIn(t, dir)); diff != "" {
					t.Errorf("refs (-git +ours):\n%s", diff)
				}
			}
			run(t, dir, "fsck", "--strict", "--no-dangling")
			workIsEmpty(t, filepath.Join(dir, ".git"))
			again, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), openAt(t, dir), tc.ref)
			if err != nil || len(again) != 0 {
				t.Errorf("again: %v, %v", again, err)
			}
		})
	}
}

// G3, G7: what a fetch refuses, with the words of the other engine, and that
// nothing moves then: all refs or none.
func TestProgramFetchRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	run(t, w.author, "branch", "good")
	w.push("main", "good")
	g := newTestProgram(t, limits{})
	first := w.refs()["refs/remotes/origin/main"]
	run(t, w.author, "tag", "v1")
	w.push("v1")
	run(t, w.checkout, "tag", "v1", first)
	run(t, w.checkout, "update-ref", "refs/kept/x", first)
	run(t, w.checkout, "update-ref", "refs/remotes/origin/good/below", first)
	diverged := run(t, w.checkout, "commit-tree", "-m", "other", first+"^{tree}")
	run(t, w.checkout, "update-ref", "refs/kept/diverged", diverged)
	before := w.refs()
	for ref, rule := range map[string]string{
		"missing":            "G3/ref_not_found",
		"refs/heads/missing": "G3/ref_not_found",
		"missing:refs/x/y":   "G3/ref_not_found",
		"0123456789012345678901234567890123456789": "G3/ref_not_found",
		"a..b":                                "G3/ref_not_found",
		"-x":                                  "G3/ref_not_found",
		"--upload-pack=touch /tmp/x":          "G3/ref_not_found",
		"main:":                               "G3/refspec",
		":main":                               "G3/refspec",
		"main:a..b":                           "G3/refspec",
		"refs/heads/*:refs/x/y":               "G3/refspec",
		"+main:main":                          "G3/checked_out",
		"refs/tags/v1:refs/tags/v1":           "G3/tag",
		"v1":                                  "G3/tag",
		"main:refs/kept/diverged":             "G7/diverged",
		"+refs/heads/*:refs/remotes/origin/*": "G3/ref_names", // origin/good is a directory
		"+refs/heads/good:refs/kept/x/below":  "G3/ref_names",
	} {
		ctx, rec := recorded(t)
		_, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), ref)
		if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != rule || f.RetrySame {
			t.Errorf("%s: %+v, want %s", ref, f, rule)
		}
		if diff := cmp.Diff(before, w.refs()); diff != "" {
			t.Errorf("%s: refs moved:\n%s", ref, diff)
		}
	}
	w.whole()
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
}

// hostile makes a checkout run a command by every setting and hook that git
// knows, were it to look: each makes a file.
func (w *world) hostile() (made func() []string) {
	w.t.Helper()
	traps := filepath.Join(w.root, "traps")
	hooks := filepath.Join(traps, "hooks")
	if err := os.MkdirAll(hooks, 0o700); err != nil {
		w.t.Fatal(err)
	}
	trap := func(name string) string { return fmt.Sprintf("touch %s/made-%s; false", traps, name) }
	for _, hook := range []string{"reference-transaction", "pre-push", "post-checkout", "post-merge", "post-index-change", "fsmonitor-watchman", "pre-auto-gc"} {
		script := "#!/bin/sh\n" + trap(hook) + "\n"
		for _, dir := range []string{hooks, filepath.Join(w.checkout, ".git", "hooks")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				w.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, hook), []byte(script), 0o700); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(w.checkout, ".git", "info", "attributes"), []byte("* filter=trap diff=trap merge=trap\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"core.hooksPath": hooks, "core.fsmonitor": filepath.Join(hooks, "fsmonitor-watchman"), "core.sshCommand": trap("ssh"),
		"core.alternateRefsCommand": trap("alternates"), "core.askPass": trap("askpass"), "credential.helper": "!" + trap("credential"),
		"filter.trap.clean": trap("clean"), "filter.trap.smudge": trap("smudge"), "filter.trap.process": trap("process"),
		"diff.external": trap("diff"), "merge.trap.driver": trap("merge"), "gc.auto": "1", "core.pager": trap("pager"), "core.editor": trap("editor"),
		"remote.origin.uploadpack": trap("uploadpack"), "remote.origin.receivepack": trap("receivepack"),
		"url.ext::sh -c touch% " + traps + "/made-ext.insteadOf": w.server.URL(), "protocol.allow": "always", "uploadpack.packObjectsHook": trap("pack"),
		"gpg.program": trap("gpg"), "push.gpgSign": "true", "commit.gpgSign": "true", "merge.verifySignatures": "true", "http.proxy": "http://127.0.0.1:1",
	} {
		run(w.t, w.checkout, "config", key, value)
	}
	return func() []string {
		made, err := filepath.Glob(filepath.Join(traps, "made-*"))
		if err != nil {
			w.t.Fatal(err)
		}
		return made
	}
}

// G12: nothing that the configuration, the attributes or the hooks of a checkout
// name is run, whatever is done in it.
func TestProgramRunsNothingOfTheCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.commit("second")
	w.push("main")
	first := w.refs()["refs/heads/main"]
	ours := run(t, w.checkout, "commit-tree", "-p", first, "-m", "ours", first+"^{tree}")
	made := w.hostile()
	g := newTestProgram(t, limits{})
	r := func() *remote { return remoteAt(t, w.url(), Credentials{}) }
	ctx, rec := recorded(t)
	if _, err := g.fetch(ctx, r(), w.open(), ""); err != nil {
		t.Errorf("fetch: %+v", failureOf(t, policies.OpFetch, rec, err))
	}
	if ok, err := g.descends(ctx, w.open(), next, first); !ok || err != nil {
		t.Errorf("descends: %v, %v", ok, err)
	}
	if err := g.advance(ctx, w.open(), &progress{}, advanceSpec{from: first, to: next}); err != nil {
		t.Errorf("advance: %+v", failureOf(t, policies.OpFetch, rec, err))
	}
	if err := g.push(ctx, r(), w.open(), contract.GitPushIntent{Ref: "refs/heads/ours", New: ours}); err != nil {
		t.Errorf("push: %+v", failureOf(t, policies.OpPush, rec, err))
	}
	if at, err := g.locate(ctx, r(), w.open(), "refs/heads/main", first); err != nil || !at.Contains {
		t.Errorf("locate: %+v, %v", at, err)
	}
	if files := made(); len(files) != 0 {
		t.Errorf("these ran: %v", files)
	}
}

// A shallow checkout and a linked worktree are fetched into as any other.
func TestProgramFetchOddCheckouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.commit(fmt.Sprint(i))
	}
	w.push("main")
	g := newTestProgram(t, limits{})
	shallow := filepath.Join(w.root, "shallow")
	run(t, w.root, "clone", "-q", "--depth=2", w.url(), shallow)
	linked := filepath.Join(w.root, "linked")
	run(t, w.checkout, "worktree", "add", "-q", "-b", "side", linked)
	run(t, w.checkout, "pack-refs", "--all")
	bare := filepath.Join(w.root, "bare.git")
	run(t, w.root, "clone", "-q", "--mirror", w.url(), bare)
	next := w.commit("next")
	w.push("main")
	for dir, ref := range map[string]string{shallow: "refs/remotes/origin/main", linked: "refs/remotes/origin/main", bare: "refs/heads/main"} {
		ctx, rec := recorded(t)
		got, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), openAt(t, dir), "")
		if err != nil || len(got) != 1 || got[0].Ref != ref || got[0].New != next || got[0].Old == "" {
			t.Errorf("%s: %+v, %+v", dir, got, failureOf(t, policies.OpFetch, rec, err))
		}
		run(t, dir, "fsck", "--strict", "--no-dangling")
	}
	if got := run(t, shallow, "rev-list", "--count", "origin/main"); got != "3" {
		t.Errorf("the shallow checkout has %s commits, want 3", got)
	}
	// The branch of another worktree is not moved from under its files.
	ctx, rec := recorded(t)
	_, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "main:side")
	if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != "G3/checked_out" {
		t.Errorf("the branch of a worktree: %+v", f)
	}
}

// G11: a cancelled transfer ends within 5 s and leaves no process, no lock and no
// file.
func TestProgramCancel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	before := w.refs()
	g := newTestProgram(t, limits{})
	w.server.Script(simulator.Stall().On(githttp.OpUploadPack))
	ctx, _ := recorded(t)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		_, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
		done <- err
	}()
	deadline := time.Now().Add(30 * time.Second)
	for len(w.server.Ledger().Requests(githttp.OpUploadPack)) < 1 {
		if time.Now().After(deadline) {
			t.Fatal("the pack was not asked for")
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel()
	select {
	case err := <-done:
		if err != context.Canceled {
			t.Errorf("%v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it has not ended after 5 s")
	}
	out, err := exec.Command("ps", "-A", "-o", "args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, w.root) && strings.Contains(line, "git fetch") {
			t.Errorf("this runs: %s", line)
		}
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved:\n%s", diff)
	}
	w.whole()
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
}

// What git says of the program that it is to miss is not taken for a failure.
func TestProgramMissesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	w.server.Script(simulator.Reset().On(githttp.OpUploadPack))
	ctx, _ := recorded(t)
	_, err := newTestProgram(t, limits{}).fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	failed, ok := errors.AsType[*programError](err)
	if !ok || failed.stderr == "" || strings.Contains(failed.stderr, noAlternateRefs) {
		t.Errorf("%v: %+v", err, failed)
	}
	said := &diagnostics{progress: &progress{}}
	fmt.Fprintf(said, "%s No such file or directory\nfatal: something\n", cannotRun)
	if text := said.text(); text != "fatal: something\n" {
		t.Errorf("kept %q", text)
	}
}
