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
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
	"github.com/holdfast-dev/holdfast/internal/attempt"
)

func isDiscovery(r *http.Request) bool { return r.Method == http.MethodGet }

// cut answers as next does, but with its body cut after n bytes. The connection
// is closed, so that the client sees the cut, unless clean.
func cut(w http.ResponseWriter, r *http.Request, next http.Handler, n int, clean bool) {
	rec := httptest.NewRecorder()
	next.ServeHTTP(rec, r)
	body := rec.Body.Bytes()
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	if !clean {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.Write(body[:min(n, len(body))])
	if !clean {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// G3, G4: what a fetch meets on the wire, and what becomes of it: the reason,
// whether it may run again, and that no ref moves and nothing is left behind.
func TestFetchFaults(t *testing.T) {
	t.Parallel()
	onPack := func(do func(w http.ResponseWriter, r *http.Request, next http.Handler)) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if isDiscovery(r) {
				next.ServeHTTP(w, r)
				return
			}
			do(w, r, next)
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "access denied: certificate repository not found", code)
		}
	}
	for _, tc := range []struct {
		name   string
		hook   func(http.ResponseWriter, *http.Request, http.Handler)
		reason string
		retry  bool
		hint   string
		sent   int
	}{
		{"401", status(401), "auth", false, "--auth", 1},
		{"403", status(403), "permission", false, "--auth", 1},
		{"404", status(404), "not_found", false, "URL", 1},
		{"408", status(408), "timeout", true, "later", 1},
		{"429", status(429), "rate_limit", true, "later", 1},
		{"500", status(500), "server_error", true, "later", 1},
		{"502", status(502), "server_error", true, "later", 1},
		{"503", status(503), "server_error", true, "later", 1},
		{"504", status(504), "timeout", true, "later", 1},
		{"503 to the pack request", onPack(status(503)), "server_error", true, "later", 2},
		{"401 to the pack request", onPack(status(401)), "auth", false, "--auth", 2},
		{"closed before the answer", func(http.ResponseWriter, *http.Request, http.Handler) {
			panic(http.ErrAbortHandler)
		}, "timeout", true, "lost", 1},
		{"list cut", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 60, false)
		}, "timeout", true, "lost", 1},
		{"list empty", func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 0, true)
		}, "timeout", true, "lost", 1},
		{"login page", func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			io.WriteString(w, "<html>please log in</html>")
		}, "not_found", false, "URL", 1},
		// The guard: go-git would call these two "up to date" and write the refs.
		{"pack answer empty", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 0, true)
		}), "timeout", true, "lost", 2},
		{"pack answer lost after its headers", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 0, false)
		}), "timeout", true, "lost", 2},
		{"pack answer cut in its first line", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 3, false)
		}), "timeout", true, "lost", 2},
		{"pack cut", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 120, false)
		}), "timeout", true, "lost", 2},
		{"pack ends early without an error", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			cut(w, r, next, 120, true)
		}), "timeout", true, "lost", 2},
		{"pack answer holds no pack", onPack(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
			io.WriteString(w, "0008NAK\n0000")
		}), "timeout", true, "lost", 2},
		{"pack damaged", onPack(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			body := rec.Body.Bytes()
			at := bytes.Index(body, []byte("PACK")) + 40
			body[at] ^= 0xff
			w.Header().Set("Content-Type", rec.Header().Get("Content-Type"))
			w.Write(body)
		}), "format", false, "fsck", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for i := range 20 {
				w.commit(fmt.Sprintf("commit %d", i))
			}
			w.push("main")
			before := w.refs()
			w.server.on(tc.hook)
			_, f := fetch(t, newActivities(t, Config{}), contract.GitRequest{Dir: w.checkout})
			if f.Reason != tc.reason || f.RetrySame != tc.retry || f.Permanent == tc.retry || f.Attempts != 1 {
				t.Errorf("failure %+v; want reason %s, retry %v", f, tc.reason, tc.retry)
			}
			if f.Rule == "" || !strings.Contains(f.Message, tc.hint) {
				t.Errorf("rule %q, message %q; want a rule and a word on %q", f.Rule, f.Message, tc.hint)
			}
			if got := w.server.ledger(); len(got) != tc.sent {
				t.Errorf("requests %v, want %d", got, tc.sent)
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Errorf("refs moved (-before +after):\n%s", diff)
			}
			w.whole()
		})
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
	other := serve(t, filepath.Join(w.root, "srv"))
	a := newActivities(t, Config{Auth: botProfile})
	redirectTo := func(to string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/old") {
				http.Redirect(rw, r, to+"/repo.git"+strings.TrimPrefix(r.URL.Path, "/old")+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				return
			}
			next.ServeHTTP(rw, r)
		}
	}
	w.server.on(redirectTo(""))
	next := w.commit("second")
	w.push("main")
	got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: w.server.URL + "/old", Auth: "bot"})
	if f.Reason != "" || len(got.Updated) != 1 || got.Updated[0].New != next {
		t.Errorf("redirect within the origin: %+v, %+v", got, f)
	}
	w.server.on(redirectTo(other.URL))
	_, f = lsRemote(t, a, contract.GitRequest{URL: w.server.URL + "/old", Auth: "bot"})
	if f.Reason != "misdirected" || f.RetrySame {
		t.Errorf("redirect to another origin: %+v, want misdirected", f)
	}
	if sent := other.ledger(); len(sent) != 0 {
		t.Errorf("the other origin was asked: %v", sent)
	}
	w.server.on(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if isDiscovery(r) {
			next.ServeHTTP(rw, r)
			return
		}
		http.Redirect(rw, r, "/repo.git/git-upload-pack", http.StatusTemporaryRedirect)
	})
	w.commit("third")
	w.push("main")
	if _, f = fetch(t, a, contract.GitRequest{Dir: w.checkout}); f.Reason != "misdirected" {
		t.Errorf("redirect of the pack request: %+v, want misdirected", f)
	}
	if sent := w.server.ledger(); len(sent) != 2 {
		t.Errorf("requests %v, want 2", sent)
	}
}

