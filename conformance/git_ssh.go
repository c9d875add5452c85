package conformance

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator/gitssh"
)

var gitSSHCases = []gitCase{
	{"SSH", gitSSH},
	{"SSH keys and hosts that are refused", gitSSHRefusals},
	{"faults of SSH", gitSSHFaults},
	{"pushes over SSH that are lost", gitSSHPushes},
	{"time spent over SSH", gitSSHTimeSpent},
}

// sshHost is the same repositories behind SSH, with profiles for those who may
// log in.
func (w *gitWorld) sshHost() *gitssh.Server {
	w.t.Helper()
	host, err := gitssh.Start(gitssh.Options{Root: w.host.Root()})
	w.check(err)
	w.t.Cleanup(func() { host.Close() })
	w.check(host.WriteKnownHosts(w.sshFile("known")))
	for _, passphrase := range []string{"", "a pass phrase"} {
		key, err := gitssh.WriteKey(w.sshFile("key"+passphrase), passphrase)
		w.check(err)
		host.Allow(key)
	}
	if w.engine.AgentKey != nil {
		host.Allow(w.engine.AgentKey)
	}
	known := []string{w.sshFile("known")}
	w.engine.AddAuth("key", GitAuth{KeyFile: w.sshFile("key"), KnownHosts: known})
	w.engine.AddAuth("encrypted", GitAuth{KeyFile: w.sshFile("keya pass phrase"), Passphrase: "a pass phrase", KnownHosts: known})
	w.engine.AddAuth("agent", GitAuth{KnownHosts: known})
	return host
}

func (w *gitWorld) sshFile(name string) string {
	dir := filepath.Join(w.engine.Root, "ssh")
	w.check(os.MkdirAll(dir, 0o700))
	return filepath.Join(dir, name)
}

// sessions checks how many connections and programs a host has had since its last
// Reset.
func (w *gitWorld) sessions(what string, host *gitssh.Server, connects, reads, pushes int) {
	w.t.Helper()
	count := func(op string) int { return len(host.Ledger().Requests(op)) }
	if c, r, p := count(gitssh.OpConnect), count(gitssh.OpUploadPack), count(gitssh.OpReceivePack); c != connects || r != reads || p != pushes {
		w.t.Errorf("%s: %d connections, %d reads, %d pushes, want %d, %d, %d", what, c, r, p, connects, reads, pushes)
	}
}

// G9: a key file, one with a passphrase and an agent log in, to hosts that are
// known, and no prompt appears; one attempt is one session.
func gitSSH(w *gitWorld) {
	dir := w.theirs()
	host := w.sshHost()
	for _, auth := range []string{"key", "encrypted", "agent"} {
		if auth == "encrypted" && w.engine.NoPassphrases {
			w.refusedBy(auth, dir, host.RepoURL(gitRepo), auth, gitWant{reason: "auth", hint: "agent"})
			continue
		}
		w.accepted(auth, dir, host.RepoURL(gitRepo), auth)
	}
	for _, op := range w.operations(dir) {
		op.in.URL, op.in.Auth = host.RepoURL(gitRepo), "key"
		host.Reset()
		w.do(op.call, op.in)
		if op.push {
			w.sessions(op.name, host, 1, 0, 1)
		} else {
			w.sessions(op.name, host, 1, 1, 0)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if effects, err := host.Ledger().WaitEffects(ctx, gitssh.EffectRef, 1); len(effects) != 1 {
		w.t.Errorf("effects %+v, %v, want one", effects, err)
	}
}

// G3, G9: a key that is not allowed, a host that is not known or not the one that
// was known, a repository that is not there: none is tried again.
func gitSSHRefusals(w *gitWorld) {
	dir := w.theirs()
	host := w.sshHost()
	url := host.RepoURL(gitRepo)
	_, err := gitssh.WriteKey(w.sshFile("other"), "")
	w.check(err)
	w.write(w.sshFile(""), "none", "")
	known := []string{w.sshFile("known")}
	w.engine.AddAuth("other key", GitAuth{KeyFile: w.sshFile("other"), KnownHosts: known})
	w.engine.AddAuth("wrong passphrase", GitAuth{KeyFile: w.sshFile("keya pass phrase"), Passphrase: "wrong", KnownHosts: known})
	w.engine.AddAuth("no key", GitAuth{KeyFile: w.sshFile("absent"), KnownHosts: known})
	w.engine.AddAuth("unknown host", GitAuth{KeyFile: w.sshFile("key"), KnownHosts: []string{w.sshFile("none")}})
	w.engine.AddAuth("no known hosts", GitAuth{KeyFile: w.sshFile("key"), KnownHosts: []string{w.sshFile("absent")}})
	w.engine.AddAuth("token", GitAuth{Token: gitToken})
	for auth, want := range map[string]gitWant{
		"other key":        {reason: "auth", hint: "--auth"},
		"wrong passphrase": {reason: "auth", hint: "passphrase"},
		"no key":           {reason: "auth", hint: "key"},
		"unknown host":     {reason: "tls_certificate", hint: "known_hosts"},
		"no known hosts":   {reason: "tls_certificate", hint: "known_hosts"},
		"token":            {reason: "format", hint: "ssh_key"},
	} {
		w.refusedBy(auth, dir, url, auth, want)
	}
	if n := len(host.Ledger().Requests(gitssh.OpUploadPack)) + len(host.Ledger().Requests(gitssh.OpReceivePack)); n != 0 {
		w.t.Errorf("%d programs were run", n)
	}
	w.refusedBy("no repository", dir, host.RepoURL("nothing.git"), "key", gitWant{reason: "not_found", hint: "URL"})
	host.Script(gitssh.NotFound().Always())
	w.refusedBy("not found", dir, url, "key", gitWant{reason: "not_found", hint: "URL"})
	host.Reset()
	host.Script(gitssh.RefuseAuth().Always())
	w.refusedBy("key refused", dir, url, "key", gitWant{reason: "auth", hint: "--auth"})
	host.Reset()
	w.check(host.ChangeHostKey())
	w.refusedBy("changed host key", dir, url, "key", gitWant{reason: "tls_certificate", hint: "known_hosts"})
}

// G4: a session that breaks may be tried again; what the other side writes is
// not passed on.
func gitSSHFaults(w *gitWorld) {
	w.check(w.host.Create("much.git", 200))
	host := w.sshHost()
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir("much.git"), dir)
	w.check(w.host.Commit("much.git", "main", 100))
	before, names := w.state(dir), w.beside()
	lost := gitWant{reason: "timeout", retry: true}
	url := host.RepoURL("much.git")
	for _, tc := range []struct {
		step gitssh.Step
		want gitWant
	}{
		{gitssh.RefuseConnection(gitssh.Close), lost},
		{gitssh.RefuseConnection(gitssh.Reset), lost},
		{gitssh.EndAtStart(gitssh.Close), lost},
		{gitssh.EndAtStart(gitssh.Reset), lost},
		{gitssh.CutBytes(10), lost},
		{gitssh.CutBytes(2000), lost},
		{gitssh.Fail(128, "fatal: "+gitPlanted+" "+gitToken+": the remote end hung up unexpectedly\n"), lost},
		{gitssh.Fail(128, "ERROR: "+gitPlanted+": Permission denied to "+gitToken+".\n"), gitWant{reason: "permission", hint: "--auth"}},
	} {
		for name, op := range map[string]struct {
			call GitCall
			in   contract.GitRequest
		}{
			"fetch": {w.engine.Fetch, contract.GitRequest{Dir: dir}},
			"clone": {w.engine.Clone, contract.GitRequest{Dir: w.dir("b")}},
		} {
			what := name + ": " + tc.step.Note
			op.in.URL, op.in.Auth = url, "key"
			host.Reset()
			host.Script(tc.step)
			w.fails(what, op.call, op.in, tc.want)
			if n := len(host.Ledger().Requests(gitssh.OpConnect)); n != 1 || len(host.Remaining()) != 0 {
				w.t.Errorf("%s: %d connections, the fault was met: %v", what, n, len(host.Remaining()) == 0)
			}
			w.unchanged(what, dir, before)
			w.sameNames(what, names)
		}
	}
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir, URL: url, Auth: "key"})
}

