package gitssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/internal/repositories"
)

// The operations that steps and ledger name.
const (
	OpConnect     = "connect"
	OpUploadPack  = "git-upload-pack"
	OpReceivePack = "git-receive-pack"
)

// EffectRef is the kind of effect: a push changed a ref.
const EffectRef = "ref"

// Options are the settings of a [Server].
type Options struct {
	// Addr is where to listen. Defaults to a free port of 127.0.0.1.
	Addr string
	// Root is the directory of the repositories.
	Root string
	// Now is the clock of the ledger. Defaults to time.Now.
	Now func() time.Time
}

// Server is a Git host that is reached by SSH. Nobody may log in until a key has
// been allowed.
type Server struct {
	dir      *repositories.Dir
	listener net.Listener
	now      func() time.Time
	ledger   *simulator.Ledger
	script   script

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	host     ssh.Signer
	allowed  map[string]bool
	accepted int
}

// Start listens and serves. It fails if there is no git program, or if the address
// cannot be listened on.
func Start(o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	dir, err := repositories.Open(o.Root)
	if err != nil {
		return nil, fmt.Errorf("gitssh: %w", err)
	}
	s := &Server{dir: dir, now: o.Now, ledger: simulator.NewLedger(), allowed: map[string]bool{}}
	if err := s.ChangeHostKey(); err != nil {
		return nil, err
	}
	if s.listener, err = net.Listen("tcp", o.Addr); err != nil {
		return nil, fmt.Errorf("gitssh: listen on %s: %w", o.Addr, err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// Close ends every connection and every program, and waits until they are gone.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.work.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// RepoURL is the address of a repository.
func (s *Server) RepoURL(name string) string { return "ssh://git@" + s.Addr() + "/" + name }

// Ledger is the record of what arrived and what happened.
func (s *Server) Ledger() *simulator.Ledger { return s.ledger }

// Script appends steps to the fault script.
func (s *Server) Script(steps ...Step) { s.script.add(steps...) }

// Remaining returns the steps that are not used up.
func (s *Server) Remaining() []Step { return s.script.remaining() }

// Reset empties the script and the ledger.
func (s *Server) Reset() {
	s.script.reset()
	s.ledger.Reset()
}

// ChangeHostKey gives the host another key, from the next connection on.
func (s *Server) ChangeHostKey() error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("gitssh: make a host key: %w", err)
	}
	host, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return fmt.Errorf("gitssh: make a host key: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
	return nil
}

// KnownHosts is the line of a known_hosts file that names the host's key.
func (s *Server) KnownHosts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return knownhosts.Line([]string{knownhosts.Normalize(s.Addr())}, s.host.PublicKey()) + "\n"
}

// WriteKnownHosts writes a known_hosts file that has the host's key.
func (s *Server) WriteKnownHosts(path string) error {
	if err := os.WriteFile(path, []byte(s.KnownHosts()), 0o600); err != nil {
		return fmt.Errorf("gitssh: write known hosts: %w", err)
	}
	return nil
}

// Allow lets a key log in.
func (s *Server) Allow(key ssh.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed[string(key.Marshal())] = true
}

// WriteKey makes a key of a user and writes it to a file, encrypted if there is a
// passphrase. It is not allowed yet.
func WriteKey(path, passphrase string) (ssh.PublicKey, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("gitssh: make a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		return nil, fmt.Errorf("gitssh: make a key: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return nil, fmt.Errorf("gitssh: write a key: %w", err)
	}
	return ssh.NewPublicKey(private.Public())
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.accepted++
		conn := &connection{server: s, tcp: c.(*net.TCPConn), n: s.accepted, host: s.host}
		s.mu.Unlock()
		s.work.Go(conn.serve)
	}
}

func (s *Server) allows(key ssh.PublicKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowed[string(key.Marshal())]
}
