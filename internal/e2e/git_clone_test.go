package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// siblings are the names beside the checkout.
func (s *stage) siblings() []string {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(s.checkout))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// G2, G4: a clone that fails half-way is tried once more, after its own partial
// checkout is gone, and succeeds.
func TestGitCloneRetried(t *testing.T) {
	for name, step := range transient {
		t.Run(name, func(t *testing.T) {
			withEngines(t, func(t *testing.T, s *stage) {
				s.work()
				s.create(30)
				s.world.Git.Script(step)
				h := s.clone("retried", contract.GitCloneInput{})
				result := finish(s, h)
				wantGit(t, result, contract.OutcomeCloned, "", 0)
				want := &contract.GitHead{Ref: "refs/heads/main", OID: s.remoteMain()}
				if diff := cmp.Diff(want, result.Head); diff != "" {
					t.Errorf("head (-want +got):\n%s", diff)
				}
				if status := s.git("-C", s.checkout, "status", "--porcelain"); status != "" {
					t.Errorf("the files differ from the commit:\n%s", status)
				}
				if diff := cmp.Diff([]string{filepath.Base(s.checkout)}, s.siblings()); diff != "" {
					t.Errorf("beside the checkout (-want +got):\n%s", diff)
				}
				s.wantWarning("clone")
				s.sound()
				if name == "503" {
					s.keepGit("git-clone-retried", h.ID())
				}
			})
		})
	}
}

// G2: a clone that fails twice leaves nothing, and a directory that was there
// before stays as it was: an empty one is there and empty, a full one is refused.
func TestGitCloneLeavesNothing(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.create(30)
		s.world.Git.Script(githttp.CutPack(300).Times(2))
		h := s.clone("twice", contract.GitCloneInput{})
		wantGit(t, finish(s, h), contract.OutcomeFailed, "timeout", 2)
		if diff := cmp.Diff([]string{}, s.siblings()); diff != "" {
			t.Errorf("left behind (-want +got):\n%s", diff)
		}
		s.keepGit("git-clone-failed", h.ID())

		if err := os.MkdirAll(s.checkout, 0o700); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(s.checkout)
		if err != nil {
			t.Fatal(err)
		}
		s.world.Git.Script(githttp.CutPack(300).Times(2))
		wantGit(t, finish(s, s.clone("twice-into-empty", contract.GitCloneInput{})), contract.OutcomeFailed, "timeout", 2)
		entries, err := os.ReadDir(s.checkout)
		if err != nil || len(entries) > 0 {
			t.Errorf("the user's empty directory holds %v (%v)", entries, err)
		}
		wantGit(t, finish(s, s.clone("into-empty", contract.GitCloneInput{})), contract.OutcomeCloned, "", 0)
		after, err := os.Stat(s.checkout)
		if err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
			t.Errorf("the user's directory is another now: %v, %v", after, err)
		}
		s.sound()

		note := filepath.Join(filepath.Dir(s.checkout), "notes", "mine")
		if err := os.MkdirAll(filepath.Dir(note), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(note, []byte("keep"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{filepath.Dir(note), s.checkout} {
			requests := len(s.world.Git.Ledger().Requests("*"))
			result := finish(s, s.clone("full-"+filepath.Base(dir), contract.GitCloneInput{Dir: dir}))
			wantGit(t, result, contract.OutcomeFailed, result.Error.Reason, 1)
			wantRequests(t, s.world.Git.Server, "*", requests)
		}
		if data, err := os.ReadFile(note); err != nil || string(data) != "keep" {
			t.Errorf("the user's file holds %q (%v)", data, err)
		}
		s.git("-C", s.checkout, "fsck", "--strict")
	})
}

// G2, G3: a worker killed in the middle of a clone: its programs and its partial
// checkout are gone, and the next attempt makes the clone.
func TestGitCloneWorkerKilled(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.create(30)
		s.world.Git.Script(simulator.HoldAfter("pack").On(githttp.OpUploadPack))
		worker := s.worker()
		h := s.clone("killed", contract.GitCloneInput{})
		if _, err := s.world.Git.Gate("pack").WaitHeld(s.ctx); err != nil {
			t.Fatal(err)
		}
		programs := descendants(worker.pid())
		s.killHeld(worker, s.world.Git.Server, "pack")
		s.gone(programs)
		wantGit(t, finish(s, h), contract.OutcomeCloned, "", 0)
		if diff := cmp.Diff([]string{filepath.Base(s.checkout)}, s.siblings()); diff != "" {
			t.Errorf("beside the checkout (-want +got):\n%s", diff)
		}
		s.sound()
	})
}

