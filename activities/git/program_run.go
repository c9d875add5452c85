package git

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/holdfast-dev/holdfast/activities/git/internal/spawn"
	"github.com/holdfast-dev/holdfast/policies"
)

// job is one run of the git program.
type job struct {
	args []string
	// gitDir is the repository; empty for a run that makes one.
	gitDir   string
	workTree string
	index    string
	settings []setting
	stdin    io.Reader
	stdout   io.Writer
	// remote is what is asked; nil for work within the machine.
	remote   *remote
	progress *progress
	// lock is held by the program as long as it lives.
	lock *os.File
	// grows is the directory in which the disk's limit is kept; empty for a run
	// that writes next to nothing.
	grows string
	// patience is how long the other side may be silent; 0 for no limit of its
	// own.
	patience time.Duration
	// relayed is called with the relay of an HTTP remote once the run has ended.
	relayed func(*relay)
}

// noRepository is the git directory of a run that needs none, and must not find
// one either.
const noRepository = "/dev/null"

// readPatience is how long a remote that is read from may be silent.
const readPatience = 30 * time.Second

// stopGrace is what a run has to clean up after itself when it is cancelled.
const stopGrace = 2 * time.Second

// run runs the git program to its end. Its error is that of the context, what
// this side or the transport knows, or else a *programError.
func (g *program) run(ctx context.Context, j job) (err error) {
	if j.remote != nil {
		j.progress = j.remote.progress
	}
	if j.progress == nil {
		j.progress = &progress{}
	}
	words, err := newSSHLog(j)
	if err != nil {
		return err
	}
	defer words.remove()
	env, relay, err := g.prepare(ctx, j, words)
	if err != nil {
		return err
	}
	within, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	diag := &diagnostics{progress: j.progress, bytes: relay == nil, maxObjects: g.limits.objects, exceed: stop}
	unwatch := g.watchDisk(within, j, stop)
	result, err := spawn.Run(within, spawn.Command{
		Path: g.path, Args: j.args, Env: env, Dir: "/", Stdin: j.stdin, Stdout: j.stdout, Stderr: diag,
		Files: inherited(j.lock), DataLimit: g.limits.memory, Grace: stopGrace, Watch: spawn.WatchShell,
	})
	exceeded := context.Cause(within) // a small pack is in before anyone can stop it
	stop(nil)
	unwatch()
	var failure error
	if relay != nil {
		relay.close()
		failure = relay.failure()
		if j.relayed != nil {
			j.relayed(relay)
		}
	}
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil:
		return err
	case exceeded != nil && ctx.Err() == nil:
		return exceeded
	case failure == nil && result.End == spawn.Exited && result.ExitCode == 0:
		return nil
	}
	said := words.text()
	heard := said + diag.text()
	switch {
	case j.remote == nil:
	case result.End == spawn.Signalled && result.Signal == syscall.SIGPIPE:
		heard += hungUpOn
		result = spawn.Result{ExitCode: 128}
	case j.remote.Transport == policies.GitSSH && said == "" && onlySSHFailed(heard):
		heard += hungUpOn
	}
	failed := programFailed(result, scrub(heard, j.remote), failure)
	failed.unsent = beforeSession.MatchString(said)
	return failed
}

// hungUpOn is what git says when ssh, or a local receive-pack, has gone. Where it
// still writes to it, it dies of that without a word, as often as not.
const hungUpOn = "\nfatal: the remote end hung up unexpectedly\n"

// onlySSHFailed reports whether git says no more than that ssh gave it nothing. An
// ssh that is silent too, which tells errors only, has lost its connection before
// there was a session: that it tells as a matter of course, not as an error.
func onlySSHFailed(text string) bool {
	failed := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		failed = failed || line == "fatal: Could not read from remote repository."
		switch {
		case line == "", strings.HasPrefix(line, "Cloning into '"), strings.HasPrefix(line, "error: failed to push some refs to '"),
			line == "fatal: Could not read from remote repository.",
			line == "Please make sure you have the correct access rights", line == "and the repository exists.":
		default:
			return false
		}
	}
	return failed
}

// prepare makes the environment of a run and, for a remote over HTTP, starts the
// relay to it.
func (g *program) prepare(ctx context.Context, j job, words *sshLog) (env []string, y *relay, err error) {
	settings := append(g.settings(), j.settings...)
	env = g.environment()
	if j.gitDir != "" {
		env = append(env, "GIT_DIR="+j.gitDir)
	}
	if j.workTree != "" {
		env = append(env, "GIT_WORK_TREE="+j.workTree, "GIT_INDEX_FILE="+j.index)
	}
	if j.remote != nil && j.remote.Transport == policies.GitSSH {
		ssh, err := g.sshEnvironment(j.remote, words)
		if err != nil {
			return nil, nil, err
		}
		env = append(env, ssh...)
	}
	if j.remote != nil && j.remote.Transport == policies.GitHTTP {
		if y, err = startRelay(ctx, g.transport, j.remote, maxAdvertisement); err != nil {
			return nil, nil, err
		}
		settings = append(settings, y.settings()...)
		if j.patience > 0 {
			settings = append(settings, setting{"http.lowSpeedLimit", "1"}, setting{"http.lowSpeedTime", strconv.Itoa(int(j.patience / time.Second))})
		}
	}
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+s.key, "GIT_CONFIG_VALUE_"+n+"="+s.value)
	}
	return env, y, nil
}

