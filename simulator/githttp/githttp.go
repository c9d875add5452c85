package githttp

import (
	"bytes"
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
)

// The operations that steps and ledger name: the two halves of a fetch and of a
// push. The key of a request is the repository's name.
const (
	// OpFetchRefs is GET info/refs?service=git-upload-pack, which is all of an
	// ls-remote in protocol version 0 and the first request of a fetch.
	OpFetchRefs = "info/refs?service=git-upload-pack"
	// OpUploadPack is POST git-upload-pack: the pack of a fetch or a clone, and
	// the list of refs in protocol version 2.
	OpUploadPack = "git-upload-pack"
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
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("githttp: the git program is needed: %w", err)
	}
	backend, err := findBackend(git)
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if o.Root == "" {
		if o.Root, err = os.MkdirTemp("", "githttp-"); err != nil {
			return nil, err
		}
		s.remove = o.Root
	}
	s.platform = &platform{root: o.Root, git: git, backend: backend, users: o.Users, locks: map[string]*sync.Mutex{}}
	if s.Server, err = simulator.Start(s.platform, simulator.Options{Addr: o.Addr, Now: o.Now}); err != nil {
		s.cleanUp()
		return nil, err
	}
	return s, nil
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
}

// RepoURL is the address of a repository.
func (s *Server) RepoURL(name string) string { return s.URL() + "/" + name }

// Dir is the directory of a repository, for reading it without the wire.
func (s *Server) Dir(name string) string { return s.platform.dir(name) }

// EmptyPack is a 200 answer to a fetch with an empty body, as some proxies give.
func EmptyPack() simulator.Step {
	return simulator.Status(http.StatusOK, "").WithHeader("Content-Type", "application/x-git-upload-pack-result").
		On(OpUploadPack).As("200 with an empty body")
}

// Unavailable is a 503.
func Unavailable() simulator.Step {
	return simulator.Status(http.StatusServiceUnavailable, "Service Unavailable\n")
}

// CutPack closes the connection after n bytes of a pack.
func CutPack(n int) simulator.Step { return simulator.CutBytes(n).On(OpUploadPack) }

// LandThenReset lets a push land and resets the connection without an answer.
func LandThenReset() simulator.Step { return simulator.EffectThenReset().On(OpReceivePack) }

// Faults is a mix of faults for random scripts in which about rate of the
// requests fail, each kind as often as the others.
func Faults(rate float64) []simulator.RandomFault {
	steps := []simulator.Step{
		Unavailable(), simulator.Reset(), simulator.Close(), EmptyPack(), CutPack(300), LandThenReset(),
	}
	var faults []simulator.RandomFault
	for _, step := range steps {
		faults = append(faults, simulator.RandomFault{Rate: rate / float64(len(steps)), Step: step})
	}
	return faults
}

type platform struct {
	root    string
	git     string
	backend string
	users   map[string]string

	mu    sync.Mutex
	locks map[string]*sync.Mutex
}

func (p *platform) dir(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }

// lock keeps the pushes to a repository apart, so that the refs before and after
// one of them are its own doing.
func (p *platform) lock(name string) *sync.Mutex {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.locks[name] == nil {
		p.locks[name] = &sync.Mutex{}
	}
	return p.locks[name]
}

// Identify names a request; the key is the repository.
func (p *platform) Identify(r *http.Request, _ []byte) simulator.Identity {
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
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+OpReceivePack):
		id.Op, id.Key = OpReceivePack, strings.TrimSuffix(r.URL.Path, "/"+OpReceivePack)
	}
	id.Key = strings.TrimPrefix(id.Key, "/")
	return id
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
		return simulator.Answer{Stream: func(w http.ResponseWriter) { p.run(w, c, user) }}
	}
	lock := p.lock(c.Key)
	lock.Lock()
	defer lock.Unlock()
	before := p.refs(c.Key)
	out := &buffer{header: http.Header{}}
	p.run(out, c, user)
	p.record(c, before, p.refs(c.Key))
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
func (p *platform) run(w http.ResponseWriter, c *simulator.Call, user string) {
	r := c.Request
	r.ContentLength = int64(len(c.Body))
	r.TransferEncoding = nil
	r.Header.Del("Authorization")
	handler := &cgi.Handler{
		Path: p.backend,
		Root: "/",
		Dir:  p.root,
		Env: []string{
			"GIT_PROJECT_ROOT=" + p.root,
			"GIT_HTTP_EXPORT_ALL=1",
			"REMOTE_USER=" + user,
			"GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
			"GIT_CONFIG_GLOBAL=" + os.DevNull,
			"GIT_CONFIG_SYSTEM=" + os.DevNull,
			// The repositories may belong to another user than the server's.
			"GIT_CONFIG_COUNT=2",
			"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
			"GIT_CONFIG_KEY_1=http.receivepack", "GIT_CONFIG_VALUE_1=true",
		},
		Stderr: io.Discard,
		Logger: log.New(io.Discard, "", 0), // a copy that the script cut is no news
	}
	handler.ServeHTTP(w, r)
}

// record enters the refs that a push changed.
func (p *platform) record(c *simulator.Call, before, after map[string]string) {
	const none = "0000000000000000000000000000000000000000"
	for ref, id := range after {
		if old, ok := before[ref]; !ok {
			c.Effect(EffectRef, id, ref+" "+none+" "+id)
		} else if old != id {
			c.Effect(EffectRef, id, ref+" "+old+" "+id)
		}
	}
	for ref, old := range before {
		if _, ok := after[ref]; !ok {
			c.Effect(EffectRef, none, ref+" "+old+" "+none)
		}
	}
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
