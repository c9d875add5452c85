package git

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// ours makes a commit on top of another in the checkout, on no branch.
func (w *world) ours(parent, text string) string {
	w.t.Helper()
	return run(w.t, w.checkout, "commit-tree", "-p", parent, "-m", text, parent+"^{tree}")
}

func (w *world) remoteRefs() map[string]string { return w.server.Refs("repo.git") }

// pushes is how often a push was asked for.
func (w *world) pushes() int { return len(w.server.Ledger().Requests(githttp.OpReceivePack)) }

// G6: a push moves the ref from what the intent says, once, or says that it has
// not moved.
func TestProgramPush(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	first := w.refs()["refs/heads/main"]
	ours, rival := w.ours(first, "ours"), w.ours(first, "rival")
	run(t, w.bare, "config", "receive.denyDeletes", "true")
	hook := filepath.Join(w.bare, "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\ncase $1 in refs/heads/held) echo fatal: no space left on device >&2; exit 1;; esac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name         string
		intent       contract.GitPushIntent
		rule, effect string
		want         string // what the remote has then
		pushes       int
	}{
		{"a new branch", contract.GitPushIntent{Ref: "refs/heads/new", New: ours}, "", "", ours, 1},
		{"one that exists", contract.GitPushIntent{Ref: "refs/heads/new", New: rival}, "G6/lease", "not_sent", ours, 0},
		{"it again", contract.GitPushIntent{Ref: "refs/heads/new", Old: ours, New: ours}, "", "", ours, 0},
		{"with a stale lease", contract.GitPushIntent{Ref: "refs/heads/new", Old: first, New: rival}, "G6/lease", "not_sent", ours, 0},
		{"with force and a stale lease", contract.GitPushIntent{Ref: "refs/heads/new", Old: first, New: rival, Force: true}, "G6/lease", "not_sent", ours, 0},
		{"with force and the lease", contract.GitPushIntent{Ref: "refs/heads/new", Old: ours, New: rival, Force: true}, "", "", rival, 1},
		{"a fast-forward", contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}, "", "", ours, 1},
		{"refused by a hook", contract.GitPushIntent{Ref: "refs/heads/held", New: ours}, "G6/refused", "not_sent", "", 1},
		{"a tag", contract.GitPushIntent{Ref: "refs/tags/t", New: ours}, "", "", ours, 1},
	} {
		w.server.Reset()
		ctx, rec := recorded(t)
		err := g.push(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), tc.intent)
		if f := failureOf(t, policies.OpPush, rec, err); f.Rule != tc.rule || f.Effect != tc.effect || f.RetrySame {
			t.Errorf("%s: %+v, want %q %q", tc.name, f, tc.rule, tc.effect)
		}
		if got := w.remoteRefs()[tc.intent.Ref]; got != tc.want {
			t.Errorf("%s: the remote has %s, want %s", tc.name, got, tc.want)
		}
		if n := w.pushes(); n != tc.pushes {
			t.Errorf("%s: %d pushes, want %d", tc.name, n, tc.pushes)
		}
	}
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
}

