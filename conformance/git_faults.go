package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitFaultCases = []gitCase{
	{"faults of ls-remote", gitListFaults},
	{"faults of fetch", gitFetchFaults},
	{"faults of clone", gitCloneFaults},
	{"faults of the intent of a push", gitIntentFaults},
	{"faults of locate", gitLocateFaults},
	{"faults of tampered packs", gitTamperedPacks},
	{"floors", gitFloors},
	{"no connection", gitNotConnected},
	{"time spent", gitTimeSpent},
}

// gitFault is what the other side does, and what a read becomes by it.
type gitFault struct {
	step simulator.Step
	want gitWant
	// only is the phase that it is for; empty for any.
	only string
	// core says that it is one of the few that stand for all where an operation
	// does by and large what another one does.
	core bool
}

const (
	gitRefsPhase = githttp.OpFetchRefs
	gitPackPhase = githttp.OpUploadPack
)

// gitFaults are the faults of a read in a phase (G3, G4). Whatever words stand in
// a body or a header, it is the status that counts.
func gitFaults(phase string) []gitFault {
	lost := gitWant{reason: "timeout", retry: true, hint: "later"}
	strange := gitWant{reason: "not_found", hint: "URL"}
	all := []gitFault{
		{step: simulator.Status(400, ""), want: gitWant{reason: "format", hint: "400"}},
		{step: simulator.Status(401, "").WithHeader("WWW-Authenticate", `Basic realm="`+gitPlanted+`"`), want: gitWant{reason: "auth", hint: "--auth"}, core: true},
		{step: simulator.Status(403, ""), want: gitWant{reason: "permission", hint: "--auth"}},
		{step: simulator.Status(404, ""), want: gitWant{reason: "not_found", hint: "URL"}, core: true},
		{step: simulator.Status(408, ""), want: lost},
		{step: simulator.Status(418, ""), want: gitWant{reason: "format", hint: "418"}},
		{step: simulator.Status(429, ""), want: gitWant{reason: "rate_limit", retry: true, hint: "429"}},
		{step: simulator.Status(500, ""), want: gitWant{reason: "server_error", retry: true, hint: "500"}},
		{step: simulator.Status(502, ""), want: gitWant{reason: "server_error", retry: true, hint: "502"}},
		{step: simulator.Status(503, ""), want: gitWant{reason: "server_error", retry: true, hint: "503"}, core: true},
		{step: simulator.Status(504, ""), want: gitWant{reason: "timeout", retry: true, hint: "504"}},
		{step: simulator.HTML(503, "<html>"+gitPlanted+"</html>").As("503 with a page"), want: gitWant{reason: "server_error", retry: true, hint: "503"}},
		{step: simulator.Step{Note: "503 cut", Status: 503, Body: strings.Repeat(gitPlanted, 99), Cut: &simulator.Cut{Bytes: 9}, End: simulator.EndRST}, want: gitWant{reason: "server_error", retry: true, hint: "503"}},
		{step: simulator.Close(), want: lost},
		{step: simulator.CloseUnread(), want: lost},
		{step: simulator.Reset(), want: lost, core: true},
		{step: simulator.CutBytes(0).As("cut after the headers"), want: lost},
		{step: simulator.CutBytes(3), want: lost},
		{step: simulator.CutBytes(60), want: lost, core: true},
		{step: simulator.Step{Note: "reset after 60 bytes", Cut: &simulator.Cut{Bytes: 60}, End: simulator.EndRST}, want: lost},
		{step: githttp.Empty(phase), want: lost, core: true},
		{step: simulator.HTML(200, "<html>log in, "+gitPlanted+"</html>").As("login page"), want: strange, core: true},
		{step: simulator.Status(200, gitPlanted).As("200 with a text"), want: strange},
		{step: simulator.CutBytes(150), want: lost, only: gitPackPhase},
		{step: githttp.Says(phase, "0008NAK\n0000").As("no pack in the answer"), want: lost, only: gitPackPhase},
		{step: githttp.Says(phase, "0008NAK\n").As("end before the pack"), want: lost, only: gitPackPhase},
	}
	var faults []gitFault
	for _, f := range all {
		if f.only == "" || f.only == phase {
			f.step = plant(f.step).On(phase)
			faults = append(faults, f)
		}
	}
	return faults
}

// gitCoreFaults are the few that stand for all.
func gitCoreFaults(phase string) []gitFault {
	return slices.DeleteFunc(gitFaults(phase), func(f gitFault) bool { return !f.core })
}

