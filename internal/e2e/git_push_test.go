package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// wantPush checks how a push ended, that it was made at most once on the wire,
// and what the remote has.
func (s *stage) wantPush(r contract.GitResult, outcome contract.Outcome, requests int, remote string) {
	s.t.Helper()
	if r.Outcome != outcome {
		s.t.Errorf("outcome %s (%+v), want %s", r.Outcome, r.Error, outcome)
	}
	for _, request := range wantRequests(s.t, s.world.Git.Server, githttp.OpReceivePack, requests) {
		if request.Reused() {
			s.t.Errorf("request %d used the connection of another, on which an HTTP client repeats it unasked", request.N)
		}
	}
	if got := s.remoteMain(); got != remote {
		s.t.Errorf("the remote's main is %s, want %s", got, remote)
	}
	s.sound()
}

// G6: a push lands, and a second push of the same has nothing to do.
func TestGitPushLands(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		ours := s.commit("ours")
		h := s.push("lands", contract.GitPushInput{})
		result := finish(s, h)
		s.wantPush(result, contract.OutcomeLanded, 1, ours)
		want := &contract.GitPushed{Ref: "refs/heads/main", Old: old, New: ours, Found: ours}
		if diff := cmp.Diff(want, result.Push); diff != "" {
			t.Errorf("push (-want +got):\n%s", diff)
		}
		s.keepGit("git-push-landed", h.ID())
		s.wantPush(finish(s, s.push("lands-again", contract.GitPushInput{})), contract.OutcomeUpToDate, 1, ours)
	})
}

// G6: push accepted, answer lost: landed, and never pushed again.
func TestGitPushAnswerLost(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		ours := s.commit("ours")
		s.world.Git.Script(simulator.EffectThenReset().On(githttp.OpReceivePack).Always())
		h := s.push("answer-lost", contract.GitPushInput{})
		s.wantPush(finish(s, h), contract.OutcomeLanded, 1, ours)
		s.keepGit("git-push-answer-lost", h.ID())
	})
}

// G6: as before, and somebody built on it before it was looked for: what contains
// ours has landed.
func TestGitPushAnswerLostAndBuiltUpon(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		s.commit("ours")
		s.world.Git.Script(
			simulator.EffectThenReset().On(githttp.OpReceivePack),
			simulator.Pass().On(githttp.OpFetchRefs), // the intent's
			simulator.HoldBefore("look").On(githttp.OpFetchRefs),
		)
		h := s.push("built-upon", contract.GitPushInput{})
		if _, err := s.world.Git.Gate("look").WaitHeld(s.ctx); err != nil {
			t.Fatal(err)
		}
		tip := s.others(2)
		s.world.Git.Gate("look").Release()
		s.wantPush(finish(s, h), contract.OutcomeLanded, 1, tip)
	})
}

// G6: a push that is lost before it arrives has not landed, which two reads say;
// a flow may push again with the same lease.
func TestGitPushLost(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		ours := s.commit("ours")
		s.world.Git.Script(simulator.Reset().On(githttp.OpReceivePack))
		h := s.push("lost", contract.GitPushInput{Expect: old})
		s.wantPush(finish(s, h), contract.OutcomeNotLanded, 1, old)
		s.keepGit("git-push-not-landed", h.ID())
		s.wantPush(finish(s, s.push("lost-again", contract.GitPushInput{Expect: old})), contract.OutcomeLanded, 2, ours)
	})
}

// G6: somebody else pushed between our decision and our push: conflict, and
// nothing is overwritten, with a lease too.
func TestGitPushConflict(t *testing.T) {
	for name, gate := range map[string]string{"before the discovery": githttp.OpPushRefs, "before the pack": githttp.OpReceivePack} {
		for _, leased := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				withEngines(t, func(t *testing.T, s *stage) {
					s.work()
					s.cloned(3)
					var in contract.GitPushInput
					if leased {
						in.Expect = s.remoteMain()
					}
					s.commit("ours")
					s.world.Git.Script(simulator.HoldBefore("push").On(gate))
					h := s.push("conflict", in)
					if _, err := s.world.Git.Gate("push").WaitHeld(s.ctx); err != nil {
						t.Fatal(err)
					}
					theirs := s.others(1)
					s.world.Git.Gate("push").Release()
					result := finish(s, h)
					requests := 0
					if gate == githttp.OpReceivePack {
						requests = 1
					}
					s.wantPush(result, contract.OutcomeConflict, requests, theirs)
					if result.Push == nil || result.Push.Found != theirs {
						t.Errorf("push %+v, want found %s", result.Push, theirs)
					}
					if gate == githttp.OpReceivePack && !leased {
						s.keepGit("git-push-conflict", h.ID())
					}
				})
			})
		}
	}
}

// G6: a stale lease, and without one a push that is no fast-forward, are refused
// before anything is pushed; with the right lease it replaces what is there.
func TestGitPushLease(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		theirs := s.others(1)
		ours := s.commit("ours")
		s.wantPush(finish(s, s.push("no-lease", contract.GitPushInput{})), contract.OutcomeConflict, 0, theirs)
		s.wantPush(finish(s, s.push("stale", contract.GitPushInput{Expect: old})), contract.OutcomeConflict, 0, theirs)
		s.wantPush(finish(s, s.push("leased", contract.GitPushInput{Expect: theirs})), contract.OutcomeLanded, 1, ours)
	})
}

