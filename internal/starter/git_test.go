package starter

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/mocks"

	"github.com/holdfast-dev/holdfast/contract"
)

// gitServer is a Temporal that takes one start, remembers it, and answers it
// with a result.
type gitServer struct {
	options  temporalclient.StartWorkflowOptions
	workflow string
	input    any
	result   contract.GitResult
}

// main runs the starter against the server.
func (g *gitServer) main(t *testing.T, env map[string]string, args ...string) (status int, out, errs *screen) {
	t.Helper()
	temporal, run := &mocks.Client{}, &mocks.WorkflowRun{}
	run.On("GetID").Return("git/k")
	run.On("GetRunID").Return("r1")
	run.On("Get", mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		*args.Get(1).(*contract.GitResult) = g.result
	}).Return(nil)
	temporal.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Run(func(args mock.Arguments) {
		g.options, g.workflow, g.input = args.Get(1).(temporalclient.StartWorkflowOptions), args.String(2), args.Get(3)
	}).Return(run, nil)
	temporal.On("Close").Return()
	out, errs = &screen{}, &screen{}
	status = Main(t.Context(), Program{
		Args: args, Out: out, Err: errs,
		Env:  func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		dial: func(context.Context, temporalclient.Options) (temporalclient.Client, error) { return temporal, nil },
	})
	return status, out, errs
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// I1: the words of each Git verb, and the work that they ask for. Paths are the
// starter's, and the host is its own unless it is named.
func TestGitVerbs(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	host, oid := hostname(t), strings.Repeat("0a", 20)
	for _, tc := range []struct {
		args     string
		workflow string
		queue    string
		input    any
	}{
		{
			"ls-remote https://git.example/a --ref v* --auth forge --timeout 5s", contract.WorkflowGitLsRemote, contract.QueueGit,
			contract.GitLsRemoteInput{URL: "https://git.example/a", Ref: "v*", Auth: "forge", Timeout: "5s"},
		},
		{
			"ls-remote ../a.git", contract.WorkflowGitLsRemote, contract.QueueGit,
			contract.GitLsRemoteInput{URL: filepath.Join(filepath.Dir(here), "a.git")},
		},
		{
			"clone git@git.example:a.git sub/c --ref v1 --depth 3 --single-branch --no-tags --sparse docs --sparse a,b --auth forge --timeout 5s",
			contract.WorkflowGitClone, contract.QueueGitHost(host),
			contract.GitCloneInput{
				URL: "git@git.example:a.git", Dir: filepath.Join(here, "sub", "c"), Host: host, Ref: "v1", Depth: 3, SingleBranch: true,
				NoTags: true, Sparse: []string{"docs", "a,b"}, Auth: "forge", Timeout: "5s",
			},
		},
		{
			"clone file:///srv/a.git /c --host build-1", contract.WorkflowGitClone, "holdfast-git-build-1",
			contract.GitCloneInput{URL: "file:///srv/a.git", Dir: "/c", Host: "build-1"},
		},
		{
			"fetch --dir c --url https://git.example/a --ref main --auth forge --timeout 5s", contract.WorkflowGitFetch, contract.QueueGitHost(host),
			contract.GitFetchInput{Dir: filepath.Join(here, "c"), Host: host, URL: "https://git.example/a", Ref: "main", Auth: "forge", Timeout: "5s"},
		},
		{
			"push --dir /c --url ../a.git --ref main:release --expect " + oid + " --host build-1 --auth forge --timeout 5s",
			contract.WorkflowGitPush, "holdfast-git-build-1",
			contract.GitPushInput{
				Dir: "/c", Host: "build-1", URL: filepath.Join(filepath.Dir(here), "a.git"), Ref: "main:release", Expect: oid, Auth: "forge", Timeout: "5s",
			},
		},
		{
			"sync --dir /c --ref main --host= --auth forge --timeout 5s", contract.WorkflowGitSync, contract.QueueGit,
			contract.GitSyncInput{Dir: "/c", Ref: "main", Auth: "forge", Timeout: "5s"},
		},
	} {
		var g gitServer
		status, _, errs := g.main(t, nil, append([]string{"git"}, append(strings.Fields(tc.args), "--key", "k", "--no-wait")...)...)
		if status != contract.ExitOK || g.workflow != tc.workflow || g.options.TaskQueue != tc.queue {
			t.Errorf("%s: exit status %d, %s on %s, want %s on %s\n%s", tc.args, status, g.workflow, g.options.TaskQueue, tc.workflow, tc.queue, errs)
		}
		if diff := cmp.Diff(tc.input, g.input); diff != "" {
			t.Errorf("%s: input (-want +got):\n%s", tc.args, diff)
		}
	}
}