// phaseSent is what an attempt has sent when it meets a fault in a phase.
func phaseSent(phase string) gitSent {
	if phase == gitRefsPhase {
		return gitSent{refs: 1}
	}
	return gitSent{refs: 1, pack: 1}
}

// meets makes attempts that each meet a fault: each is the failure that it should
// be, makes no request more than that, and leaves things as they are.
func (w *gitWorld) meets(faults func(phase string) []gitFault, phases []string, call GitCall, in contract.GitRequest, after func(what string)) {
	w.t.Helper()
	for _, phase := range phases {
		for _, f := range faults(phase) {
			what := fmt.Sprintf("%s at %s", f.step.Note, phase)
			w.host.Reset()
			w.host.Script(f.step)
			w.fails(what, call, in, f.want)
			w.requests(what, phaseSent(phase))
			if left := w.host.Remaining(); len(left) != 0 {
				w.t.Errorf("%s: the fault was not met", what)
			}
			after(what)
		}
	}
}

func gitListFaults(w *gitWorld) {
	w.meets(gitFaults, []string{gitRefsPhase}, w.engine.LsRemote, contract.GitRequest{URL: w.url()}, func(string) {})
}

// G1, G3, G4: after a fetch that failed the refs are where they were.
func gitFetchFaults(w *gitWorld) {
	dir := w.checkout("a")
	for i := range 5 {
		w.commit(fmt.Sprintf("commit %d", i))
	}
	w.git(w.author, "tag", "v1")
	w.publish("main", "v1", "main:new")
	before := w.state(dir)
	w.meets(gitFaults, []string{gitRefsPhase, gitPackPhase}, w.engine.Fetch, contract.GitRequest{Dir: dir}, func(what string) { w.unchanged(what, dir, before) })
	w.host.Reset()
	if got := w.do(w.engine.Fetch, contract.GitRequest{Dir: dir}).Result; len(got.Updated) != 3 {
		w.t.Errorf("after all faults: %+v", got)
	}
}

// G2: after a clone that failed there is nothing.
func gitCloneFaults(w *gitWorld) {
	w.branches()
	names := w.beside()
	w.meets(gitCoreFaults, []string{gitRefsPhase, gitPackPhase}, w.engine.Clone, contract.GitRequest{Dir: w.dir("a"), URL: w.url()}, func(what string) { w.sameNames(what, names) })
}

// G6: before a push is made only reads can fail, which have no effect.
func gitIntentFaults(w *gitWorld) {
	dir := w.checkout("a")
	w.local(dir, "local", "ours")
	before := w.state(dir)
	for _, f := range gitCoreFaults(gitRefsPhase) {
		w.host.Reset()
		w.host.Script(f.step)
		answer := w.engine.PushIntent(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
		if f.want.effect = "none"; answer.Failure != nil && answer.Failure.Effect == notSent {
			f.want.effect = notSent // a push that was not made
		}
		f.want.retry = answer.Failure != nil && answer.Failure.RetrySame // the workflow's to decide
		w.failed(f.step.Note, answer, f.want)
		w.requests(f.step.Note, gitSent{refs: 1})
		w.unchanged(f.step.Note, dir, before)
	}
}

func gitLocateFaults(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	w.commit("theirs")
	w.publish("main")
	before := w.state(dir)
	w.meets(gitCoreFaults, []string{gitRefsPhase, gitPackPhase}, w.engine.Locate,
		contract.GitRequest{Dir: dir, Intent: &contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}},
		func(what string) { w.unchanged(what, dir, before) })
}

