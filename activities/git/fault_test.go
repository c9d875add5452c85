package git

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	gogit "github.com/go-git/go-git/v5"
	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

const (
	listType = "application/x-git-upload-pack-advertisement"
	packType = "application/x-git-upload-pack-result"
)

// answer is a 200 with a body of a kind.
func answer(kind, body string) simulator.Step {
	return simulator.Status(http.StatusOK, body).WithHeader("Content-Type", kind)
}

// G3, G4: what a fetch meets on the wire, and what becomes of it: the reason,
// whether it may run again, and that no ref moves and nothing is left behind.
func TestFetchFaults(t *testing.T) {
	t.Parallel()
	status := func(code int) simulator.Step {
		return simulator.Status(code, "access denied: certificate repository not found")
	}
	pack := githttp.OpUploadPack
	// One world serves all cases, for none may change it.
	w := newWorld(t)
	for i := range 5 {
		w.commit(fmt.Sprintf("commit %d", i))
	}
	w.push("main")
	before := w.refs()
	for _, tc := range []struct {
		name   string
		step   simulator.Step
		tamper func(pack []byte) []byte
		reason string
		retry  bool
		hint   string
		sent   int
	}{
		{name: "401", step: status(401), reason: "auth", hint: "--auth", sent: 1},
		{name: "403", step: status(403), reason: "permission", hint: "--auth", sent: 1},
		{name: "404", step: status(404), reason: "not_found", hint: "URL", sent: 1},
		{name: "408", step: status(408), reason: "timeout", retry: true, hint: "later", sent: 1},
		{name: "418", step: status(418), reason: "format", hint: "418", sent: 1},
		{name: "429", step: status(429), reason: "rate_limit", retry: true, hint: "later", sent: 1},
		{name: "500", step: status(500), reason: "server_error", retry: true, hint: "later", sent: 1},
		{name: "502", step: status(502), reason: "server_error", retry: true, hint: "later", sent: 1},
		{name: "503", step: status(503), reason: "server_error", retry: true, hint: "later", sent: 1},
		{name: "504", step: status(504), reason: "timeout", retry: true, hint: "later", sent: 1},
		{name: "503 to the pack request", step: status(503).On(pack), reason: "server_error", retry: true, hint: "later", sent: 2},
		{name: "401 to the pack request", step: status(401).On(pack), reason: "auth", hint: "--auth", sent: 2},
		{name: "closed", step: simulator.Close(), reason: "timeout", retry: true, hint: "lost", sent: 1},
		{name: "reset", step: simulator.Reset(), reason: "timeout", retry: true, hint: "lost", sent: 1},
		{name: "reset of the pack request", step: simulator.Reset().On(pack), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "list cut", step: simulator.CutBytes(60), reason: "timeout", retry: true, hint: "lost", sent: 1},
		{name: "list empty", step: answer(listType, ""), reason: "timeout", retry: true, hint: "lost", sent: 1},
		{name: "login page", step: simulator.HTML(200, "<html>log in</html>"), reason: "not_found", hint: "URL", sent: 1},
		// The guard: go-git would call these two "up to date" and write the refs.
		{name: "pack answer empty", step: githttp.EmptyPack(), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "pack answer lost after its headers", step: simulator.CutBytes(0).On(pack), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "pack cut in its first line", step: githttp.CutPack(3), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "pack cut", step: githttp.CutPack(120), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "no pack in the answer", step: answer(packType, "0008NAK\n0000").On(pack), reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "pack ends early in good order", tamper: func(pack []byte) []byte {
			return pack[:120]
		}, reason: "timeout", retry: true, hint: "lost", sent: 2},
		{name: "pack damaged", tamper: func(pack []byte) []byte {
			pack[bytes.Index(pack, []byte("PACK"))+40] ^= 0xff
			return pack
		}, reason: "format", hint: "fsck", sent: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.server.Reset()
			in := contract.GitRequest{Dir: w.checkout}
			if tc.tamper != nil {
				in.URL = w.tampered(tc.tamper)
			} else {
				w.server.Script(tc.step)
			}
			_, f := fetch(t, newActivities(t, Config{}), in)
			if f.Reason != tc.reason || f.RetrySame != tc.retry || f.Permanent == tc.retry || f.Attempts != 1 || f.Effect != "none" {
				t.Errorf("failure %+v; want reason %s, retry %v", f, tc.reason, tc.retry)
			}
			if f.Rule == "" || !strings.Contains(f.Message, tc.hint) {
				t.Errorf("rule %q, message %q; want a rule and a word on %q", f.Rule, f.Message, tc.hint)
			}
			if got := sent(w.server); len(got) != tc.sent {
				t.Errorf("requests %v, want %d", got, tc.sent)
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Errorf("refs moved (-before +after):\n%s", diff)
			}
			w.whole()
		})
	}
}

