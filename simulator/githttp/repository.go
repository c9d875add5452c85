package githttp

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator"
)

// Root is the directory of the repositories, which another host may serve too.
func (s *Server) Root() string { return s.platform.Root }

// Dir is the directory of a repository, for reading it without the wire.
func (s *Server) Dir(name string) string { return s.platform.Path(name) }

// Create makes a bare repository with n commits on the branch main, each of which
// changes one of a hundred files. The commits depend only on n, so that two
// repositories with the same n have the same ids. 20,000 commits take a few
// seconds.
func (s *Server) Create(name string, n int) error {
	return explain("create "+name, s.platform.Create(name, n))
}

// Commit adds n commits to a branch, as if someone else had pushed them. The
// branch is made from main if it does not exist. It is no effect in the ledger.
func (s *Server) Commit(name, branch string, n int) error {
	return explain("commit to "+name, s.platform.Commit(name, branch, n))
}

// SetRef makes a ref of a repository point at an object that the repository has,
// as if someone else had pushed it; an empty id deletes the ref. It is no effect
// in the ledger.
func (s *Server) SetRef(name, ref, id string) error {
	return explain("set a ref of "+name, s.platform.SetRef(name, ref, id))
}

// Protect makes a repository refuse every push to some refs, given by their full
// names, and say a text to the one who pushes. It takes the place of an earlier
// one.
func (s *Server) Protect(name, says string, refs ...string) error {
	return explain("protect refs of "+name, s.platform.Protect(name, says, refs...))
}

// Refs returns the refs of a repository and the ids they have.
func (s *Server) Refs(name string) map[string]string { return s.platform.Refs(name) }

func explain(what string, err error) error {
	if err != nil {
		return fmt.Errorf("githttp: %s: %w", what, err)
	}
	return nil
}

// Lag keeps a replica with the refs that a repository has now, and has the next n
// fetches and listings that would see others answered from it: the reading side
// of a large host lags behind its writing side. All of them are where n is below
// 0; 0 ends it. A fetch whose list of refs came from the replica gets its pack
// there too.
func (s *Server) Lag(name string, n int) error {
	return explain("lag behind "+name, s.platform.lag(name, n))
}

// replica is a repository as it was.
type replica struct {
	root string
	refs map[string]string
	left int
	// serving says that the latest list of refs came from the replica.
	serving bool
}

func (p *platform) lag(name string, n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.replicas, name)
	if n == 0 {
		return nil
	}
	if p.replicaRoot == "" {
		dir, err := os.MkdirTemp("", "githttp-replicas-")
		if err != nil {
			return err
		}
		p.replicaRoot = dir
	}
	root, err := os.MkdirTemp(p.replicaRoot, "")
	if err != nil {
		return err
	}
	refs, err := p.Replicate(name, filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	p.replicas[name] = &replica{root: root, refs: refs, left: n}
	return nil
}

// rootFor is the directory of repositories that answers a call.
func (p *platform) rootFor(c *simulator.Call) string {
	name := strings.Trim(c.Key, "/")
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.replicas[name]
	if r == nil || c.Op == OpPushRefs {
		return p.Root
	}
	if c.Op == OpFetchRefs {
		r.serving = r.left != 0 && !maps.Equal(r.refs, p.Refs(name))
		if r.serving && r.left > 0 {
			r.left--
		}
	}
	if r.serving {
		return r.root
	}
	return p.Root
}

func (p *platform) removeReplicas() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.replicaRoot != "" {
		os.RemoveAll(p.replicaRoot)
	}
}
