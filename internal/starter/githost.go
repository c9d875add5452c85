package starter

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
)

const (
	// attendAfter is how long work may wait before anyone asks who serves it.
	attendAfter = 2 * time.Second
	// pollerAge is after how long without a poll a worker counts as gone: a poll
	// lasts a minute, and the server remembers pollers for five.
	pollerAge = 2 * time.Minute
)

// place is the absolute path of a checkout and the host whose disk it is on;
// none for one that lies in a shared root of the configuration (G11).
func (s *session) place(dir string, named *string) (abs, host string, err error) {
	if strings.Contains(dir, "://") {
		return "", "", usagef("the checkout's directory is given as a URL; write: git clone URL DIR, or --dir DIR --url URL")
	}
	if dir == "" {
		return "", "", usagef("the checkout's directory is empty; name one, such as \".\"")
	}
	if abs, err = filepath.Abs(dir); err != nil {
		return "", "", usagef("the checkout's directory: %w", err)
	}
	if named != nil {
		return abs, *named, nil
	}
	c, err := config.LoadDefault(s.globals.Config, s.Env)
	switch {
	case err == nil:
		if within(abs, c.Git.SharedRoots) {
			return abs, "", nil
		}
		host = c.Git.Host
	case s.globals.Config != "":
		return "", "", err
	default: // as for Temporal's address, a file that nobody named does not stand in the way
		s.unread = err
		host, _ = os.Hostname()
	}
	if contract.ValidateGitHost(host) != nil {
		return "", "", usagef("this machine has no host name that can name a task queue; name the checkout's host with --host, or here as git.host")
	}
	return abs, host, nil
}

// within reports whether dir lies in one of the roots, symbolic links resolved
// as far as there is something.
func within(dir string, roots []string) bool {
	dir = resolved(dir)
	for _, root := range roots {
		abs, err := filepath.Abs(root)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(resolved(abs), dir); err == nil && filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

func resolved(path string) string {
	for rest := ""; ; {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		parent := filepath.Dir(path)
		if parent == path {
			return filepath.Join(path, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = parent
	}
}

// attend says on standard error, once, when work that was started waits and no
// worker serves its host's queue, until the returned function is called.
func (s *session) attend(ctx context.Context, temporal client.Client, host string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-time.After(attendAfter):
		}
		queue, err := temporal.DescribeTaskQueue(ctx, contract.QueueGitHost(host), enums.TASK_QUEUE_TYPE_WORKFLOW)
		if err == nil && ctx.Err() == nil && !polled(queue.GetPollers(), time.Now()) {
			s.unattended(host)
		}
	}()
	return func() { cancel(); <-done }
}

// polled reports whether one of the pollers is still there.
func polled(pollers []*taskqueue.PollerInfo, now time.Time) bool {
	for _, p := range pollers {
		if last := p.GetLastAccessTime(); last == nil || now.Sub(last.AsTime()) < pollerAge {
			return true
		}
	}
	return false
}

func (s *session) unattended(host string) {
	hint := "no worker serves Git yet; start one: worker --queues git"
	if host != "" {
		hint = fmt.Sprintf("no worker serves host %s; start one there, or name another with --host", host)
	}
	if s.unread != nil {
		hint += fmt.Sprintf(" (%s was left out: %v)", config.DefaultFile, s.unread)
	}
	if s.Terminal && !s.globals.JSON {
		fmt.Fprint(s.Err, clearLine)
	}
	printf(s.Err, "%s\n", hint)
}