// G11: where a checkout is follows from the configuration, if there is one: its
// host's name, and none in a shared root, however that is reached.
func TestGitHostOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"shared", "own"} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("shared", "link"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "named.yaml")
	if err := os.WriteFile(file, []byte("git: {host: build-1, roots: [own], shared_roots: [shared]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, host := range map[string]string{
		"own/c": "build-1", "shared/c": "", "link/new/c": "", "shared": "", "shared/../own/c": "build-1", "sharedness/c": "build-1",
	} {
		var g gitServer
		status, _, errs := g.main(t, nil, "git", "fetch", "--dir", dir, "--config", file, "--no-wait")
		if in, _ := g.input.(contract.GitFetchInput); status != contract.ExitOK || in.Host != host {
			t.Errorf("%s: exit status %d, host %q, want %q\n%s", dir, status, in.Host, host, errs)
		}
	}
	var g gitServer
	if _, _, errs := g.main(t, nil, "git", "fetch", "--dir", "shared/c", "--host", "build-2", "--config", file, "--no-wait"); g.options.TaskQueue != "holdfast-git-build-2" {
		t.Errorf("--host is not obeyed: %+v\n%s", g.input, errs)
	}
}

// I1: a file that lies about, and lacks a worker's variables, does not stand in
// the way; one that was named does.
func TestGitHostWithoutTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const text = "git: {host: build-1}\nstorage: {blobs: \"${NOT_SET}\"}\n"
	if err := os.WriteFile("holdfast.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var g gitServer
	if status, _, errs := g.main(t, nil, "git", "fetch", "--dir", "c", "--no-wait"); status != contract.ExitOK || g.options.TaskQueue != contract.QueueGitHost(hostname(t)) {
		t.Errorf("a file nobody named: exit status %d, queue %q\n%s", status, g.options.TaskQueue, errs)
	}
	if status, _, errs := g.main(t, nil, "git", "fetch", "--dir", "c", "--no-wait", "--config", "holdfast.yaml"); status != contract.ExitUsage ||
		!strings.Contains(errs.String(), "NOT_SET") {
		t.Errorf("a named file: exit status %d\n%s", status, errs)
	}
}

// G9, I1: what cannot be taken is a usage error before anything is started, in
// one object, and repeats no credential.
func TestGitUsage(t *testing.T) {
	t.Parallel()
	const leak = "https://user:hunter22@git.example/a"
	for want, args := range map[string][]string{
		"carries a credential":        {"clone", leak, "/c"},
		"is given as a URL":           {"clone", "/c", leak},
		"with --auth NAME":            {"push", "--dir", "/c", "--url", leak},
		"40 lower-case hexadecimal":   {"push", "--dir", "/c", "--host", "h", "--expect", "hunter22"},
		"never deleted":               {"push", "--dir", "/c", "--host", "h", "--ref", ":main"},
		"cannot be negative":          {"clone", "/r", "/c", "--host", "h", "--depth=-1"},
		"leads out of the repository": {"clone", "/r", "/c", "--host", "h", "--sparse", "../hunter22"},
		"the host's name":             {"sync", "--dir", "/c", "--host", "hunter22/"},
		"missing flags: --dir":        {"sync"},
		"positive duration":           {"fetch", "--dir", "/c", "--host", "h", "--timeout", "5"},
		"is not the name of one":      {"fetch", "--dir", "/c", "--host", "h", "--auth", "user:hunter22"},
	} {
		var g gitServer
		status, out, errs := g.main(t, nil, append(append([]string{"git"}, args...), "--json")...)
		a := out.answer(t)
		if status != contract.ExitUsage || a.Outcome != "usage_error" || !strings.Contains(a.Error.Message, want) || g.workflow != "" {
			t.Errorf("%v: exit status %d, %q, started %q; want %q", args, status, a.Error.Message, g.workflow, want)
		}
		if strings.Contains(out.String()+errs.String(), "hunter22") {
			t.Errorf("%v: what was given is repeated: %s%s", args, out, errs)
		}
	}
}

