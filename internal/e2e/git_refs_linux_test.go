package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// G12: a million refs are a clear error of a list, which has a limit, and of a
// clone that they do not fit into; the worker's own memory stays small. That one
// branch of such a repository can be had is seen by TestGitConformanceBig.
func TestGitMillionRefs(t *testing.T) {
	withEngines(t, func(t *testing.T, s *stage) {
		worker := s.worker()
		if err := s.world.Git.CreateRefs(repository, 1_000_000); err != nil {
			t.Fatal(err)
		}
		s.track("git-ls-remote/refs")
		s.wantRefused(s.starter("git", "ls-remote", s.world.Git.RepoURL(repository), "--key", "refs", "--auth", "forge", "--timeout", "60s", "--json"), "output_limit")
		all := finish(s, s.clone("all", contract.GitCloneInput{Timeout: "90s"}))
		if all.Outcome != contract.OutcomeFailed || !strings.HasPrefix(all.Error.Rule, "G12/") || !strings.Contains(all.Error.Message, "git.limits") {
			t.Errorf("outcome %s (%+v), want failed by G12 with the limit to raise", all.Outcome, all.Error)
		}
		if peak := peakMemory(t, worker.cmd.Process.Pid); peak > 512<<20 {
			t.Errorf("the worker took %d MiB", peak>>20)
		} else {
			t.Logf("the worker took %d MiB", peak>>20)
		}
	}, "  limits: {memory: 128MiB}\n")
}

// peakMemory is the most RAM that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kilobytes, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