// G6: what is known of a push that failed: not sent where it was not, and unknown
// where its answer was lost. Nothing is sent twice.
func TestProgramPushFaults(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	first := w.refs()["refs/heads/main"]
	for i, tc := range []struct {
		name           string
		step           simulator.Step
		reason, effect string
		landed         bool
		pushes         int
	}{
		{"refused before", simulator.Status(403, "no").On(githttp.OpPushRefs), "permission", "not_sent", false, 0},
		{"unavailable before", githttp.Unavailable().On(githttp.OpPushRefs), "server_error", "not_sent", false, 0},
		{"reset before", simulator.Reset().On(githttp.OpPushRefs), "timeout", "not_sent", false, 0},
		{"denied", simulator.Status(401, "no").On(githttp.OpReceivePack), "auth", "not_sent", false, 1},
		{"unavailable", githttp.Unavailable().On(githttp.OpReceivePack), "server_error", "unknown", false, 1},
		{"lost on the way", simulator.Reset().On(githttp.OpReceivePack), "timeout", "unknown", false, 1},
		{"answer lost", githttp.LandThenReset(), "timeout", "unknown", true, 1},
		{"answer cut", simulator.CutBytes(10).On(githttp.OpReceivePack), "timeout", "unknown", true, 1},
		{"answer empty", answer("application/x-git-receive-pack-result", "").On(githttp.OpReceivePack).WithEffect(simulator.EffectOnce), "timeout", "unknown", true, 1},
	} {
		w.server.Reset()
		w.server.Script(tc.step)
		p := contract.GitPushIntent{Ref: fmt.Sprintf("refs/heads/b%d", i), New: w.ours(first, tc.name)}
		ctx, rec := recorded(t)
		err := g.push(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), p)
		if f := failureOf(t, policies.OpPush, rec, err); f.Reason != tc.reason || f.Effect != tc.effect || f.RetrySame {
			t.Errorf("%s: %+v, want %s %s", tc.name, f, tc.reason, tc.effect)
		}
		if got := w.remoteRefs()[p.Ref]; (got == p.New) != tc.landed {
			t.Errorf("%s: the remote has %q", tc.name, got)
		}
		if n := w.pushes(); n != tc.pushes {
			t.Errorf("%s: %d pushes, want %d", tc.name, n, tc.pushes)
		}
	}
}

// G6: a push larger than git sends in one piece is one request all the same.
func TestProgramPushLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{memory: 64 << 20}) // so git sends at most 4 MiB in one piece
	big := filepath.Join(w.checkout, "big")
	content := make([]byte, 12<<20)
	rand.Read(content)
	if err := os.WriteFile(big, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, w.checkout, "add", "big")
	tree := run(t, w.checkout, "write-tree")
	first := w.refs()["refs/heads/main"]
	ours := run(t, w.checkout, "commit-tree", "-p", first, "-m", "big", tree)
	ctx, rec := recorded(t)
	r := remoteAt(t, w.url(), Credentials{})
	if err := g.push(ctx, r, w.open(), contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours}); err != nil {
		t.Fatalf("%+v", failureOf(t, policies.OpPush, rec, err))
	}
	if n := w.pushes(); n != 1 || w.remoteRefs()["refs/heads/main"] != ours {
		t.Errorf("%d pushes, and the remote has %v", n, w.remoteRefs())
	}
	if p := r.progress.snapshot(); p.Phase != "sending" || p.Bytes < 12<<20 || p.Done == 0 {
		t.Errorf("progress %+v", p)
	}
}

// stubbornHost keeps its connections open whatever it is asked, and resets each
// when a push comes, without an answer.
type stubbornHost struct {
	net.Listener
	refs []byte

	mu       sync.Mutex
	requests []string
	open     sync.WaitGroup
}

func (h *stubbornHost) serve() {
	for {
		conn, err := h.Accept()
		if err != nil {
			return
		}
		h.open.Go(func() { h.talk(conn) })
	}
}

func (h *stubbornHost) talk(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, req.Body) // a body that breaks off breaks the next request
		h.mu.Lock()
		h.requests = append(h.requests, req.Method+" "+req.URL.Path)
		h.mu.Unlock()
		if req.Method == http.MethodPost {
			conn.(*net.TCPConn).SetLinger(0)
			return
		}
		fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-receive-pack-advertisement\r\nContent-Length: %d\r\n\r\n%s", len(h.refs), h.refs)
	}
}

