package githttp

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/internal/repositories"
)

// The operations that steps and ledger name: the two halves of a fetch and of a
// push. The key of a request is the repository's name. Each is the end of the
// URL of its request, but for the list of refs.
const (
	// OpFetchRefs is GET info/refs?service=git-upload-pack, which is all of an
	// ls-remote in protocol version 0 and the first request of a fetch.
	OpFetchRefs = "info/refs?service=git-upload-pack"
	// OpUploadPack is POST git-upload-pack: the pack of a fetch or a clone.
	OpUploadPack = "git-upload-pack"
	// OpListRefs is POST git-upload-pack with the command ls-refs, by which
	// protocol version 2 asks for the refs. An Unread step closes after reading
	// here, for the command is in the body.
	OpListRefs = "ls-refs"
	// OpPushRefs is GET info/refs?service=git-receive-pack.
	OpPushRefs = "info/refs?service=git-receive-pack"
	// OpReceivePack is POST git-receive-pack: the push itself.
	OpReceivePack = "git-receive-pack"
	// OpOther is any other path, such as a file for the dumb protocol.
	OpOther = "other"
)

// EffectRef is the kind of effect: a push changed a ref.
const EffectRef = "ref"

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Root is the directory of the repositories. Defaults to a new temporary one,
	// which Close removes.
	Root string
	// Users maps user names to passwords for basic authentication. If it is
	// empty, everyone may read and write.
	Users map[string]string
	// TLS makes the server speak HTTPS; see simulator.Authority.
	TLS *tls.Config
	// Now is the clock. Defaults to time.Now.
	Now func() time.Time
}

// Server is a Git host on a loopback port.
type Server struct {
	*simulator.Server
	platform *platform
	remove   string
}

// Start listens and serves. It fails if there is no git program, or if the address
// cannot be listened on.
func Start(o Options) (*Server, error) {
	s := &Server{}
	if o.Root == "" {
		dir, err := os.MkdirTemp("", "githttp-")
		if err != nil {
			return nil, err
		}
		o.Root, s.remove = dir, dir
	}
	if err := s.start(o); err != nil {
		s.cleanUp()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(o Options) error {
	dir, err := repositories.Open(o.Root)
	if err != nil {
		return fmt.Errorf("githttp: %w", err)
	}
	backend, err := findBackend(dir.Git)
	if err != nil {
		return err
	}
	s.platform = &platform{Dir: dir, backend: backend, users: o.Users, replicas: map[string]*replica{}}
	s.Server, err = simulator.Start(s.platform, simulator.Options{Addr: o.Addr, Now: o.Now, TLS: o.TLS})
	return err
}

// findBackend is the git-http-backend program of a git.
func findBackend(git string) (string, error) {
	out, err := exec.Command(git, "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("githttp: git --exec-path: %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return "", fmt.Errorf("githttp: this git has no http-backend, install the whole of Git: %w", err)
	}
	return backend, nil
}

// Close stops the server and removes the repositories that it made in a temporary
// directory.
func (s *Server) Close() error {
	err := s.Server.Close()
	s.cleanUp()
	return err
}

func (s *Server) cleanUp() {
	if s.remove != "" {
		os.RemoveAll(s.remove)
	}
	if s.platform != nil {
		s.platform.removeReplicas()
	}
}

// RepoURL is the address of a repository.
func (s *Server) RepoURL(name string) string { return s.URL() + "/" + name }

type platform struct {
	*repositories.Dir
	backend string
	users   map[string]string

	mu       sync.Mutex
	replicas map[string]*replica
	// replicaRoot is the directory of the replicas' repositories; empty while
	// there are none.
	replicaRoot string
}

// Identify names a request; the key is the repository.
func (p *platform) Identify(r *http.Request, body []byte) simulator.Identity {
	id := simulator.Identity{Op: OpOther, Path: r.URL.Path, Credential: r.Header.Get("Authorization")}
	service := r.URL.Query().Get("service")
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/info/refs"):
		if service == OpUploadPack || service == OpReceivePack {
			id.Op = "info/refs?service=" + service
			id.Path += "?service=" + service
		}
		id.Key = strings.TrimSuffix(r.URL.Path, "/info/refs")
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+OpUploadPack):
		id.Op, id.Key = OpUploadPack, strings.TrimSuffix(r.URL.Path, "/"+OpUploadPack)
		if strings.Contains(r.Header.Get("Git-Protocol"), "version=2") {
			id.Undecided = body == nil
			if bytes.HasPrefix(plain(r, body), []byte("0014command=ls-refs")) {
				id.Op = OpListRefs
			}
		}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+OpReceivePack):
		id.Op, id.Key = OpReceivePack, strings.TrimSuffix(r.URL.Path, "/"+OpReceivePack)
	}
	id.Key = strings.TrimPrefix(id.Key, "/")
	return id
}

