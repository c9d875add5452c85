package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitCheckoutCases = []gitCase{
	{"a checkout that would run something", gitRunsNothing},
	{"a checkout that points elsewhere", gitGoesNowhereElse},
	{"a directory that is no checkout", gitNoCheckout},
	{"a checkout that cannot be written", gitCannotWrite},
}

// G12: whoever works in a checkout may have written its configuration, hooks and
// attributes: none of them runs anything.
func gitRunsNothing(w *gitWorld) {
	w.write(w.author, ".gitattributes", "* filter=evil diff=evil merge=evil\n")
	w.commitAll("attributes")
	w.publish("main")
	dir := w.theirs()
	w.git(dir, "branch", "-q", "--set-upstream-to", "origin/main")
	ran := filepath.Join(w.outside, "ran")
	script := filepath.Join(dir, ".git", "evil.sh")
	w.check(os.WriteFile(script, []byte("#!/bin/sh\ntouch '"+ran+"'\nexit 1\n"), 0o755))
	for _, hook := range []string{
		"post-checkout", "post-merge", "pre-push", "reference-transaction", "post-index-change", "pre-auto-gc", "post-rewrite",
		"pre-receive", "update", "post-receive", "post-update", "proc-receive", "push-to-checkout", "fsmonitor-watchman",
	} {
		w.check(os.Symlink(script, filepath.Join(dir, ".git", "hooks", hook)))
	}
	for _, setting := range [][2]string{
		{"core.fsmonitor", script}, {"core.sshCommand", script}, {"core.gitProxy", script}, {"core.askPass", script}, {"core.pager", script},
		{"core.editor", script}, {"core.alternateRefsCommand", script}, {"credential.helper", "!" + script},
		{"filter.evil.smudge", script}, {"filter.evil.clean", script}, {"filter.evil.process", script}, {"filter.evil.required", "true"},
		{"diff.evil.command", script}, {"diff.evil.textconv", script}, {"merge.evil.driver", script}, {"gpg.program", script},
		{"uploadpack.packObjectsHook", script}, {"remote.origin.uploadpack", script}, {"remote.origin.receivepack", script},
		{"remote.origin.vcs", "evil"}, {"protocol.ext.allow", "always"}, {"protocol.allow", "always"}, {"http.sslCert", script},
		{"push.gpgSign", "true"}, {"fetch.recurseSubmodules", "true"}, {"submodule.recurse", "true"}, {"gc.auto", "1"}, {"maintenance.auto", "true"},
		{"trace2.normalTarget", ran}, {"alias.fetch", "!" + script}, {"core.hooksPath", filepath.Join(dir, ".git", "hooks")},
	} {
		w.git(dir, "config", setting[0], setting[1])
	}
	host := w.sshHost()
	for _, url := range []string{"", "file://" + w.host.Dir(gitRepo), host.RepoURL(gitRepo)} {
		for _, op := range w.operations(dir) {
			if op.in.URL = url; url == "" && op.in.Dir != dir {
				continue
			}
			if strings.HasPrefix(url, "ssh:") {
				op.in.Auth = "key"
			}
			answer := op.call(w.t.Context(), w.request(op.in))
			if answer.Failure != nil {
				w.t.Errorf("%s of %q: %+v\n%s", op.name, url, *answer.Failure, answer.Stored)
			}
			if op.clone && answer.Failure == nil {
				w.remove(w.work, filepath.Base(op.in.Dir))
			}
		}
		w.check(w.host.SetRef(gitRepo, "refs/heads/main", w.git(w.author, "rev-parse", "HEAD")))
	}
	w.git(w.author, "fetch", "-q", dir, "HEAD")
	w.git(w.author, "reset", "-q", "--hard", "FETCH_HEAD")
	w.commit("on top")
	w.publish("main")
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	if got := w.do(w.engine.FastForward, contract.GitRequest{Dir: dir}).Result; got.Outcome != contract.OutcomeSynced {
		w.t.Errorf("fast-forward: %+v", got)
	}
	w.unharmed()
	if _, err := os.Lstat(ran); err == nil {
		w.t.Error("something was run")
	}
	w.check(os.RemoveAll(filepath.Join(dir, ".git", "hooks")))
}

