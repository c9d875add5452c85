package git

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// Names of the engines as the configuration has them (git.engine).
const (
	// EngineAuto is the git program for fetch and clone, go-git for ls-remote and
	// push, and go-git for all where there is no git program that is new enough.
	EngineAuto  = "auto"
	EngineGoGit = "go-git"
	EngineGit   = "git"
)

// Config of the Git activities. The zero value works for remotes that need no
// credential, and leaves checkouts unrestricted.
type Config struct {
	// Auth resolves a Git auth profile by name. It returns ErrUnknownProfile for
	// a name it does not know. Defaults to knowing none.
	Auth func(ctx context.Context, name string) (Credentials, error)

	// Engine is EngineAuto, EngineGoGit or EngineGit. Defaults to EngineAuto.
	Engine string

	// Roots are the directories that managed checkouts and local remotes must
	// lie in, symbolic links resolved. If there are neither Roots nor
	// SharedRoots they may be anywhere.
	Roots []string

	// SharedRoots are further roots, on storage that every host sees. Only
	// checkouts in them are worked on from the task queue that all hosts serve
	// (G11).
	SharedRoots []string

	// Host is the name of this host in the name of its own task queue (G11).
	// Defaults to the machine's host name.
	Host string

	// Limits bound what a remote may make a worker use (G12).
	Limits Limits

	// Transport carries the HTTP requests and must record each into the
	// attempt.Record of its context. Defaults to a new attempt transport with a
	// fresh connection per request, so that nothing below an attempt can repeat
	// a request unseen.
	Transport http.RoundTripper

	// ConnectTimeout bounds DNS, TCP and TLS of the default transport and the
	// dialling of SSH. Defaults to 10 s.
	ConnectTimeout time.Duration

	// Judge says what a fault means. Defaults to policies.JudgeGit.
	Judge func(*policies.Fault) policies.Verdict
}

// Limits bound what a remote may make a worker use (G12).
type Limits struct {
	// Memory of a process that reads what a remote sent, in bytes. Defaults to
	// 512 MiB.
	Memory int64
	// Disk that one operation may fill, in bytes. Defaults to 10 GiB.
	Disk int64
	// Objects of one pack. Defaults to 5,000,000.
	Objects int64
}

// setDefaults checks the configuration and fills in what it leaves open.
func (c *Config) setDefaults() error {
	switch c.Engine {
	case "":
		c.Engine = EngineAuto
	case EngineAuto, EngineGoGit, EngineGit:
	default:
		return fmt.Errorf("git: there is no engine %q; use %q, %q or %q", c.Engine, EngineAuto, EngineGoGit, EngineGit)
	}
	if c.ConnectTimeout < 0 {
		return errors.New("git: ConnectTimeout is negative")
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = 10 * time.Second
	}
	if c.Host == "" {
		c.Host, _ = os.Hostname() // it tells whose a lock is, and works without
	}
	if err := c.Limits.setDefaults(); err != nil {
		return err
	}
	if c.Transport == nil {
		c.Transport = newTransport(c.ConnectTimeout)
	}
	if c.Auth == nil {
		c.Auth = func(context.Context, string) (Credentials, error) { return Credentials{}, ErrUnknownProfile }
	}
	if c.Judge == nil {
		c.Judge = policies.JudgeGit
	}
	return nil
}

// newTransport makes the transport that is used if none is given.
func newTransport(connectTimeout time.Duration) *attempt.Transport {
	return attempt.NewTransport(attempt.Options{Fresh: true, ConnectTimeout: connectTimeout})
}

func (l *Limits) setDefaults() error {
	if l.Memory < 0 || l.Disk < 0 || l.Objects < 0 {
		return errors.New("git: a limit is negative")
	}
	if l.Memory == 0 {
		l.Memory = 512 << 20
	}
	if l.Disk == 0 {
		l.Disk = 10 << 30
	}
	if l.Objects == 0 {
		l.Objects = 5_000_000
	}
	return nil
}
