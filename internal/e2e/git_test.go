package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// wantGit checks how a Git operation ended and after how many attempts it
// failed.
func wantGit(t *testing.T, r contract.GitResult, outcome contract.Outcome, reason string, attempts int) {
	t.Helper()
	got := contract.Error{}
	if r.Error != nil {
		got = *r.Error
	}
	if r.Outcome != outcome || got.Reason != reason || got.Attempts != attempts {
		t.Errorf("outcome %s, reason %q, %d attempts; want %s, %q, %d: %s", r.Outcome, got.Reason, got.Attempts, outcome, reason, attempts, got.Message)
	}
}

// G1, G4: Git fetch: 503, then fine. One retry after 1 s.
func TestGitFetchUnavailableOnce(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		s.world.Git.Script(githttp.Unavailable().On(githttp.OpFetchRefs))
		h := s.fetch("unavailable-once", contract.GitFetchInput{})
		result := finish(s, h)
		wantGit(t, result, contract.OutcomeFetched, "", 0)
		if diff := cmp.Diff([]string{"wait 1 s: server_error, attempt 2 of 2"},
			summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED)); diff != "" {
			t.Errorf("waits (-want +got):\n%s", diff)
		}
		requests := wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 2)
		if len(requests) == 2 && requests[1].At.Sub(requests[0].AnsweredAt) < time.Second {
			t.Errorf("the retry came after %s, want at least 1 s", requests[1].At.Sub(requests[0].AnsweredAt))
		}
		want := "refs/remotes/origin/main " + s.world.Git.Refs(repository)["refs/heads/main"]
		if diff := cmp.Diff(want, s.refs()); diff != "" {
			t.Errorf("refs (-want +got):\n%s", diff)
		}
		s.keepGit("git-fetch-retried", h.ID())

		again := s.fetch("up-to-date", contract.GitFetchInput{})
		wantGit(t, finish(s, again), contract.OutcomeUpToDate, "", 0)
		s.keepGit("git-fetch-up-to-date", again.ID())
	})
}

// G3, G4: Git fetch: an empty 200 to upload-pack is a failure, for which one
// retry is made and no ref is written.
func TestGitFetchEmptyPack(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(3)
		s.world.Git.Script(githttp.EmptyPack().Always())
		h := s.fetch("empty-pack", contract.GitFetchInput{})
		result := finish(s, h)
		if result.Outcome != contract.OutcomeFailed || result.Error == nil || result.Error.Reason == "" {
			t.Errorf("outcome %s (%+v), want failed with a reason", result.Outcome, result.Error)
		}
		if refs := s.refs(); refs != "" {
			t.Errorf("refs were written:\n%s", refs)
		}
		s.keepGit("git-fetch-failed", h.ID())
	})
}

// G3: Git fetch: 401. No retry, and a reason that says what to look at.
func TestGitFetchUnauthorized(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(1)
		s.world.Git.Script(simulator.Status(http.StatusUnauthorized, "no\n").WithHeader("WWW-Authenticate", `Basic realm="git"`).
			On(githttp.OpFetchRefs).Always())
		h := s.fetch("unauthorized", contract.GitFetchInput{})
		wantGit(t, finish(s, h), contract.OutcomeFailed, "auth", 1)
		wantRequests(t, s.world.Git.Server, "*", 1)
		if waits := summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) > 0 {
			t.Errorf("a refused operation waited: %q", waits)
		}
	})
}

// G1, G4: Git: unknown host. One retry, then a clear error.
func TestGitUnknownHost(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(1)
		h := s.fetch("unknown-host", contract.GitFetchInput{URL: "https://git.holdfast.invalid/team/project"})
		result := finish(s, h)
		if result.Outcome != contract.OutcomeFailed || result.Error == nil || result.Error.Attempts != 2 {
			t.Fatalf("outcome %s (%+v), want failed after 2 attempts", result.Outcome, result.Error)
		}
		if !strings.Contains(result.Error.Message, "host") {
			t.Errorf("the error %q does not speak of the host", result.Error.Message)
		}
		if waits := summaries(s.history(h.ID()), enumspb.EVENT_TYPE_TIMER_STARTED); len(waits) != 1 || !strings.HasPrefix(waits[0], "wait 1 s") {
			t.Errorf("waits %q, want one of 1 s", waits)
		}
	})
}

// G5: cancelling a Git operation stops its wait at once, and nothing is asked
// again.
func TestGitCancelDuringWait(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(1)
		s.world.Git.Script(githttp.Unavailable().WithHeader("Retry-After", "60").On(githttp.OpFetchRefs).Always())
		h := s.fetch("cancelled", contract.GitFetchInput{})
		awaitEvent(t, s.temporal, s.temporal.GetWorkflow(s.ctx, h.ID(), ""), "TimerStarted")
		if err := h.Cancel(s.ctx); err != nil {
			t.Fatal(err)
		}
		wantGit(t, finish(s, h), contract.OutcomeCancelled, "cancelled", 1)
		s.answersAtOnce(h.ID())
		wantRequests(t, s.world.Git.Server, githttp.OpFetchRefs, 1)
		if refs := s.refs(); refs != "" {
			t.Errorf("refs were written:\n%s", refs)
		}
		s.keepGit("git-fetch-cancelled", h.ID())
	})
}

// G9, I1: starter git ls-remote prints the refs, as text and as JSON, for a
// repository that wants a credential; so does git fetch.
func TestStarterGit(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		s.work()
		s.repo(2)
		oid := s.world.Git.Refs(repository)["refs/heads/main"]
		s.track("git-ls-remote/listed")
		a := s.starter("git", "ls-remote", s.world.Git.RepoURL(repository), "--auth", "forge", "--key", "listed")
		if a.status != contract.ExitOK || !strings.Contains(a.out, oid+"  refs/heads/main") {
			t.Errorf("exit status %d, output:\n%s%s", a.status, a.out, a.errors)
		}
		s.keepGit("git-ls-remote-listed", "git-ls-remote/listed")
		a = s.starter("git", "ls-remote", s.world.Git.RepoURL(repository), "--auth", "forge", "--key", "listed", "--json")
		if object := s.object(a); object["outcome"] != "listed" {
			t.Errorf("outcome %v, want listed", object["outcome"])
		}

		s.track("git-fetch/fetched")
		a = s.starter("git", "fetch", "--dir", s.checkout, "--host", stageHost, "--auth", "forge", "--key", "fetched", "--json")
		object := s.object(a)
		want := []any{map[string]any{"ref": "refs/remotes/origin/main", "old": "", "new": oid}}
		if diff := cmp.Diff(want, object["updated"]); a.status != contract.ExitOK || diff != "" {
			t.Errorf("exit status %d, updated (-want +got):\n%s", a.status, diff)
		}
		s.keepGit("git-fetch-fetched", "git-fetch/fetched")

		// A checkout outside the configured roots is refused.
		s.track("git-fetch/outside")
		a = s.starter("git", "fetch", "--dir", filepath.Dir(s.config), "--host", stageHost, "--key", "outside", "--json")
		if object := s.object(a); a.status != contract.ExitFailed || object["outcome"] != "failed" {
			t.Errorf("outside the roots: exit status %d, outcome %v, want 1 and failed", a.status, object["outcome"])
		}
	})
}