const secret = "s3cr3t-t0ken-value"

func botProfile(_ context.Context, name string) (Credentials, error) {
	switch name {
	case "bot":
		return Credentials{Kind: CredentialToken, Secret: secret}, nil
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
	var authorized string
	w.server.on(func(rw http.ResponseWriter, r *http.Request, _ http.Handler) {
		_, password, _ := r.BasicAuth()
		authorized = password
		rw.Header().Set("WWW-Authenticate", "Basic realm="+password)
		rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
		http.Error(rw, "bad token "+password+" "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	env := environment(a)
	_, err := env.ExecuteActivity(a.LsRemote, contract.GitRequest{URL: w.url(), Auth: "bot", LimitMS: 60_000})
	if authorized != secret {
		t.Errorf("the remote got the password %q", authorized)
	}
	checkNoSecret(t, "401", err)

	for _, tc := range []struct{ name, url, auth, reason, hint string }{
		{"user in URL", "https://bot:" + secret + "@git.example/r", "", "format", "--auth"},
		{"token in URL", "https://" + secret + "@git.example/r", "", "format", "--auth"},
		{"query", "https://git.example/r?access_token=" + secret, "", "format", "--auth"},
		{"unknown profile", w.url(), "nobody", "auth", "auth_profiles"},
		{"broken profile", w.url(), "broken", "auth", "could not be read"},
		{"HTTP profile for SSH", "git@git.example:r", "bot", "format", "ssh_key"},
		{"SSH profile for HTTP", w.url(), "key", "format", "token"},
		{"key missing", "git@git.example:r", "key", "auth", "key"},
	} {
		w.server.on(nil)
		_, err := environment(a).ExecuteActivity(a.LsRemote, contract.GitRequest{URL: tc.url, Auth: tc.auth, LimitMS: 60_000})
		f := failure.From(err)
		if f.Reason != tc.reason || f.RetrySame || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v, want %s and a word on %s", tc.name, f, tc.reason, tc.hint)
		}
		if sent := w.server.ledger(); len(sent) != 0 {
			t.Errorf("%s: requests were sent: %v", tc.name, sent)
		}
		checkNoSecret(t, tc.name, err)
	}

	// A checkout whose origin carries a credential is refused as well.
	run(t, w.checkout, "remote", "set-url", "origin", strings.Replace(w.url(), "//", "//bot:"+secret+"@", 1))
	_, err = environment(a).ExecuteActivity(a.Fetch, contract.GitRequest{Dir: w.checkout, LimitMS: 60_000})
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
	serveLines := func(n int) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(rw http.ResponseWriter, r *http.Request, _ http.Handler) {
			rw.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			first := strings.Repeat("a", 40) + " refs/heads/main\x00side-band-64k\n"
			fmt.Fprintf(rw, "001e# service=git-upload-pack\n0000%04x%s", len(first)+4, first)
			for i := range n {
				l := fmt.Sprintf("%s refs/heads/branch-%07d\n", strings.Repeat("b", 40), i)
				if _, err := fmt.Fprintf(rw, "%04x%s", len(l)+4, l); err != nil {
					return
				}
			}
			io.WriteString(rw, "0000")
		}
	}
	a := newActivities(t, Config{})

	w.server.on(serveLines(400_000)) // about 28 MB
	_, f := lsRemote(t, a, contract.GitRequest{URL: w.url()})
	if f.Reason != "output_limit" || f.RetrySame || !f.Permanent {
		t.Errorf("28 MB of refs: %+v, want output_limit", f)
	}
	w.server.on(serveLines(50_000)) // read whole, but too much for a result
	_, f = lsRemote(t, a, contract.GitRequest{URL: w.url()})
	if f.Reason != "output_limit" || !strings.Contains(f.Message, "--ref") {
		t.Errorf("50,000 refs: %+v, want output_limit and a word on --ref", f)
	}
	got, f := lsRemote(t, a, contract.GitRequest{URL: w.url(), Ref: "branch-00000*"})
	if f.Reason != "" || len(got.Refs) != 100 {
		t.Errorf("narrowed: %d refs, %+v; want 100", len(got.Refs), f)
	}
}

// G5: a cancelled operation ends at once and moves nothing; G3: a spent timeout
// is never retried.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	before := w.refs()
	reached, release := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(release) })
	w.server.on(func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		if isDiscovery(r) {
			next.ServeHTTP(rw, r)
			return
		}
		reached <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	a := newActivities(t, Config{})

	ctx, cancel := context.WithCancel(t.Context())
	env := environment(a)
	env.SetWorkerOptions(workerOptions(ctx))
	go func() {
		<-reached
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

// engineFunc is an engine that fails as a test wants.
type engineFunc func() error

func (e engineFunc) lsRemote(context.Context, *remote) ([]contract.GitRef, error) { return nil, e() }
func (e engineFunc) fetch(context.Context, *remote, *checkout, string) ([]contract.GitUpdate, error) {
	return nil, e()
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
		a.engine = engineFunc(func() error { return tc.err })
		_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout})
		if f.Reason != tc.reason || strings.Contains(f.Message, "/x") {
			t.Errorf("%v: %+v, want %s", tc.err, f, tc.reason)
		}
	}
}
