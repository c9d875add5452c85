package gitssh_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/gitssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a repository of 300 commits behind both hosts, and a user whose key is
// allowed.
type world struct {
	t    *testing.T
	http *githttp.Server
	*gitssh.Server
	key, known string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	h, err := githttp.Start(githttp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	if err := h.Create("a/p.git", 300); err != nil {
		t.Fatal(err)
	}
	s, err := gitssh.Start(gitssh.Options{Root: h.Root()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	w := &world{t: t, http: h, Server: s, key: filepath.Join(dir, "key"), known: filepath.Join(dir, "known")}
	key, err := gitssh.WriteKey(w.key, "")
	if err != nil {
		t.Fatal(err)
	}
	s.Allow(key)
	if err := s.WriteKnownHosts(w.known); err != nil {
		t.Fatal(err)
	}
	return w
}

// command is git with none of this machine's settings, over OpenSSH.
func (w *world) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "SSH_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com",
		fmt.Sprintf("GIT_SSH_COMMAND=ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null -i %s -o UserKnownHostsFile=%s", w.key, w.known))
	return cmd
}

func (w *world) git(dir string, args ...string) (string, error) {
	out, err := w.command(dir, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *world) must(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.git(dir, args...)
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// clone makes a working copy with one commit of its own.
func (w *world) clone() (work, ours string) {
	w.t.Helper()
	work = filepath.Join(w.t.TempDir(), "work")
	w.must("", "clone", "--quiet", w.http.Dir("a/p.git"), work)
	w.must(work, "remote", "set-url", "origin", w.RepoURL("a/p.git"))
	w.must(work, "commit", "--quiet", "--allow-empty", "-m", "ours")
	return work, w.must(work, "rev-parse", "HEAD")
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Q1: real repositories are read and pushed to, in both protocol versions, and
// what a push changed is an effect.
func TestFetchAndPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	for _, version := range []string{"0", "2"} {
		w.must(dir, "-c", "protocol.version="+version, "clone", "--quiet", w.RepoURL("a/p.git"), "v"+version)
	}
	work, ours := w.clone()
	old := w.http.Refs("a/p.git")["refs/heads/main"]
	w.must(work, "push", "--quiet", "origin", "main")
	effects := w.Ledger().Effects(gitssh.EffectRef)
	if len(effects) != 1 || effects[0].Content != "refs/heads/main "+old+" "+ours || effects[0].Key != "a/p.git" {
		t.Errorf("effects %+v", effects)
	}
	if err := w.Ledger().WaitIdle(deadline(t)); err != nil {
		t.Error(err)
	}
	connects, reads, pushes := w.Ledger().Requests(gitssh.OpConnect), w.Ledger().Requests(gitssh.OpUploadPack), w.Ledger().Requests(gitssh.OpReceivePack)
	if len(connects) != 3 || len(reads) != 2 || len(pushes) != 1 || pushes[0].Account != "account-1" || pushes[0].BodyBytes == 0 {
		t.Errorf("%d connections, %d reads, pushes %+v", len(connects), len(reads), pushes)
	}
}

// G3, G9: who may not log in, which host is not the one that is known, and a
// repository that is not there, as OpenSSH and Git say it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := w.RepoURL("a/p.git")
	for _, tc := range []struct {
		name, url, says string
		before          func()
	}{
		{"no repository", w.RepoURL("a/q.git"), "fatal: '/a/q.git' does not appear to be a git repository", nil},
		{"outside", w.RepoURL("../../etc"), "does not appear to be a git repository", nil},
		{"not found", good, "ERROR: Repository not found.", func() { w.Script(gitssh.NotFound()) }},
		{"says", good, "no such luck", func() { w.Script(gitssh.Fail(1, "no such luck\n").On(gitssh.OpUploadPack).ForKey("a/p.git")) }},
		{"refused", good, "Permission denied (publickey)", func() { w.Script(gitssh.RefuseAuth()) }},
		{"closed", good, "Connection closed", func() { w.Script(gitssh.RefuseConnection(gitssh.Close)) }},
		{"reset", good, "Connection reset", func() { w.Script(gitssh.RefuseConnection(gitssh.Reset)) }},
		{"changed host key", good, "Host key verification failed", func() {
			if err := w.ChangeHostKey(); err != nil {
				t.Fatal(err)
			}
		}},
		{"unknown host", good, "Host key verification failed", func() {
			if err := os.WriteFile(w.known, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{"other key", good, "Permission denied (publickey)", func() {
			if err := w.WriteKnownHosts(w.known); err != nil {
				t.Fatal(err)
			}
			if _, err := gitssh.WriteKey(w.key, ""); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		if tc.before != nil {
			tc.before()
		}
		out, err := w.git("", "ls-remote", tc.url)
		if err == nil || !strings.Contains(out, tc.says) || strings.Contains(out, w.http.Root()) {
			t.Errorf("%s: %v\n%s\nwant a failure that says %q", tc.name, err, out, tc.says)
		}
	}
	if left := w.Remaining(); len(left) != 0 {
		t.Errorf("not taken: %+v", left)
	}
}

// G4, G6: sessions that break, in the ledger as in the repository.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	for _, tc := range []struct {
		step    gitssh.Step
		outcome simulator.Outcome
	}{
		{gitssh.EndAtStart(gitssh.Close), simulator.NoAnswer},
		{gitssh.EndAtStart(gitssh.Reset), simulator.NoAnswer},
		{gitssh.CutBytes(30), simulator.CutShort},
		{gitssh.CutBytes(5000), simulator.CutShort},
	} {
		w.Reset()
		w.Script(tc.step)
		if out, err := w.git(dir, "clone", "--quiet", w.RepoURL("a/p.git"), "work"); err == nil {
			t.Errorf("%s: git succeeded: %s", tc.step.Note, out)
		}
		if got := w.Ledger().Requests(gitssh.OpUploadPack); len(got) != 1 || got[0].Outcome != tc.outcome || got[0].Step != tc.step.Note {
			t.Errorf("%s: %+v, want %s", tc.step.Note, got, tc.outcome)
		}
	}

	work, ours := w.clone()
	for _, tc := range []struct {
		step    gitssh.Step
		effects int
	}{{gitssh.LosePush(), 0}, {gitssh.LandThenReset(), 1}} {
		w.Reset()
		w.Script(tc.step)
		if out, err := w.git(work, "push", "origin", "main"); err == nil {
			t.Errorf("%s: git succeeded: %s", tc.step.Note, out)
		}
		if err := w.Ledger().WaitIdle(deadline(t)); err != nil {
			t.Fatal(err)
		}
		if got := w.Ledger().Effects(""); len(got) != tc.effects {
			t.Errorf("%s: effects %+v", tc.step.Note, got)
		}
		if landed := w.http.Refs("a/p.git")["refs/heads/main"] == ours; landed != (tc.effects == 1) {
			t.Errorf("%s: landed %v", tc.step.Note, landed)
		}
	}
}

// dial logs in as a client that asks for the pack of everything.
func (w *world) dial() (c *ssh.Client, output io.Reader, err error) {
	w.t.Helper()
	content, err := os.ReadFile(w.key)
	if err != nil {
		w.t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		w.t.Fatal(err)
	}
	check, err := knownhosts.New(w.known)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err = ssh.Dial("tcp", w.Addr(), &ssh.ClientConfig{User: "git", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, Timeout: time.Minute})
	if err != nil {
		return nil, nil, err
	}
	session, err := c.NewSession()
	if err != nil {
		w.t.Fatal(err)
	}
	if output, err = session.StdoutPipe(); err != nil {
		w.t.Fatal(err)
	}
	session.Stdin = strings.NewReader(fmt.Sprintf("0032want %s\n00000009done\n", w.http.Refs("a/p.git")["refs/heads/main"]))
	return c, output, session.Start("git-upload-pack '/a/p.git'")
}

// Q1: a client that leaves a stall, or a transfer, is seen to leave, and its
// program ends.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		step gitssh.Step
		read int64
	}{
		{gitssh.EndAtStart(gitssh.Stall), 0}, {gitssh.StallBytes(5000), 5000}, {gitssh.Slow(5000), 500},
	} {
		w := newWorld(t)
		w.Script(tc.step)
		c, output, err := w.dial()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.CopyN(io.Discard, output, tc.read); err != nil {
			t.Errorf("%s: %d bytes, %v", tc.step.Note, n, err)
		}
		reqs, err := w.Ledger().WaitRequests(deadline(t), gitssh.OpUploadPack, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r, _ := w.Ledger().Request(reqs[0].N); !r.GoneAt.IsZero() {
			t.Errorf("%s: the client is said to have left: %+v", tc.step.Note, r)
		}
		c.Close()
		if _, err := w.Ledger().WaitGone(deadline(t), reqs[0].N); err != nil {
			t.Errorf("%s: %v", tc.step.Note, err)
		}
	}
}

// Q1: a host that says nothing at all notices that its client leaves.
func TestSilentHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Script(gitssh.RefuseConnection(gitssh.Stall))
	c, err := net.Dial("tcp", w.Addr())
	if err != nil {
		t.Fatal(err)
	}
	reqs, err := w.Ledger().WaitRequests(deadline(t), gitssh.OpConnect, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if _, err := w.Ledger().WaitGone(deadline(t), reqs[0].N); err != nil {
		t.Error(err)
	}
}

// Q1: closing the server ends what stalls in it.
func TestCloseEndsStalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Script(gitssh.StallBytes(5000).Always())
	c, output, err := w.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.CopyN(io.Discard, output, 5000); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("the connection ended in order")
	}
}
