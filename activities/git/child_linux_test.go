package git

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/activities/git/internal/packtest"
	"github.com/holdfast-dev/holdfast/activities/git/internal/spawn"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// newIsolated is the engine of go-git with limits that a test may lower.
func newIsolated(l limits) *isolated {
	return &isolated{newGoGit(attempt.NewTransport(attempt.Options{Fresh: true}), 10*time.Second, l)}
}

// packed is an answer to a fetch that brings a pack.
func packed(pack []byte) []byte {
	out := []byte("0008NAK\n")
	for len(pack) > 0 {
		n := min(len(pack), 60_000)
		out = append(fmt.Appendf(out, "%04x\x01", n+5), pack[:n]...)
		pack = pack[n:]
	}
	return append(out, "0000"...)
}

// G12: what is small on the wire and large when it unfolds ends with a clear
// error, and nothing of it is left. How little memory that takes is tested where
// packs are taken in.
func TestChildIsBounded(t *testing.T) {
	t.Parallel()
	var delta packtest.Pack
	base := delta.Add(plumbing.BlobObject, 1<<20, nil, packtest.Zeros(1<<20))
	delta.Delta(base, packtest.Copies(1<<20, 64<<10)) // 64 GiB
	var zip packtest.Pack
	zip.Add(plumbing.BlobObject, 96<<20, nil, packtest.Zeros(96<<20))
	for name, tc := range map[string]struct {
		pack []byte
		rule string
	}{
		"delta bomb":   {delta.Bytes(), "G12/memory"},
		"zlib bomb":    {zip.Bytes(), "G12/disk"},
		"many objects": {new(packtest.Pack).Claiming(1 << 31), "G12/objects"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.commit("second")
			w.push("main")
			before := w.refs()
			e := newIsolated(limits{memory: 64 << 20, disk: 64 << 20, objects: 100_000})
			ctx, rec := recorded(t)
			_, err := e.fetch(ctx, remoteAt(t, w.tampered(func([]byte) []byte { return packed(tc.pack) }), Credentials{}), w.open(), "")
			if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != tc.rule || f.RetrySame || !strings.Contains(f.Message, "git.limits") {
				t.Errorf("%+v, want %s and a word on git.limits", f, tc.rule)
			}
			if diff := cmp.Diff(before, w.refs()); diff != "" {
				t.Errorf("refs moved:\n%s", diff)
			}
			w.whole()
			workIsEmpty(t, filepath.Join(w.checkout, ".git"))
		})
	}
}

// G12: a child that needs more memory than it may have ends, and it is said why.
func TestChildOutOfMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
	line("# service=git-upload-pack\n")
	b.WriteString("0000")
	line(strings.Repeat("a", 40) + " refs/heads/main\x00side-band-64k\n")
	for i := range 400_000 {
		line(fmt.Sprintf("%s refs/heads/branch-%07d\n", strings.Repeat("b", 40), i))
	}
	b.WriteString("0000")
	w.server.Script(answer(listType, b.String()))
	e := newIsolated(limits{memory: 32 << 20})
	ctx, rec := recorded(t)
	_, err := e.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != "G12/memory" || f.RetrySame || !strings.Contains(f.Message, "git.limits.memory") {
		t.Errorf("%+v, want G12/memory", f)
	}
	w.whole()
}

// P3, G3, G4: what a child met on the wire is judged as if it had been met here.
func TestFactsComeFromTheChild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	a := newActivities(t, Config{Engine: EngineGoGit})
	for _, step := range []simulator.Step{
		simulator.Status(429, "certificate not found").WithHeader("Retry-After", "7"),
		simulator.Status(429, "certificate not found").WithHeader("Retry-After", "7").On(githttp.OpUploadPack),
	} {
		w.server.Script(step)
		_, f := fetch(t, a, contract.GitRequest{Dir: w.checkout})
		if f.Reason != "rate_limit" || !f.RetrySame || f.Status != 429 || f.FloorMS == nil || *f.FloorMS != 7000 || f.Effect != "none" {
			t.Errorf("%+v, want rate_limit with a floor of 7000 ms", f)
		}
	}
	w.whole()
}

// childOf starts a child as the engine does and returns it with the end of the
// pipe that says that we are here.
func childOf(t *testing.T, q childRequest) (*exec.Cmd, *os.File) {
	t.Helper()
	r, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	request, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self())
	cmd.Env, cmd.Stdin, cmd.ExtraFiles = childEnvironment(0), bytes.NewReader(request), []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, ours
}

