package conformance

import (
	"crypto/rand"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitPushCases = []gitCase{
	{"push of a new branch", gitPushesNew},
	{"push of a branch that follows", gitPushesForward},
	{"push with nothing to do", gitPushesNothing},
	{"push that would replace", gitPushReplaces},
	{"push with a lease", gitPushesWithLease},
	{"push of a tag", gitPushesTag},
	{"push of what is not there", gitPushesMissing},
	{"push when someone was faster", gitPushTooLate},
	{"push that the host refuses", gitPushRefused},
	{"push of much", gitPushesMuch},
	{"push of little", gitPushesLittle},
	{"push from a shallow checkout", gitPushesShallow},
	{"push to a local repository", gitPushesLocal},
	{"push into an empty repository", gitPushesEmpty},
	{"push whose answer is lost", gitPushAnswerLost},
	{"push that is lost", gitPushLost},
	{"push on a reused connection", gitPushReset},
	{"push and a replica that lags", gitPushLags},
	{"locate", gitLocates},
}

// plan asks for the intent of a push and checks what it comes to. A conflict says
// why it is one.
func (w *gitWorld) plan(what string, in contract.GitRequest, want contract.GitPushPlan) contract.GitPushIntent {
	w.t.Helper()
	w.host.Reset()
	got := w.do(w.engine.PushIntent, in).Plan
	if (got.Error != nil) != (want.Outcome == contract.OutcomeConflict) {
		w.t.Errorf("%s: outcome %q, error %+v", what, got.Outcome, got.Error)
	}
	got.Error = nil
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: plan (-want +got):\n%s", what, diff)
	}
	if sent := w.sent(); sent.pushRefs+sent.push != 0 || sent.refs != 1 {
		w.t.Errorf("%s: the intent made requests %+v", what, sent)
	}
	return got.Intent
}

// push makes a push that must land, in one request.
func (w *gitWorld) push(what, dir string, intent contract.GitPushIntent) {
	w.t.Helper()
	before := w.state(dir)
	w.host.Reset()
	w.do(w.engine.Push, contract.GitRequest{Dir: dir, Intent: &intent})
	w.requests(what, gitSent{pushRefs: 1, push: 1})
	old := intent.Old
	if old == "" {
		old = noRef
	}
	w.landed(what, intent.Ref+" "+old+" "+intent.New)
	if diff := cmp.Diff(before, w.state(dir)); diff != "" {
		w.t.Errorf("%s: the checkout changed (-before +after):\n%s", what, diff)
	}
	w.whole(what, dir)
	w.whole(what, w.host.Dir(gitRepo))
}

func gitPushesNew(w *gitWorld) {
	dir := w.checkout("a")
	w.git(dir, "checkout", "-q", "-b", "topic")
	ours := w.local(dir, "local", "ours")
	want := contract.GitPushIntent{Ref: "refs/heads/topic", New: ours}
	for what, ref := range map[string]string{"checked out": "", "branch": "topic", "full name": "refs/heads/topic"} {
		if got := w.plan(what, contract.GitRequest{Dir: dir, Ref: ref}, contract.GitPushPlan{Intent: want}); got != want {
			w.t.Errorf("%s: %+v", what, got)
		}
	}
	w.plan("must not exist", contract.GitRequest{Dir: dir, Ref: "topic", Expect: noRef},
		contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/topic", New: ours, Force: true}})
	w.push("new", dir, want)
	want.Ref = "refs/heads/other/name"
	w.push("SRC:DST", dir, w.plan("SRC:DST", contract.GitRequest{Dir: dir, Ref: "topic:other/name"}, contract.GitPushPlan{Intent: want}))
}

func gitPushesForward(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	w.local(dir, "local", "one")
	ours := w.local(dir, "local", "two")
	plan := contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}, Found: first}
	w.push("forward", dir, w.plan("forward", contract.GitRequest{Dir: dir}, plan))
}

func gitPushesNothing(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	w.plan("nothing", contract.GitRequest{Dir: dir}, contract.GitPushPlan{
		Outcome: contract.OutcomeUpToDate, Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: first}, Found: first,
	})
}