// The guard is needed: go-git's own Fetch, beneath which it sits as well, would
// report success for an empty pack and write refs to objects that are absent.
func TestGuardBeneathGoGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	before := w.refs()
	newActivities(t, Config{}) // installs the transport
	repo, err := gogit.PlainOpen(w.checkout)
	if err != nil {
		t.Fatal(err)
	}
	w.server.Script(githttp.EmptyPack())
	c := &call{transport: attempt.NewTransport(attempt.Options{Fresh: true}), limit: MaxOutput}
	err = repo.FetchContext(withCall(t.Context(), c), &gogit.FetchOptions{})
	if !errors.Is(unwrap(err), errEmptyReply) {
		t.Errorf("fetch of an empty pack: %v, want %v", err, errEmptyReply)
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved (-before +after):\n%s", diff)
	}
}

// P3: what the other side asked for travels with the failure.
func TestFloorTravels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Script(simulator.Status(429, "").WithHeader("Retry-After", "7"))
	_, f := lsRemote(t, newActivities(t, Config{}), contract.GitRequest{URL: w.url()})
	if f.FloorMS == nil || *f.FloorMS != 7000 || f.FloorSource != "retry-after" {
		t.Errorf("failure %+v, want a floor of 7000 ms", f)
	}
}

// G3, G4: faults below HTTP.
func TestConnectFaults(t *testing.T) {
	t.Parallel()
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	unknown := attempt.NewTransport(attempt.Options{Fresh: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "certificate.invalid", IsNotFound: true}}
	}})
	for _, tc := range []struct {
		name, url string
		transport http.RoundTripper
		reason    string
		retry     bool
		hint      string
	}{
		{"refused", "http://" + refused.Addr().String() + "/r", nil, "timeout", true, "port"},
		{"unknown host", "http://certificate.invalid/r", unknown, "timeout", true, "host name is unknown"},
		{"unknown authority", secure.URL + "/r", nil, "tls_certificate", false, "trusted"},
	} {
		a := newActivities(t, Config{Transport: tc.transport})
		_, f := lsRemote(t, a, contract.GitRequest{URL: tc.url})
		if f.Reason != tc.reason || f.RetrySame != tc.retry || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v; want %s, retry %v, a word on %q", tc.name, f, tc.reason, tc.retry, tc.hint)
		}
	}
}

// G9: a redirect is followed within its origin only; nothing goes elsewhere.
func TestRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := serve(t, filepath.Join(w.root, "srv"), nil)
	a := newActivities(t, Config{Auth: botProfile})
	redirect := func(status int, to string) simulator.Step {
		return simulator.Status(status, "").WithHeader("Location", to)
	}
	const list = "/repo.git/info/refs?service=git-upload-pack"

	w.server.Script(redirect(301, list).On("GET /old*"))
	next := w.commit("second")
	w.push("main")
	got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: w.server.RepoURL("old"), Auth: "bot"})
	if f.Reason != "" || len(got.Updated) != 1 || got.Updated[0].New != next {
		t.Errorf("redirect within the origin: %+v, %+v", got, f)
	}
	for _, to := range []string{other.URL() + list, strings.Replace(w.server.URL(), "http:", "https:", 1) + list, "http://u:p@" + w.server.Addr() + list, "://"} {
		w.server.Script(redirect(301, to))
		_, f = lsRemote(t, a, contract.GitRequest{URL: w.url(), Auth: "bot"})
		if f.Reason != "misdirected" || f.RetrySame {
			t.Errorf("redirect to %s: %+v, want misdirected", to, f)
		}
	}
	if ops := sent(other); len(ops) != 0 {
		t.Errorf("the other origin was asked: %v", ops)
	}
	w.commit("third")
	w.push("main")
	w.server.Reset()
	w.server.Script(redirect(307, "/repo.git/git-upload-pack").On(githttp.OpUploadPack))
	if _, f = fetch(t, a, contract.GitRequest{Dir: w.checkout}); f.Reason != "misdirected" {
		t.Errorf("redirect of the pack request: %+v, want misdirected", f)
	}
	if ops := sent(w.server); len(ops) != 2 {
		t.Errorf("requests %v, want 2", ops)
	}
}