// G4, G12: packs that are damaged, or end too early in good order, or lack what
// they should have.
func gitTamperedPacks(w *gitWorld) {
	dir := w.checkout("a")
	for i := range 5 {
		w.commit(fmt.Sprintf("commit %d", i))
	}
	w.publish("main")
	w.git(w.work, "clone", "-q", "--mirror", w.url(), w.dir("full.git"))
	pack := w.packOf("HEAD", "--not", w.git(dir, "rev-parse", "HEAD"))
	other := w.packOf("HEAD~3", "--not", w.git(dir, "rev-parse", "HEAD"))
	names := w.beside()
	before := w.state(dir)
	bent := []byte(pack)
	bent[40] ^= 0xff
	for what, tc := range map[string]struct {
		pack string
		want gitWant
	}{
		"ends early":     {pack[:120], gitWant{reason: "timeout", retry: true}},
		"ends at once":   {"", gitWant{reason: "timeout", retry: true}},
		"no pack at all": {gitPlanted, gitWant{reason: "format"}},
		"damaged":        {string(bent), gitWant{reason: "format"}},
		"lacks objects":  {other, gitWant{reason: "server_error", retry: true}},
	} {
		for name, call := range map[string]func() (GitCall, contract.GitRequest){
			"fetch": func() (GitCall, contract.GitRequest) { return w.engine.Fetch, contract.GitRequest{Dir: dir} },
			"clone": func() (GitCall, contract.GitRequest) {
				return w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: w.url()}
			},
		} {
			w.host.Reset()
			w.host.Script(w.sends(tc.pack)...)
			do, in := call()
			answer := do(w.t.Context(), w.request(in))
			if what == "no pack at all" && answer.Failure != nil && answer.Failure.RetrySame {
				tc.want = gitWant{reason: "timeout", retry: true} // an engine may not tell it from one that was cut
			}
			if tc.want.reason == "server_error" && answer.Failure != nil && answer.Failure.Reason == "timeout" {
				tc.want.reason = "timeout" // both are G4, and it may run again
			}
			what := name + ": " + what
			w.failed(what, answer, tc.want)
			w.unchanged(what, dir, before)
			w.sameNames(what, names)
		}
	}
}

// packOf makes a pack of what a rev-list names in the author's copy.
func (w *gitWorld) packOf(revisions ...string) string {
	w.t.Helper()
	return w.pipe(w.author, strings.Join(revisions, "\n")+"\n", "pack-objects", "--revs", "--stdout", "-q")
}

// sends has the host answer in protocol version 0, with a pack of our own.
func (w *gitWorld) sends(pack string) []simulator.Step {
	w.t.Helper()
	refs := []githttp.Ref{}
	for _, name := range []string{"refs/heads/main"} {
		refs = append(refs, githttp.Ref{ID: w.remote(name), Name: name})
	}
	body := "0008NAK\n"
	for rest := pack; rest != ""; {
		n := min(len(rest), 1000)
		body += fmt.Sprintf("%04x\x01%s", n+5, rest[:n])
		rest = rest[n:]
	}
	return []simulator.Step{
		githttp.Advertise(githttp.OpFetchRefs, refs...),
		githttp.Says(githttp.OpUploadPack, body+"0000"),
	}
}

// P3: the wait that the other side asks for travels with the failure, to the
// millisecond and no less.
func gitFloors(w *gitWorld) {
	dir := w.checkout("a")
	for what, tc := range map[string]struct {
		call GitCall
		in   contract.GitRequest
	}{
		"ls-remote": {w.engine.LsRemote, contract.GitRequest{URL: w.url()}},
		"fetch":     {w.engine.Fetch, contract.GitRequest{Dir: dir}},
		"clone":     {w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: w.url()}},
	} {
		for _, status := range []int{429, 503} {
			w.host.Reset()
			w.host.Script(plant(simulator.Status(status, "")).WithHeader("Retry-After", "7").On(githttp.OpFetchRefs))
			reason := map[int]string{429: "rate_limit", 503: "server_error"}[status]
			f := w.fails(what, tc.call, tc.in, gitWant{reason: reason, retry: true})
			if f != nil && (f.FloorMS == nil || *f.FloorMS != 7000 || f.FloorSource != "retry-after") {
				w.t.Errorf("%s after %d: floor %v by %q, want 7000 ms by retry-after", what, status, f.FloorMS, f.FloorSource)
			}
		}
	}
}

// G4: a connection that is refused, and a name that nobody knows, may be tried
// again.
func gitNotConnected(w *gitWorld) {
	dir := w.checkout("a")
	w.local(dir, "local", "ours")
	before, names := w.state(dir), w.beside()
	intent := &contract.GitPushIntent{Ref: "refs/heads/main", Old: w.remote("refs/heads/main"), New: w.git(dir, "rev-parse", "HEAD")}
	release, err := w.host.Refuse()
	w.check(err)
	defer release()
	// A label that is too long is no name, which is known without a name server.
	unknownHost := "http://" + strings.Repeat("n", 64) + ".invalid/r.git"
	for _, tc := range []struct{ what, url, hint string }{
		{"refused", w.url(), "port"}, {"unknown host", unknownHost, "host name"},
	} {
		want := gitWant{reason: "timeout", retry: true, hint: tc.hint}
		w.fails("ls-remote "+tc.what, w.engine.LsRemote, contract.GitRequest{URL: tc.url}, want)
		w.fails("fetch "+tc.what, w.engine.Fetch, contract.GitRequest{Dir: dir, URL: tc.url}, want)
		w.fails("clone "+tc.what, w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: tc.url}, want)
		want.retry, want.effect = false, notSent
		w.fails("push "+tc.what, w.engine.Push, contract.GitRequest{Dir: dir, URL: tc.url, Intent: intent}, want)
		w.unchanged(tc.what, dir, before)
		w.sameNames(tc.what, names)
	}
}

