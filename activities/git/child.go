package git

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/activities/git/internal/spawn"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// isolated is the engine of go-git with all work that reads what others wrote in
// a child process, but for lists of refs, which are bounded in themselves. The
// child is this program again (see childmain.go): its memory has a limit that can
// be kept, it can be killed whatever it is at, and what goes wrong in a library
// goes wrong there.
type isolated struct{ *goGit }

// childOp is what a child is asked to do.
type childOp string

const (
	childFetch    childOp = "fetch"
	childClone    childOp = "clone"
	childPush     childOp = "push"
	childLocate   childOp = "locate"
	childDescends childOp = "descends"
	childAdvance  childOp = "advance"
)

// childRequest is all that a child is told, through a pipe: there may be a
// credential in it.
type childRequest struct {
	Op             childOp
	Limits         childLimits
	ConnectTimeout time.Duration

	// The remote; its URL is empty where there is none.
	URL         string
	Remote      policies.GitURL
	Credentials Credentials
	// The checkout; its directories are empty where there is none.
	Common, GitDir, Worktree string

	Ref, Ours, From, To string
	Intent              contract.GitPushIntent
	Dir                 string
	Clone               childClonePlan
}

type childLimits struct{ Memory, Disk, Objects int64 }

type childClonePlan struct {
	Ref          string
	Depth        int
	SingleBranch bool
	NoTags       bool
	Sparse       []string
}

// childMessage is one line of what a child says. The last one is Done or has an
// error.
type childMessage struct {
	Progress *childProgress `json:",omitempty"`
	// Begun says that from now on a push may have left, or files have changed.
	Begun bool `json:",omitempty"`

	Done    bool                 `json:",omitempty"`
	Updates []contract.GitUpdate `json:",omitempty"`
	Head    contract.GitHead     `json:",omitzero"`
	Located contract.GitLocated  `json:",omitzero"`
	Yes     bool                 `json:",omitempty"`

	// Why it failed: what this side knows itself, or the facts of a request.
	Local *childLocal     `json:",omitempty"`
	Fault *policies.Fault `json:",omitempty"`
	// Unsent says that a push that failed is proved to have changed nothing.
	Unsent bool `json:",omitempty"`
}

type childProgress struct {
	Phase                int32
	Objects, Done, Bytes int64
}

type childLocal struct {
	Reason        policies.Reason
	Rule, Message string
	Retry         bool
}

// faultError is a request of a child that failed, by its facts.
type faultError struct{ fault policies.Fault }

func (e *faultError) Error() string { return "the request failed" }

func (e *isolated) fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	end, err := e.run(ctx, r, c, childRequest{Op: childFetch, Ref: ref}, c.lock)
	return end.Updates, err
}

func (e *isolated) clone(ctx context.Context, r *remote, dir string, s cloneSpec) (contract.GitHead, error) {
	plan := childClonePlan{Ref: s.ref, Depth: s.depth, SingleBranch: s.singleBranch, NoTags: s.noTags, Sparse: s.sparse}
	end, err := e.run(ctx, r, nil, childRequest{Op: childClone, Dir: dir, Clone: plan}, s.lock)
	return end.Head, err
}

func (e *isolated) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	end, err := e.run(ctx, r, c, childRequest{Op: childPush, Intent: p}, c.lock)
	var unsent *unsentError
	if err != nil && !end.Begun && !errors.As(err, &unsent) {
		return &unsentError{err}
	}
	return err
}

func (e *isolated) locate(ctx context.Context, r *remote, c *checkout, ref, ours string) (contract.GitLocated, error) {
	end, err := e.run(ctx, r, c, childRequest{Op: childLocate, Ref: ref, Ours: ours}, c.lock)
	return end.Located, err
}

func (e *isolated) descends(ctx context.Context, c *checkout, tip, base string) (bool, error) {
	end, err := e.run(ctx, nil, c, childRequest{Op: childDescends, To: tip, From: base}, c.lock)
	return end.Yes, err
}

func (e *isolated) advance(ctx context.Context, c *checkout, p *progress, m advanceSpec) error {
	end, err := e.run(ctx, &remote{progress: p}, c, childRequest{Op: childAdvance, From: m.from, To: m.to}, c.lock)
	if err != nil && !end.Begun {
		return &untouchedError{err}
	}
	return err
}