// G6: over SSH too a push is made once, and whether it landed is read at the
// remote.
func gitSSHPushes(w *gitWorld) {
	p := w.pushing()
	host := w.sshHost()
	in := contract.GitRequest{Dir: p.dir, URL: host.RepoURL(gitRepo), Auth: "key", Intent: &p.intent}
	for _, tc := range []struct {
		step  gitssh.Step
		want  gitWant
		found string
	}{
		{gitssh.EndAtStart(gitssh.Close).On(gitssh.OpReceivePack), gitWant{reason: "timeout", effect: unknown}, p.intent.Old},
		{gitssh.LosePush(), gitWant{reason: "timeout", effect: unknown}, p.intent.Old},
		{gitssh.LandThenReset(), gitWant{reason: "timeout", effect: unknown}, p.intent.New},
	} {
		host.Reset()
		host.Script(tc.step)
		answer := w.engine.Push(w.t.Context(), w.request(in))
		if answer.Failure != nil && answer.Failure.Effect == notSent && tc.step.Where == gitssh.AtStart {
			tc.want.effect = notSent // which it may have seen
		}
		w.failed(tc.step.Note, answer, tc.want)
		w.sessions(tc.step.Note, host, 1, 0, 1)
		got := w.do(w.engine.Locate, in).Located
		if want := (contract.GitLocated{Found: tc.found, Contains: tc.found == p.intent.New}); got != want {
			w.t.Errorf("%s: located %+v, want %+v", tc.step.Note, got, want)
		}
		w.unchanged(tc.step.Note, p.dir, p.before)
	}
}

// G3: a host that keeps silent, before or in a session, is left when the time is
// spent.
func gitSSHTimeSpent(w *gitWorld) {
	w.check(w.host.Create("much.git", 200))
	host := w.sshHost()
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir("much.git"), dir)
	w.check(w.host.Commit("much.git", "main", 100))
	before, names := w.state(dir), w.beside()
	for _, step := range []gitssh.Step{
		gitssh.RefuseConnection(gitssh.Stall), gitssh.EndAtStart(gitssh.Stall), gitssh.StallBytes(2000), gitssh.Slow(50),
	} {
		in := contract.GitRequest{Dir: dir, URL: host.RepoURL("much.git"), Auth: "key"}
		w.spends(step.Note, w.engine.Fetch, in, host.Ledger(), step.Note, func() {
			host.Reset()
			host.Script(step)
		})
		w.settles(step.Note, dir, before, names)
		w.leaves(step.Note, host)
	}
}

// leaves waits until the client of an SSH host is seen to leave.
func (w *gitWorld) leaves(what string, host *gitssh.Server) {
	w.t.Helper()
	all := host.Ledger().Requests("")
	if len(all) == 0 {
		w.t.Errorf("%s: no connection was made", what)
		return
	}
	w.eventually(what+": the connection", func() []string {
		if r, ok := host.Ledger().Request(all[len(all)-1].N); ok && r.GoneAt.IsZero() {
			return []string{r.Op}
		}
		return nil
	})
}
