package git

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast/contract"
)

// sshHost is an SSH server that serves git-upload-pack to one key.
type sshHost struct {
	addr   string
	hostID ssh.PublicKey
	conns  sync.WaitGroup
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func serveSSH(t *testing.T, client ssh.PublicKey) *sshHost {
	t.Helper()
	host, _ := newKey(t)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) != string(client.Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &sshHost{addr: l.Addr().String(), hostID: host.PublicKey()}
	h.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			h.conns.Go(func() { h.serve(conn, config) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		h.conns.Wait()
	})
	return h
}

func (h *sshHost) serve(conn net.Conn, config *ssh.ServerConfig) {
	defer conn.Close()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for open := range channels {
		channel, requests, err := open.Accept()
		if err != nil {
			return
		}
		for req := range requests {
			if req.Type != "exec" {
				req.Reply(false, nil)
				continue
			}
			req.Reply(true, nil)
			var command struct{ Line string }
			if ssh.Unmarshal(req.Payload, &command) == nil {
				upload(channel, command.Line)
			}
			channel.Close()
		}
	}
}

// upload runs "git-upload-pack 'DIR'".
func upload(channel ssh.Channel, line string) {
	program, dir, _ := strings.Cut(line, " ")
	if program != "git-upload-pack" {
		return
	}
	cmd := exec.Command("git", "upload-pack", strings.Trim(dir, "'"))
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	stdin, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return
	}
	go func() {
		io.Copy(stdin, channel)
		stdin.Close()
	}()
	status := uint32(0)
	if cmd.Wait() != nil {
		status = 128
	}
	channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// G9: SSH by key file and known hosts, without a prompt. G3: an unknown host key
// and a refused key are never retried; a silent host ends with its time.
func TestSSH(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	signer, key := newKey(t)
	_, otherKey := newKey(t)
	host := serveSSH(t, signer.PublicKey())
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	left := make(chan error, 1)
	go func() {
		conn, err := silent.Accept()
		if err != nil {
			left <- err
			return
		}
		defer conn.Close()
		_, err = io.Copy(io.Discard, conn)
		left <- err
	}()

	file := func(name string, content []byte) string {
		path := filepath.Join(w.root, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	known := file("known", []byte(knownhosts.Line([]string{knownhosts.Normalize(host.addr)}, host.hostID)+"\n"))
	profiles := map[string]Credentials{
		"good":    {Kind: CredentialSSHKey, KeyFile: file("key", key), KnownHosts: []string{known}},
		"refused": {Kind: CredentialSSHKey, KeyFile: file("other", otherKey), KnownHosts: []string{known}},
		"unknown": {Kind: CredentialSSHKey, KeyFile: file("key", key), KnownHosts: []string{file("none", nil)}},
		"nofile":  {Kind: CredentialSSHKey, KeyFile: file("key", key), KnownHosts: []string{filepath.Join(w.root, "absent")}},
	}
	a := newActivities(t, Config{Auth: func(_ context.Context, name string) (Credentials, error) {
		return profiles[name], nil
	}})
	url := "ssh://git@" + host.addr + w.bare

	next := w.commit("second")
	w.push("main")
	got, f := fetch(t, a, contract.GitRequest{Dir: w.checkout, URL: url, Auth: "good"})
	if f.Reason != "" || len(got.Updated) != 1 || got.Updated[0].New != next {
		t.Errorf("fetch: %+v, %+v", got, f)
	}
	w.whole()
	list, f := lsRemote(t, a, contract.GitRequest{URL: url, Auth: "good", Ref: "main"})
	if f.Reason != "" || len(list.Refs) != 1 || list.Refs[0].OID != next {
		t.Errorf("ls-remote: %+v, %+v", list, f)
	}

	for _, tc := range []struct {
		name, url, auth string
		limit           int64
		reason, hint    string
		retry           bool
	}{
		{"key refused", url, "refused", 0, "auth", "--auth", false},
		{"host unknown", url, "unknown", 0, "tls_certificate", "known_hosts", false},
		{"no known hosts", url, "nofile", 0, "tls_certificate", "known_hosts", false},
		{"no repository", "ssh://git@" + host.addr + "/nothing", "good", 0, "not_found", "URL", false},
		{"silent", "ssh://git@" + silent.Addr().String() + "/r", "good", 50, "deadline", "--timeout", false},
	} {
		_, f := lsRemote(t, a, contract.GitRequest{URL: tc.url, Auth: tc.auth, LimitMS: tc.limit})
		if f.Reason != tc.reason || f.RetrySame != tc.retry || !strings.Contains(f.Message, tc.hint) {
			t.Errorf("%s: %+v, want %s and a word on %s", tc.name, f, tc.reason, tc.hint)
		}
	}
	// The connection to the silent host ends with the operation. A minute is no
	// wait: it is where a connection that never ends becomes a failure.
	select {
	case err := <-left:
		if err != nil {
			t.Errorf("the connection to the silent host: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("the connection to the silent host is still open")
	}
}
