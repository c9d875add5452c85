package git

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast/policies"
)

// G9, G3: SSH by a key file and known hosts, without a prompt; what is refused
// says what to do.
func TestProgramSSH(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signer, key := newKey(t)
	_, otherKey := newKey(t)
	host := serveSSH(t, signer.PublicKey())
	other, _ := newKey(t)
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(w.root, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	line := func(key ssh.PublicKey) string {
		return knownhosts.Line([]string{knownhosts.Normalize(host.addr)}, key) + "\n"
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	known := file("known hosts", line(host.hostID), 0o600)
	keyFile := file("my 'own' %key", string(key), 0o600)
	g := newTestProgram(t, limits{})
	url := "ssh://git@" + host.addr + w.bare
	good := Credentials{Kind: CredentialSSHKey, KeyFile: keyFile, KnownHosts: []string{file("empty", "", 0o600), known}}

	next := w.commit("second")
	w.push("main")
	ctx, rec := recorded(t)
	r := remoteAt(t, url, good)
	got, err := g.fetch(ctx, r, w.open(), "")
	if err != nil || len(got) != 1 || got[0].New != next {
		t.Errorf("fetch: %+v, %+v", got, failureOf(t, policies.OpFetch, rec, err))
	}
	if p := r.progress.snapshot(); p.Objects == 0 || p.Done == 0 {
		t.Errorf("progress %+v", p)
	}
	w.whole()
	for name, tc := range map[string]struct {
		path         string
		creds        Credentials
		reason, hint string
	}{
		"key refused":    {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: file("other", string(otherKey), 0o600), KnownHosts: []string{known}}, "auth", "--auth"},
		"host unknown":   {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: keyFile, KnownHosts: []string{file("none", "", 0o600)}}, "tls_certificate", "known_hosts"},
		"host changed":   {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: keyFile, KnownHosts: []string{file("changed", line(other.PublicKey()), 0o600)}}, "tls_certificate", "known_hosts"},
		"no known hosts": {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: keyFile, KnownHosts: []string{"/no/such/file"}}, "tls_certificate", "known_hosts"},
		"no key":         {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: "/no/such/key", KnownHosts: []string{known}}, "auth", "path"},
		"open key":       {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: file("open", string(key), 0o644), KnownHosts: []string{known}}, "auth", "0600"},
		"passphrase":     {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: keyFile, Secret: "x", KnownHosts: []string{known}}, "auth", "agent"},
		"locked key":     {w.bare, Credentials{Kind: CredentialSSHKey, KeyFile: file("locked", string(pem.EncodeToMemory(locked)), 0o600), KnownHosts: []string{known}}, "auth", "agent"},
		"no repository":  {"/nothing", good, "not_found", "URL"},
	} {
		ctx, rec := recorded(t)
		_, err := g.lsRemote(ctx, remoteAt(t, "ssh://git@"+host.addr+tc.path, tc.creds))
		f := failureOf(t, policies.OpLsRemote, rec, err)
		if f.Reason != tc.reason || f.RetrySame || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v, want %s and a word on %s", name, f, tc.reason, tc.hint)
		}
		if serves := g.serves(remoteAt(t, url, tc.creds)); serves == (name == "passphrase" || name == "locked key" || name == "no key") {
			t.Errorf("%s: serves says %v", name, serves)
		}
	}
	// G4: a host that cannot be reached may be tried again.
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	ctx, rec = recorded(t)
	_, err = g.lsRemote(ctx, remoteAt(t, "ssh://git@"+gone.Addr().String()+w.bare, good))
	if f := failureOf(t, policies.OpLsRemote, rec, err); !f.RetrySame || f.Rule != "G4/connection_refused" {
		t.Errorf("nobody there: %+v", f)
	}
}

