package workers

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
)

// gitOptions are those of a process with the given Git section; logs are kept.
func gitOptions(t *testing.T, section string) (Options, *bytes.Buffer) {
	t.Helper()
	c, err := config.Parse("f", []byte("git: "+section), nil)
	if err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	return Options{Config: c, Logger: slog.New(slog.NewTextHandler(&logs, nil))}, &logs
}

// G11: a process that serves Git serves the queue of its own host too; nothing
// else has two.
func TestTaskQueues(t *testing.T) {
	t.Parallel()
	o, logs := gitOptions(t, "{host: build-1}")
	for name, want := range map[string][]string{
		"git": {"holdfast-git", "holdfast-git-build-1"}, "model": {contract.QueueModel}, "workflows": {contract.QueueWorkflows},
	} {
		if diff := cmp.Diff(want, taskQueues(name, o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if logs.Len() > 0 {
		t.Errorf("logged %s", logs)
	}
	o.Config.Git.Host = "a b"
	if diff := cmp.Diff([]string{"holdfast-git"}, taskQueues("git", o)); diff != "" || !strings.Contains(logs.String(), "git.host") {
		t.Errorf("a host name that cannot be a queue's (-want +got):\n%s\nlogged %s", diff, logs)
	}
}

// G10: progress is not held back longer than it is made.
func TestGitHeartbeatsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]time.Duration{"git": 500 * time.Millisecond, "discord": 2 * time.Second} {
		o := options(name, Options{Logger: slog.New(slog.DiscardHandler)})
		if o.MaxHeartbeatThrottleInterval != want || o.DefaultHeartbeatThrottleInterval != want {
			t.Errorf("%s: held back for %v and %v, want %v", name, o.MaxHeartbeatThrottleInterval, o.DefaultHeartbeatThrottleInterval, want)
		}
	}
}

// Every Git activity that a workflow may call is registered, and roots are made.
func TestGitActivities(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, shared := filepath.Join(dir, "own"), filepath.Join(dir, "shared")
	o, _ := gitOptions(t, fmt.Sprintf("{roots: [%q], shared_roots: [%q], engine: go-git}", own, shared))
	got, err := (&Workers{}).gitActivities(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		contract.ActivityGitLsRemote, contract.ActivityGitFetch, contract.ActivityGitClone, contract.ActivityGitPushIntent,
		contract.ActivityGitPush, contract.ActivityGitLocate, contract.ActivityGitFastForward,
	} {
		if got[name] == nil {
			t.Errorf("%s is not registered", name)
		}
	}
	for _, root := range []string{own, shared} {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			t.Errorf("%s was not made: %v", root, err)
		}
	}
}

// I3: what the machine lacks of what git asks for is the operator's to mend, and
// nothing is served.
func TestGitThatCannotBeServed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	for section, want := range map[string]string{
		fmt.Sprintf("{roots: [%q]}", filepath.Join(file, "root")):        "git.roots",
		fmt.Sprintf("{shared_roots: [%q]}", filepath.Join(file, "root")): "git.shared_roots",
		"{engine: git}": "install Git 2.31",
	} {
		o, _ := gitOptions(t, section)
		_, err := (&Workers{}).gitActivities(o)
		if !errors.As(err, new(*GitError)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a GitError about %s", section, err, want)
		}
	}
	o, _ := gitOptions(t, "{engine: auto}")
	if _, err := (&Workers{}).gitActivities(o); err != nil {
		t.Errorf("without the program go-git serves all: %v", err)
	}
}

// G11: a worker says whose checkouts it works in and by what.
func TestGitIsAnnounced(t *testing.T) {
	t.Parallel()
	o, logs := gitOptions(t, "{host: build-1, engine: go-git}")
	w := &Workers{}
	if _, err := w.gitActivities(o); err != nil {
		t.Fatal(err)
	}
	if want := "host build-1, go-git for everything"; w.Git() != want || !strings.Contains(logs.String(), "host=build-1") {
		t.Errorf("%q, want %q; logged %s", w.Git(), want, logs)
	}
}
