package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// G12: a pack of more objects than the limit is not received.
func TestProgramObjectLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 20 {
		w.commit(fmt.Sprint(i))
	}
	w.push("main")
	before := w.refs()
	for limit, rule := range map[int64]string{59: "G12/objects", 60: ""} { // 20 commits, trees and blobs
		ctx, rec := recorded(t)
		_, err := newTestProgram(t, limits{objects: limit}).fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
		if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != rule || f.RetrySame {
			t.Errorf("limit %d: %+v, want %s", limit, f, rule)
		}
		if diff := cmp.Diff(before, w.refs()); (diff == "") != (rule != "") {
			t.Errorf("limit %d: refs\n%s", limit, diff)
		}
		if rule == "" {
			run(t, w.checkout, "update-ref", "refs/remotes/origin/main", before["refs/remotes/origin/main"])
		}
		w.whole()
		workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	}
}

// G12: a pack that unfolds to more memory than the limit ends in a clear error,
// and an honest repository fits in it.
func TestProgramMemoryLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.commit("second")
	w.push("main")
	// Versions of a file of 32 MiB that compresses to nothing: as deltas of each
	// other they have to be held whole.
	big := strings.Repeat("0123456789abcdef", 2<<20)
	for i := range 2 {
		if err := os.WriteFile(filepath.Join(w.author, "big"), []byte(strconv.Itoa(i)+big), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, w.author, "add", "big")
		run(t, w.author, "commit", "-q", "-m", "big")
	}
	run(t, w.author, "-c", "core.bigFileThreshold=1g", "repack", "-q", "-a", "-d", "-f")
	bomb := filepath.Join(w.root, "srv", "bomb.git")
	run(t, w.root, "clone", "-q", "--bare", "file://"+w.author, bomb)
	g := newTestProgram(t, limits{memory: 48 << 20})
	ctx, rec := recorded(t)
	_, err := g.fetch(ctx, remoteAt(t, w.server.RepoURL("bomb.git"), Credentials{}), w.open(), "")
	if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != "G12/memory" || f.RetrySame || !strings.Contains(f.Message, "git.limits.memory") {
		t.Errorf("the bomb: %+v, want G12/memory", f)
	}
	w.whole()
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	updates, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	if err != nil || len(updates) != 1 || updates[0].New != first {
		t.Errorf("the honest one: %+v, %+v", updates, failureOf(t, policies.OpFetch, rec, err))
	}
}

// G12: an operation that writes more than the limit is ended.
func TestProgramDiskLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{}
	source := rand.NewChaCha8([32]byte{})
	for i := range 12 {
		content := make([]byte, 1<<20)
		source.Read(content)
		files[fmt.Sprintf("f%d", i)] = string(content)
	}
	w.write(files)
	w.push("main")
	ctx, rec := recorded(t)
	_, err := newTestProgram(t, limits{disk: 2 << 20}).fetch(ctx, remoteAt(t, w.heldBack(8<<20), Credentials{}), w.open(), "")
	if f := failureOf(t, policies.OpFetch, rec, err); f.Rule != "G12/disk" || f.RetrySame || f.Reason != "no_space" {
		t.Errorf("%+v, want G12/disk", f)
	}
	w.whole()
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
}

// heldBack is the address of the world's repository behind a proxy that passes n
// bytes of an answer on and no more until the request ends.
func (w *world) heldBack(n int64) string {
	w.t.Helper()
	target, err := url.Parse(w.server.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Body = &heldBody{ReadCloser: r.Body, left: n, ctx: r.Request.Context()}
		return nil
	}
	front := httptest.NewServer(proxy)
	w.t.Cleanup(front.Close)
	return front.URL + "/repo.git"
}

type heldBody struct {
	io.ReadCloser
	left int64
	ctx  context.Context
}

