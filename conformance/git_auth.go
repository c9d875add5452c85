package conformance

import (
	"crypto/tls"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitAuthCases = []gitCase{
	{"credentials over HTTP", gitCredentials},
	{"credentials in addresses", gitCredentialsInAddresses},
	{"redirects", gitRedirects},
	{"certificates", gitCertificates},
	{"TLS that breaks", gitTLSBreaks},
}

// gitOperation is one activity with a request for it that would succeed.
type gitOperation struct {
	name string
	call GitCall
	in   contract.GitRequest
	// push says that it is a push, whose failures are not those of a read.
	push bool
	// clone says that it makes the directory of the request.
	clone bool
}

// operations are all activities that go to the remote, for a checkout that has a
// commit to push.
func (w *gitWorld) operations(dir string) []gitOperation {
	w.t.Helper()
	intent := &contract.GitPushIntent{Ref: "refs/heads/main", Old: w.remote("refs/heads/main"), New: w.git(dir, "rev-parse", "HEAD")}
	return []gitOperation{
		{name: "ls-remote", call: w.engine.LsRemote, in: contract.GitRequest{}},
		{name: "fetch", call: w.engine.Fetch, in: contract.GitRequest{Dir: dir}},
		{name: "clone", call: w.engine.Clone, in: contract.GitRequest{Dir: w.dir("cloned")}, clone: true},
		{name: "intent", call: w.engine.PushIntent, in: contract.GitRequest{Dir: dir}},
		{name: "locate", call: w.engine.Locate, in: contract.GitRequest{Dir: dir, Intent: intent}},
		{name: "push", call: w.engine.Push, in: contract.GitRequest{Dir: dir, Intent: intent}, push: true},
	}
}

// refusedBy makes each operation, which fails before it has an effect.
func (w *gitWorld) refusedBy(what, dir, url, auth string, want gitWant) {
	w.t.Helper()
	before, names := w.state(dir), w.beside()
	for _, op := range w.operations(dir) {
		op.in.URL, op.in.Auth = url, auth
		want := want
		answer := op.call(w.t.Context(), w.request(op.in))
		if op.push {
			want.retry, want.effect = false, notSent
		} else if op.name == "intent" && answer.Failure != nil {
			want.effect, want.retry = answer.Failure.Effect, answer.Failure.RetrySame
		}
		w.failed(what+": "+op.name, answer, want)
		w.unchanged(what+": "+op.name, dir, before)
		w.sameNames(what+": "+op.name, names)
	}
}

// accepted makes each operation, which succeeds.
func (w *gitWorld) accepted(what, dir, url, auth string) {
	w.t.Helper()
	for _, op := range w.operations(dir) {
		op.in.URL, op.in.Auth = url, auth
		answer := op.call(w.t.Context(), w.request(op.in))
		if answer.Failure != nil {
			w.t.Errorf("%s: %s: %+v\n%s", what, op.name, *answer.Failure, answer.Stored)
		}
		if op.clone && answer.Failure == nil {
			w.whole(what+": clone", op.in.Dir)
			w.secretFree(what+": clone", op.in.Dir)
			w.remove(w.work, filepath.Base(op.in.Dir))
		}
	}
	w.whole(what, dir)
	w.secretFree(what, dir)
	w.check(w.host.SetRef(gitRepo, "refs/heads/main", w.git(w.author, "rev-parse", "HEAD")))
}

// secretFree checks that no file of a checkout has a credential in it (G9).
func (w *gitWorld) secretFree(what, dir string) {
	w.t.Helper()
	w.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), gitToken) {
			w.t.Errorf("%s: the credential is in %s", what, path)
		}
		return err
	}))
}

// another starts a second host in front of the same repositories.
func (w *gitWorld) another(o githttp.Options) *githttp.Server {
	w.t.Helper()
	o.Root = w.host.Root()
	host, err := githttp.Start(o)
	w.check(err)
	w.t.Cleanup(func() { host.Close() })
	return host
}