const secret = "s3cr3t-t0ken-value"

func botProfile(_ context.Context, name string) (Credentials, error) {
	switch name {
	case "bot":
		return Credentials{Kind: CredentialToken, Secret: secret}, nil
	case "forge":
		return Credentials{Kind: CredentialToken, Secret: secret, Hosts: []string{"forge.example"}}, nil
	case "forge key":
		return Credentials{Kind: CredentialSSHKey, KeyFile: "/nonexistent/" + secret, Hosts: []string{"forge.example"}}, nil
	case "key":
		return Credentials{Kind: CredentialSSHKey, KeyFile: "/nonexistent/" + secret}, nil
	case "broken":
		return Credentials{}, errors.New("command failed: " + secret)
	}
	return Credentials{}, ErrUnknownProfile
}

// G9: credentials reach the remote and nothing else, even when the remote says
// them back.
func TestCredentialsAreNeverShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{Auth: botProfile})
	closed := serve(t, filepath.Join(w.root, "srv"), map[string]string{"x-access-token": secret})
	if got, f := lsRemote(t, a, contract.GitRequest{URL: closed.RepoURL("repo.git"), Auth: "bot"}); f.Reason != "" || len(got.Refs) == 0 {
		t.Errorf("with the right token: %+v, %+v", got, f)
	}
	if _, f := lsRemote(t, a, contract.GitRequest{URL: closed.RepoURL("repo.git")}); f.Reason != "auth" {
		t.Errorf("without a token: %+v, want auth", f)
	}

	echo := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		rw.Header().Set("WWW-Authenticate", "Basic realm="+password)
		rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
		code, err := strconv.Atoi(strings.Split(r.URL.Path, "/")[1])
		if err != nil {
			t.Error(err)
		}
		http.Error(rw, "bad token "+password+" "+r.Header.Get("Authorization"), code)
	}))
	t.Cleanup(echo.Close)
	for _, code := range []string{"401", "403", "404", "418", "503"} {
		_, err := environment(a).ExecuteActivity(a.LsRemote, contract.GitRequest{URL: echo.URL + "/" + code, Auth: "bot", LimitMS: 60_000})
		if err == nil {
			t.Errorf("%s: no error", code)
		}
		checkNoSecret(t, code, err)
	}

	for _, tc := range []struct{ name, url, auth, reason, hint string }{
		{"user in URL", "https://bot:" + secret + "@git.example/r", "", "format", "--auth"},
		{"token in URL", "https://" + secret + "@git.example/r", "", "format", "--auth"},
		{"query", "https://git.example/r?access_token=" + secret, "", "format", "--auth"},
		{"unknown profile", w.url(), "nobody", "auth", "auth_profiles"},
		{"broken profile", w.url(), "broken", "auth", "could not be read"},
		{"HTTP profile for SSH", "git@git.example:r", "bot", "format", "ssh_key"},
		{"SSH profile for HTTP", w.url(), "key", "format", "token"},
		{"another host", w.url(), "forge", "auth", "hosts"},
		{"another host by SSH", "git@git.example:r", "forge key", "auth", "hosts"},
		{"plain http", "http://git.example/r", "bot", "auth", "plain_http"},
		{"key missing", "git@git.example:r", "key", "auth", "key"},
	} {
		w.server.Reset()
		_, err := environment(a).ExecuteActivity(a.LsRemote, contract.GitRequest{URL: tc.url, Auth: tc.auth, LimitMS: 60_000})
		f := failure.From(err)
		if f.Reason != tc.reason || f.RetrySame || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v, want %s and a word on %s", tc.name, f, tc.reason, tc.hint)
		}
		if ops := sent(w.server); len(ops) != 0 {
			t.Errorf("%s: requests were sent: %v", tc.name, ops)
		}
		checkNoSecret(t, tc.name, err)
	}

	// A checkout whose origin carries a credential is refused as well.
	run(t, w.checkout, "remote", "set-url", "origin", strings.Replace(w.url(), "//", "//bot:"+secret+"@", 1))
	_, err := environment(a).ExecuteActivity(a.Fetch, contract.GitRequest{Dir: w.checkout, LimitMS: 60_000})
	if f := failure.From(err); f.Reason != "format" {
		t.Errorf("credential in origin: %+v, want format", f)
	}
	checkNoSecret(t, "origin", err)

	c := Credentials{Kind: CredentialToken, Username: secret, Secret: secret}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s", c, c, c, &c)} {
		if strings.Contains(text, secret) {
			t.Errorf("credentials print themselves: %s", text)
		}
	}
}

