package git

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// run runs the git program, away from anyone's configuration.
func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(),
		"LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.invalid",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// world is a remote repository, the place where its commits are made, and a
// checkout that follows it.
type world struct {
	t        *testing.T
	root     string
	author   string // a working copy that pushes to bare
	bare     string
	checkout string
	server   *githttp.Server
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{t: t, root: root, author: filepath.Join(root, "author"), bare: filepath.Join(root, "srv", "repo.git"), checkout: filepath.Join(root, "checkout")}
	run(t, root, "init", "-q", "--bare", "-b", "main", w.bare)
	run(t, root, "init", "-q", "-b", "main", w.author)
	run(t, w.author, "remote", "add", "origin", w.bare)
	w.commit("first")
	w.push("main")
	w.server = serve(t, filepath.Join(root, "srv"), nil)
	run(t, root, "clone", "-q", w.bare, w.checkout)
	run(t, w.checkout, "remote", "set-url", "origin", w.url())
	return w
}

func (w *world) url() string { return w.server.RepoURL("repo.git") }

// commit makes a commit in the author's copy and returns its id.
func (w *world) commit(text string) string {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.author, "file"), []byte(strings.Repeat(text+"\n", 50)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	run(w.t, w.author, "add", "file")
	run(w.t, w.author, "commit", "-q", "-m", text)
	return run(w.t, w.author, "rev-parse", "HEAD")
}

func (w *world) push(refs ...string) {
	w.t.Helper()
	run(w.t, w.author, append([]string{"push", "-q", "-f", "origin"}, refs...)...)
}

// refs are the refs of the checkout, by name.
func (w *world) refs() map[string]string {
	w.t.Helper()
	refs := map[string]string{}
	for line := range strings.Lines(run(w.t, w.checkout, "for-each-ref", "--format=%(refname) %(objectname)")) {
		name, oid, _ := strings.Cut(strings.TrimSpace(line), " ")
		refs[name] = oid
	}
	return refs
}

// whole checks that the checkout is sound and that nothing of an attempt is left.
func (w *world) whole() {
	w.t.Helper()
	run(w.t, w.checkout, "fsck", "--strict", "--no-dangling")
	for _, pattern := range []string{"objects/pack/tmp_*", "refs/*/*/*.lock", "refs/*/*.lock"} {
		left, err := filepath.Glob(filepath.Join(w.checkout, ".git", pattern))
		if err != nil {
			w.t.Fatal(err)
		}
		if len(left) > 0 {
			w.t.Errorf("left behind: %v", left)
		}
	}
}

// sent are the operations asked of a server since its last Reset.
func sent(s *githttp.Server) []string {
	var ops []string
	for _, r := range s.Ledger().Requests("") {
		ops = append(ops, r.Op)
	}
	return ops
}

// serve starts a Git host in front of a directory of repositories.
func serve(t *testing.T, dir string, users map[string]string) *githttp.Server {
	t.Helper()
	s, err := githttp.Start(githttp.Options{Root: dir, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// tampered is the address of the world's repository behind a proxy that changes
// the pack answers.
func (w *world) tampered(change func(pack []byte) []byte) string {
	w.t.Helper()
	target, err := url.Parse(w.server.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method != http.MethodPost {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		body = change(body)
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		r.Body = io.NopCloser(bytes.NewReader(body))
		return nil
	}
	front := httptest.NewServer(proxy)
	w.t.Cleanup(front.Close)
	return front.URL + "/repo.git"
}

// newActivities makes activities that run on go-git unless another engine is
// asked for.
func newActivities(t *testing.T, cfg Config) *Activities {
	t.Helper()
	cfg.Engine = cmp.Or(cfg.Engine, EngineGoGit)
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func environment(a *Activities) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(a.LsRemote)
	env.RegisterActivity(a.Fetch)
	return env
}

// fetch runs the activity once. The failure is the zero value for success.
func fetch(t *testing.T, a *Activities, in contract.GitRequest) (contract.GitResult, contract.Failure) {
	t.Helper()
	if in.LimitMS == 0 {
		in.LimitMS = 60_000
	}
	var res contract.GitResult
	out, err := environment(a).ExecuteActivity(a.Fetch, in)
	if err == nil {
		err = out.Get(&res)
	}
	return res, failure.From(err)
}

func lsRemote(t *testing.T, a *Activities, in contract.GitRequest) (contract.GitResult, contract.Failure) {
	t.Helper()
	if in.LimitMS == 0 {
		in.LimitMS = 60_000
	}
	var res contract.GitResult
	out, err := environment(a).ExecuteActivity(a.LsRemote, in)
	if err == nil {
		err = out.Get(&res)
	}
	return res, failure.From(err)
}

// workerOptions make ctx the background of activities, so that a test can cancel
// them.
func workerOptions(ctx context.Context) worker.Options {
	return worker.Options{BackgroundActivityContext: ctx}
}