// plain is a body, or its beginning, without its gzip encoding.
func plain(r *http.Request, body []byte) []byte {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return body
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	start := make([]byte, 64)
	n, _ := io.ReadFull(unpacked, start) // a shorter body is all there is
	return start[:n]
}

// Serve hands a request to git http-backend.
func (p *platform) Serve(c *simulator.Call) simulator.Answer {
	user, ok := p.authenticate(c.Request)
	if !ok {
		return simulator.Answer{
			Status: http.StatusUnauthorized,
			Header: http.Header{"WWW-Authenticate": {`Basic realm="git"`}, "Content-Type": {"text/plain"}},
			Body:   []byte("Authentication required\n"),
		}
	}
	if strings.Contains(c.Request.URL.Path, "..") {
		return simulator.Answer{Status: http.StatusNotFound, Header: http.Header{}, Body: []byte("Not Found\n")}
	}
	if c.Op != OpReceivePack {
		root := p.rootFor(c)
		return simulator.Answer{Stream: func(w http.ResponseWriter) { p.run(w, c, root, user) }}
	}
	defer p.Lock(c.Key)()
	before := p.Refs(c.Key)
	out := &buffer{header: http.Header{}}
	p.run(out, c, p.Root, user)
	for _, change := range repositories.Changes(before, p.Refs(c.Key)) {
		c.Effect(EffectRef, change.New, change.String())
	}
	return simulator.Answer{Status: out.status, Header: out.header, Body: out.body.Bytes()}
}

func (p *platform) authenticate(r *http.Request) (user string, ok bool) {
	if len(p.users) == 0 {
		return "anyone", true
	}
	user, password, ok := r.BasicAuth()
	want, known := p.users[user]
	return user, ok && known && password == want
}

// run calls git http-backend as a CGI program.
func (p *platform) run(w http.ResponseWriter, c *simulator.Call, root, user string) {
	r := c.Request
	r.ContentLength = int64(len(c.Body))
	r.TransferEncoding = nil
	r.Header.Del("Authorization")
	handler := &cgi.Handler{
		Path: p.backend,
		Root: "/",
		Dir:  root,
		Env: []string{
			"GIT_PROJECT_ROOT=" + root,
			"GIT_HTTP_EXPORT_ALL=1",
			"REMOTE_USER=" + user,
			"GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
			"GIT_CONFIG_GLOBAL=" + os.DevNull,
			"GIT_CONFIG_SYSTEM=" + os.DevNull,
			// The repositories may belong to another user than the server's.
			"GIT_CONFIG_COUNT=3",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			"GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
			// A push must leave no process behind.
			"GIT_CONFIG_KEY_2=receive.autogc", "GIT_CONFIG_VALUE_2=false",
		},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0), // a copy that the script cut is no news
	}
	handler.ServeHTTP(w, r)
}

// buffer keeps an answer in memory.
type buffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *buffer) Header() http.Header { return b.header }

func (b *buffer) WriteHeader(status int) {
	if b.status == 0 {
		b.status = status
	}
}

func (b *buffer) Write(p []byte) (int, error) {
	b.WriteHeader(http.StatusOK)
	return b.body.Write(p)
}
