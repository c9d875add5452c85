package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// G12: where roots are configured, a local remote lies in one of them, however
// its address is written and whatever it leads to.
func TestLocalRemotesStayInRoots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret.git")
	run(t, outside, "clone", "-q", "--bare", w.bare, secret)
	run(t, outside, "clone", "-q", "--bare", w.bare, filepath.Join(outside, "a:b.git"))
	for link, target := range map[string]string{"link": secret, "short.git": secret, "parent": outside} {
		if err := os.Symlink(target, filepath.Join(w.root, link)); err != nil {
			t.Fatal(err)
		}
	}
	pointing := filepath.Join(w.root, "pointing")
	if err := os.MkdirAll(pointing, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pointing, ".git"), []byte("gitdir: "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sharing := filepath.Join(w.root, "sharing.git")
	run(t, w.root, "init", "-q", "--bare", sharing)
	if err := os.WriteFile(filepath.Join(sharing, "commondir"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(here, secret)
	if err != nil {
		t.Fatal(err)
	}

	a := newActivities(t, Config{Roots: []string{w.root}})
	before := w.refs()
	for _, address := range []string{
		secret, "file://" + secret, "file://localhost" + secret, strings.TrimSuffix(secret, ".git"), relative,
		filepath.Join(w.root, "link"), "file://" + filepath.Join(w.root, "link"), filepath.Join(w.root, "short"),
		filepath.Join(w.root, "parent", "secret.git"), pointing, sharing, w.root + "/../" + filepath.Base(outside) + "/secret.git",
		"file://" + w.root + "/%2e%2e/" + filepath.Base(outside) + "/secret.git", "file://" + filepath.Join(outside, "a:b.git"),
		filepath.Join(outside, "missing"), "~root/secret.git", `host:\secret`,
	} {
		refused := func(name string, f contract.Failure) {
			t.Helper()
			if f.Reason != "permission" || f.RetrySame || !strings.Contains(f.Message, "git.roots") || strings.Contains(f.Message, outside) {
				t.Errorf("%s %s: %+v, want permission and a word on git.roots", name, address, f)
			}
		}
		res, f := lsRemote(t, a, contract.GitRequest{URL: address})
		refused("ls-remote", f)
		if len(res.Refs) > 0 {
			t.Errorf("%s: refs %v", address, res.Refs)
		}
		_, f = fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: address})
		refused("fetch", f)
	}
	run(t, w.checkout, "remote", "set-url", "origin", secret)
	if _, f := fetch(t, a, contract.GitRequest{Dir: w.checkout}); f.Reason != "permission" {
		t.Errorf("fetch from an origin outside: %+v", f)
	}
	if len(w.refs()) != len(before) {
		t.Errorf("refs %v, want %v", w.refs(), before)
	}

	// Inside the roots, and without any, local remotes work.
	linked := filepath.Join(w.root, "linked")
	run(t, w.checkout, "worktree", "add", "-q", "-b", "linked", linked)
	odd := filepath.Join(w.root, "odd name %2f.git")
	run(t, w.root, "clone", "-q", "--bare", w.bare, odd)
	for _, address := range []string{w.bare, "file://" + w.bare, strings.TrimSuffix(w.bare, ".git"), w.author, linked, odd} {
		if res, f := lsRemote(t, a, contract.GitRequest{URL: address}); f.Reason != "" || len(res.Refs) == 0 {
			t.Errorf("%s: %+v, %+v", address, res, f)
		}
	}
	if _, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: w.bare}); f.Reason != "" {
		t.Errorf("fetch from a root: %+v", f)
	}
	if res, f := lsRemote(t, newActivities(t, Config{}), contract.GitRequest{URL: secret}); f.Reason != "" || len(res.Refs) == 0 {
		t.Errorf("without roots: %+v, %+v", res, f)
	}
}
