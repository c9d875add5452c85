package githttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// clone makes a working copy of a repository with one commit of its own.
func clone(t *testing.T, s *githttp.Server, name string) (work, ours string) {
	t.Helper()
	work = filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", s.Dir(name), work)
	must(t, work, "remote", "set-url", "origin", s.RepoURL(name))
	must(t, work, "commit", "--quiet", "--allow-empty", "-m", "ours")
	return work, must(t, work, "rev-parse", "HEAD")
}

func ops(s *githttp.Server) []string {
	var ops []string
	for _, r := range s.Ledger().Requests("") {
		ops = append(ops, r.Op)
	}
	return ops
}

// Q1: a step meets the phase that it names, in both protocol versions, and the
// phases before it are served.
func TestPhases(t *testing.T) {
	t.Parallel()
	fetch := []string{githttp.OpFetchRefs, githttp.OpUploadPack}
	fetch2 := []string{githttp.OpFetchRefs, githttp.OpListRefs, githttp.OpUploadPack}
	push := []string{githttp.OpPushRefs, githttp.OpReceivePack}
	for _, tc := range []struct {
		version string
		args    []string
		phases  []string
	}{
		{"0", []string{"fetch", "--quiet", "origin"}, fetch},
		{"2", []string{"fetch", "--quiet", "origin"}, fetch2},
		{"2", []string{"push", "--quiet", "origin", "HEAD"}, push},
	} {
		s := start(t, githttp.Options{})
		create(t, s, "p.git", 3)
		work, _ := clone(t, s, "p.git")
		if err := s.Commit("p.git", "side", 1); err != nil {
			t.Fatal(err)
		}
		before := s.Refs("p.git")
		for i, op := range tc.phases {
			for _, step := range []simulator.Step{
				simulator.Status(507, "full").WithHeader("Retry-After", "9"), githttp.Empty(op), simulator.Reset(), simulator.CloseUnread(),
			} {
				s.Reset()
				s.Script(step.On(op))
				args := append([]string{"-c", "protocol.version=" + tc.version, "-c", "http.extraHeader=Connection: close"}, tc.args...)
				if out, err := git(t, work, args...); err == nil {
					t.Errorf("version %s, %s at %s: git succeeded: %s", tc.version, step.Note, op, out)
				}
				if diff := cmp.Diff(tc.phases[:i+1], ops(s)); diff != "" {
					t.Errorf("version %s, %s at %s (-want +got):\n%s", tc.version, step.Note, op, diff)
				}
			}
		}
		if diff := cmp.Diff(before, s.Refs("p.git")); diff != "" {
			t.Errorf("version %s: refs moved:\n%s", tc.version, diff)
		}
	}
}

// G6: a push on a reused connection that is reset without an answer. libcurl
// sends it again unasked, and the ledger tells; on a connection of its own there
// is nothing to repeat.
func TestResetReusedPush(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 2)
	work, ours := clone(t, s, "p.git")
	s.Script(githttp.ResetReusedPush())
	must(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/reused")
	got := s.Ledger().Requests(githttp.OpReceivePack)
	if len(got) != 2 || !got[0].Reused() || got[0].Outcome != simulator.NoAnswer || got[1].Reused() {
		t.Errorf("requests %+v, want one that was reset and one that was sent again", got)
	}
	if effects := s.Ledger().Effects(""); len(effects) != 1 || effects[0].ID != ours || effects[0].Request != got[1].N {
		t.Errorf("effects %+v", effects)
	}
	s.Reset()
	s.Script(githttp.ResetReusedPush())
	must(t, work, "-c", "http.extraHeader=Connection: close", "push", "--quiet", "origin", "HEAD:refs/heads/fresh")
	if got := s.Ledger().Requests(githttp.OpReceivePack); len(got) != 1 || len(s.Remaining()) != 1 {
		t.Errorf("requests %+v, want one, on its own connection", got)
	}
}

