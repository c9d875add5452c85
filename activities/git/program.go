package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/activities/git/internal/spawn"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// program is the engine that runs the git program, 2.31 or newer.
//
// It runs git in repositories of our own making only, never in the directory of
// a checkout, whose configuration somebody else may have written: a fetch, a
// push and a look at the remote run in a shadow of the checkout (see shadow).
type program struct {
	programConfig
	path string
	// version is that of the git program.
	version [2]int
}

// programConfig says how the git program is run.
type programConfig struct {
	// transport carries the HTTP requests.
	transport http.RoundTripper
	// connectTimeout bounds the dialling of SSH.
	connectTimeout time.Duration
	// limits default to defaultLimits.
	limits limits
}

// oldestGit is the first version with an atomic fetch and with configuration by
// the environment, where a credential is not shown to other users.
var oldestGit = [2]int{2, 31}

// newProgram finds the git program and checks its version. Its error says what
// to install.
func newProgram(cfg programConfig) (*program, error) {
	cfg.limits = cfg.limits.or(defaultLimits)
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, errors.New("git: there is no git program in PATH; install Git 2.31 or newer, or set git.engine to go-git")
	}
	g := &program{programConfig: cfg, path: path}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	res, err := spawn.Run(ctx, spawn.Command{Path: path, Args: []string{"version"}, Env: g.environment(), Stdout: &out})
	if err != nil || res.ExitCode != 0 {
		return nil, errors.New("git: the git program in PATH does not run; install Git 2.31 or newer, or set git.engine to go-git")
	}
	if g.version, err = parseVersion(out.String()); err != nil {
		return nil, err
	}
	if g.version[0] < oldestGit[0] || g.version[0] == oldestGit[0] && g.version[1] < oldestGit[1] {
		return nil, fmt.Errorf("git: the git program in PATH is version %d.%d; install Git 2.31 or newer, or set git.engine to go-git", g.version[0], g.version[1])
	}
	return g, nil
}

var versionText = regexp.MustCompile(`^git version (\d+)\.(\d+)`)

func parseVersion(text string) (v [2]int, err error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return v, errors.New("git: the git program in PATH does not say its version; install Git 2.31 or newer, or set git.engine to go-git")
	}
	for i := range v {
		if v[i], err = strconv.Atoi(m[i+1]); err != nil {
			return v, err
		}
	}
	return v, nil
}

// serves reports whether the program can reach a remote with its credential: it
// needs ssh for one over SSH, and can be given no passphrase.
func (g *program) serves(r *remote) bool {
	return r.Transport != policies.GitSSH || g.checkSSH(r) == nil
}

// setting is one value of git's configuration.
type setting struct{ key, value string }

// noAlternateRefs is what git is to run for the refs of the checkout that a shadow
// borrows from, which the shadow has already. There is no such program, which git
// sees before it makes a process for it, says in cannotRun, and goes on.
const (
	noAlternateRefs = "holdfast-none"
	cannotRun       = "error: cannot run " + noAlternateRefs + ":"
)

// settings are those of every run. Nothing that a file says about hooks,
// filters, helpers or automatic work is in force.
func (g *program) settings() []setting {
	memory := g.limits.memory
	threads := int64(max(1, min(runtime.NumCPU(), 8)))
	size := func(share int64) string { return strconv.FormatInt(memory/share, 10) }
	return []setting{
		{"credential.helper", ""},
		{"core.askPass", "false"},
		{"core.hooksPath", "/dev/null"},
		{"core.fsmonitor", "false"},
		{"core.alternateRefsCommand", noAlternateRefs},
		{"core.logAllRefUpdates", "false"},
		{"core.protectHFS", "true"},
		{"core.protectNTFS", "true"},
		{"core.splitIndex", "false"},
		{"gc.auto", "0"},
		{"maintenance.auto", "false"},
		{"fetch.recurseSubmodules", "false"},
		{"fetch.unpackLimit", "1"},
		{"push.gpgSign", "false"},
		{"push.recurseSubmodules", "no"},
		{"submodule.recurse", "false"},
		{"advice.detachedHead", "false"},
		{"http.followRedirects", "false"},
		{"http.version", "HTTP/1.1"},
		// What is larger is written to disk as it comes.
		{"core.bigFileThreshold", size(16)},
		{"core.deltaBaseCacheLimit", size(4 * threads)},
		{"pack.threads", strconv.FormatInt(threads, 10)},
		{"pack.windowMemory", size(4 * threads)},
		{"pack.deltaCacheSize", size(8)},
		{"http.postBuffer", strconv.FormatInt(max(1<<20, min(memory/16, 64<<20)), 10)},
	}
}

func (g *program) lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error) {
	r.progress.enter(phaseListing)
	out, err := g.list(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	var refs []contract.GitRef
	for line := range bytes.Lines(out) {
		id, name, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), "\t")
		if ok {
			refs = append(refs, contract.GitRef{Name: name, OID: id})
		}
	}
	sortRefs(refs)
	return refs, nil
}

// list is what ls-remote writes, with arguments before and behind the address.
func (g *program) list(ctx context.Context, r *remote, before []string, behind ...string) ([]byte, error) {
	url, err := address(r)
	if err != nil {
		return nil, err
	}
	out := &limitedBuffer{limit: MaxOutput, full: errOutputLimit}
	args := slices.Concat([]string{"ls-remote"}, before, []string{"--", url}, behind)
	err = g.run(ctx, job{args: args, gitDir: noRepository, remote: r, stdout: out, patience: readPatience})
	return out.kept, err
}

// limitedBuffer keeps what is written up to a limit.
type limitedBuffer struct {
	kept  []byte
	limit int
	full  error // what a write beyond the limit fails with
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(b.kept)+len(p) > b.limit {
		return 0, b.full
	}
	b.kept = append(b.kept, p...)
	return len(p), nil
}

func (g *program) descends(ctx context.Context, c *checkout, tip, base string) (bool, error) {
	s, err := newShadow(c)
	if err != nil {
		return false, err
	}
	defer s.remove()
	return g.isAncestor(ctx, s, base, tip)
}

// isAncestor reports whether base is tip or an ancestor of it; one that is not
// here is none.
func (g *program) isAncestor(ctx context.Context, s *shadow, base, tip string) (bool, error) {
	err := g.run(ctx, job{args: []string{"merge-base", "--is-ancestor", base, tip}, gitDir: s.dir, lock: s.checkout.lock})
	var failed *programError
	switch {
	case err == nil:
		return true, nil
	case errors.As(err, &failed) && failed.exitCode == 1 && failed.cause == nil,
		errors.As(err, &failed) && strings.Contains(failed.stderr, "Not a valid commit name "+base):
		return false, nil
	}
	return false, err
}