// G11: a host that says nothing is left when the context ends, and its connection
// is closed.
func TestProgramSSHSilence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, key := newKey(t)
	keyFile := filepath.Join(w.root, "key")
	if err := os.WriteFile(keyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, _ := recorded(t)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		creds := Credentials{Kind: CredentialSSHKey, KeyFile: keyFile}
		_, err := newTestProgram(t, limits{}).lsRemote(ctx, remoteAt(t, "ssh://git@"+silent.Addr().String()+"/r", creds))
		ended <- err
	}()
	conn, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	for buf := make([]byte, 1<<10); err == nil; {
		_, err = conn.Read(buf)
	}
	if os.IsTimeout(err) {
		t.Errorf("the connection is still open after 5 s")
	}
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// G9: without an auth profile the agent is used, and only the agent.
func TestProgramSSHAgent(t *testing.T) {
	w := newWorld(t)
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	host := serveSSH(t, signer.PublicKey())
	known := filepath.Join(w.root, "known")
	if err := os.WriteFile(known, []byte(knownhosts.Line([]string{knownhosts.Normalize(host.addr)}, host.hostID)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_KNOWN_HOSTS", known)
	url := "ssh://git@" + host.addr + w.bare
	g := newTestProgram(t, limits{})

	t.Setenv("SSH_AUTH_SOCK", "")
	ctx, rec := recorded(t)
	_, err = g.lsRemote(ctx, remoteAt(t, url, Credentials{}))
	if f := failureOf(t, policies.OpLsRemote, rec, err); f.Reason != "auth" || !strings.Contains(f.Message, "agent") {
		t.Errorf("without an agent: %+v", f)
	}
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(w.root, "agent")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			agent.ServeAgent(keyring, conn) // ends with the connection
			conn.Close()
		}
	}()
	defer func() { listener.Close(); <-served }()
	t.Setenv("SSH_AUTH_SOCK", socket)
	refs, err := g.lsRemote(ctx, remoteAt(t, url, Credentials{}))
	if err != nil || len(refs) == 0 {
		t.Errorf("with an agent: %v, %+v", refs, failureOf(t, policies.OpLsRemote, rec, err))
	}
}

// G6: only what ssh says itself, of a time before the session, proves that nothing
// was sent.
func TestBeforeSession(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"git@git.example: Permission denied (publickey).\r\n":                                  true,
		"Host key verification failed.\r\n":                                                    true,
		"ssh: connect to host git.example port 22: Connection refused\r\n":                     true,
		"kex_exchange_identification: Connection closed by remote host\r\n":                    true,
		"Received disconnect from 10.0.0.1 port 22:2: a@b: Permission denied (publickey).\r\n": false,
		"Disconnected from 10.0.0.1 port 22: Host key verification failed.\r\n":                false,
		"Connection to git.example closed by remote host.\r\n":                                 false,
		"client_loop: send disconnect: Broken pipe\r\n":                                        false,
		"": false,
	} {
		if got := beforeSession.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// G4, G6: git that writes to an ssh which has gone dies of it without a word. That
// is a connection that was lost; git that is killed otherwise is not.
func TestProgramHungUpOn(t *testing.T) {
	t.Parallel()
	for signal, want := range map[string]string{"PIPE": "timeout", "TERM": "cancelled"} {
		g := newTestProgram(t, limits{})
		g.path = filepath.Join(t.TempDir(), "git")
		if err := os.WriteFile(g.path, []byte("#!/bin/sh\nkill -"+signal+" $$\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, rec := recorded(t)
		_, err := g.lsRemote(ctx, remoteAt(t, "/srv/r.git", Credentials{}))
		if f := failureOf(t, policies.OpLsRemote, rec, err); f.Reason != want || f.RetrySame != (want == "timeout") {
			t.Errorf("after SIG%s: %+v, want %s", signal, f, want)
		}
	}
}

// G4: ssh tells errors only, and a connection that ends before there is a session
// is none to it: now and then all that is left is git's word that it got nothing.
func TestProgramSilentSSH(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(dir, "agent"))
	for _, tc := range []struct {
		script, reason string
		retry          bool
	}{
		{"exit 255", "timeout", true},
		{"echo 'something else' >&2; exit 255", "unclassified", false},
		{"echo 'Permission denied (publickey).' >&2; exit 255", "auth", false},
	} {
		if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\n"+tc.script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, rec := recorded(t)
		_, err := newTestProgram(t, limits{}).lsRemote(ctx, remoteAt(t, "git@git.example:r", Credentials{Kind: CredentialSSHAgent}))
		if f := failureOf(t, policies.OpLsRemote, rec, err); f.Reason != tc.reason || f.RetrySame != tc.retry {
			t.Errorf("%s: %+v, want %s", tc.script, f, tc.reason)
		}
	}
}