// conflicts asks for the intent of a push that may not be made; the refs stay.
func (w *gitWorld) conflicts(what string, in contract.GitRequest, found string) {
	w.t.Helper()
	w.host.Reset()
	got := w.do(w.engine.PushIntent, in).Plan
	if got.Outcome != contract.OutcomeConflict || got.Found != found || got.Error == nil || got.Error.Reason != "conflict" || got.Error.Message == "" {
		w.t.Errorf("%s: %+v, error %+v, want a conflict with %q", what, got, got.Error, found)
	}
	w.requests(what, gitSent{refs: 1, pack: w.sent().pack})
}

// G6: without a lease of one's own a push replaces nothing.
func gitPushReplaces(w *gitWorld) {
	dir := w.checkout("a")
	w.local(dir, "local", "ours")
	theirs := w.commit("theirs")
	w.publish("main")
	w.conflicts("diverged", contract.GitRequest{Dir: dir}, theirs)
	w.do(w.engine.Fetch, contract.GitRequest{Dir: dir})
	w.conflicts("diverged and fetched", contract.GitRequest{Dir: dir}, theirs)

	behind := w.dir("behind")
	w.git(w.work, "clone", "-q", "file://"+w.host.Dir(gitRepo), behind)
	w.git(behind, "remote", "set-url", "origin", w.url())
	w.git(behind, "reset", "-q", "--hard", "HEAD~1")
	w.conflicts("behind", contract.GitRequest{Dir: behind}, theirs)
}

// G6: with a lease that holds a push may replace; with one that does not hold it
// is a conflict.
func gitPushesWithLease(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	w.git(dir, "commit", "-q", "--amend", "-m", "rewritten")
	rewritten := w.git(dir, "rev-parse", "HEAD")
	for what, lease := range map[string]string{"stale": rewritten, "must not exist": noRef} {
		w.conflicts(what, contract.GitRequest{Dir: dir, Expect: lease}, first)
	}
	plan := contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: rewritten, Force: true}, Found: first}
	w.push("lease", dir, w.plan("lease", contract.GitRequest{Dir: dir, Expect: first}, plan))

	// Back to a commit before, which is a replacement as well.
	next := w.local(dir, "local", "next")
	w.push("forward", dir, contract.GitPushIntent{Ref: "refs/heads/main", Old: rewritten, New: next})
	w.git(dir, "reset", "-q", "--hard", rewritten)
	plan = contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: next, New: rewritten, Force: true, Rewinds: true}, Found: next}
	w.push("rewind", dir, w.plan("rewind", contract.GitRequest{Dir: dir, Expect: next}, plan))
}

func gitPushesTag(w *gitWorld) {
	dir := w.checkout("a")
	w.local(dir, "local", "ours")
	w.git(dir, "tag", "-a", "-m", "one", "v1")
	v1 := w.git(dir, "rev-parse", "v1")
	plan := contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/tags/v1", New: v1}}
	w.push("tag", dir, w.plan("tag", contract.GitRequest{Dir: dir, Ref: "v1"}, plan))
	w.local(dir, "local", "next")
	w.git(dir, "tag", "-f", "-a", "-m", "two", "v1")
	w.conflicts("tag that differs", contract.GitRequest{Dir: dir, Ref: "v1"}, v1)
	two := w.git(dir, "rev-parse", "v1")
	plan = contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/tags/v1", Old: v1, New: two, Force: true}, Found: v1}
	w.push("tag with a lease", dir, w.plan("tag with a lease", contract.GitRequest{Dir: dir, Ref: "v1", Expect: v1}, plan))
}

// G6: what cannot be pushed is refused before anything is sent. Nothing is ever
// deleted.
func gitPushesMissing(w *gitWorld) {
	dir := w.checkout("a")
	for _, ref := range []string{"missing", ":main", "main:", "a:b:c", "main:refs/heads/x.lock", "--mirror", "main:refs/heads/../../config"} {
		w.host.Reset()
		answer := w.engine.PushIntent(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Ref: ref}))
		if answer.Failure == nil || !answer.Failure.Permanent {
			w.t.Errorf("%q: plan %+v, failure %+v, want a permanent failure", ref, answer.Plan, answer.Failure)
			continue
		}
		w.failed(ref, answer, gitWant{reason: answer.Failure.Reason, effect: answer.Failure.Effect})
		if sent := w.sent(); sent.push+sent.pushRefs != 0 {
			w.t.Errorf("%q: requests %+v", ref, sent)
		}
	}
	w.git(dir, "checkout", "-q", "--detach")
	answer := w.engine.PushIntent(w.t.Context(), w.request(contract.GitRequest{Dir: dir}))
	if answer.Failure == nil || !answer.Failure.Permanent {
		w.t.Errorf("no branch: %+v, %+v", answer.Plan, answer.Failure)
	}
}

