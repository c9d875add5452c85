package e2e

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// transient are faults of the first attempt that a second may not meet (G4).
var transient = map[string]simulator.Step{
	"503":       githttp.Unavailable().On(githttp.OpFetchRefs),
	"429":       simulator.Status(http.StatusTooManyRequests, "slow down\n").On(githttp.OpFetchRefs),
	"reset":     simulator.Reset().On(githttp.OpUploadPack),
	"closed":    simulator.Close().On(githttp.OpFetchRefs),
	"early EOF": githttp.CutPack(300),
}

// warnings are the lines of the log about Git retries.
func (s *stage) warnings() []map[string]any {
	var lines []map[string]any
	for line := range strings.Lines(s.logs.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["subsystem"] == "git/network" {
			lines = append(lines, entry)
		}
	}
	return lines
}

// wantWarning checks the one line about a retry: what it says, and that neither
// address nor argument is in it (G8).
func (s *stage) wantWarning(operation string) {
	s.t.Helper()
	lines := s.warnings()
	if len(lines) != 1 {
		s.t.Fatalf("%d lines of git/network, want 1: %v", len(lines), lines)
	}
	got := lines[0]
	code, _ := got["exit_code"].(float64)
	want := map[string]any{
		"level": "WARN", "operation": operation, "attempt": 2.0, "max_attempts": 2.0, "delay": "1s",
	}
	for key, value := range want {
		if got[key] != value {
			s.t.Errorf("the warning's %s is %v, want %v", key, got[key], value)
		}
	}
	if s.engine == "go-git" && code != 1 || s.engine == "git" && code < 1 {
		s.t.Errorf("the warning's exit_code is %v", got["exit_code"])
	}
	line, _ := json.Marshal(got)
	for _, secret := range []string{"http", s.checkout, repository} {
		if strings.Contains(string(line), secret) {
			s.t.Errorf("the warning %s holds %q", line, secret)
		}
	}
}

// G1, G4, G8: each transient fault of the first attempt is followed by one
// retry after 1 s, which succeeds, and by one warning.
func TestGitFetchTransientOnce(t *testing.T) {
	for name, step := range transient {
		t.Run(name, func(t *testing.T) {
			withEngines(t, func(t *testing.T, s *stage) {
				s.work()
				s.repo(30)
				s.world.Git.Script(step)
				h := s.fetch("once", contract.GitFetchInput{})
				wantGit(t, finish(s, h), contract.OutcomeFetched, "", 0)
				s.wantWarning("fetch")
				s.wantWait(h.ID())
				s.sound()
			})
		})
	}
}

// wantWait checks that the workflow waited once, for a second.
func (s *stage) wantWait(id string) {
	s.t.Helper()
	if waits := summaries(s.history(id), enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) != 1 || !strings.HasPrefix(waits[0], "wait 1 s") {
		s.t.Errorf("waits %q, want one of 1 s", waits)
	}
}

// G1: the same fault twice is the end: two attempts in all, and the first cause.
func TestGitFetchTransientTwice(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(30)
		s.world.Git.Script(githttp.CutPack(300).Times(2))
		wantGit(t, finish(s, s.fetch("twice", contract.GitFetchInput{})), contract.OutcomeFailed, "timeout", 2)
		wantRequests(t, s.world.Git.Server, githttp.OpUploadPack, 2)
		if refs := s.refs(); refs != "" {
			t.Errorf("refs were written:\n%s", refs)
		}
		s.sound()
	})
}

// G4: a host name that cannot be looked up at first, and then can.
func TestGitFetchUnknownHostOnce(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		s.git("-C", s.checkout, "remote", "set-url", "origin", "https://git.holdfast.invalid/team/project")
		admission := s.admit(func(r contract.GitAdmissionRequest) error {
			if r.Attempt == 2 {
				s.git("-C", s.checkout, "remote", "set-url", "origin", s.world.Git.RepoURL(repository))
			}
			return nil
		})
		h := s.fetch("unknown-host-once", contract.GitFetchInput{Admission: admission})
		wantGit(t, finish(s, h), contract.OutcomeFetched, "", 0)
		s.wantWarning("fetch")
		s.wantWait(h.ID())
	})
}

// G5: authority that is refused before the second attempt ends the operation:
// there is no second request.
func TestGitAdmissionRefused(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		s.world.Git.Script(githttp.Unavailable().On(githttp.OpFetchRefs))
		admission := s.admit(func(r contract.GitAdmissionRequest) error {
			if r.Attempt == 2 {
				return errors.New("the workspace was taken away")
			}
			return nil
		})
		h := s.fetch("refused", contract.GitFetchInput{Admission: admission})
		wantGit(t, finish(s, h), contract.OutcomeFailed, "permission", 1)
		wantRequests(t, s.world.Git.Server, "*", 1)
		s.keepGit("git-fetch-not-admitted", h.ID())
	})
}