// theirs makes a checkout with a commit to push, while the remote has another
// branch to fetch.
func (w *gitWorld) theirs() string {
	w.t.Helper()
	dir := w.checkout("a")
	w.local(dir, "local", "ours")
	w.commit("theirs")
	w.publish("main:side")
	w.git(w.author, "reset", "-q", "--hard", "HEAD~1")
	return dir
}

// G9, G3: a credential is a token, or a user and a password; without one, or with
// another, the operation is refused for good.
func gitCredentials(w *gitWorld) {
	dir := w.theirs()
	closed := w.another(githttp.Options{Users: map[string]string{"x-access-token": gitToken, "alice": gitToken, "bot": gitToken}})
	w.engine.AddAuth("token", GitAuth{Token: gitToken})
	w.engine.AddAuth("named token", GitAuth{Token: gitToken, Username: "bot"})
	w.engine.AddAuth("basic", GitAuth{Username: "alice", Password: gitToken})
	w.engine.AddAuth("wrong", GitAuth{Username: "alice", Password: gitToken + "x"})
	url := closed.RepoURL(gitRepo)
	w.refusedBy("no credential", dir, url, "", gitWant{reason: "auth", hint: "--auth"})
	w.refusedBy("wrong credential", dir, url, "wrong", gitWant{reason: "auth", hint: "--auth"})
	for _, auth := range []string{"token", "named token", "basic"} {
		w.accepted(auth, dir, url, auth)
	}
	before := len(closed.Ledger().Requests(""))
	w.refusedBy("unknown profile", dir, url, "nobody", gitWant{reason: "auth", hint: "auth_profiles"})
	if n := len(closed.Ledger().Requests("")) - before; n != 0 {
		w.t.Errorf("%d requests with a profile that is not known", n)
	}
}

// G9: an address that holds a credential is refused before anything is sent, in
// the request as in the checkout.
func gitCredentialsInAddresses(w *gitWorld) {
	dir := w.theirs()
	for _, url := range []string{
		strings.Replace(w.url(), "//", "//bot:"+gitToken+"@", 1),
		strings.Replace(w.url(), "//", "//"+gitToken+"@", 1),
		w.url() + "?access_token=" + gitToken,
	} {
		w.host.Reset()
		w.refusedBy("in the address", dir, url, "", gitWant{reason: "format", hint: "--auth"})
		w.requests("in the address", gitSent{})
	}
	w.git(dir, "remote", "set-url", "origin", strings.Replace(w.url(), "//", "//bot:"+gitToken+"@", 1))
	w.host.Reset()
	w.fails("in the checkout", w.engine.Fetch, contract.GitRequest{Dir: dir}, gitWant{reason: "format", hint: "--auth"})
	w.requests("in the checkout", gitSent{})
}

