package git

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// newTestProgram is the engine of the git program with limits that a test may
// lower.
func newTestProgram(t *testing.T, l limits) *program {
	t.Helper()
	g, err := newProgram(programConfig{
		transport: attempt.NewTransport(attempt.Options{Fresh: true}), connectTimeout: 10 * time.Second, limits: l,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// remoteAt is a remote with a credential.
func remoteAt(t *testing.T, url string, creds Credentials) *remote {
	t.Helper()
	parsed, err := policies.ParseGitURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return &remote{GitURL: parsed, url: url, creds: creds, progress: &progress{}}
}

// open is the world's checkout as the engines get it.
func (w *world) open() *checkout {
	w.t.Helper()
	return openAt(w.t, w.checkout)
}

func openAt(t *testing.T, dir string) *checkout {
	t.Helper()
	c, err := openCheckout(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// recorded is a context as an activity gives it to an engine.
func recorded(t *testing.T) (context.Context, *attempt.Record) {
	rec := attempt.New()
	return attempt.With(t.Context(), rec), rec
}

// failureOf is what an activity makes of an engine's error.
func failureOf(t *testing.T, op policies.Operation, rec *attempt.Record, err error) contract.Failure {
	t.Helper()
	if err == nil {
		return contract.Failure{}
	}
	a := &Activities{judge: policies.JudgeGit}
	return failure.From(a.fail(op, rec, err))
}

// workIsEmpty checks that nothing unfinished is left in a repository.
func workIsEmpty(t *testing.T, gitDir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(gitDir, workDir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

// The list is that of "git ls-remote", in its order, over HTTP and from a path.
func TestProgramLsRemote(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run(t, w.author, "tag", "-a", "-m", "x", "v1")
	w.push("main:side", "v1")
	g := newTestProgram(t, limits{})
	want := run(t, w.root, "ls-remote", w.bare)
	for _, url := range []string{w.url(), w.bare, "file://" + w.bare} {
		ctx, _ := recorded(t)
		refs, err := g.lsRemote(ctx, remoteAt(t, url, Credentials{}))
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		var lines []string
		for _, r := range refs {
			lines = append(lines, r.OID+"\t"+r.Name)
		}
		if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s: refs (-want +got):\n%s", url, diff)
		}
	}
	run(t, w.root, "init", "-q", "--bare", "empty.git")
	ctx, _ := recorded(t)
	if refs, err := g.lsRemote(ctx, remoteAt(t, filepath.Join(w.root, "empty.git"), Credentials{})); err != nil || len(refs) != 0 {
		t.Errorf("an empty repository has %v, %v", refs, err)
	}
}

// G3: what the remote lists is read up to 16 MiB.
func TestProgramOutputLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
	line("# service=git-upload-pack\n")
	b.WriteString("0000")
	line(strings.Repeat("a", 40) + " refs/heads/main\x00side-band-64k\n")
	for i := range 300_000 {
		line(fmt.Sprintf("%s refs/heads/branch-%07d\n", strings.Repeat("b", 40), i))
	}
	b.WriteString("0000")
	w.server.Script(answer(listType, b.String()))
	ctx, rec := recorded(t)
	_, err := newTestProgram(t, limits{}).lsRemote(ctx, remoteAt(t, w.url(), Credentials{}))
	if f := failureOf(t, policies.OpLsRemote, rec, err); f.Rule != "G3/output_limit" || f.RetrySame {
		t.Errorf("%+v, want output_limit", f)
	}
}

// G3, G4: what the transport knows is what is told, whatever git makes of it: the
// same reasons as the other engine's, and one request for each failure.
func TestProgramFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	before := w.refs()
	g := newTestProgram(t, limits{})
	status := func(code int) simulator.Step {
		return simulator.Status(code, "access denied: certificate repository not found").WithHeader("Retry-After", "7")
	}
	list, pack := githttp.OpListRefs, githttp.OpUploadPack
	for _, tc := range []struct {
		name   string
		step   simulator.Step
		reason string
		retry  bool
		sent   int
	}{
		{"401", status(401), "auth", false, 1},
		{"403", status(403), "permission", false, 1},
		{"404", status(404), "not_found", false, 1},
		{"429", status(429), "rate_limit", true, 1},
		{"503", status(503), "server_error", true, 1},
		{"503 to the list", status(503).On(list), "server_error", true, 2},
		{"503 to the pack", status(503).On(pack), "server_error", true, 3},
		{"401 to the pack", status(401).On(pack), "auth", false, 3},
		{"reset", simulator.Reset(), "timeout", true, 1},
		{"closed", simulator.Close(), "timeout", true, 1},
		{"reset of the list", simulator.Reset().On(list), "timeout", true, 2},
		{"reset of the pack", simulator.Reset().On(pack), "timeout", true, 3},
		{"login page", simulator.HTML(200, "<html>log in</html>"), "not_found", false, 1},
		{"empty", githttp.EmptyPack(), "timeout", true, 3},
		{"list cut", simulator.CutBytes(20).On(list), "timeout", true, 2},
		{"pack cut", simulator.CutBytes(120).On(pack), "timeout", true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.server.Reset()
			w.server.Script(tc.step)
			ctx, rec := recorded(t)
			_, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
			f := failureOf(t, policies.OpFetch, rec, err)
			if f.Reason != tc.reason || f.RetrySame != tc.retry || f.Message == "" || f.ExitCode != 128 {
				t.Errorf("%+v, want %s, retry %v", f, tc.reason, tc.retry)
			}
			if asked := f.FloorMS != nil; asked != (f.Status == 429 || f.Status == 503) {
				t.Errorf("the floor of a %d is %v", f.Status, f.FloorMS)
			}
			if got := sent(w.server); len(got) != tc.sent {
				t.Errorf("requests %v, want %d", got, tc.sent)
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Errorf("refs moved:\n%s", diff)
			}
			w.whole()
			workIsEmpty(t, filepath.Join(w.checkout, ".git"))
		})
	}
}

// G9: the credential reaches the remote, and neither the program's arguments nor
// its environment nor what it leaves on disk.
func TestProgramCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const secret = "s3cret-of-the-bot"
	server := serve(t, filepath.Join(w.root, "srv"), map[string]string{"bot": secret})
	g := newTestProgram(t, limits{})
	good := Credentials{Kind: CredentialBasic, Username: "bot", Secret: secret}
	ctx, rec := recorded(t)
	refs, err := g.lsRemote(ctx, remoteAt(t, server.RepoURL("repo.git"), good))
	if err != nil || len(refs) == 0 {
		t.Errorf("with the password: %v, %v", refs, err)
	}
	for name, creds := range map[string]Credentials{
		"none": {}, "wrong": {Kind: CredentialToken, Secret: "wrong"},
	} {
		ctx, rec := recorded(t)
		_, err := g.lsRemote(ctx, remoteAt(t, server.RepoURL("repo.git"), creds))
		if f := failureOf(t, policies.OpLsRemote, rec, err); f.Reason != "auth" || f.RetrySame {
			t.Errorf("%s: %+v", name, f)
		}
	}
	dir := filepath.Join(w.root, "clone")
	if _, err := g.clone(ctx, remoteAt(t, server.RepoURL("repo.git"), good), dir, cloneSpec{}); err != nil {
		t.Fatalf("clone: %+v", failureOf(t, policies.OpClone, rec, err))
	}
	encoded := base64.StdEncoding.EncodeToString([]byte("bot:" + secret))
	found := exec.Command("grep", "-rlE", secret+"|"+encoded+"|Holdfast|127.0.0.1:", dir)
	out, _ := found.Output() // its status says whether it found any
	if got := strings.Fields(string(out)); !slices.Equal(got, []string{filepath.Join(dir, ".git", "config")}) {
		t.Errorf("what names a host or holds a secret: %q", got)
	}
	config, err := os.ReadFile(filepath.Join(dir, ".git", "config"))
	if err != nil || !bytes.Contains(config, []byte("url = "+server.RepoURL("repo.git")+"\n")) || bytes.Contains(config, []byte(encoded)) {
		t.Errorf("the configuration (%v):\n%s", err, config)
	}
	env, y, err := g.prepare(ctx, job{args: []string{"fetch"}, remote: remoteAt(t, server.RepoURL("repo.git"), good)}, &sshLog{})
	if err != nil {
		t.Fatal(err)
	}
	defer y.close()
	if text := strings.Join(env, "\n"); strings.Contains(text, secret) || strings.Contains(text, encoded) {
		t.Errorf("the environment holds the secret:\n%s", text)
	}
}

// G9: nobody but the program that was started may use the relay.
func TestRelayNeedsItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, _ := recorded(t)
	y, err := startRelay(ctx, attempt.NewTransport(attempt.Options{Fresh: true}), remoteAt(t, w.url(), Credentials{}), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer y.close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, token := range []string{"", "wrong", y.token[1:]} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+y.listener.Addr().String()+"/info/refs?service=git-upload-pack", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(relayHeader, token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden {
			t.Errorf("token %q: %d", token, resp.StatusCode)
		}
	}
	if got := sent(w.server); len(got) != 0 {
		t.Errorf("passed on: %v", got)
	}
}

// G9: a redirect is followed within the remote's origin, and the checkout keeps
// the address that it was asked for; one to another origin is refused.
func TestProgramRedirect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other origin was asked") }))
	t.Cleanup(other.Close)
	redirect := func(to string) simulator.Step {
		return simulator.Status(http.StatusMovedPermanently, "").WithHeader("Location", to)
	}
	g := newTestProgram(t, limits{})
	within := w.server.URL() + "/repo.git/info/refs?service=git-upload-pack"
	asked := w.server.RepoURL("repo")

	w.server.Script(redirect(within))
	ctx, rec := recorded(t)
	dir := filepath.Join(w.root, "clone")
	if _, err := g.clone(ctx, remoteAt(t, asked, Credentials{}), dir, cloneSpec{}); err != nil {
		t.Fatalf("%+v", failureOf(t, policies.OpClone, rec, err))
	}
	if got := run(t, dir, "config", "remote.origin.url"); got != asked {
		t.Errorf("origin is %s, want %s", got, asked)
	}
	for name, steps := range map[string][]simulator.Step{
		"another origin": {redirect(other.URL + "/repo.git/info/refs?service=git-upload-pack")},
		"no list":        {redirect(w.server.URL() + "/login")},
		"without end":    {redirect(within), redirect(within), redirect(within), redirect(within)},
		"of a post":      {redirect(within).On(githttp.OpListRefs)},
	} {
		w.server.Reset()
		w.server.Script(steps...)
		ctx, rec := recorded(t)
		_, err := g.lsRemote(ctx, remoteAt(t, w.url(), Credentials{}))
		if f := failureOf(t, policies.OpLsRemote, rec, err); f.Rule != "G9/redirect" || f.RetrySame {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// The version decides whether the program is used.
func TestParseVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"git version 2.39.5\n": {2, 39}, "git version 2.50.1 (Apple Git-155)": {2, 50}, "git version 3.0.rc1": {3, 0},
	} {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if _, err := parseVersion("hello"); err == nil {
		t.Error("a greeting has a version")
	}
}

// Where the program is missing, too old or broken, the error says what to do.
func TestNewProgramSaysWhatToInstall(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, script := range []string{"", "#!/bin/sh\necho git version 2.30.9", "#!/bin/sh\nexit 1", "#!/bin/sh\necho hello"} {
		if script != "" {
			if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := newProgram(programConfig{}); err == nil || !strings.Contains(err.Error(), "install Git 2.31 or newer, or set git.engine to go-git") {
			t.Errorf("%q: %v", script, err)
		}
	}
}

// G10: progress is read, whatever the line breaks, and the rest is kept in
// bounds; what the other side says through the program is not.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	p := &progress{}
	d := &diagnostics{progress: p, bytes: true, maxObjects: 1 << 40, exceed: func(err error) { t.Error(err) }}
	say := func(s string) {
		for _, b := range []byte(s) {
			d.Write([]byte{b})
		}
	}
	p.enter(phaseListing)
	say("remote: Compressing objects:  30% (3/10)\rremote: bad words: 99% (9/9)\r")
	if diff := cmp.Diff(Progress{Phase: "waiting for the remote's pack", Objects: 10, Done: 3}, p.snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	say("remote: fatal: no space left on device\nfatal: first\nremote: Counting objects: 100% (9/9), done.\rReceiving objects:  45% (450/1000), 1.50 MiB | 3.00 MiB/s\r")
	want := Progress{Phase: "receiving", Objects: 1000, Done: 450, Bytes: 3 << 19}
	if diff := cmp.Diff(want, p.snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	say("Resolving deltas: 100% (7/7), done.\nUpdating files:  50% (1/2)\rEnumerating objects: 9, done.\nDelta compression using up to 2 threads\n")
	if diff := cmp.Diff(Progress{Phase: "files", Objects: 2, Done: 1, Bytes: 3 << 19}, p.snapshot()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	say(strings.Repeat("error: noise "+strings.Repeat("x", 9000)+"\n", 100) + "fatal: last")
	text := d.text()
	if !strings.HasPrefix(text, "fatal: first\n") || !strings.HasSuffix(text, "fatal: last\n") || len(text) > 2*maxKept+maxLine || strings.Contains(text, "space") {
		t.Errorf("%d bytes: %.80q … %.80q", len(text), text, text[max(0, len(text)-80):])
	}
	var over error
	d = &diagnostics{progress: p, maxObjects: 999, exceed: func(err error) { over = err }}
	say("Receiving objects:   0% (1/1000)\r")
	if over != errObjectLimit {
		t.Errorf("1000 objects of 999: %v", over)
	}
}