func (b *heldBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

// The watch counts when the free space has fallen by what is left of the limit,
// and believes its own count.
func TestDiskWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	free := int64(1 << 30)
	w := &diskWatch{dir: dir, limit: 1 << 20, free: func(string) (int64, error) { return free, nil }}
	w.at, w.left, w.began, w.counted = dir, free, time.Now(), time.Now()
	old := filepath.Join(dir, "old")
	if err := os.WriteFile(old, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	if w.exceeded(t.Context()) || w.used != 0 {
		t.Error("nothing was taken")
	}
	free -= 2 << 20 // somebody else took it
	if w.exceeded(t.Context()) || w.used != 0 {
		t.Errorf("counted %d", w.used)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte(strings.Repeat("x", 2<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.exceeded(t.Context()) {
		t.Error("it counted where nothing was taken")
	}
	free -= 2 << 20
	if !w.exceeded(t.Context()) {
		t.Errorf("counted %d", w.used)
	}
	sparse := filepath.Join(t.TempDir(), "sparse")
	if err := errors.Join(os.WriteFile(sparse, nil, 0o600), os.Truncate(sparse, 1<<30)); err != nil {
		t.Fatal(err)
	}
	if n := written(t.Context(), filepath.Dir(sparse), time.Now().Add(-time.Minute)); n > 1<<20 {
		t.Errorf("a file of holes takes %d", n)
	}
	if n, err := freeBytes(dir); n <= 0 || err != nil {
		t.Errorf("free: %d, %v", n, err)
	}
}

// role makes the test binary a worker that does one operation and is killed.
const role = "HOLDFAST_GIT_TEST_ROLE"

func init() {
	if os.Getenv(role) != "fetch" {
		return
	}
	g, err := newProgram(programConfig{transport: attempt.NewTransport(attempt.Options{Fresh: true})})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	c, err := openCheckout(os.Getenv(role+"_DIR"), nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	address := os.Getenv(role + "_URL")
	parsed, err := policies.ParseGitURL(address)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	_, err = g.fetch(attempt.With(context.Background(), attempt.New()), &remote{GitURL: parsed, url: address, progress: &progress{}}, c, "")
	fmt.Println(err)
	os.Exit(1)
}

// G11, G12: a worker that is killed in a transfer leaves no git running, no ref
// moved and nothing outside its work directory, and the next one goes on.
func TestProgramWorkerKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := w.commit("second")
	w.push("main")
	before := w.refs()
	w.server.Script(simulator.Stall().On(githttp.OpUploadPack))
	worker := exec.Command(os.Args[0])
	worker.Env = append(os.Environ(), role+"=fetch", role+"_DIR="+w.checkout, role+"_URL="+w.url())
	worker.Stdout, worker.Stderr = os.Stderr, os.Stderr
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	defer worker.Wait()
	defer worker.Process.Kill()
	// The children are found by the shadow that they work in.
	running := func() (found []string) {
		stats, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil || len(stats) == 0 {
			t.Skip("there is no /proc")
		}
		for _, name := range stats {
			env, err := os.ReadFile(name)
			if err == nil && strings.Contains(string(env), "GIT_DIR="+w.checkout) {
				found = append(found, name)
			}
		}
		return found
	}
	wait := func(what string, d time.Duration, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(d); !condition(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not in time: %s; %v", what, running())
			}
		}
	}
	wait("the pack is asked for", 30*time.Second, func() bool { return len(w.server.Ledger().Requests(githttp.OpUploadPack)) == 1 })
	if len(running()) < 2 {
		t.Fatalf("git does not run: %v", running())
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait("git is gone", 5*time.Second, func() bool { return len(running()) == 0 })
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved:\n%s", diff)
	}
	w.whole()
	if err := sweepWork(filepath.Join(w.checkout, ".git")); err != nil {
		t.Fatal(err)
	}
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	ctx, rec := recorded(t)
	got, err := newTestProgram(t, limits{}).fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	if err != nil || len(got) != 1 || got[0].New != next {
		t.Errorf("the next: %+v, %+v", got, failureOf(t, policies.OpFetch, rec, err))
	}
	w.whole()
}
