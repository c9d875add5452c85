package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

const (
	// gitRepo is the repository of a world; its name is not for others to know.
	gitRepo = "private-q7x/repo.git"
	// gitPlanted is what the other side says where it should not be listened to;
	// gitToken is a credential, which it says back.
	gitPlanted = "planted-text-9w2"
	gitToken   = "t0ken-hunter2-secret"
	// noRef is the lease of a ref that must not exist.
	noRef = "0000000000000000000000000000000000000000"
)

// gitWorld is a remote repository with someone who writes to it, and a place for
// checkouts.
type gitWorld struct {
	t      *testing.T
	engine GitAdapter
	host   *githttp.Server
	// author is a working copy that pushes to the repository behind the host's
	// back.
	author string
	// work is where checkouts are made. Beside them is "outside", which must stay
	// as it is.
	work, outside string
	// dirs are the git directories of checkouts, where they are known.
	dirs map[string]gitDirs
	// known is what git said of checkouts.
	known map[string]gitKnown
}

// newGitOrigin is a directory with what every world begins with, to be copied: its
// repository, with one commit, and the author's working copy.
func newGitOrigin(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := placeGitWorld(t, root)
	w.check(w.host.Create(gitRepo, 0))
	// The author's pushes must leave no process behind.
	w.git(w.host.Dir(gitRepo), "config", "receive.autogc", "false")
	w.git(root, "init", "-q", "-b", "main", w.author)
	w.git(w.author, "remote", "add", "origin", w.host.Dir(gitRepo))
	w.commit("first")
	w.publish("main")
	return root
}

// placeGitWorld starts the host of a world that has nothing yet.
func placeGitWorld(t *testing.T, root string) *gitWorld {
	t.Helper()
	w := &gitWorld{t: t, author: filepath.Join(root, "author"), work: filepath.Join(root, "work"), dirs: map[string]gitDirs{}, known: map[string]gitKnown{}}
	host, err := githttp.Start(githttp.Options{Root: filepath.Join(root, "remotes")})
	w.check(err)
	t.Cleanup(func() { host.Close() })
	w.host = host
	return w
}

func newGitWorld(t *testing.T, a GitAdapter, origin string) *gitWorld {
	t.Helper()
	for _, part := range []string{"remotes", "author"} {
		if err := os.CopyFS(filepath.Join(a.Root, part), os.DirFS(filepath.Join(origin, part))); err != nil {
			t.Fatal(err)
		}
	}
	w := placeGitWorld(t, a.Root)
	w.engine, w.outside = a, filepath.Join(w.work, "outside")
	w.check(os.MkdirAll(w.outside, 0o755))
	w.write(w.outside, "canary", "sings\n")
	w.write(w.author, ".git/config", strings.ReplaceAll(w.read(w.author, ".git/config"), origin, a.Root))
	t.Cleanup(w.unharmed)
	return w
}