// G9, G12: nor does its configuration send elsewhere what is for an address that
// was given, or have anything written elsewhere.
func gitGoesNowhereElse(w *gitWorld) {
	dir := w.theirs()
	w.engine.AddAuth("token", GitAuth{Token: gitToken})
	other := w.another(githttp.Options{})
	for _, setting := range [][2]string{
		{"url." + other.URL() + "/.insteadOf", w.host.URL() + "/"},
		{"url." + other.URL() + "/.pushInsteadOf", w.host.URL() + "/"},
		{"http.proxy", other.URL()}, {"remote.origin.proxy", other.URL()}, {"remote.pushDefault", "elsewhere"},
		{"remote.elsewhere.url", other.RepoURL(gitRepo)}, {"remote.origin.pushurl", other.RepoURL(gitRepo)}, {"branch.main.pushRemote", "elsewhere"},
		{"core.worktree", w.outside}, {"http.cookieFile", filepath.Join(w.outside, "canary")}, {"http.saveCookies", "true"},
		{"http.extraHeader", "X-Evil: " + gitPlanted}, {"http.followRedirects", "true"}, {"http.sslVerify", "false"},
	} {
		w.git(dir, "config", setting[0], setting[1])
	}
	for _, op := range w.operations(dir) {
		op.in.Auth, op.in.URL = "token", w.url()
		// What cannot be done because of such settings is refused, which is as good.
		answer := op.call(w.t.Context(), w.request(op.in))
		if answer.Failure != nil && !answer.Failure.Permanent {
			w.t.Errorf("%s: %+v", op.name, *answer.Failure)
		}
	}
	if n := len(other.Ledger().Requests("")); n != 0 {
		w.t.Errorf("the other host was asked %d times", n)
	}
	w.engine.FastForward(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Ref: "side"}))
	if diff := cmp.Diff(map[string]string{"canary": "sings\n"}, w.files(w.outside)); diff != "" {
		w.t.Errorf("outside (-before +after):\n%s", diff)
	}
}

// G3: what is no checkout is refused before anything is sent.
func gitNoCheckout(w *gitWorld) {
	w.write(w.dir("files"), "file", "file\n")
	broken := w.checkout("broken")
	w.remove(broken, ".git/HEAD")
	lone := w.dir("lone")
	w.git(w.work, "init", "-q", lone)
	w.host.Reset()
	for _, tc := range []struct{ what, dir, url, reason string }{
		{"not named", "", w.url(), "format"},
		{"missing", w.dir("missing"), w.url(), "not_found"},
		{"no repository", w.dir("files"), w.url(), "not_found"},
		{"no HEAD", broken, w.url(), "not_found"},
		{"no origin", lone, "", "format"},
	} {
		for name, call := range map[string]GitCall{"fetch": w.engine.Fetch, "intent": w.engine.PushIntent, "fast-forward": w.engine.FastForward} {
			if name == "fast-forward" && tc.what == "no origin" {
				continue
			}
			answer := call(w.t.Context(), w.request(contract.GitRequest{Dir: tc.dir, URL: tc.url}))
			want := gitWant{reason: tc.reason}
			if answer.Failure != nil && answer.Failure.Effect == notSent {
				want.effect = notSent
			}
			if lone == tc.dir && name == "intent" && answer.Failure != nil {
				want.reason = answer.Failure.Reason // it has no commit either
			}
			w.failed(fmt.Sprintf("%s: %s", name, tc.what), answer, want)
		}
	}
	w.requests("no checkout", gitSent{})
}

// G3: a checkout that the engine may not write is a failure for good, and no ref
// moves. (It shows nothing where the test may write everything.)
func gitCannotWrite(w *gitWorld) {
	dir := w.checkout("a")
	w.commit("second")
	w.publish("main")
	if os.Geteuid() == 0 {
		return
	}
	before := w.refs(dir)
	for _, name := range []string{"objects", "refs/remotes/origin", ""} {
		path := filepath.Join(dir, ".git", filepath.FromSlash(name))
		w.check(os.Chmod(path, 0o555))
		w.fails("cannot write "+name, w.engine.Fetch, contract.GitRequest{Dir: dir}, gitWant{reason: "permission", hint: "owner"})
		w.check(os.Chmod(path, 0o755))
		w.hasRefs(name, dir, before)
	}
	w.whole("after", dir)
}
