package conformance

import (
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

var gitPushFaultCases = []gitCase{
	{"faults before a push", gitFaultsBeforePush},
	{"faults of a push", gitFaultsOfPush},
	{"faults of a push that landed", gitFaultsAfterPush},
	{"strange answers to a push", gitStrangeAnswers},
}

// gitPushing is a checkout with a commit to push.
type gitPushing struct {
	*gitWorld
	dir    string
	intent contract.GitPushIntent
	before gitState
}

func (w *gitWorld) pushing() gitPushing {
	w.t.Helper()
	p := gitPushing{gitWorld: w, dir: w.checkout("a")}
	p.intent = contract.GitPushIntent{Ref: "refs/heads/main", Old: w.remote("refs/heads/main")}
	p.intent.New = w.local(p.dir, "local", "ours")
	p.before = w.state(p.dir)
	return p
}

// meets makes a push that meets a fault. landed says whether it took effect.
func (p gitPushing) meets(step simulator.Step, want gitWant, sent gitSent, landed bool) {
	p.t.Helper()
	what := fmt.Sprintf("%s at %s", step.Note, step.Match)
	p.check(p.host.SetRef(gitRepo, p.intent.Ref, p.intent.Old))
	remote := p.host.Refs(gitRepo)
	p.host.Reset()
	p.host.Script(step)
	p.fails(what, p.engine.Push, contract.GitRequest{Dir: p.dir, Intent: &p.intent}, want)
	p.requests(what, sent)
	if landed {
		remote[p.intent.Ref] = p.intent.New
	}
	if diff := cmp.Diff(remote, p.host.Refs(gitRepo)); diff != "" {
		p.t.Errorf("%s: the remote's refs (-want +got):\n%s", what, diff)
	}
	if got := len(p.host.Ledger().Effects("")); got > 1 || (got == 1) != landed {
		p.t.Errorf("%s: %d effects", what, got)
	}
	p.unchanged(what, p.dir, p.before)
}

// G6: while the refs are asked for nothing has been pushed, and that is proved.
func gitFaultsBeforePush(w *gitWorld) {
	p := w.pushing()
	for _, f := range gitFaults(githttp.OpPushRefs) {
		f.want.retry, f.want.effect = false, notSent
		p.meets(f.step, f.want, gitSent{pushRefs: 1}, false)
	}
}

// G6: a push that was refused had no effect; of any other nobody can say, and
// none is repeated.
func gitFaultsOfPush(w *gitWorld) {
	p := w.pushing()
	for _, f := range gitFaults(githttp.OpReceivePack) {
		if f.step.Status == 0 && f.step.Cut != nil {
			continue // a part of an answer that was made: see below
		}
		f.want.retry, f.want.effect = false, unknown
		switch f.step.Status {
		case 401, 403, 404:
			f.want.effect = notSent
		case 200:
			f.want.reason, f.want.hint = p.reasonOf(f.step), "" // any, for it proves nothing
		}
		p.meets(f.step, f.want, gitSent{pushRefs: 1, push: 1}, false)
	}
	p.meets(githttp.LosePush(), gitWant{reason: "timeout", effect: unknown}, gitSent{pushRefs: 1, push: 1}, false)
}

// reasonOf is what an engine makes of a push that meets a step.
func (p gitPushing) reasonOf(step simulator.Step) string {
	p.t.Helper()
	p.host.Reset()
	p.host.Script(step)
	answer := p.engine.Push(p.t.Context(), p.request(contract.GitRequest{Dir: p.dir, Intent: &p.intent}))
	if answer.Failure == nil {
		return "failure"
	}
	return answer.Failure.Reason
}

// G6: a push that landed and whose answer did not arrive, or not as a whole, is
// unknown, whatever arrived of it.
func gitFaultsAfterPush(w *gitWorld) {
	p := w.pushing()
	for _, step := range []simulator.Step{
		githttp.LandThenReset(),
		simulator.EffectThenClose(),
		simulator.CutBytes(0).As("cut after the headers"),
		simulator.CutBytes(3),
		simulator.CutBytes(20),
		{Note: "reset after 20 bytes", Cut: &simulator.Cut{Bytes: 20}, End: simulator.EndRST},
		simulator.Status(502, "").WithEffect(simulator.EffectOnce).As("502 after the effect"),
		simulator.Status(504, "").WithEffect(simulator.EffectOnce).As("504 after the effect"),
	} {
		want := gitWant{reason: "timeout", effect: unknown}
		if step.Status == 502 {
			want.reason = "server_error"
		}
		p.meets(plant(step).On(githttp.OpReceivePack), want, gitSent{pushRefs: 1, push: 1}, true)
	}
}

// G6: an answer that does not say that the ref has moved proves nothing, unless
// it says that it has not.
func gitStrangeAnswers(w *gitWorld) {
	p := w.pushing()
	band := func(report string) string { return fmt.Sprintf("%04x\x01%s0000", len(report)+5, report) }
	line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
	for _, tc := range []struct {
		name, report string
		effect       string
	}{
		{"nothing about the ref", line("unpack ok\n") + "0000", unknown},
		{"another ref", line("unpack ok\n") + line("ok refs/heads/other\n") + "0000", unknown},
		{"no end", line("unpack ok\n"), unknown},
		{"not unpacked", line("unpack "+gitPlanted+"\n") + line("ng refs/heads/main unpacker error\n") + "0000", notSent},
		{"refused", line("unpack ok\n") + line("ng refs/heads/main "+gitPlanted+" early EOF\n") + "0000", notSent},
	} {
		step := githttp.Says(githttp.OpReceivePack, band(tc.report)).As(tc.name)
		want := gitWant{reason: p.reasonOf(step), effect: tc.effect}
		p.meets(step, want, gitSent{pushRefs: 1, push: 1}, false)
	}
}