func checkNoSecret(t *testing.T, name string, err error) {
	t.Helper()
	encoded, marshalErr := json.Marshal(failure.From(err))
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		encoded = append(encoded, e.Error()...)
	}
	for _, s := range []string{secret, "eC1hY2Nlc3M", "Basic "} {
		if bytes.Contains(encoded, []byte(s)) {
			t.Errorf("%s: %q is in the error: %s", name, s, encoded)
		}
	}
}

// G3: an output limit ends the operation, and is never retried.
func TestOutputLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refs := func(n int) simulator.Step {
		var b strings.Builder
		line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
		line("# service=git-upload-pack\n")
		b.WriteString("0000")
		line(strings.Repeat("a", 40) + " refs/heads/main\x00side-band-64k\n")
		for i := range n {
			line(fmt.Sprintf("%s refs/heads/branch-%07d\n", strings.Repeat("b", 40), i))
		}
		b.WriteString("0000")
		return answer(listType, b.String())
	}
	a := newActivities(t, Config{})

	w.server.Script(refs(300_000)) // about 20 MB
	_, f := lsRemote(t, a, contract.GitRequest{URL: w.url()})
	if f.Reason != "output_limit" || f.RetrySame || !f.Permanent || !strings.Contains(f.Message, "larger than is read") {
		t.Errorf("20 MB of refs: %+v, want output_limit", f)
	}
	w.server.Script(refs(50_000)) // read whole, but too much for a result
	_, f = lsRemote(t, a, contract.GitRequest{URL: w.url()})
	if f.Reason != "output_limit" || !strings.Contains(f.Message, "--ref") {
		t.Errorf("50,000 refs: %+v, want output_limit and a word on --ref", f)
	}
	w.server.Script(refs(50_000))
	got, f := lsRemote(t, a, contract.GitRequest{URL: w.url(), Ref: "branch-00000*"})
	if f.Reason != "" || len(got.Refs) != 100 {
		t.Errorf("narrowed: %d refs, %+v; want 100", len(got.Refs), f)
	}
}