// G11: a child ends when its worker does, whatever it waits for.
func TestChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Reset()
	w.server.Script(simulator.Stall().On(githttp.OpFetchRefs))
	gitDir := filepath.Join(w.checkout, ".git")
	r := remoteAt(t, w.url(), Credentials{})
	cmd, ours := childOf(t, childRequest{
		Op: childFetch, URL: r.url, Remote: r.GitURL, Common: gitDir, GitDir: gitDir, Worktree: w.checkout,
		Limits: childLimits{Memory: 512 << 20}, ConnectTimeout: time.Minute,
	})
	if _, err := w.server.Ledger().WaitRequests(t.Context(), githttp.OpFetchRefs, 1); err != nil {
		t.Fatal(err)
	}
	ours.Close()
	err := cmd.Wait()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the child ended with %v, want to be killed", err)
	}
}

// onlyChild waits for the process number of the one process that this one has
// started and that runs. No other test may run meanwhile.
func onlyChild(t *testing.T) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		all, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range all {
			more, _ := os.ReadFile(file) // a thread may have ended
			content = append(content, more...)
		}
		for _, field := range strings.Fields(string(content)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe != "" && exe == own(t) {
				return pid
			}
		}
	}
	t.Fatal("there is no child")
	return 0
}

func own(t *testing.T) string {
	t.Helper()
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// G6: a push whose child is killed is proved to be unsent until the child has
// said that it sends, and not after. G3: a killed process is no worker that was
// lost. Of what the child was at, nothing is left but what is swept.
func TestKilledChild(t *testing.T) {
	w := newWorld(t)
	old := w.refs()["refs/heads/main"]
	next := run(t, w.checkout, "commit-tree", "-p", "HEAD", "-m", "next", "HEAD^{tree}")
	e := newIsolated(limits{})
	intent := contract.GitPushIntent{Ref: "refs/heads/main", Old: old, New: next}
	for _, tc := range []struct {
		at     string
		unsent bool
	}{{githttp.OpPushRefs, true}, {githttp.OpReceivePack, false}} {
		w.server.Reset()
		w.server.Script(simulator.Stall().On(tc.at).WithEffect(simulator.EffectNone))
		c := w.open()
		done := make(chan error, 1)
		ctx, rec := recorded(t)
		r := remoteAt(t, w.url(), Credentials{})
		go func() { done <- e.push(ctx, r, c, intent) }()
		if _, err := w.server.Ledger().WaitRequests(t.Context(), tc.at, 1); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(onlyChild(t), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		err := <-done
		f := failureOf(t, policies.OpPush, rec, err)
		if (f.Effect == "not_sent") != tc.unsent || f.Reason != "cancelled" || f.RetrySame {
			t.Errorf("killed at %s: %+v", tc.at, f)
		}
		if err := sweepWork(filepath.Join(w.checkout, ".git")); err != nil {
			t.Error(err)
		}
		w.whole()
		workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	}
}

// G12: a fetch that is killed in the middle of a pack leaves that below the work
// directory, from where the next holder of the lock removes it.
func TestKilledFetchLeavesOnlyItsWork(t *testing.T) {
	w := newWorld(t)
	noise := make([]byte, 300_000)
	rand.NewChaCha8([32]byte{}).Read(noise)
	w.write(map[string]string{"noise": string(noise)})
	w.push("main")
	before := w.refs()
	w.server.Reset()
	w.server.Script(simulator.Step{Note: "stall", Cut: &simulator.Cut{Bytes: 150_000}, End: simulator.EndStall}.On(githttp.OpUploadPack))
	e, c := newIsolated(limits{}), w.open()
	r := remoteAt(t, w.url(), Credentials{})
	done := make(chan error, 1)
	ctx, _ := recorded(t)
	go func() {
		_, err := e.fetch(ctx, r, c, "")
		done <- err
	}()
	gitDir := filepath.Join(w.checkout, ".git")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		if begun, _ := filepath.Glob(filepath.Join(gitDir, workDir, "*", "pack-*.pack")); len(begun) == 1 && r.progress.snapshot().Bytes > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no pack was begun")
		}
	}
	if err := syscall.Kill(onlyChild(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("a killed fetch succeeded")
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved:\n%s", diff)
	}
	w.whole()
	if err := sweepWork(gitDir); err != nil {
		t.Error(err)
	}
	workIsEmpty(t, gitDir)
}

// G11: the lock of a checkout is held as long as the child lives, whatever
// becomes of the worker's own hold on it.
func TestChildHoldsTheLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	w.push("main")
	path := filepath.Join(w.root, "lock")
	lock, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	w.server.Reset()
	w.server.Script(simulator.HoldBefore("pack").On(githttp.OpUploadPack))
	c := w.open()
	c.lock = lock
	done := make(chan error, 1)
	r := remoteAt(t, w.url(), Credentials{})
	go func() {
		_, err := newIsolated(limits{}).fetch(t.Context(), r, c, "")
		done <- err
	}()
	if _, err := w.server.Gate("pack").WaitHeld(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("the lock is free while the child works: %v", err)
	}
	w.server.Gate("pack").Release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Errorf("the lock is held after the child's end: %v", err)
	}
}