func (w *gitWorld) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// git runs the git program away from anyone's settings.
func (w *gitWorld) git(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.try(dir, args...)
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (w *gitWorld) try(dir string, args ...string) (string, error) {
	out, err := w.command(dir, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (w *gitWorld) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.com",
		// No process more than is asked for, and none left behind; fsck would start
		// two for files that no engine writes.
		"GIT_CONFIG_COUNT=4", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
		"GIT_CONFIG_KEY_1=maintenance.auto", "GIT_CONFIG_VALUE_1=false",
		"GIT_CONFIG_KEY_2=core.commitGraph", "GIT_CONFIG_VALUE_2=false",
		"GIT_CONFIG_KEY_3=core.multiPackIndex", "GIT_CONFIG_VALUE_3=false")
	return cmd
}

func (w *gitWorld) write(dir, name, content string) {
	w.t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	w.check(os.MkdirAll(filepath.Dir(path), 0o755))
	w.check(os.WriteFile(path, []byte(content), 0o644))
}

func (w *gitWorld) read(dir, name string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	w.check(err)
	return string(content)
}

// commit makes a commit in the author's copy, of all that changed there and of a
// new text in "file". It returns its id.
func (w *gitWorld) commit(text string) string {
	w.t.Helper()
	w.write(w.author, "file", strings.Repeat(text+"\n", 50))
	return w.commitAll(text)
}

// commitAll makes a commit in the author's copy of what changed there.
func (w *gitWorld) commitAll(message string) string {
	w.t.Helper()
	w.git(w.author, "add", "-A")
	return w.commitIn(w.author, message)
}

// commitIn makes a commit of what is staged in a directory.
func (w *gitWorld) commitIn(dir, message string) string {
	w.t.Helper()
	w.git(dir, "commit", "-q", "--allow-empty", "-m", message)
	return w.git(dir, "rev-parse", "HEAD")
}

// publish pushes refs of the author's to the repository.
func (w *gitWorld) publish(refs ...string) {
	w.t.Helper()
	w.git(w.author, append([]string{"push", "-q", "-f", "origin"}, refs...)...)
}

func (w *gitWorld) url() string { return w.host.RepoURL(gitRepo) }

// dir is a path for a checkout.
func (w *gitWorld) dir(name string) string { return filepath.Join(w.work, name) }

// checkout makes a checkout that follows the repository, by git itself.
func (w *gitWorld) checkout(name string, args ...string) string {
	w.t.Helper()
	dir, from := w.dir(name), w.host.Dir(gitRepo)
	if len(args) > 0 { // of which some need a transport
		from = "file://" + from
	}
	w.git(w.work, append(append([]string{"clone", "-q"}, args...), from, dir)...)
	w.git(dir, "remote", "set-url", "origin", w.url())
	return dir
}

// local makes a commit in a checkout with a new text in a file.
func (w *gitWorld) local(dir, name, text string) string {
	w.t.Helper()
	w.write(dir, name, text+"\n")
	w.git(dir, "add", name)
	return w.commitIn(dir, "a new "+name)
}

// remote is the id of a ref of the repository; empty for none.
func (w *gitWorld) remote(ref string) string { return w.host.Refs(gitRepo)[ref] }

// request fills in what all requests have.
func (w *gitWorld) request(in contract.GitRequest) contract.GitRequest {
	if in.LimitMS == 0 {
		in.LimitMS = 120_000
	}
	return in
}

// do makes an attempt that must succeed.
func (w *gitWorld) do(call GitCall, in contract.GitRequest) GitAnswer {
	w.t.Helper()
	answer := call(w.t.Context(), w.request(in))
	if answer.Failure != nil {
		w.t.Fatalf("%+v: %+v\n%s", in, *answer.Failure, answer.Stored)
	}
	return answer
}

// gitWant is what a failure has to be.
type gitWant struct {
	reason string
	retry  bool
	// effect defaults to that of something that is only read.
	effect string
	// hint is a word of the message.
	hint string
}

// fails makes an attempt that must fail.
func (w *gitWorld) fails(what string, call GitCall, in contract.GitRequest, want gitWant) *contract.Failure {
	w.t.Helper()
	answer := call(w.t.Context(), w.request(in))
	w.failed(what, answer, want)
	return answer.Failure
}

// failed checks a failure: what it says, and what it must not say (G9).
func (w *gitWorld) failed(what string, answer GitAnswer, want gitWant) {
	w.t.Helper()
	f := answer.Failure
	if f == nil {
		w.t.Errorf("%s: succeeded with %+v %+v %+v, want %s", what, answer.Result, answer.Plan, answer.Located, want.reason)
		return
	}
	if want.effect == "" {
		want.effect = "none"
	}
	if f.Reason != want.reason || f.RetrySame != want.retry || f.Effect != want.effect {
		w.t.Errorf("%s: reason %s, retry %v, effect %s (%s: %s), want %s, %v, %s",
			what, f.Reason, f.RetrySame, f.Effect, f.Rule, f.Message, want.reason, want.retry, want.effect)
	}
	if f.Reason == "cancelled" {
		return // nobody asks about that
	}
	if f.Surface != "git" || f.Rule == "" || f.Message == "" || f.Attempts != 1 || f.RetrySame && f.Permanent {
		w.t.Errorf("%s: the failure does not say enough: %+v", what, *f)
	}
	if !strings.Contains(f.Message, want.hint) {
		w.t.Errorf("%s: message %q, want a word on %q", what, f.Message, want.hint)
	}
	for _, secret := range []string{gitPlanted, gitToken, "private-q7x", "127.0.0.1", "Basic ", "ssh://"} {
		if strings.Contains(answer.Stored, secret) || strings.Contains(fmt.Sprintf("%+v", *f), secret) {
			w.t.Errorf("%s: the failure says %q: %+v\n%s", what, secret, *f, answer.Stored)
		}
	}
}

// gitSent is how many requests of each phase have arrived. The list of refs that
// protocol version 2 asks for is part of the phase before it.
type gitSent struct{ refs, pack, pushRefs, push int }

func (w *gitWorld) sent() gitSent {
	count := func(op string) int { return len(w.host.Ledger().Requests(op)) }
	return gitSent{count(githttp.OpFetchRefs), count(githttp.OpUploadPack), count(githttp.OpPushRefs), count(githttp.OpReceivePack)}
}

// requests checks what has arrived since the last Reset.
func (w *gitWorld) requests(what string, want gitSent) {
	w.t.Helper()
	if got := w.sent(); got != want {
		w.t.Errorf("%s: requests %+v, want %+v", what, got, want)
	}
	if lists := len(w.host.Ledger().Requests(githttp.OpListRefs)); lists > w.sent().refs {
		w.t.Errorf("%s: the refs were asked for %d times", what, lists)
	}
	if other := w.host.Ledger().Requests(githttp.OpOther); len(other) != 0 {
		w.t.Errorf("%s: other requests: %+v", what, other)
	}
}

// landed checks the effects of pushes since the last Reset.
func (w *gitWorld) landed(what string, want ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.host.Ledger().Effects(githttp.EffectRef) {
		got = append(got, e.Content)
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: effects %q, want %q", what, got, want)
	}
}

// plant is what an error answer says: the credential and words that mean
// something else.
func plant(step simulator.Step) simulator.Step {
	if step.Status >= 400 && step.Body == "" {
		step.Body = fmt.Sprintf("%s %s: certificate, repository not found, early EOF, HTTP 503\n", gitPlanted, gitToken)
	}
	return step.WithHeader("X-Echo", gitPlanted+" "+gitToken)
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (w *gitWorld) remove(dir, name string) {
	w.t.Helper()
	w.check(os.RemoveAll(filepath.Join(dir, filepath.FromSlash(name))))
}

// held waits until a request is at a gate.
func (w *gitWorld) held(gate string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := w.host.Gate(gate).WaitHeld(ctx)
	w.check(err)
}

// pipe runs git with an input and returns what it printed, as it is.
func (w *gitWorld) pipe(dir, stdin string, args ...string) string {
	w.t.Helper()
	cmd := w.command(dir, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