// G6: a push on a connection that is reset without an answer is sent once, even
// to a host that keeps connections open. Plain git sends it twice, with
// "Connection: close" too: which is why there is a relay.
func TestProgramPushIsNeverReplayed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	refs := exec.Command("git", "receive-pack", "--http-backend-info-refs", w.bare)
	refs.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
	list, err := refs.Output()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &stubbornHost{Listener: listener, refs: slices.Concat([]byte("001f# service=git-receive-pack\n0000"), list)}
	h.open.Go(h.serve)
	defer h.open.Wait()
	defer h.Close()
	url := "http://" + listener.Addr().String() + "/repo.git"
	first := w.refs()["refs/heads/main"]
	ours := w.ours(first, "ours")

	plain := exec.Command("git", "-c", "http.extraHeader=Connection: close", "push", url, ours+":refs/heads/main")
	plain.Dir = w.checkout
	if out, err := plain.CombinedOutput(); err == nil {
		t.Fatalf("plain git says that it pushed:\n%s", out)
	}
	count := func() (n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, r := range h.requests {
			if strings.HasPrefix(r, http.MethodPost) {
				n++
			}
		}
		h.requests = nil
		return n
	}
	if n := count(); n < 2 {
		t.Logf("plain git sent %d pushes; it has learned not to repeat them", n)
	}
	ctx, rec := recorded(t)
	err = newTestProgram(t, limits{}).push(ctx, remoteAt(t, url, Credentials{}), w.open(), contract.GitPushIntent{Ref: "refs/heads/main", Old: first, New: ours})
	if f := failureOf(t, policies.OpPush, rec, err); f.Effect != "unknown" || f.Reason != "timeout" {
		t.Errorf("%+v, want unknown", f)
	}
	if n := count(); n != 1 {
		t.Errorf("%d pushes were sent, want 1", n)
	}
}

// G6: where the ref is, and whether it contains ours. The checkout learns nothing.
func TestProgramLocate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	first := w.refs()["refs/heads/main"]
	second := w.commit("second")
	run(t, w.author, "tag", "-a", "-m", "x", "v1")
	run(t, w.author, "tag", "-a", "-m", "y", "v2")
	third := w.commit("third")
	w.push("main", second+":refs/heads/second", "v1", "v2")
	run(t, w.checkout, "fetch", "-q", w.url(), "refs/heads/second:refs/kept/second", "+refs/tags/v2:refs/tags/v2")
	v2 := run(t, w.author, "rev-parse", "v2")
	alien := w.ours(first, "alien")
	before := refsIn(t, w.checkout)
	for _, tc := range []struct {
		ref, ours string
		want      contract.GitLocated
	}{
		{"refs/heads/missing", first, contract.GitLocated{}},
		{"refs/heads/main", third, contract.GitLocated{Found: third, Contains: true}},
		{"refs/heads/main", second, contract.GitLocated{Found: third, Contains: true}},
		{"refs/heads/main", first, contract.GitLocated{Found: third, Contains: true}},
		{"refs/heads/second", second, contract.GitLocated{Found: second, Contains: true}},
		{"refs/heads/main", alien, contract.GitLocated{Found: third}},
		{"refs/heads/main", strings.Repeat("1", 40), contract.GitLocated{Found: third}},
		{"refs/tags/v1", v2, contract.GitLocated{Found: run(t, w.author, "rev-parse", "v1")}}, // another tag of the same commit
		{"refs/tags/v2", v2, contract.GitLocated{Found: v2, Contains: true}},
	} {
		ctx, rec := recorded(t)
		got, err := g.locate(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), tc.ref, tc.ours)
		if err != nil || got != tc.want {
			t.Errorf("%s for %.7s: %+v, %+v; want %+v", tc.ref, tc.ours, got, failureOf(t, policies.OpFetch, rec, err), tc.want)
		}
	}
	if after := refsIn(t, w.checkout); after != before {
		t.Errorf("refs moved:\n%s", after)
	}
	if out, err := exec.Command("git", "-C", w.checkout, "cat-file", "-e", third).CombinedOutput(); err == nil {
		t.Errorf("the checkout has what was only looked at: %s", out)
	}
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	for name, ok := range map[string]bool{first + " " + second: false, second + " " + first: true, first + " " + first: true, first + " " + third: false} {
		tip, base, _ := strings.Cut(name, " ")
		ctx, _ := recorded(t)
		if got, err := g.descends(ctx, w.open(), tip, base); got != ok || err != nil {
			t.Errorf("descends %s: %v, %v", name, got, err)
		}
	}
}
