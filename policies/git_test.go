package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestJudgeGit(t *testing.T) {
	t.Parallel()
	fetch := func(stderr string) Fault { return Fault{Operation: OpFetch, Stderr: stderr} }
	goGit := func(message string) Fault { return Fault{Operation: OpLsRemote, Message: message} }
	push := func(stderr string) Fault { return Fault{Operation: OpPush, Stderr: stderr} }
	for _, tc := range []verdictCase{
		// G3: denied first, whatever else the text says.
		{"auth", fetch("fatal: Authentication failed for 'https://h/'\nConnection reset by peer"), ReasonAuth, false, EffectNone, "G3/auth"},
		{"no prompt", fetch("fatal: could not read Username for 'https://h': terminal prompts disabled"), ReasonAuth, false, EffectNone, "G3/auth"},
		{"public key", fetch("git@h: Permission denied (publickey,password)."), ReasonAuth, false, EffectNone, "G3/auth"},
		{"permission", fetch("error: cannot open .git/FETCH_HEAD: Permission denied"), ReasonPermission, false, EffectNone, "G3/permission"},
		{"not found", fetch("remote: Repository not found.\nfatal: repository 'https://h/a/' not found"), ReasonNotFound, false, EffectNone, "G3/not_found"},
		{"no ref", fetch("fatal: couldn't find remote ref refs/heads/x"), ReasonNotFound, false, EffectNone, "G3/not_found"},
		{"not our ref", fetch("fatal: remote error: upload-pack: not our ref 1234"), ReasonNotFound, false, EffectNone, "G3/not_found"},
		{"certificate", fetch("server certificate verification failed. CAfile: none CRLfile: none"), ReasonTLS, false, EffectNone, "G3/certificate"},
		{"host key", fetch("Host key verification failed.\nfatal: Could not read from remote repository."), ReasonTLS, false, EffectNone, "G3/host_key"},
		{"space", fetch("fatal: write error: No space left on device"), ReasonNoSpace, false, EffectNone, "G3/no_space"},
		{"lock", fetch("error: cannot lock ref 'refs/heads/x': is at 12 but expected 34"), ReasonLock, false, EffectNone, "G3/lock"},
		{"403", fetch("fatal: unable to access 'https://h/': The requested URL returned error: 403"), ReasonPermission, false, EffectNone, "G3/permission"},
		{"lock file exists", fetch("error: cannot lock ref 'refs/remotes/origin/x': Unable to create '/r/x.lock': File exists.\n\nAnother git process seems to be running"), ReasonLock, true, EffectNone, "G3/lock_exists"},
		{"lock file that may not be made", fetch("error: cannot lock ref 'x': Unable to create '/r/x.lock': Permission denied"), ReasonPermission, false, EffectNone, "G3/permission"},
		{"default", fetch("fatal: something else"), ReasonUnclassified, false, EffectNone, "G3/default"},
		{"bad request", fetch("The requested URL returned error: 400"), ReasonFormat, false, EffectNone, "G3/http_400"},
		{"nothing", Fault{Operation: OpFetch}, ReasonUnclassified, false, EffectNone, "G3/default"},

		// G4: transient, in git's words.
		{"reset", fetch("fatal: unable to access 'https://h/': Recv failure: Connection reset by peer"), ReasonTimeout, true, EffectNone, "G4/connection_reset"},
		{"ssh name", fetch("ssh: Could not resolve hostname h: Name or service not known"), ReasonTimeout, true, EffectNone, "G4/name_resolution"},
		{"early EOF", fetch("fatal: early EOF\nfatal: fetch-pack: invalid index-pack output"), ReasonTimeout, true, EffectNone, "G4/early_eof"},
		{"empty reply", fetch("Empty reply from server"), ReasonTimeout, true, EffectNone, "G4/empty_reply"},
		{"SSL", fetch("OpenSSL SSL_connect: SSL_ERROR_SYSCALL in connection to h:443"), ReasonTimeout, true, EffectNone, "G4/tls_ended"},
		{"HTTP/2", fetch("error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly: INTERNAL_ERROR (err 2)"), ReasonServerError, true, EffectNone, "G4/http2_stream"},
		{"503", fetch("error: RPC failed; HTTP 503 curl 22 The requested URL returned error: 503"), ReasonServerError, true, EffectNone, "G4/http_503"},
		{"429", fetch("The requested URL returned error: 429"), ReasonRateLimit, true, EffectNone, "G4/http_429"},
		{"curl 60", fetch("error: RPC failed; curl 60 something"), ReasonUnclassified, false, EffectNone, "G3/default"},

		// G3, G4: in go-git's words, with or without its status.
		{"go-git auth", goGit("authentication required: Unauthorized"), ReasonAuth, false, EffectNone, "G3/auth"},
		{"go-git permission", goGit("authorization failed: "), ReasonPermission, false, EffectNone, "G3/permission"},
		{"go-git ref", goGit("couldn't find remote ref \"refs/heads/x\""), ReasonNotFound, false, EffectNone, "G3/not_found"},
		{"go-git x509", goGit("tls: failed to verify certificate: x509: certificate signed by unknown authority"), ReasonTLS, false, EffectNone, "G3/certificate"},
		{"go-git ssh", goGit("ssh: handshake failed: knownhosts: key mismatch"), ReasonTLS, false, EffectNone, "G3/host_key"},
		{"go-git ssh auth", goGit("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey]"), ReasonAuth, false, EffectNone, "G3/auth"},
		{"go-git 503", goGit(`unexpected client error: unexpected requesting "https://h/info/refs" status code: 503`), ReasonServerError, true, EffectNone, "G4/http_503"},
		{"go-git refused", goGit("dial tcp 127.0.0.1:1: connect: connection refused"), ReasonTimeout, true, EffectNone, "G4/connection_refused"},
		{"go-git EOF", goGit("Post \"https://h/git-upload-pack\": EOF"), ReasonTimeout, true, EffectNone, "G4/early_eof"},
		{"go-git HTTP/2", goGit("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), ReasonServerError, true, EffectNone, "G4/http2_stream"},
		{"go-git code", Fault{Operation: OpFetch, Started: true, Code: "UND_ERR_SOCKET"}, ReasonTimeout, true, EffectNone, "G4/transport"},
		{"go-git deadline", goGit("context deadline exceeded"), ReasonDeadline, false, EffectNone, "G3/deadline"},
		{"status 401", Fault{Operation: OpFetch, Status: 401}, ReasonAuth, false, EffectNone, "G3/auth"},
		{"status 502", Fault{Operation: OpFetch, Status: 502}, ReasonServerError, true, EffectNone, "G4/http_502"},
		{"status 501", Fault{Operation: OpFetch, Status: 501}, ReasonServerError, false, EffectNone, "G3/http_501"},
		{"not started", Fault{Operation: OpFetch, NotStarted: true}, ReasonTimeout, true, EffectNone, "G4/not_started"},

		// G2: a clone of ours is repeated by its owner; one of a command line is not.
		{"our clone", Fault{Operation: OpClone, Stderr: "early EOF"}, ReasonTimeout, true, EffectNone, "G4/early_eof"},
		{"their clone", Fault{Argv: []string{"git", "clone", "u"}, Stderr: "early EOF"}, ReasonTimeout, false, EffectNone, "G4/early_eof"},

		// G6: a push is never replayed.
		{"push reset", push("Connection reset by peer"), ReasonTimeout, false, EffectUnknown, "G4/connection_reset"},
		{"push refused", push("fatal: Authentication failed"), ReasonAuth, false, EffectNotSent, "G3/auth"},
		{"push rejected", push(" ! [rejected] main -> main (non-fast-forward)"), ReasonConflict, false, EffectUnknown, "G3/rejected"},
		{"push lease", push(" ! [rejected] main -> main (stale info)"), ReasonConflict, false, EffectUnknown, "G3/rejected"},
		{"push not started", Fault{Operation: OpPush, NotStarted: true}, ReasonTimeout, false, EffectNotSent, "G4/not_started"},
		{"push killed", Fault{Operation: OpPush, Termination: "signal"}, ReasonCancelled, false, EffectUnknown, "G3/killed"},

		// G3: killed, out of time, over the output limit.
		{"killed", Fault{Operation: OpFetch, Stderr: "early EOF", Termination: "signal"}, ReasonCancelled, false, EffectNone, "G3/killed"},
		{"timeout", Fault{Operation: OpFetch, Stderr: "early EOF", Termination: "timeout"}, ReasonDeadline, false, EffectNone, "G3/timeout"},
		{"output limit", Fault{Operation: OpFetch, Stderr: "early EOF", Termination: "output_limit"}, ReasonUnclassified, false, EffectNone, "G3/output_limit"},
	} {
		tc.check(t, SurfaceGit)
	}
}

func TestGitArgvOperation(t *testing.T) {
	t.Parallel()
	// G3: global options are passed over; after one that is not known, the verb is not.
	for line, want := range map[string]Operation{
		"git fetch":                               OpFetch,
		"git -C /r -c a=b fetch origin":           OpFetch,
		"git --git-dir /r/.git ls-remote":         OpLsRemote,
		"git --git-dir=/r --work-tree=/w fetch":   OpFetch,
		"git --config-env=a=B --bare fetch":       OpFetch,
		"git --no-lazy-fetch fetch":               OpFetch,
		"git --no-replace-objects push":           OpPush,
		"git --exec-path=/x fetch":                "",
		"git --paginate fetch":                    "",
		"git -c":                                  "",
		"git":                                     "",
		"":                                        "",
		"git --git-dir=/fetch --work-tree /w gc ": "gc",
	} {
		if got := gitArgvOperation(strings.Fields(line)); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestGitRetryLeft(t *testing.T) {
	t.Parallel()
	// G1: one retry after 1 s inside the original timeout.
	for _, tc := range []struct {
		limit, spent, left time.Duration
		ok                 bool
	}{
		{10 * time.Second, 0, 9 * time.Second, true},
		{120 * time.Second, 100 * time.Second, 19 * time.Second, true},
		{time.Second, 0, 0, false},
		{time.Second + 1, 0, 1, true},
		{10 * time.Second, 11 * time.Second, 0, false},
		{10 * time.Second, -time.Second, 9 * time.Second, true},
	} {
		if left, ok := GitRetryLeft(tc.limit, tc.spent); left != tc.left || ok != tc.ok {
			t.Errorf("GitRetryLeft(%v, %v) = %v, %v", tc.limit, tc.spent, left, ok)
		}
	}
}

func TestGitFloorAndExit(t *testing.T) {
	t.Parallel()
	// P2: a host's Retry-After is a floor for Git too.
	f := Fault{Surface: SurfaceGit, Operation: OpFetch, Status: 429, Header: http.Header{"Retry-After": {"30"}}}
	if v := Judge(&f); EnvelopeGitRead.Delay(1, v.Floor, 0) != 30*time.Second {
		t.Errorf("%+v", v)
	}
	// G3: exit 0 is no failure, whatever was printed.
	zero := 0
	f = Fault{Surface: SurfaceGit, Operation: OpFetch, Stderr: "early EOF", ExitCode: &zero}
	if v := Judge(&f); v.RetrySame || !v.Success || v.Permanent {
		t.Errorf("%+v", v)
	}
}

func FuzzJudgeGit(f *testing.F) {
	for _, stderr := range []string{
		"", "fatal: early EOF", "fatal: Authentication failed", "Connection reset by peer", "error: RPC failed; curl 92 x",
		"error: cannot lock ref 'a': Unable to create 'a.lock': File exists.", "HTTP 503", "HTTP/2 stream 1: INTERNAL_ERROR",
		"returned error: 404\nreturned error: 500", "Host key verification failed.", strings.Repeat("HTTP ", 100), "\xff\x00",
	} {
		f.Add("git -C /r fetch", stderr, "", 128)
	}
	f.Fuzz(func(t *testing.T, line, stderr, termination string, exit int) {
		fault := Fault{Surface: SurfaceGit, Argv: strings.Split(line, " "), Stderr: stderr, Termination: termination, ExitCode: &exit}
		wantSoundVerdict(t, &fault)
		v := Judge(&fault)
		if v.RetrySame && (termination != "" || exit == 0 || v.Effect != EffectNone) {
			t.Fatalf("%+v", v)
		}
	})
}