// G5: cancelled in the middle of a clone, nothing of it is left.
func TestGitCloneCancelled(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.create(30)
		s.world.Git.Script(simulator.HoldBefore("pack").On(githttp.OpUploadPack))
		worker := s.worker()
		h := s.clone("cancelled", contract.GitCloneInput{})
		if _, err := s.world.Git.Gate("pack").WaitHeld(s.ctx); err != nil {
			t.Fatal(err)
		}
		programs := descendants(worker.pid())
		if err := h.Cancel(s.ctx); err != nil {
			t.Fatal(err)
		}
		wantGit(t, finish(s, h), contract.OutcomeCancelled, "cancelled", 1)
		s.endsSoon(h.ID())
		s.gone(programs)
		s.poll("end of the partial checkout", func() bool { return len(s.siblings()) == 0 })
	})
}

// G10: depth, single branch, tags and sparse directories are as asked, through
// starter git clone, and later fetches keep to them.
func TestGitCloneShapes(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.create(30)
		if err := s.world.Git.Commit(repository, "side", 2); err != nil {
			t.Fatal(err)
		}
		s.git("-C", s.world.Git.Dir(repository), "tag", "v1", "main")
		all := s.git("-C", s.world.Git.Dir(repository), "rev-list", "--count", "main")
		root := filepath.Dir(s.checkout)
		clone := func(name string, flags ...string) string {
			t.Helper()
			dir := filepath.Join(root, name)
			s.track("git-clone/" + name)
			a := s.starter(append([]string{"git", "clone", s.world.Git.RepoURL(repository), dir,
				"--host", stageHost, "--auth", "forge", "--key", name}, flags...)...)
			if a.status != contract.ExitOK || !strings.Contains(a.out, "cloned git-clone/"+name) {
				t.Fatalf("%s: exit status %d:\n%s%s", name, a.status, a.out, a.errors)
			}
			return dir
		}
		count := func(dir string) string { return s.git("-C", dir, "rev-list", "--count", "HEAD") }
		branches := func(dir string) string {
			return s.git("-C", dir, "for-each-ref", "--format=%(refname)", "refs/remotes/origin", "refs/tags")
		}
		for _, tc := range []struct {
			name, commits, refs string
			flags               []string
		}{
			{"whole", all, "refs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/remotes/origin/side\nrefs/tags/v1", nil},
			{"shallow", "1", "refs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/tags/v1", []string{"--depth", "1"}},
			{"single", all, "refs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/tags/v1", []string{"--single-branch"}},
			{"untagged", all, "refs/remotes/origin/HEAD\nrefs/remotes/origin/main\nrefs/remotes/origin/side", []string{"--no-tags"}},
		} {
			dir := clone(tc.name, tc.flags...)
			if got := count(dir); got != tc.commits {
				t.Errorf("%s: %s commits, want %s", tc.name, got, tc.commits)
			}
			if diff := cmp.Diff(tc.refs, branches(dir)); diff != "" {
				t.Errorf("%s: refs (-want +got):\n%s", tc.name, diff)
			}
			if status := s.git("-C", dir, "status", "--porcelain"); status != "" {
				t.Errorf("%s: the files differ from the commit:\n%s", tc.name, status)
			}
		}
	})
}

// G7: a sync fetches and fast-forwards the files; with nothing new it is up to
// date; a branch that has diverged is told and left as it is.
func TestGitSync(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.cloned(3)
		tip := s.others(2)
		h := s.sync("forward", contract.GitSyncInput{})
		result := finish(s, h)
		wantGit(t, result, contract.OutcomeSynced, "", 0)
		if head := s.git("-C", s.checkout, "rev-parse", "HEAD"); head != tip || result.Head == nil || result.Head.OID != tip {
			t.Errorf("HEAD is %s, told %+v, want %s", head, result.Head, tip)
		}
		if status := s.git("-C", s.checkout, "status", "--porcelain"); status != "" {
			t.Errorf("the files differ from the commit:\n%s", status)
		}
		s.keepGit("git-sync-synced", h.ID())
		wantGit(t, finish(s, s.sync("nothing-new", contract.GitSyncInput{})), contract.OutcomeUpToDate, "", 0)

		ours := s.commit("ours")
		theirs := s.others(1)
		h = s.sync("diverged", contract.GitSyncInput{})
		result = finish(s, h)
		if result.Outcome != contract.OutcomeDiverged {
			t.Errorf("outcome %s, want diverged", result.Outcome)
		}
		if head := s.git("-C", s.checkout, "rev-parse", "HEAD"); head != ours {
			t.Errorf("HEAD is %s, want our %s", head, ours)
		}
		if tracked := s.git("-C", s.checkout, "rev-parse", "refs/remotes/origin/main"); tracked != theirs {
			t.Errorf("origin/main is %s, want %s", tracked, theirs)
		}
		s.keepGit("git-sync-diverged", h.ID())
		s.track("git-sync/diverged-told")
		a := s.starter("git", "sync", "--dir", s.checkout, "--host", stageHost, "--auth", "forge", "--key", "diverged-told", "--json")
		if object := s.object(a); a.status != contract.ExitFailed || object["outcome"] != "diverged" {
			t.Errorf("exit status %d, outcome %v; want 1 and diverged", a.status, object["outcome"])
		}
		s.sound()
	})
}