// I1: how each end of a Git operation reads, and its exit status.
func TestShowGit(t *testing.T) {
	t.Parallel()
	from, to, other := strings.Repeat("a", 40), strings.Repeat("b", 40), strings.Repeat("c", 40)
	pushed := contract.GitPushed{Ref: "refs/heads/main", Old: from, New: to, Found: other}
	failure := &contract.Error{Reason: "conflict", Message: "somebody else pushed", Rule: "G6/conflict", Attempts: 1}
	for _, tc := range []struct {
		name      string
		result    contract.GitResult
		status    int
		out, errs string
	}{
		{
			"listed", contract.GitResult{Outcome: contract.OutcomeListed, Refs: []contract.GitRef{{Name: "HEAD", OID: from}}},
			contract.ExitOK, "listed git/k\n  " + from + "  HEAD\n", "",
		},
		{
			"fetched", contract.GitResult{Outcome: contract.OutcomeFetched, Truncated: true, Updated: []contract.GitUpdate{
				{Ref: "refs/remotes/origin/main", Old: from, New: to}, {Ref: "refs/tags/v1", New: to}, {Ref: "refs/tags/v0", Old: from},
			}},
			contract.ExitOK, "fetched git/k\n  refs/remotes/origin/main  aaaaaaaaaa -> bbbbbbbbbb\n  refs/tags/v1  (none) -> bbbbbbbbbb\n" +
				"  refs/tags/v0  aaaaaaaaaa -> (none)\n  and more refs than one result can hold\n", "",
		},
		{
			"cloned", contract.GitResult{Outcome: contract.OutcomeCloned, Head: &contract.GitHead{Ref: "refs/heads/main", OID: to}},
			contract.ExitOK, "cloned git/k\n  checked out refs/heads/main at bbbbbbbbbb\n", "",
		},
		{
			"cloned at a tag", contract.GitResult{Outcome: contract.OutcomeCloned, Head: &contract.GitHead{OID: to}},
			contract.ExitOK, "cloned git/k\n  checked out bbbbbbbbbb, on no branch\n", "",
		},
		{
			"synced", contract.GitResult{
				Outcome: contract.OutcomeSynced, Updated: []contract.GitUpdate{{Ref: "refs/remotes/origin/main", Old: from, New: to}},
				Head: &contract.GitHead{Ref: "refs/heads/main", OID: to},
			},
			contract.ExitOK, "synced git/k\n  refs/remotes/origin/main  aaaaaaaaaa -> bbbbbbbbbb\n  checked out refs/heads/main at bbbbbbbbbb\n", "",
		},
		{
			"diverged", contract.GitResult{Outcome: contract.OutcomeDiverged, Error: failure, Head: &contract.GitHead{Ref: "refs/heads/main", OID: from}},
			contract.ExitFailed, "  checked out refs/heads/main at aaaaaaaaaa\n",
			"git/k: diverged: somebody else pushed\n  reason conflict, rule G6/conflict, attempts 1\n",
		},
		{
			"landed", contract.GitResult{Outcome: contract.OutcomeLanded, Push: &pushed},
			contract.ExitOK, "landed git/k\n  refs/heads/main  aaaaaaaaaa -> bbbbbbbbbb\n", "",
		},
		{
			"nothing to push", contract.GitResult{Outcome: contract.OutcomeUpToDate, Push: &contract.GitPushed{Ref: "refs/heads/main", Old: to, New: to, Found: to}},
			contract.ExitOK, "up_to_date git/k\n  refs/heads/main at bbbbbbbbbb\n", "",
		},
		{
			"conflict", contract.GitResult{Outcome: contract.OutcomeConflict, Error: failure, Push: &pushed},
			contract.ExitFailed, "  refs/heads/main  wanted aaaaaaaaaa -> bbbbbbbbbb, found cccccccccc\n",
			"git/k: conflict: somebody else pushed\n  reason conflict, rule G6/conflict, attempts 1\n",
		},
		{
			"not landed", contract.GitResult{Outcome: contract.OutcomeNotLanded, Error: failure, Push: &contract.GitPushed{Ref: "refs/heads/new", New: to}},
			contract.ExitFailed, "  refs/heads/new is still at (none); the same push again, under a new key: --expect " + strings.Repeat("0", 40) + "\n",
			"git/k: not_landed: somebody else pushed\n  reason conflict, rule G6/conflict, attempts 1\n",
		},
		{
			"in doubt", contract.GitResult{Outcome: contract.OutcomeNeedsReview, Error: failure, Push: &pushed},
			contract.ExitNeedsReview, "  refs/heads/main  aaaaaaaaaa -> bbbbbbbbbb is in doubt; read the remote: starter git ls-remote URL --ref refs/heads/main\n" +
				"    " + to + ", or a commit that has it as an ancestor: it landed, and nothing is left to do\n" +
				"    " + from + ": it did not; push again, under a new key, with --expect " + from + "\n" +
				"    anything else: someone else has pushed; fetch, and decide anew\n",
			"git/k: needs_review: somebody else pushed\n  reason conflict, rule G6/conflict, attempts 1\n",
		},
		{
			"refused", contract.GitResult{Outcome: contract.OutcomeFailed, Error: failure, Push: &contract.GitPushed{Ref: "refs/heads/main", Old: from, New: to}},
			contract.ExitFailed, "  refs/heads/main  wanted aaaaaaaaaa -> bbbbbbbbbb\n",
			"git/k: failed: somebody else pushed\n  reason conflict, rule G6/conflict, attempts 1\n",
		},
		{"cancelled", contract.GitResult{Outcome: contract.OutcomeCancelled}, contract.ExitCancelled, "", "git/k: cancelled\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g := gitServer{result: tc.result}
			status, out, errs := g.main(t, nil, "git", "fetch", "--dir", "/c", "--host", "h", "--key", "k")
			if diff := cmp.Diff([]any{tc.status, tc.out, tc.errs}, []any{status, out.String(), errs.String()}); diff != "" {
				t.Errorf("exit status, output and errors (-want +got):\n%s", diff)
			}
			status, out, _ = g.main(t, nil, "git", "fetch", "--dir", "/c", "--host", "h", "--key", "k", "--json")
			if a := out.answer(t); status != tc.status || a.Outcome != string(tc.result.Outcome) || a.WorkflowID != "git/k" || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("with --json: exit status %d, %s", status, out)
			}
		})
	}
}

// I1: field names of the JSON object are stable.
func TestGitJSON(t *testing.T) {
	t.Parallel()
	g := gitServer{result: contract.GitResult{
		Outcome: contract.OutcomeConflict, Updated: []contract.GitUpdate{{Ref: "r", New: "n"}},
		Head: &contract.GitHead{Ref: "refs/heads/main", OID: "o"}, Push: &contract.GitPushed{Ref: "r", Old: "a", New: "b", Found: "c"},
		Error: &contract.Error{Reason: "conflict", Message: "m", Rule: "G6/conflict"},
	}}
	_, out, _ := g.main(t, nil, "git", "push", "--dir", "/c", "--host", "h", "--json")
	want := `{"workflow_id":"git/k","run_id":"r1","outcome":"conflict","updated":[{"ref":"r","old":"","new":"n"}],` +
		`"head":{"ref":"refs/heads/main","oid":"o"},"push":{"ref":"r","old":"a","new":"b","found":"c"},` +
		`"error":{"reason":"conflict","message":"m","rule":"G6/conflict","attempts":0}}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