// G12: a remote cannot choose a path outside the refs by the names of its refs.
func TestHostileRefNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	oid := w.refs()["refs/remotes/origin/main"]
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
	line("# service=git-upload-pack\n")
	b.WriteString("0000")
	line(oid + " refs/heads/good\x00side-band-64k\n")
	for _, name := range []string{
		"refs/heads/../../../../config", "refs/heads/../../../../../escaped", "refs/heads/a/../../../../../hooks/post-checkout", "refs/tags/../../config",
		"refs/heads/.hidden", "refs/heads/x.lock", "refs/heads/a//b", "refs/heads/", "refs/heads/a\\b", "refs/tags/.git", "HEADER", "../escaped",
	} {
		line(oid + " " + name + "\n")
	}
	b.WriteString("0000")
	config, err := os.ReadFile(filepath.Join(w.checkout, ".git/config"))
	if err != nil {
		t.Fatal(err)
	}
	w.server.Script(answer(listType, b.String()))
	got, f := fetch(t, newActivities(t, Config{}), contract.GitRequest{Dir: w.checkout})
	want := []contract.GitUpdate{{Ref: "refs/remotes/origin/good", New: oid}}
	if diff := cmp.Diff(want, got.Updated); diff != "" || f.Reason != "" {
		t.Errorf("moved (-want +got):\n%s%+v", diff, f)
	}
	if after, err := os.ReadFile(filepath.Join(w.checkout, ".git/config")); err != nil || !bytes.Equal(config, after) {
		t.Errorf("the configuration changed: %v\n%s", err, after)
	}
	for _, name := range []string{"escaped", "hooks/post-checkout"} {
		for _, dir := range []string{w.root, w.checkout, filepath.Join(w.checkout, ".git")} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s was written in %s", name, dir)
			}
		}
	}
	w.whole()
}

// G5: a cancelled operation ends at once and moves nothing; G3: a spent timeout
// is never retried.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	before := w.refs()
	w.server.Script(simulator.Stall().On(githttp.OpUploadPack))
	a := newActivities(t, Config{})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	env := environment(a)
	env.SetWorkerOptions(workerOptions(ctx))
	go func() {
		if _, err := w.server.Ledger().WaitRequests(ctx, githttp.OpUploadPack, 1); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	_, err := env.ExecuteActivity(a.Fetch, contract.GitRequest{Dir: w.checkout, LimitMS: 60_000})
	if !temporal.IsCanceledError(err) {
		t.Errorf("cancelled fetch: %v, want a cancellation", err)
	}

	_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, LimitMS: 1})
	if f.Reason != "deadline" || f.RetrySame || !strings.Contains(f.Message, "--timeout") {
		t.Errorf("timeout of 1 ms: %+v, want deadline", f)
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved (-before +after):\n%s", diff)
	}
}

// G3: a ref's .lock file that exists may be retried; nothing moves meanwhile.
func TestLockedRef(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main", "main:zebra")
	before := w.refs()
	lock := filepath.Join(w.checkout, ".git/refs/remotes/origin/zebra.lock")
	if err := os.WriteFile(lock, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := newActivities(t, Config{})
	_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout})
	if f.Reason != "lock" || !f.RetrySame || f.Rule != "G3/lock_exists" {
		t.Errorf("failure %+v, want lock with a retry", f)
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(lock); err != nil {
		t.Errorf("another's lock was removed: %v", err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	w.whole()
	if got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout}); f.Reason != "" || len(got.Updated) != 2 {
		t.Errorf("after the lock: %+v, %+v", got, f)
	}
}

// failingEngine is an engine that fails as a test wants.
type failingEngine struct {
	engine
	fail func() error
}

func (e failingEngine) fetch(context.Context, *remote, *checkout, string) ([]contract.GitUpdate, error) {
	return nil, e.fail()
}

// G5: an activity does not wait for work that does not heed its context, such as
// the indexing of a pack.
func TestInterruptedWorkIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := newActivities(t, Config{})
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	a.engine = failingEngine{fail: func() error { <-ended; return nil }}
	_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, LimitMS: 1})
	if f.Reason != "deadline" || f.RetrySame {
		t.Errorf("failure %+v, want deadline", f)
	}
}

// G3: faults of this side's disk.
func TestLocalFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tc := range []struct {
		err    error
		reason string
	}{
		{&fs.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}, "no_space"},
		{&fs.PathError{Op: "write", Path: "/x", Err: syscall.EDQUOT}, "no_space"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, "permission"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EROFS}, "permission"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EIO}, "unclassified"},
		{errMissingObjects, "timeout"},
	} {
		a := newActivities(t, Config{})
		a.engine = failingEngine{fail: func() error { return tc.err }}
		_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout})
		if f.Reason != tc.reason || strings.Contains(f.Message, "/x") {
			t.Errorf("%v: %+v, want %s", tc.err, f, tc.reason)
		}
	}
}