// G3: an operation ends with its time, and is not tried again; a server that
// keeps silent or goes slowly is left, and nothing of the attempt stays.
func gitTimeSpent(w *gitWorld) {
	w.check(w.host.Create("slow.git", 400))
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "--branch", "main", "file://"+w.host.Dir("slow.git"), dir)
	w.git(dir, "remote", "set-url", "origin", w.host.RepoURL("slow.git"))
	w.check(w.host.Commit("slow.git", "main", 200))
	before, names := w.state(dir), w.beside()
	for _, step := range []simulator.Step{
		simulator.Stall().On(githttp.OpFetchRefs), simulator.HalfOpen().On(githttp.OpFetchRefs), simulator.StallHeaders().On(githttp.OpFetchRefs),
		simulator.Stall().On(githttp.OpUploadPack), simulator.HalfOpen().On(githttp.OpUploadPack),
		stallBytes(2000).On(githttp.OpUploadPack), simulator.Slow(100).On(githttp.OpUploadPack),
	} {
		what := step.Note + " at " + step.Match
		for name, tc := range map[string]struct {
			call GitCall
			in   contract.GitRequest
		}{
			"fetch": {w.engine.Fetch, contract.GitRequest{Dir: dir}},
			"clone": {w.engine.Clone, contract.GitRequest{Dir: w.dir("b"), URL: w.host.RepoURL("slow.git")}},
		} {
			what := name + ": " + what
			w.spends(what, tc.call, tc.in, w.host.Ledger(), step.Note, func() {
				w.host.Reset()
				w.host.Script(step.Always())
			})
			w.gone(what, step)
			w.settles(what, dir, before, names)
		}
	}
	silent := simulator.Stall().On(githttp.OpFetchRefs)
	w.spends("ls-remote", w.engine.LsRemote, contract.GitRequest{URL: w.url()}, w.host.Ledger(), silent.Note, func() {
		w.host.Reset()
		w.host.Script(silent)
	})
	w.gone("ls-remote", silent)
}

// spends has an operation spend its time on a planted fault. Where a busy machine
// spent it before the fault was met, the operation is given more.
func (w *gitWorld) spends(what string, call GitCall, in contract.GitRequest, l *simulator.Ledger, note string, plant func()) {
	w.t.Helper()
	for in.LimitMS = 1500; in.LimitMS < 30_000; in.LimitMS *= 2 {
		plant()
		w.fails(what, call, in, gitWant{reason: "deadline", hint: "--timeout"})
		if slices.ContainsFunc(l.Requests(""), func(r simulator.Request) bool { return r.Step == note }) {
			return
		}
	}
	w.t.Errorf("%s: the fault was not met in half a minute", what)
}

func stallBytes(n int) simulator.Step {
	return simulator.Step{Note: fmt.Sprintf("stall after %d bytes", n), Cut: &simulator.Cut{Bytes: n}, End: simulator.EndStall}
}

// gone waits until the client of the latest request that met a step is seen to
// leave. That of one whose body is not read is not seen.
func (w *gitWorld) gone(what string, step simulator.Step) {
	w.t.Helper()
	if step.Unread {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	met := slices.DeleteFunc(w.host.Ledger().Requests(""), func(r simulator.Request) bool { return r.Step != step.Note })
	if len(met) == 0 {
		w.t.Errorf("%s: no request arrived", what)
		return
	}
	if _, err := w.host.Ledger().WaitGone(ctx, met[len(met)-1].N); err != nil {
		w.t.Errorf("%s: the connection is still open: %v", what, err)
	}
}

// settles waits until what an interrupted attempt left behind is gone: processes,
// locks, temporary files and half a clone; and the checkout is as it was.
func (w *gitWorld) settles(what, dir string, before gitState, names []string) {
	w.t.Helper()
	w.eventually(what+": processes", w.processes)
	w.eventually(what+": files", func() []string { return w.leftovers(dir) })
	w.eventually(what+": beside", func() []string {
		if got := w.beside(); len(got) != len(names) {
			return got
		}
		return nil
	})
	w.sameNames(what, names)
	w.unchanged(what, dir, before)
}
