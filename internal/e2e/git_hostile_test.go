package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/gitssh"
)

// G12: no repository, whatever its names and links, has anything written outside
// the checkout or into its .git; one that cannot be checked out is told so.
func TestGitHostileRepositories(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		root := filepath.Dir(s.checkout)
		outside := filepath.Join(root, "outside")
		canary := filepath.Join(outside, "file")
		if err := os.MkdirAll(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(canary, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		for i, hostile := range githttp.Hostiles() {
			name := fmt.Sprintf("hostile/%d", i)
			if err := s.world.Git.CreateHostile(name, hostile, outside); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(root, fmt.Sprintf("hostile-%d", i))
			result := finish(s, s.clone(name, contract.GitCloneInput{URL: s.world.Git.RepoURL(name), Dir: dir}))
			if hostile.Refused && (result.Outcome != contract.OutcomeFailed || result.Error.Attempts != 1 || result.Error.Message == "") {
				t.Errorf("%s: outcome %s (%+v), want failed at once with a message", hostile.Name, result.Outcome, result.Error)
			}
			entries, err := os.ReadDir(outside)
			data, _ := os.ReadFile(canary)
			if err != nil || len(entries) != 1 || string(data) != "mine" {
				t.Fatalf("%s: outside the checkout are %v (%v), and %q", hostile.Name, entries, err, data)
			}
			if err := filepath.WalkDir(filepath.Join(dir, ".git"), func(path string, e os.DirEntry, err error) error {
				if err != nil || !e.Type().IsRegular() {
					return nil
				}
				if data, _ := os.ReadFile(path); strings.Contains(string(data), githttp.HostileContent) {
					t.Errorf("%s: wrote %s", hostile.Name, path)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
	}, "  limits: {memory: 512MiB}\n")
}

// G12: what is small on the wire and large when unpacked ends with a clear error
// and leaves nothing, and the worker goes on.
func TestGitBombs(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		for name, create := range map[string]func(string) error{
			"delta": func(name string) error { return s.world.Git.CreateDeltaBomb(name, 20, 1<<30) },
			"zip":   func(name string) error { return s.world.Git.CreateZipBomb(name, 1<<30) },
			"tree":  func(name string) error { return s.world.Git.CreateTreeBomb(name, 10, 10) },
		} {
			if err := create("bomb/" + name); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(filepath.Dir(s.checkout), name)
			result := finish(s, s.clone("bomb-"+name, contract.GitCloneInput{
				URL: s.world.Git.RepoURL("bomb/" + name), Dir: dir, Timeout: "60s",
			}))
			if name == "zip" && result.Outcome == contract.OutcomeCloned {
				// The git program leaves holes in place of zeros, which take no disk.
				var used int64
				if _, err := fmt.Sscan(diskUse(t, dir), &used); err != nil || used > 256<<20 {
					t.Errorf("the zip bomb takes %d bytes of disk (%v)", used, err)
				}
				if err := os.RemoveAll(dir); err != nil {
					t.Error(err)
				}
				continue
			}
			if result.Outcome != contract.OutcomeFailed || !strings.HasPrefix(result.Error.Rule, "G12/") {
				t.Errorf("%s bomb: outcome %s (%+v), want failed by G12", name, result.Outcome, result.Error)
			}
		}
		s.poll("end of what the bombs left", func() bool { return len(s.siblings()) == 0 })
		s.create(3)
		wantGit(t, finish(s, s.clone("after", contract.GitCloneInput{})), contract.OutcomeCloned, "", 0)
	}, "  limits: {memory: 128MiB, disk: 256MiB}\n")
}

// G3: a certificate that nobody vouches for ends the operation at once, exit
// status 1.
func TestGitBadCertificate(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		authority, err := simulator.NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := authority.TLS()
		if err != nil {
			t.Fatal(err)
		}
		server, err := githttp.Start(githttp.Options{TLS: certificate})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		if err := server.Create(repository, 1); err != nil {
			t.Fatal(err)
		}
		s.track("git-ls-remote/certificate")
		a := s.starter("git", "ls-remote", server.RepoURL(repository), "--key", "certificate", "--json")
		s.wantRefused(a, "tls_certificate")
		if n := server.Connections(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

// wantRefused checks that an invocation ended with exit status 1 after one
// attempt, for a reason.
func (s *stage) wantRefused(a answer, reason string) {
	s.t.Helper()
	failure, _ := s.object(a)["error"].(map[string]any)
	if a.status != contract.ExitFailed || failure["reason"] != reason || failure["attempts"] != 1.0 {
		s.t.Errorf("exit status %d, error %v; want 1, %s after 1 attempt: %s", a.status, failure, reason, a.errors)
	}
}

// G3, G9: over SSH a known host with a known key is served; an unknown host key
// and a key that is not allowed end the operation at once.
func TestGitSSH(t *testing.T) {
	keys := t.TempDir()
	profile := func(name string) string {
		return fmt.Sprintf("    %s: {kind: ssh_key, file: %q, known_hosts: %q}\n", name, filepath.Join(keys, name), filepath.Join(keys, name+".hosts"))
	}
	allowed := map[string]ssh.PublicKey{}
	for _, name := range []string{"known", "stranger", "unknown"} {
		key, err := gitssh.WriteKey(filepath.Join(keys, name), "")
		if err != nil {
			t.Fatal(err)
		}
		allowed[name] = key
	}
	forge, err := githttp.Start(githttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { forge.Close() })
	if err := forge.Create(repository, 3); err != nil {
		t.Fatal(err)
	}
	server, err := gitssh.Start(gitssh.Options{Root: forge.Root()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	server.Allow(allowed["known"])
	server.Allow(allowed["unknown"])
	for _, name := range []string{"known", "stranger"} {
		if err := server.WriteKnownHosts(filepath.Join(keys, name+".hosts")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(keys, "unknown.hosts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		listed := s.starter("git", "ls-remote", server.RepoURL(repository), "--auth", "known", "--json")
		if listed.status != contract.ExitOK || !strings.Contains(listed.out, "refs/heads/main") {
			t.Errorf("exit status %d:\n%s%s", listed.status, listed.out, listed.errors)
		}
		s.wantRefused(s.starter("git", "ls-remote", server.RepoURL(repository), "--auth", "unknown", "--json"), "tls_certificate")
		s.wantRefused(s.starter("git", "ls-remote", server.RepoURL(repository), "--auth", "stranger", "--json"), "auth")
		wantGit(t, finish(s, s.clone("ssh", contract.GitCloneInput{URL: server.RepoURL(repository), Auth: "known"})), contract.OutcomeCloned, "", 0)
		s.sound()
	}, profile("known"), profile("stranger"), profile("unknown"))
}

// diskUse is what du says of a directory, in bytes.
func diskUse(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.Command("du", "-s", "--block-size=1", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