// refused makes a push that must fail and leave the remote as it was.
func (w *gitWorld) refused(what, dir string, intent contract.GitPushIntent, want gitWant) {
	w.t.Helper()
	before, remote := w.state(dir), w.host.Refs(gitRepo)
	w.fails(what, w.engine.Push, contract.GitRequest{Dir: dir, Intent: &intent}, want)
	if diff := cmp.Diff(remote, w.host.Refs(gitRepo)); diff != "" {
		w.t.Errorf("%s: the remote's refs moved:\n%s", what, diff)
	}
	w.landed(what)
	w.unchanged(what, dir, before)
}

// G6: someone else pushed between the intent and the push: the lease of the
// intent is kept on the wire, and nothing is overwritten.
func gitPushTooLate(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	w.commit("theirs")
	w.publish("main")
	too := gitWant{reason: "conflict", effect: notSent}
	for _, force := range []bool{false, true} {
		w.host.Reset()
		w.refused("moved", dir, contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours, Force: force}, too)
		w.requests("moved", gitSent{pushRefs: 1})
	}
	w.host.Reset()
	w.refused("made", dir, contract.GitPushIntent{Ref: "refs/heads/main", New: ours, Force: true}, too)
	w.refused("gone", dir, contract.GitPushIntent{Ref: "refs/heads/gone", Old: first, New: ours}, too)

	// In between the list of refs and the push itself only the host can tell.
	theirs := w.remote("refs/heads/main")
	w.check(w.host.SetRef(gitRepo, "refs/heads/main", first))
	w.host.Reset()
	w.host.Script(simulator.HoldBefore("push").On(githttp.OpReceivePack))
	done := make(chan GitAnswer, 1)
	go func() {
		done <- w.engine.Push(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Intent: &contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}}))
	}()
	w.held("push")
	w.check(w.host.SetRef(gitRepo, "refs/heads/main", theirs))
	w.host.Gate("push").Release()
	w.failed("raced", <-done, too)
	w.requests("raced", gitSent{pushRefs: 1, push: 1})
	if got := w.remote("refs/heads/main"); got != theirs {
		w.t.Errorf("raced: main is %s, want theirs", got)
	}
}

// G6: a host that refuses by its rules says so for the ref, and its words are not
// passed on.
func gitPushRefused(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	w.check(w.host.Protect(gitRepo, gitPlanted+" early EOF", "refs/heads/main"))
	w.host.Reset()
	w.refused("protected", dir, contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}, gitWant{reason: "permission", effect: notSent, hint: "rule"})
	w.requests("protected", gitSent{pushRefs: 1, push: 1})
}

// G6: a push that is larger than what git sends in one piece is one request too,
// without a probe before it.
func gitPushesMuch(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	noise := make([]byte, 3<<20)
	_, err := rand.Read(noise)
	w.check(err)
	ours := w.local(dir, "noise", string(noise))
	w.push("much", dir, contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours})
	if got := w.host.Ledger().Requests(githttp.OpReceivePack); got[0].BodyBytes < 3<<20 {
		w.t.Errorf("the push has %d bytes", got[0].BodyBytes)
	}
}

// G6: what the remote has is not sent again.
func gitPushesLittle(w *gitWorld) {
	noise := make([]byte, 1<<20)
	_, err := rand.Read(noise)
	w.check(err)
	w.write(w.author, "noise", string(noise))
	w.commit("noise")
	w.publish("main")
	dir := w.checkout("a")
	ours := w.local(dir, "local", "ours")
	w.push("little", dir, contract.GitPushIntent{Ref: "refs/heads/topic", New: ours})
	if got := w.host.Ledger().Requests(githttp.OpReceivePack); got[0].BodyBytes > 10<<10 {
		w.t.Errorf("a small commit took %d bytes", got[0].BodyBytes)
	}
}