// G3: what a second look cannot change is not looked at again.
func TestGitFetchPermanent(t *testing.T) {
	for _, tc := range []struct {
		name, reason string
		step         simulator.Step
		ref          string
	}{
		{"403", "permission", simulator.Status(403, "no\n").On(githttp.OpFetchRefs), ""},
		{"404", "not_found", simulator.Status(404, "no\n").On(githttp.OpFetchRefs), ""},
		{"missing ref", "not_found", simulator.Step{}, "no-such-branch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withEngines(t, func(t *testing.T, s *stage) {
				s.work()
				s.repo(3)
				if tc.ref == "" {
					s.world.Git.Script(tc.step.Always())
				}
				h := s.fetch("permanent", contract.GitFetchInput{Ref: tc.ref})
				wantGit(t, finish(s, h), contract.OutcomeFailed, tc.reason, 1)
				wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 1)
				if lines := s.warnings(); len(lines) > 0 {
					t.Errorf("a refused operation warned of a retry: %v", lines)
				}
				a := s.starter("git", "fetch", "--dir", s.checkout, "--host", stageHost, "--auth", "forge", "--key", "permanent", "--json",
					"--ref="+tc.ref)
				if a.status != contract.ExitFailed {
					t.Errorf("exit status %d, want 1: %s", a.status, a.errors)
				}
			})
		})
	}
}

// G1: with a second or less left of the timeout there is no retry.
func TestGitFetchNoTimeLeft(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		step := simulator.DelayBefore(2500 * time.Millisecond)
		step.Status, step.Effect = http.StatusServiceUnavailable, simulator.EffectNone
		s.world.Git.Script(step.On(githttp.OpFetchRefs).Always())
		result := finish(s, s.fetch("no-time", contract.GitFetchInput{Timeout: "3s"}))
		if result.Outcome != contract.OutcomeFailed || result.Error.Attempts != 1 {
			t.Errorf("outcome %s (%+v), want failed after 1 attempt", result.Outcome, result.Error)
		}
		wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 1)
	})
}

// G1: with more than a second left there is a second attempt, and it gets what is
// left and no more.
func TestGitFetchSomeTimeLeft(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		fails := simulator.DelayBefore(4 * time.Second)
		fails.Status, fails.Effect = http.StatusServiceUnavailable, simulator.EffectNone
		s.world.Git.Script(fails.On(githttp.OpFetchRefs), simulator.Stall().On(githttp.OpFetchRefs))
		began := time.Now()
		result := finish(s, s.fetch("some-time", contract.GitFetchInput{Timeout: "12s"}))
		if result.Outcome != contract.OutcomeFailed || result.Error.Attempts != 2 || result.Error.Reason != "deadline" {
			t.Errorf("outcome %s (%+v), want the second attempt to end by the deadline", result.Outcome, result.Error)
		}
		if took := time.Since(began); took < 11*time.Second || took > 30*time.Second {
			t.Errorf("ended after %v, want the 12 s of its timeout", took)
		}
		wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 2)
	})
}

