package e2e

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// engines are what git.engine can be: every case of managed Git is seen with
// both.
var engines = []string{"git", "go-git"}

// withEngines runs a case with each engine, on a stage of its own; more is added
// to the "git" section of the configuration.
func withEngines(t *testing.T, run func(t *testing.T, s *stage), more ...string) {
	t.Helper()
	t.Parallel()
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, append(more, "  engine: "+engine+"\n")...)
			s.engine = engine
			run(t, s)
		})
	}
}

// keepGit makes a history one of the recorded ones. What the workflow does is the
// same with each engine.
func (s *stage) keepGit(name, id string) {
	s.t.Helper()
	if s.engine == engines[0] {
		s.keep(name, id)
	}
}

func (s *stage) fetch(key string, in contract.GitFetchInput) *holdfast.Handle[contract.GitResult] {
	s.t.Helper()
	in.Dir, in.Host = s.checkout, stageHost
	if in.Auth == "" {
		in.Auth = "forge"
	}
	h, err := s.holdfast.GitFetch(s.ctx, key, in)
	return start(s, h, err)
}

func (s *stage) clone(key string, in contract.GitCloneInput) *holdfast.Handle[contract.GitResult] {
	s.t.Helper()
	in.Host = stageHost
	if in.URL == "" {
		in.URL = s.world.Git.RepoURL(repository)
	}
	if in.Dir == "" {
		in.Dir = s.checkout
	}
	if in.Auth == "" {
		in.Auth = "forge"
	}
	h, err := s.holdfast.GitClone(s.ctx, key, in)
	return start(s, h, err)
}

func (s *stage) push(key string, in contract.GitPushInput) *holdfast.Handle[contract.GitResult] {
	s.t.Helper()
	in.Dir, in.Host, in.Auth = s.checkout, stageHost, "forge"
	h, err := s.holdfast.GitPush(s.ctx, key, in)
	return start(s, h, err)
}

func (s *stage) sync(key string, in contract.GitSyncInput) *holdfast.Handle[contract.GitResult] {
	s.t.Helper()
	in.Dir, in.Host, in.Auth = s.checkout, stageHost, "forge"
	h, err := s.holdfast.GitSync(s.ctx, key, in)
	return start(s, h, err)
}

// create makes the simulated repository with n commits.
func (s *stage) create(n int) {
	s.t.Helper()
	if err := s.world.Git.Create(repository, n); err != nil {
		s.t.Fatal(err)
	}
}

// repo makes the simulated repository with n commits, and a checkout of it into
// which nothing was fetched yet.
func (s *stage) repo(n int) {
	s.t.Helper()
	s.create(n)
	s.git("init", "--quiet", "--initial-branch=main", s.checkout)
	s.git("-C", s.checkout, "remote", "add", "origin", s.world.Git.RepoURL(repository))
}

// cloned makes the simulated repository with n commits and a checkout that has
// them.
func (s *stage) cloned(n int) {
	s.t.Helper()
	s.create(n)
	s.git("clone", "--quiet", s.world.Git.Dir(repository), s.checkout)
	s.git("-C", s.checkout, "remote", "set-url", "origin", s.world.Git.RepoURL(repository))
}

// commit makes a commit in the checkout and returns its id.
func (s *stage) commit(text string) string {
	s.t.Helper()
	s.git("-C", s.checkout, "-c", "user.name=Ada", "-c", "user.email=ada@example.com",
		"commit", "--quiet", "--allow-empty", "-m", text)
	return s.git("-C", s.checkout, "rev-parse", "HEAD")
}

// others lets somebody else push n commits to the remote's main, and returns
// what it is now.
func (s *stage) others(n int) string {
	s.t.Helper()
	if err := s.world.Git.Commit(repository, "main", n); err != nil {
		s.t.Fatal(err)
	}
	return s.remoteMain()
}

func (s *stage) remoteMain() string { return s.world.Git.Refs(repository)["refs/heads/main"] }

// git runs the git program and returns what it printed.
func (s *stage) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// refs are the refs of the checkout with their ids.
func (s *stage) refs() string {
	return s.git("-C", s.checkout, "for-each-ref", "--format=%(refname) %(objectname)")
}

// sound checks that the checkout misses no object, and that no lock and nothing
// unfinished is left below the directory of the checkouts.
func (s *stage) sound() {
	s.t.Helper()
	if _, err := os.Stat(s.checkout); err == nil {
		s.git("-C", s.checkout, "fsck", "--strict", "--no-dangling")
	}
	s.cleared()
}

// cleared waits until nothing unfinished is left, ten seconds at most.
func (s *stage) cleared() {
	s.t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := s.leftovers()
		if len(left) == 0 {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("left behind: %q", left)
		}
	}
}

// leftovers are files and directories of operations that are not over. A clone
// keeps the mark by which it knows its own work.
func (s *stage) leftovers() []string {
	var left []string
	_ = filepath.WalkDir(filepath.Dir(s.checkout), func(path string, e fs.DirEntry, err error) error {
		name, in := filepath.Base(path), filepath.Base(filepath.Dir(path))
		if strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "tmp_") || strings.HasSuffix(name, ".holdfast") ||
			in == "holdfast" && name != "cloned" {
			left = append(left, path)
		}
		return nil
	})
	return left
}

// admit serves the gateway's part of G5: the queue's activity is answered by f.
func (s *stage) admit(f func(contract.GitAdmissionRequest) error) *contract.GitAdmission {
	s.t.Helper()
	w := worker.New(s.temporal, "gateway", worker.Options{DisableWorkflowWorker: true})
	w.RegisterActivityWithOptions(func(_ context.Context, r contract.GitAdmissionRequest) error { return f(r) },
		activity.RegisterOptions{Name: "gateway.admit"})
	if err := w.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
	return &contract.GitAdmission{Activity: "gateway.admit", TaskQueue: "gateway"}
}

// endsSoon checks that a cancelled operation waited for nothing but the word of
// the activity that was under way, and for that no longer than the grace, so
// that it has ended within a second.
func (s *stage) endsSoon(id string) {
	s.t.Helper()
	var asked, ended time.Time
	for _, e := range s.history(id).GetEvents() {
		at := e.GetEventTime().AsTime()
		switch {
		case e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
			asked = at
		case asked.IsZero():
		case e.GetTimerStartedEventAttributes() != nil:
			if d := e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration(); d > 700*time.Millisecond {
				s.t.Errorf("%s waited for %s after it was cancelled", id, d)
			}
		case e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			s.t.Errorf("%s began something after it was cancelled", id)
		}
		ended = at
	}
	if took := ended.Sub(asked); asked.IsZero() || took > 3*time.Second { // a second, on a machine with nothing else to do
		s.t.Errorf("%s ended %s after it was cancelled", id, took)
	}
	s.t.Logf("%s ended %s after it was cancelled", id, ended.Sub(asked))
}

// descendants are the processes that a process started, and theirs.
func descendants(pid int) []int {
	var all []int
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range tasks {
		data, _ := os.ReadFile(file)
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// gone waits until none of the processes is there, five seconds at most.
func (s *stage) gone(pids []int) {
	s.t.Helper()
	since := time.Now()
	s.poll("end of the worker's programs", func() bool {
		pids = slices.DeleteFunc(pids, func(pid int) bool { return !running(pid) })
		return len(pids) == 0
	})
	if took := time.Since(since); took > 5*time.Second {
		s.t.Errorf("the programs of the operation were there for %s, want 5 s at most", took)
	}
}

// running reports whether a process is there and is no zombie.
func running(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), ") ")
	return !strings.HasPrefix(rest, "Z")
}
