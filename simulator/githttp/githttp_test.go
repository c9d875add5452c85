package githttp_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o githttp.Options) *githttp.Server {
	t.Helper()
	s, err := githttp.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t *testing.T, s *githttp.Server, name string, n int) {
	t.Helper()
	if err := s.Create(name, n); err != nil {
		t.Fatal(err)
	}
}

// git runs the program with none of this machine's settings.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	return gitEnv(t, dir, nil, args...)
}

func gitEnv(t *testing.T, dir string, env []string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func count(s *githttp.Server, op string) int { return len(s.Ledger().Requests(op)) }

// Q1: real repositories are cloned, pushed to and read, and requests are counted
// by service.
func TestCloneAndPush(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "a/project.git", 250)
	work := filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", s.RepoURL("a/project.git"), work)
	if got := must(t, work, "rev-list", "--count", "HEAD"); got != "250" {
		t.Errorf("%s commits were cloned, want 250", got)
	}
	old := s.Refs("a/project.git")["refs/heads/main"]
	must(t, work, "commit", "--quiet", "--allow-empty", "-m", "ours")
	must(t, work, "push", "--quiet", "origin", "main")
	ours := must(t, work, "rev-parse", "HEAD")
	effects := s.Ledger().Effects(githttp.EffectRef)
	if len(effects) != 1 || effects[0].Content != "refs/heads/main "+old+" "+ours || effects[0].Key != "a/project.git" {
		t.Errorf("effects %+v", effects)
	}
	if err := s.Commit("a/project.git", "main", 3); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("a/project.git", "side", 2); err != nil {
		t.Fatal(err)
	}
	must(t, work, "fetch", "--quiet")
	if got := must(t, work, "rev-list", "--count", "HEAD..origin/main"); got != "3" {
		t.Errorf("%s new commits, want 3", got)
	}
	if got := must(t, work, "rev-list", "--count", "origin/main..origin/side"); got != "2" {
		t.Errorf("%s commits on the side branch, want 2", got)
	}
	if refs, pushes := count(s, githttp.OpPushRefs), count(s, githttp.OpReceivePack); refs != 1 || pushes != 1 {
		t.Errorf("the push took %d + %d requests, want 1 + 1", refs, pushes)
	}
	if n := count(s, githttp.OpFetchRefs); n != 2 {
		t.Errorf("clone and fetch read the refs %d times, want 2", n)
	}
}

// G1, G4: the faults of the network look to git as they do outside.
func TestFetchFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		step simulator.Step
		says string
	}{
		{"unavailable", githttp.Unavailable(), "503"},
		{"empty answer", githttp.EmptyPack(), "hung up unexpectedly"},
		{"cut pack", githttp.CutPack(2000), "transfer closed"},
		{"cut pack at a fraction", simulator.CutFraction(0.5).On(githttp.OpUploadPack), ""},
		{"closed", simulator.Close(), "Empty reply from server"},
		{"reset", simulator.Reset(), "reset by peer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, githttp.Options{})
			create(t, s, "p.git", 300)
			s.Script(tt.step)
			dir := t.TempDir()
			// Version 0 has its pack in the first POST.
			out, err := git(t, dir, "-c", "protocol.version=0", "clone", "--quiet", s.RepoURL("p.git"), "work")
			if err == nil || !strings.Contains(out, tt.says) {
				t.Errorf("git: %v\n%s\nwant a failure that says %q", err, out, tt.says)
			}
			if left := s.Remaining(); len(left) != 0 {
				t.Errorf("not taken: %v", left)
			}
			must(t, dir, "clone", "--quiet", s.RepoURL("p.git"), "again")
		})
	}
}

// G6: a push that landed and lost its answer has one effect.
func TestLandThenReset(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 2)
	work := filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", s.RepoURL("p.git"), work)
	must(t, work, "commit", "--quiet", "--allow-empty", "-m", "ours")
	s.Script(githttp.LandThenReset())
	if out, err := git(t, work, "-c", "http.extraHeader=Connection: close", "push", "origin", "main"); err == nil {
		t.Errorf("the push says it succeeded: %s", out)
	}
	ours := must(t, work, "rev-parse", "HEAD")
	if got := s.Refs("p.git")["refs/heads/main"]; got != ours {
		t.Errorf("main is %s, want %s", got, ours)
	}
	if n := count(s, githttp.OpReceivePack); n != 1 {
		t.Errorf("%d pushes arrived, want 1", n)
	}
	if effects := s.Ledger().Effects(""); len(effects) != 1 || effects[0].ID != ours {
		t.Errorf("effects %+v", effects)
	}
}

// G3, G9: a repository that is not there, and one that wants a password.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{Users: map[string]string{"u": "p4ss"}})
	create(t, s, "p.git", 1)
	with := "http://u:p4ss@" + s.Addr() + "/"
	if out, err := git(t, "", "ls-remote", s.RepoURL("p.git")); err == nil {
		t.Errorf("without a password: %s", out)
	}
	if out, err := git(t, "", "ls-remote", with+"missing.git"); err == nil || !strings.Contains(out, "not found") {
		t.Errorf("a missing repository: %v %s", err, out)
	}
	if out := must(t, "", "ls-remote", with+"p.git", "main"); !strings.HasSuffix(out, "refs/heads/main") {
		t.Errorf("with a password: %s", out)
	}
	for _, r := range s.Ledger().Requests("") {
		if strings.Contains(r.Path, "p4ss") || strings.Contains(r.Account, "p4ss") {
			t.Errorf("the password is in the ledger: %+v", r)
		}
	}
}

// Q4: a large repository for measurements is made quickly, the same every time.
func TestSeededRepositoriesAreEqual(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "one.git", 1000)
	create(t, s, "two.git", 1000)
	one, two := s.Refs("one.git"), s.Refs("two.git")
	if one["refs/heads/main"] == "" || one["refs/heads/main"] != two["refs/heads/main"] {
		t.Errorf("%v and %v", one, two)
	}
}

// A request that only its body can name has no operation until the body is there:
// who waits for one of an operation, and then ends the client, finds its step taken.
func TestUndecidedRequestHasNoOperation(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 1)
	s.Script(simulator.Stall().On(githttp.OpUploadPack))
	where, err := url.Parse(s.RepoURL("p.git"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", where.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	body := "0011command=fetch0000"
	fmt.Fprintf(conn, "POST %s/git-upload-pack HTTP/1.1\r\nHost: %s\r\nGit-Protocol: version=2\r\nContent-Length: %d\r\n\r\n",
		where.Path, where.Host, len(body))
	if _, err := s.Ledger().WaitRequests(t.Context(), "", 1); err != nil {
		t.Fatal(err)
	}
	if n := count(s, githttp.OpUploadPack); n != 0 {
		t.Errorf("%d requests of %s before the body", n, githttp.OpUploadPack)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	found, err := s.Ledger().WaitRequests(t.Context(), githttp.OpUploadPack, 1)
	if err != nil {
		t.Fatal(err)
	}
	if found[0].Step == "" || len(s.Remaining()) != 0 {
		t.Errorf("entered before its step was taken: %+v, left %v", found[0], s.Remaining())
	}
}