// G9: a redirect of the list of refs is followed within its origin, as hosts use
// it to add ".git". Nothing goes elsewhere, and nothing else is redirected.
func gitRedirects(w *gitWorld) {
	dir := w.theirs()
	w.engine.AddAuth("token", GitAuth{Token: gitToken})
	other := w.another(githttp.Options{})
	short := strings.TrimSuffix(w.url(), ".git")
	follow := func(status int, to string) {
		w.host.Reset()
		for _, op := range []string{githttp.OpFetchRefs, githttp.OpPushRefs} {
			w.host.Script(githttp.Redirect(status, op, to).ForKey(strings.TrimSuffix(gitRepo, ".git")).Always())
		}
	}
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		follow(status, w.url())
		w.accepted("within the origin", dir, short, "token")
	}
	for what, to := range map[string]string{
		"another origin":  other.RepoURL(gitRepo),
		"another scheme":  strings.Replace(w.url(), "http:", "https:", 1),
		"with a user":     strings.Replace(w.url(), "//", "//u:p@", 1),
		"a local file":    "file://" + w.host.Dir(gitRepo),
		"another service": "ssh://git@" + w.host.Addr() + "/" + gitRepo,
		"no address":      "://",
	} {
		follow(http.StatusFound, to)
		w.refusedBy(what, dir, short, "token", gitWant{reason: "misdirected"})
	}
	if got := other.Ledger().Requests(""); len(got) != 0 {
		w.t.Errorf("the other origin was asked: %+v", got)
	}
	for _, op := range []string{githttp.OpUploadPack, githttp.OpReceivePack} {
		w.host.Reset()
		w.host.Script(githttp.Redirect(http.StatusTemporaryRedirect, op, other.RepoURL(gitRepo)).Always())
		for _, o := range w.operations(dir) {
			answer := o.call(w.t.Context(), w.request(withURL(o.in, w.url())))
			if o.push == (op == githttp.OpReceivePack) && (o.push || o.clone) && (answer.Failure == nil || answer.Failure.Reason != "misdirected" || answer.Failure.RetrySame) {
				w.t.Errorf("%s at %s: %+v, want misdirected", o.name, op, answer.Failure)
			}
			if o.clone && answer.Failure == nil {
				w.remove(w.work, filepath.Base(o.in.Dir))
			}
		}
		w.check(w.host.SetRef(gitRepo, "refs/heads/main", w.git(w.author, "rev-parse", "HEAD")))
	}
	if got := other.Ledger().Requests(""); len(got) != 0 {
		w.t.Errorf("the other origin was asked: %+v", got)
	}
	// Around in circles.
	w.host.Reset()
	w.host.Script(githttp.Redirect(http.StatusFound, githttp.OpFetchRefs, w.url()).Always())
	w.fails("circle", w.engine.LsRemote, contract.GitRequest{URL: w.url()}, gitWant{reason: "misdirected"})
}

func withURL(in contract.GitRequest, url string) contract.GitRequest {
	in.URL = url
	return in
}

// G3: a certificate of an authority that is trusted is good; any other is
// refused before a request is made.
func gitCertificates(w *gitWorld) {
	dir := w.theirs()
	serve := func(cfg *tls.Config, err error) *githttp.Server {
		w.check(err)
		return w.another(githttp.Options{TLS: cfg})
	}
	stranger, err := simulator.NewAuthority()
	w.check(err)
	w.accepted("trusted", dir, serve(w.engine.Authority.TLS()).RepoURL(gitRepo), "")
	for what, host := range map[string]*githttp.Server{
		"unknown authority": serve(stranger.TLS()),
		"another host":      serve(w.engine.Authority.TLS("git.example")),
		"expired":           serve(w.engine.Authority.ExpiredTLS()),
	} {
		w.refusedBy(what, dir, host.RepoURL(gitRepo), "", gitWant{reason: "tls_certificate", hint: "certificate"})
		if n := len(host.Ledger().Requests("")); n != 0 {
			w.t.Errorf("%s: %d requests", what, n)
		}
	}
}

// G4: a TLS connection that ends abruptly may be tried again.
func gitTLSBreaks(w *gitWorld) {
	w.check(w.host.Create("much.git", 200))
	cfg, err := w.engine.Authority.TLS()
	w.check(err)
	host := w.another(githttp.Options{TLS: cfg})
	url, dir := host.RepoURL("much.git"), w.dir("a")
	lost := gitWant{reason: "timeout", retry: true}
	clone := contract.GitRequest{Dir: dir, URL: url}
	for what, tear := range map[string]func(){
		"handshake":   func() { host.TearHandshakes(1) },
		"pack":        func() { host.Script(simulator.Torn(2000).On(githttp.OpUploadPack)) },
		"headers":     func() { host.Script(simulator.Torn(0).On(githttp.OpUploadPack)) },
		"list":        func() { host.Script(simulator.Torn(50).On(githttp.OpFetchRefs)) },
		"without end": func() { host.Script(simulator.CutBytes(2000).On(githttp.OpUploadPack)) },
	} {
		names := w.beside()
		tear()
		w.fails(what, w.engine.Clone, clone, lost)
		w.sameNames(what, names)
	}
	w.do(w.engine.Clone, clone)
	w.whole("clone", dir)
}