// G6: where the remote cannot be read after a lost push, nothing is guessed:
// needs_review with the first cause, and exit status 3.
func TestGitPushUnreadable(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		s.commit("ours")
		s.world.Git.Script(
			simulator.Reset().On(githttp.OpReceivePack),
			simulator.Pass().On(githttp.OpFetchRefs),
			githttp.Unavailable().On(githttp.OpFetchRefs).Always(),
		)
		s.track("git-push/unreadable")
		a := s.starter("git", "push", "--dir", s.checkout, "--host", stageHost, "--auth", "forge", "--timeout", "15s", "--key", "unreadable", "--json")
		object := s.object(a)
		failure, _ := object["error"].(map[string]any)
		if a.status != contract.ExitNeedsReview || object["outcome"] != "needs_review" || failure["reason"] != "timeout" {
			t.Errorf("exit status %d, outcome %v, error %v; want 3, needs_review, timeout: %s", a.status, object["outcome"], failure, a.errors)
		}
		wantRequests(t, s.world.Git.Server, githttp.OpReceivePack, 1)
		if got := s.remoteMain(); got != old {
			t.Errorf("the remote's main is %s, want %s", got, old)
		}
		s.keepGit("git-push-needs-review", "git-push/unreadable")
	})
}

// G3, G6: a worker killed with the push in flight: the push is not made again but
// looked for, whether it had landed or not.
func TestGitPushWorkerKilled(t *testing.T) {
	for name, landed := range map[string]bool{"before the effect": false, "after the effect": true} {
		t.Run(name, func(t *testing.T) {
			withEngines(t, func(t *testing.T, s *stage) {
				s.cloned(3)
				old := s.remoteMain()
				ours := s.commit("ours")
				step, outcome, remote := simulator.HoldBefore("push"), contract.OutcomeNotLanded, old
				if landed {
					step, outcome, remote = simulator.HoldAfter("push"), contract.OutcomeLanded, ours
				}
				s.world.Git.Script(step.On(githttp.OpReceivePack))
				worker := s.worker()
				h := s.push("killed", contract.GitPushInput{})
				s.killHeld(worker, s.world.Git.Server, "push")
				s.wantPush(finish(s, h), outcome, 1, remote)
				s.keepGit("git-push-worker-lost-"+string(outcome), h.ID())
			})
		})
	}
}

// G3, G9: a push that the other side refuses for good says why and is not
// repeated; a hook's words do not get into the history.
func TestGitPushRefused(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		s.commit("ours")
		s.world.Git.Script(simulator.Status(403, "no\n").On(githttp.OpPushRefs))
		result := finish(s, s.push("forbidden", contract.GitPushInput{}))
		s.wantPush(result, contract.OutcomeFailed, 0, old)
		if result.Error == nil || result.Error.Reason != "permission" {
			t.Errorf("error %+v, want permission", result.Error)
		}
	})
}

// I1: starter git push says what landed, as text and as JSON.
func TestStarterGitPush(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		ours := s.commit("ours")
		args := []string{"git", "push", "--dir", s.checkout, "--host", stageHost, "--auth", "forge", "--key", "said"}
		s.track("git-push/said")
		a := s.starter(args...)
		if a.status != contract.ExitOK || !strings.Contains(a.out, "landed git-push/said") || !strings.Contains(a.out, ours[:10]) {
			t.Errorf("exit status %d, output:\n%s%s", a.status, a.out, a.errors)
		}
		object := s.object(s.starter(append(args, "--json")...))
		pushed, _ := object["push"].(map[string]any)
		if object["outcome"] != "landed" || pushed["new"] != ours {
			t.Errorf("JSON %v", object)
		}
	})
}

// G6: the read after a lost answer may come from a replica that lags: one read
// that shows the old value is not believed.
func TestGitPushLaggingReplica(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		ours := s.commit("ours")
		s.world.Git.Script(githttp.LandThenReset())
		if err := s.world.Git.Lag(repository, 1); err != nil {
			t.Fatal(err)
		}
		h := s.push("lagging", contract.GitPushInput{})
		s.wantPush(finish(s, h), contract.OutcomeLanded, 1, ours)
	})
}

// G6: a push on a connection that served before and is reset without an answer is
// not sent again by any layer: one receive-pack request, then the remote is read.
func TestGitPushReusedConnection(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		ours := s.commit("ours")
		s.world.Git.Script(githttp.ResetReusedPush().Always())
		result := finish(s, s.push("reused", contract.GitPushInput{}))
		s.wantPush(result, contract.OutcomeLanded, 1, ours)
	})
}

// G3, G6, G9: a hook that refuses is proof that nothing landed: failed, with the
// reason; its words do not get into the history.
func TestGitPushHookRefuses(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		old := s.remoteMain()
		s.commit("ours")
		if err := s.world.Git.Protect(repository, "words of the hook", "refs/heads/main"); err != nil {
			t.Fatal(err)
		}
		h := s.push("hook", contract.GitPushInput{})
		result := finish(s, h)
		s.wantPush(result, contract.OutcomeFailed, 1, old)
		if result.Error == nil || result.Error.Reason != "permission" {
			t.Errorf("error %+v, want permission", result.Error)
		}
		if strings.Contains(s.history(h.ID()).String(), "words of the hook") {
			t.Error("the hook's words are in the history")
		}
	})
}