func gitPushesShallow(w *gitWorld) {
	w.commit("second")
	w.publish("main")
	dir := w.dir("a")
	w.git(w.work, "clone", "-q", "--depth", "1", w.url(), dir)
	top := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	plan := contract.GitPushPlan{Intent: contract.GitPushIntent{Ref: "refs/heads/main", Old: top, New: ours}, Found: top}
	w.push("shallow", dir, w.plan("shallow", contract.GitRequest{Dir: dir}, plan))
	// The remote has the commit at the edge, and no ref tells so any more.
	w.commit("meanwhile")
	w.publish("main")
	w.push("shallow, to who moved on", dir, contract.GitPushIntent{Ref: "refs/heads/topic", New: ours})
	w.push("shallow, the edge itself", dir, contract.GitPushIntent{Ref: "refs/heads/edge", New: top})
	// One with another history lacks what is behind the edge.
	w.check(w.host.Create("other.git", 2))
	w.fails("shallow, to another", w.engine.Push, contract.GitRequest{
		Dir: dir, URL: w.host.RepoURL("other.git"), Intent: &contract.GitPushIntent{Ref: "refs/heads/topic", New: ours},
	}, gitWant{reason: "format", effect: notSent, hint: "--unshallow"})
}

// G12: a local remote is pushed to by path and by URL.
func gitPushesLocal(w *gitWorld) {
	dir := w.checkout("a")
	old := w.remote("refs/heads/main")
	for _, url := range []string{w.host.Dir(gitRepo), "file://" + w.host.Dir(gitRepo)} {
		ours := w.local(dir, "local", url)
		in := contract.GitRequest{Dir: dir, URL: url}
		intent := w.do(w.engine.PushIntent, in).Plan.Intent
		in.Intent = &intent
		want := contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: ours}
		if *in.Intent != want {
			w.t.Errorf("intent %+v, want %+v", *in.Intent, want)
		}
		w.do(w.engine.Push, in)
		if got := w.remote("refs/heads/main"); got != ours {
			w.t.Errorf("main is %s, want %s", got, ours)
		}
		got := w.do(w.engine.Locate, in).Located
		if diff := cmp.Diff(contract.GitLocated{Found: ours, Contains: true}, got); diff != "" {
			w.t.Errorf("located (-want +got):\n%s", diff)
		}
		old = ours
		w.whole("local", dir)
	}
}

func gitPushesEmpty(w *gitWorld) {
	const name = "empty.git"
	w.check(w.host.Create(name, 0))
	dir := w.checkout("a")
	w.git(dir, "remote", "set-url", "origin", w.host.RepoURL(name))
	top := w.git(dir, "rev-parse", "HEAD")
	plan := w.do(w.engine.PushIntent, contract.GitRequest{Dir: dir}).Plan
	if plan.Outcome != "" || plan.Found != "" || plan.Intent != (contract.GitPushIntent{Ref: "refs/heads/main", New: top}) {
		w.t.Errorf("plan %+v", plan)
	}
	w.do(w.engine.Push, contract.GitRequest{Dir: dir, Intent: &plan.Intent})
	if got := w.host.Refs(name)["refs/heads/main"]; got != top {
		w.t.Errorf("main is %q, want %s", got, top)
	}
}

// locate reads what a remote has in place of a push, and nothing else moves.
func (w *gitWorld) locate(what, dir string, intent contract.GitPushIntent, want contract.GitLocated) {
	w.t.Helper()
	before := w.state(dir)
	w.host.Reset()
	got := w.do(w.engine.Locate, contract.GitRequest{Dir: dir, Intent: &intent}).Located
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: located (-want +got):\n%s", what, diff)
	}
	if sent := w.sent(); sent.refs != 1 || sent.pushRefs+sent.push != 0 {
		w.t.Errorf("%s: requests %+v", what, sent)
	}
	w.unchanged(what, dir, before)
}