// G6: a push that is lost before it arrived leaves nothing.
func TestLosePush(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 2)
	work, _ := clone(t, s, "p.git")
	before := s.Refs("p.git")
	s.Script(githttp.LosePush())
	if out, err := git(t, work, "-c", "http.extraHeader=Connection: close", "push", "origin", "HEAD"); err == nil {
		t.Errorf("the push says it succeeded: %s", out)
	}
	reqs := s.Ledger().Requests(githttp.OpReceivePack)
	if len(reqs) != 1 || reqs[0].BodyRead || len(s.Ledger().Effects("")) != 0 {
		t.Errorf("requests %+v, effects %+v", reqs, s.Ledger().Effects(""))
	}
	if diff := cmp.Diff(before, s.Refs("p.git")); diff != "" {
		t.Errorf("refs moved:\n%s", diff)
	}
}

// G6: reads from a replica that is behind, and then no more; pushes see the truth.
func TestLag(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "a/p.git", 2)
	old := s.Refs("a/p.git")["refs/heads/main"]
	work, ours := clone(t, s, "a/p.git")
	must(t, work, "tag", "-a", "-m", "ours", "v1")
	if err := s.Lag("a/p.git", 2); err != nil {
		t.Fatal(err)
	}
	read := func(version string) string {
		return must(t, work, "-c", "protocol.version="+version, "ls-remote", "origin", "main", "v1*")
	}
	if got := read("2"); got != old+"\trefs/heads/main" {
		t.Errorf("before the push: %s", got)
	}
	must(t, work, "push", "--quiet", "origin", "HEAD:main", "v1")
	for _, version := range []string{"2", "0"} {
		if got := read(version); got != old+"\trefs/heads/main" {
			t.Errorf("behind, version %s: %s", version, got)
		}
	}
	if got := read("2"); !strings.HasPrefix(got, ours) || !strings.Contains(got, "v1^{}") {
		t.Errorf("caught up: %s", got)
	}
	if err := s.Lag("a/p.git", -1); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit("a/p.git", "main", 1); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	must(t, "", "clone", "--quiet", s.RepoURL("a/p.git"), other)
	if got := must(t, other, "rev-parse", "HEAD"); got != ours {
		t.Errorf("a clone of the replica is at %s, want %s", got, ours)
	}
	if err := s.Lag("a/p.git", 0); err != nil {
		t.Fatal(err)
	}
	if got := read("2"); strings.HasPrefix(got, ours) {
		t.Errorf("the lag has ended: %s", got)
	}
	if effects := s.Ledger().Effects(""); len(effects) != 2 {
		t.Errorf("effects %+v, want main and v1", effects)
	}
}

// G6: a push that the host's rules refuse says so for the ref, and others' work
// in between is a conflict.
func TestRefusedPushes(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 2)
	work, ours := clone(t, s, "p.git")
	if err := s.Protect("p.git", "it's protected", "refs/heads/main", "refs/heads/it's"); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"main", "it's"} {
		out, err := git(t, work, "push", "origin", "HEAD:refs/heads/"+ref)
		if err == nil || !strings.Contains(out, "it's protected") || !strings.Contains(out, "hook declined") {
			t.Errorf("push to %s: %v %s", ref, err, out)
		}
	}
	must(t, work, "push", "--quiet", "origin", "HEAD:refs/heads/free")
	if effects := s.Ledger().Effects(""); len(effects) != 1 || effects[0].Content != "refs/heads/free "+strings.Repeat("0", 40)+" "+ours {
		t.Errorf("effects %+v", effects)
	}
	first := must(t, work, "rev-parse", "HEAD~2")
	if err := s.SetRef("p.git", "refs/heads/free", first); err != nil {
		t.Fatal(err)
	}
	if out, err := git(t, work, "push", "--force-with-lease=free:"+ours, "origin", "HEAD:free"); err == nil || !strings.Contains(out, "stale") {
		t.Errorf("lease: %v %s", err, out)
	}
	if err := s.SetRef("p.git", "refs/heads/free", ""); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Refs("p.git")["refs/heads/free"]; ok {
		t.Error("the ref was not deleted")
	}
	if err := s.SetRef("p.git", "refs/heads/free", strings.Repeat("1", 40)); err == nil {
		t.Error("a ref was set to an object that is not there")
	}
}

// G12: a list of refs can say anything.
func TestAdvertise(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 1)
	id := s.Refs("p.git")["refs/heads/main"]
	s.Script(githttp.Advertise(githttp.OpFetchRefs, githttp.Ref{ID: id, Name: "refs/heads/main"}, githttp.Ref{ID: id, Name: "refs/heads/x"}).Times(2))
	if got := must(t, "", "ls-remote", s.RepoURL("p.git")); got != id+"\trefs/heads/main\n"+id+"\trefs/heads/x" {
		t.Errorf("refs %s", got)
	}
	work := filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", "--branch", "x", s.RepoURL("p.git"), work)
}