// run has a child do what is asked for.
func (e *isolated) run(ctx context.Context, r *remote, c *checkout, q childRequest, lock *os.File) (childMessage, error) {
	q.Limits, q.ConnectTimeout = childLimits{e.limits.memory, e.limits.disk, e.limits.objects}, e.connectTimeout
	said := &conversation{}
	if r != nil {
		q.URL, q.Remote, q.Credentials = r.url, r.GitURL, r.creds
		said.progress = r.progress
	}
	if c != nil {
		q.Common, q.GitDir, q.Worktree = c.common, c.gitDir, c.worktree
		defer c.storage.Reindex()
	}
	request, err := json.Marshal(q)
	if err != nil {
		return childMessage{}, err
	}
	files := inherited(lock)
	diagnosis := &tail{limit: 64 << 10}
	result, err := spawn.Run(ctx, spawn.Command{
		Path: self(), Env: childEnvironment(len(files)), Files: files, Watch: spawn.WatchPipe,
		Stdin: bytes.NewReader(request), Stdout: said, Stderr: diagnosis,
	})
	switch {
	case ctx.Err() != nil && !said.ended:
		return said.last, context.Cause(ctx)
	case err != nil && !said.ended:
		return said.last, err
	case !said.ended:
		return said.last, died(result, diagnosis.String())
	}
	return said.last, said.last.failure()
}

// self is the program that runs, also if another has taken its place on disk.
func self() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// childEnvironment is what a child, and the programs that it starts for a remote
// on this machine, may know of our environment: no secret of other work.
func childEnvironment(files int) []string {
	env := []string{
		childVariable + "=" + strconv.Itoa(files),
		"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
	}
	for _, name := range []string{
		"PATH", "HOME", "USER", "TMPDIR", "LD_LIBRARY_PATH", "SSH_AUTH_SOCK", "SSH_KNOWN_HOSTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "GODEBUG", "GORACE",
	} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// conversation takes what a child says.
type conversation struct {
	progress *progress
	line     []byte
	// last gathers what was said; ended says that it is all.
	last  childMessage
	ended bool
}

// maxMessage bounds a line: the refs of a result are many, but not endless.
const maxMessage = 64 << 20

var errChildWords = errors.New("git: the child process says what it should not")

func (s *conversation) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if len(s.line)+len(line) > maxMessage {
			return 0, errChildWords
		}
		s.line = append(s.line, line...)
		if !whole {
			return n, nil
		}
		if err := s.hear(); err != nil {
			return 0, err
		}
		s.line, p = s.line[:0], rest
	}
}

func (s *conversation) hear() error {
	var m childMessage
	if err := json.Unmarshal(s.line, &m); err != nil || s.ended {
		return errChildWords
	}
	switch {
	case m.Progress != nil:
		if p := m.Progress; s.progress != nil && p.Phase >= 0 && int(p.Phase) < len(phaseNames) {
			s.progress.enter(p.Phase)
			s.progress.objects.Store(p.Objects)
			s.progress.done.Store(p.Done)
			s.progress.bytes.Store(p.Bytes)
		}
	case m.Begun:
		s.last.Begun = true
	default:
		m.Begun = s.last.Begun
		s.last, s.ended = m, true
	}
	return nil
}

// failure is the error that a child ended with.
func (m *childMessage) failure() error {
	var err error
	switch {
	case m.Done:
		return nil
	case m.Local != nil:
		err = &localError{reason: m.Local.Reason, rule: m.Local.Rule, retry: m.Local.Retry, message: m.Local.Message}
	case m.Fault != nil:
		err = &faultError{*m.Fault}
	default:
		err = errChildWords
	}
	if m.Unsent {
		return &unsentError{err}
	}
	return err
}

// errCrashed is a child that ended as no program should.
var errCrashed = refuse(policies.ReasonUnclassified, "G12/crash", "the process that did the Git work broke down over what it read; see whether \"git fsck\" finds the repository sound, or set git.engine to git")

// memoryText is how the runtime of a child says that it is out of memory.
var memoryText = regexp.MustCompile(`out of memory|cannot allocate memory`)

// died says why a child ended without a word.
func died(result spawn.Result, stderr string) error {
	switch {
	case result.ExitCode == exitMemory, memoryText.MatchString(stderr):
		return errMemoryLimit
	case result.End == spawn.Signalled:
		return &programError{exitCode: result.ExitCode, termination: "signal"}
	}
	return errCrashed
}

// tail keeps the end of what is written.
type tail struct {
	bytes.Buffer
	limit int
}

func (t *tail) Write(p []byte) (int, error) {
	if over := t.Len() + len(p) - t.limit; over > 0 {
		t.Next(over)
	}
	return t.Buffer.Write(p[max(0, len(p)-t.limit):])
}

// say is a message on its way to the parent.
func say(to io.Writer, m childMessage) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = to.Write(append(line, '\n'))
	return err
}