// G3: a disk that is full, a small tmpfs, is told and not tried again; nothing of
// the fetch stays.
func TestGitDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the small disk that this test fills; CI runs it as root")
	}
	withEngines(t, func(t *testing.T, s *stage) {
		disk := filepath.Dir(s.checkout)
		if err := os.MkdirAll(disk, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("holdfast", disk, "tmpfs", 0, "size=1m"); err != nil {
			t.Fatalf("mount a tmpfs: %v", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		s.work()
		s.repo(1)
		s.large()
		wantGit(t, finish(s, s.fetch("disk-full", contract.GitFetchInput{})), contract.OutcomeFailed, "no_space", 1)
		if refs := s.refs(); refs != "" {
			t.Errorf("refs were written:\n%s", refs)
		}
		s.sound()
		wantGit(t, finish(s, s.clone("disk-full", contract.GitCloneInput{Dir: filepath.Join(disk, "clone")})), contract.OutcomeFailed, "no_space", 1)
		if _, err := os.Stat(filepath.Join(disk, "clone")); !os.IsNotExist(err) {
			t.Errorf("the clone's directory is there: %v", err)
		}
		s.sound()
	})
}

// large adds four megabytes that do not compress to the simulated repository.
func (s *stage) large() {
	s.t.Helper()
	author := filepath.Join(s.t.TempDir(), "author")
	s.git("clone", "--quiet", s.world.Git.Dir(repository), author)
	cmd := exec.Command("head", "-c", "4000000", "/dev/urandom")
	data, err := cmd.Output()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(author, "noise"), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.git("-C", author, "add", "noise")
	s.git("-C", author, "-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "--quiet", "-m", "noise")
	s.git("-C", author, "push", "--quiet", "origin", "HEAD:main")
}

// G3, G11, G12: a worker killed in the middle of a fetch is worker_lost: its
// programs end with it, one more attempt is made, uncharged and at once, and the
// refs never point at what is not there.
func TestGitWorkerKilled(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.repo(30)
		s.world.Git.Script(simulator.HoldAfter("pack").On(githttp.OpUploadPack))
		worker := s.worker()
		h := s.fetch("killed", contract.GitFetchInput{})
		if _, err := s.world.Git.Gate("pack").WaitHeld(s.ctx); err != nil {
			t.Fatal(err)
		}
		programs := descendants(worker.pid())
		if len(programs) == 0 {
			t.Error("the worker had started no program")
		}
		s.killHeld(worker, s.world.Git.Server, "pack")
		s.gone(programs)
		s.git("-C", s.checkout, "fsck", "--strict", "--no-dangling")
		wantGit(t, finish(s, h), contract.OutcomeFetched, "", 0)
		if diff := cmp.Diff("refs/remotes/origin/main "+s.remoteMain(), s.refs()); diff != "" {
			t.Errorf("refs (-want +got):\n%s", diff)
		}
		history := s.history(h.ID())
		if diff := cmp.Diff([]string{"git fetch, attempt 1 of 2", "git fetch, attempt 1 of 2"},
			summaries(history, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if waits := summaries(history, enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) > 0 {
			t.Errorf("the fetch waited: %q", waits)
		}
		s.sound()
		s.keepGit("git-fetch-worker-lost", h.ID())
	})
}

// G5, G11: cancelled in the middle of a transfer, the workflow has ended within a
// second and its programs within five; no lock is left and no ref was written.
func TestGitCancelDuringTransfer(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.repo(30)
		s.world.Git.Script(simulator.HoldBefore("pack").On(githttp.OpUploadPack))
		worker := s.worker()
		h := s.fetch("cancelled", contract.GitFetchInput{})
		n, err := s.world.Git.Gate("pack").WaitHeld(s.ctx)
		if err != nil {
			t.Fatal(err)
		}
		programs := descendants(worker.pid())
		if err := h.Cancel(s.ctx); err != nil {
			t.Fatal(err)
		}
		wantGit(t, finish(s, h), contract.OutcomeCancelled, "cancelled", 1)
		s.endsSoon(h.ID())
		s.gone(programs)
		if _, err := s.world.Git.Ledger().WaitGone(s.ctx, n); err != nil {
			t.Error(err)
		}
		if refs := s.refs(); refs != "" {
			t.Errorf("refs were written:\n%s", refs)
		}
		s.sound()
		s.keepGit("git-fetch-cancelled-in-transfer", h.ID())
	})
}

// G11: two workers never work in one checkout: the second waits until the first
// is done, and says so.
func TestGitTwoWorkersOnePath(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.repo(30)
		s.world.Git.Script(simulator.HoldBefore("pack").On(githttp.OpUploadPack))
		s.worker()
		first := s.fetch("first", contract.GitFetchInput{})
		if _, err := s.world.Git.Gate("pack").WaitHeld(s.ctx); err != nil {
			t.Fatal(err)
		}
		s.worker()
		second := s.fetch("second", contract.GitFetchInput{})
		s.until(second.ID(), "wait for the lock", func(d described) bool {
			for _, a := range d.GetPendingActivities() {
				for _, p := range a.GetHeartbeatDetails().GetPayloads() {
					if strings.Contains(string(p.GetData()), "lock") {
						return true
					}
				}
			}
			return false
		})
		wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 1)
		s.world.Git.Gate("pack").Release()
		wantGit(t, finish(s, first), contract.OutcomeFetched, "", 0)
		wantGit(t, finish(s, second), contract.OutcomeUpToDate, "", 0)
		requests := s.world.Git.Ledger().Requests(githttp.OpFetchRefs)
		packs := s.world.Git.Ledger().Requests(githttp.OpUploadPack)
		if len(requests) != 2 || len(packs) == 0 || requests[1].At.Before(packs[0].AnsweredAt) {
			t.Errorf("the second fetch began before the first had its pack")
		}
		s.sound()
	})
}