// G5: the engine returns soon after it is cancelled, and then its child is gone.
func TestCancelledChild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Reset()
	w.server.Script(simulator.Stall().On(githttp.OpFetchRefs))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := w.server.Ledger().WaitRequests(t.Context(), githttp.OpFetchRefs, 1); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	began := time.Now()
	_, err := newIsolated(limits{}).fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(began); took > 20*time.Second { // the start of a child on a busy machine included
		t.Errorf("it took %s", took)
	}
}

// What a child says is taken as what it may say, and nothing else.
func TestConversation(t *testing.T) {
	t.Parallel()
	p := &progress{}
	s := &conversation{progress: p}
	for _, piece := range []string{`{"Progress":{"Phase":2,"Obj`, `ects":7,"Done":3,"Bytes":9}}` + "\n" + `{"Progress":{"Phase":99}}`, "\n", `{"Begun":true}` + "\n" + `{"Done":true,"Yes":true}` + "\n"} {
		if n, err := s.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("%q: %d, %v", piece, n, err)
		}
	}
	if got := p.snapshot(); got != (Progress{Phase: "receiving", Objects: 7, Done: 3, Bytes: 9}) {
		t.Errorf("progress %+v", got)
	}
	if !s.ended || !s.last.Begun || !s.last.Yes || s.last.failure() != nil {
		t.Errorf("said %+v", s.last)
	}
	for _, more := range []string{"{}\n", "no JSON\n"} {
		if _, err := s.Write([]byte(more)); !errors.Is(err, errChildWords) {
			t.Errorf("%q after the end: %v", more, err)
		}
	}
	if _, err := new(conversation).Write([]byte("panic: something\n")); !errors.Is(err, errChildWords) {
		t.Errorf("no JSON: %v", err)
	}
	if err := (&childMessage{}).failure(); !errors.Is(err, errChildWords) {
		t.Errorf("an end without a word: %v", err)
	}
	local := (&childMessage{Local: &childLocal{Reason: policies.ReasonNotFound, Rule: "G3/ref_not_found", Message: errRefNotFound.Error()}, Unsent: true}).failure()
	var unsent *unsentError
	if !errors.Is(local, errRefNotFound) || !errors.As(local, &unsent) {
		t.Errorf("a failure of ours: %v", local)
	}
}

// How a child ended that did not say it.
func TestDeaths(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		result spawn.Result
		stderr string
		want   error
	}{
		"its own limit":      {spawn.Result{ExitCode: exitMemory}, "", errMemoryLimit},
		"the system's limit": {spawn.Result{ExitCode: 2}, "fatal error: runtime: out of memory\n", errMemoryLimit},
		"no mapping":         {spawn.Result{ExitCode: 2}, "runtime: mmap: cannot allocate memory\n", errMemoryLimit},
		"panic":              {spawn.Result{ExitCode: 2}, "panic: runtime error: index out of range\n", errCrashed},
		"without a word":     {spawn.Result{ExitCode: exitTalk}, "", errCrashed},
	} {
		if err := died(tc.result, tc.stderr); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var program *programError
	if err := died(spawn.Result{End: spawn.Signalled, ExitCode: -1}, ""); !errors.As(err, &program) || program.termination != "signal" {
		t.Errorf("a signal: %v", err)
	}
}

// G9: a child learns nothing of the worker's environment but what Git needs.
func TestChildEnvironment(t *testing.T) {
	t.Setenv("DISCORD_TOKEN", secret)
	t.Setenv("GIT_DIR", "/elsewhere")
	t.Setenv("SSL_CERT_FILE", "/some/ca.pem")
	env := strings.Join(childEnvironment(1), "\n")
	if strings.Contains(env, secret) || strings.Contains(env, "/elsewhere") || !strings.Contains(env, "SSL_CERT_FILE=/some/ca.pem") {
		t.Errorf("the child is told:\n%s", env)
	}
}