// lost makes a push of which nobody can say what became: it is not repeated.
func (w *gitWorld) lost(what, dir string, intent contract.GitPushIntent) {
	w.t.Helper()
	before := w.state(dir)
	w.fails(what, w.engine.Push, contract.GitRequest{Dir: dir, Intent: &intent}, gitWant{reason: "timeout", effect: unknown})
	w.requests(what, gitSent{pushRefs: 1, push: 1})
	w.unchanged(what, dir, before)
}

// G6: a push that landed and whose answer was lost is found at the remote.
func gitPushAnswerLost(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	intent := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}
	w.host.Reset()
	w.host.Script(githttp.LandThenReset())
	w.lost("answer lost", dir, intent)
	w.landed("answer lost", "refs/heads/main "+first+" "+ours)
	w.locate("answer lost", dir, intent, contract.GitLocated{Found: ours, Contains: true})
}

// G6: a push that never arrived is not found.
func gitPushLost(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	intent := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}
	w.host.Reset()
	w.host.Script(githttp.LosePush())
	w.lost("lost", dir, intent)
	w.landed("lost")
	w.locate("lost", dir, intent, contract.GitLocated{Found: first})
	w.push("again", dir, intent)
}

// G6: a push is never repeated on the wire: not by git, not by libcurl, which
// sends again what it sent on a connection that was reset after it had served
// another request.
func gitPushReset(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	w.host.Reset()
	w.host.Script(githttp.ResetReusedPush())
	answer := w.engine.Push(w.t.Context(), w.request(contract.GitRequest{Dir: dir, Intent: &contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}}))
	got := w.host.Ledger().Requests(githttp.OpReceivePack)
	if len(got) != 1 {
		w.t.Fatalf("%d pushes on the wire, want 1: %+v", len(got), got)
	}
	// On a connection of its own there was nothing to reset, and it landed.
	if reset := len(w.host.Remaining()) == 0; reset != (answer.Failure != nil) {
		w.t.Errorf("reset %v, failure %+v", reset, answer.Failure)
	}

	next := w.local(dir, "local", "next")
	old := w.remote("refs/heads/main")
	w.host.Reset()
	w.host.Script(simulator.Reset().On(githttp.OpReceivePack).Always())
	w.lost("reset", dir, contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: next})
	w.landed("reset")
}

// G6: a replica that lags shows what was before the push, and later the push.
func gitPushLags(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	intent := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}
	w.check(w.host.Lag(gitRepo, 1))
	w.push("lags", dir, intent)
	w.locate("behind", dir, intent, contract.GitLocated{Found: first})
	w.locate("caught up", dir, intent, contract.GitLocated{Found: ours, Contains: true})
}

// G6: what the remote has is ours, or follows upon ours, or does not, or is
// nothing; what is needed to tell is brought, and no ref here moves.
func gitLocates(w *gitWorld) {
	dir := w.checkout("a")
	first := w.remote("refs/heads/main")
	ours := w.local(dir, "local", "ours")
	intent := contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}
	theirs := w.commit("theirs")
	w.publish("main")
	w.locate("theirs", dir, intent, contract.GitLocated{Found: theirs})
	w.requests("theirs", gitSent{refs: 1, pack: 1})

	// Someone built on ours.
	w.git(w.author, "fetch", "-q", dir, "main")
	w.git(w.author, "reset", "-q", "--hard", ours)
	w.commit("on top")
	on := w.commit("on top again")
	w.publish("main")
	w.locate("on top", dir, intent, contract.GitLocated{Found: on, Contains: true})

	w.publish("main")
	intent.Ref = "refs/heads/missing"
	w.locate("missing", dir, intent, contract.GitLocated{})
	w.requests("missing", gitSent{refs: 1})

	// A ref that is no branch.
	w.git(w.author, "tag", "-a", "-m", "one", "v1", ours)
	w.publish("v1")
	v1 := w.git(w.author, "rev-parse", "v1")
	w.locate("tag", dir, contract.GitPushIntent{Ref: "refs/tags/v1", New: v1}, contract.GitLocated{Found: v1, Contains: true})
	w.locate("another tag", dir, contract.GitPushIntent{Ref: "refs/tags/v1", New: strings.Repeat("1", 40)}, contract.GitLocated{Found: v1})
}