// G9: redirects to the same operation elsewhere.
func TestRedirect(t *testing.T) {
	t.Parallel()
	s, other := start(t, githttp.Options{}), start(t, githttp.Options{})
	create(t, s, "p.git", 2)
	create(t, other, "q.git", 3)
	s.Script(
		githttp.Redirect(http.StatusMovedPermanently, githttp.OpFetchRefs, s.RepoURL("p.git")).ForKey("p"),
		githttp.Redirect(http.StatusFound, githttp.OpFetchRefs, other.RepoURL("q.git")).ForKey("p.git"),
	)
	if got := must(t, "", "ls-remote", s.RepoURL("p.git"), "main"); !strings.Contains(got, other.Refs("q.git")["refs/heads/main"]) {
		t.Errorf("to another origin: %s", got)
	}
	if got := must(t, "", "ls-remote", s.RepoURL("p"), "main"); !strings.Contains(got, s.Refs("p.git")["refs/heads/main"]) {
		t.Errorf("within the origin: %s", got)
	}
	if n := count(other, githttp.OpFetchRefs); n != 1 {
		t.Errorf("the other origin was asked %d times, want 1", n)
	}
}

// G3, G4: over TLS, certificates and connections that end without TLS's own end.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	a, err := simulator.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	good, err := a.TLS()
	expired, err2 := a.ExpiredTLS()
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := a.WriteFile(ca); err != nil {
		t.Fatal(err)
	}
	s, late := start(t, githttp.Options{TLS: good}), start(t, githttp.Options{TLS: expired})
	create(t, s, "p.git", 300)
	create(t, late, "p.git", 1)
	trust := []string{"-c", "http.sslCAInfo=" + ca}
	must(t, "", append(trust, "clone", "--quiet", s.RepoURL("p.git"), filepath.Join(t.TempDir(), "work"))...)

	for _, tc := range []struct {
		name, url, says string
		options         []string
		before          func()
	}{
		{"unknown authority", s.RepoURL("p.git"), "certificate", nil, nil},
		{"expired", late.RepoURL("p.git"), "certificate", trust, nil},
		{"torn pack", s.RepoURL("p.git"), "early EOF", trust, func() { s.Script(simulator.Torn(2000).On(githttp.OpUploadPack)) }},
		{"torn handshake", s.RepoURL("p.git"), "TLS", trust, func() { s.TearHandshakes(1) }},
	} {
		if tc.before != nil {
			tc.before()
		}
		out, err := git(t, "", append(tc.options, "clone", "--quiet", tc.url, filepath.Join(t.TempDir(), "work"))...)
		if err == nil || !strings.Contains(out, tc.says) {
			t.Errorf("%s: %v\n%s\nwant a failure that says %q", tc.name, err, out, tc.says)
		}
	}
	if n := len(late.Ledger().Requests("")); n != 0 {
		t.Errorf("%d requests in spite of an expired certificate", n)
	}
}

// Q1: git packs the body of a long request, in both protocol versions.
func TestPackedRequests(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	create(t, s, "p.git", 60)
	for i := range 60 {
		id := must(t, s.Dir("p.git"), "rev-parse", fmt.Sprintf("main~%d", i))
		if err := s.SetRef("p.git", fmt.Sprintf("refs/heads/b%d", i), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"0", "2"} {
		s.Reset()
		cmd := []string{"-c", "protocol.version=" + version, "-c", "http.extraHeader=X: y", "clone", "--mirror", s.RepoURL("p.git"), "m" + version}
		dir := t.TempDir()
		out, err := gitEnv(t, dir, []string{"GIT_TRACE_CURL=1"}, cmd...)
		if err != nil || !strings.Contains(out, "Content-Encoding: gzip") {
			t.Errorf("version %s: %v; the request was not packed, so this shows nothing", version, err)
		}
		if n := count(s, githttp.OpUploadPack); n != 1 {
			t.Errorf("version %s: %v, want one request for the pack", version, ops(s))
		}
	}
}