// environment is what every run sees of the machine: no one's configuration, and
// nothing that could ask a question.
func (g *program) environment() []string {
	env := []string{
		"LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false", "GIT_EDITOR=false",
		"GIT_ALLOW_PROTOCOL=http:https:ssh:file", "GIT_NO_REPLACE_OBJECTS=1", "GIT_PROGRESS_DELAY=0",
		// What newer versions make otherwise the other engine cannot read.
		"GIT_DEFAULT_HASH=sha1", "GIT_DEFAULT_REF_FORMAT=files",
	}
	for _, name := range []string{"PATH", "TMPDIR", "LD_LIBRARY_PATH"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// watchDisk bounds what a run writes. The watch has ended when unwatch returns;
// it ends with ctx.
func (g *program) watchDisk(ctx context.Context, j job, exceed func(error)) (unwatch func()) {
	if j.grows == "" {
		return func() {}
	}
	w := &diskWatch{dir: j.grows, limit: g.limits.disk, free: freeBytes}
	var watching sync.WaitGroup
	watching.Go(func() { w.watch(ctx, exceed) })
	return watching.Wait
}

func inherited(lock *os.File) []*os.File {
	if lock == nil {
		return nil
	}
	return []*os.File{lock}
}

// programFailed says how the git program failed, and what stands behind it if
// that is known.
func programFailed(result spawn.Result, stderr string, cause error) *programError {
	err := &programError{stderr: stderr, exitCode: result.ExitCode, cause: cause}
	if result.End == spawn.Signalled || diedText.MatchString(stderr) {
		err.termination = "signal"
	}
	if outOfMemory.MatchString(stderr) {
		err.cause = errMemoryLimit // which may have broken off a transfer
	}
	for _, known := range programTexts {
		if err.cause == nil && known.text.MatchString(stderr) {
			err.cause = known.means
		}
	}
	if err.cause == nil && badPack.MatchString(stderr) && !unfinished.MatchString(stderr) {
		err.cause = errBadPack
	}
	return err
}

var (
	// diedText is of a program that git started and somebody else ended.
	diedText    = regexp.MustCompile(`(?m)^error: .* died of signal \d+$`)
	outOfMemory = regexp.MustCompile(`(?i)out of memory|cannot allocate memory|unable to create (?:load_index_)?thread|unable to (?:mmap|malloc)|thread_create`)
)

// programTexts are the failures of this side that only the git program's own
// words tell, in the order in which they are looked for.
var programTexts = []struct {
	text  *regexp.Regexp
	means error
}{
	{regexp.MustCompile(`expected flush after ref listing`), errEarlyEOF},
	// A pack that ends before its header does, or has another one.
	{regexp.MustCompile(`protocol error: bad pack header`), errEarlyEOF},
	{regexp.MustCompile(`did not send all necessary objects|did not receive expected object`), errMissingObjects},
	{regexp.MustCompile(`invalid ls-refs response|bad line length|protocol error|invalid packet`), errProtocol},
	{regexp.MustCompile(`Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED`), errHostKey},
	{regexp.MustCompile(`UNPROTECTED PRIVATE KEY FILE`), refuse(policies.ReasonAuth, "G9/profile",
		"the SSH key of the auth profile can be read by others, so ssh refuses it; set the mode of its file to 0600")},
	{regexp.MustCompile(`refusing to update ref with bad name`), errRefName},
	{regexp.MustCompile(`couldn't find remote ref|Remote branch .* not found in upstream`), errRefNotFound},
	{regexp.MustCompile(`would clobber existing tag`), errTagDiffers},
	{regexp.MustCompile(`\[rejected\].*\(non-fast-forward\)`), errDiverged},
	{regexp.MustCompile(`exists; cannot create|some local refs could not be updated; try running`), errRefNames},
	{regexp.MustCompile(`error: invalid path '|fatal: .*is beyond a symbolic link|Untracked working tree file '(?:[^'\n]*/)?\.git(?:/[^'\n]*)?' would be`), errHostilePath},
	// Of a path that is too long git may say no more than its beginning.
	{regexp.MustCompile(`(?m): File name too long$|cannot create directory at '[^'\n]{1000}`), errOddPath},
	{regexp.MustCompile(`local changes to the following files would be overwritten|untracked working tree files would be (?:overwritten|removed)|not uptodate\. Cannot merge|would lose untracked files`), errLocalChanges},
	{regexp.MustCompile(`detected dubious ownership|is owned by someone else`), refuse(policies.ReasonPermission, "G12/owner",
		"the repository belongs to another user of this machine, so git refuses it; run the worker as its owner")},
}

// badPack is of a pack that is damaged, unless it was only cut short, or there was
// no room for it.
var (
	badPack    = regexp.MustCompile(`pack has bad object|pack is corrupted|inflate returned|unresolved delta|invalid index-pack output|SHA1 COLLISION|pack signature mismatch`)
	unfinished = regexp.MustCompile(`(?i)early EOF|unexpected disconnect|hung up|no space left|quota`)
)

// address is a remote as the git program is told of it. A local one is named by
// its whole path, for git runs elsewhere.
func address(r *remote) (string, error) {
	if r.Transport != policies.GitFile {
		return r.url, nil
	}
	endpoint, err := transport.NewEndpoint(r.url)
	if err != nil {
		return "", refuse(policies.ReasonFormat, "G9/url", "the remote's URL cannot be read; give an http, https, ssh or file URL")
	}
	path, err := filepath.Abs(endpoint.Path)
	if err != nil {
		return "", err
	}
	return (&url.URL{Scheme: "file", Path: path}).String(), nil
}
