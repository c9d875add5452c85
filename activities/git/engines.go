package git

import (
	"context"

	"github.com/holdfast-dev/holdfast/contract"
)

// mixed is git.engine "auto" where there is a usable git program: the program
// brings packs in at a fraction of go-git's time and memory, go-git lists refs
// in half of the program's time, and pushes by a request of its own that nothing
// below can repeat (G6).
type mixed struct {
	*program
	goGit engine
}

// reader is who brings objects from a remote: go-git where the program could
// not, such as over SSH without an ssh program.
func (m *mixed) reader(r *remote) engine {
	if m.serves(r) {
		return m.program
	}
	return m.goGit
}

func (m *mixed) lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error) {
	return m.goGit.lsRemote(ctx, r)
}

func (m *mixed) fetch(ctx context.Context, r *remote, c *checkout, ref string) ([]contract.GitUpdate, error) {
	return m.reader(r).fetch(ctx, r, c, ref)
}

func (m *mixed) clone(ctx context.Context, r *remote, dir string, s cloneSpec) (contract.GitHead, error) {
	return m.reader(r).clone(ctx, r, dir, s)
}

func (m *mixed) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	return m.goGit.push(ctx, r, c, p)
}

func (m *mixed) locate(ctx context.Context, r *remote, c *checkout, ref, ours string) (contract.GitLocated, error) {
	return m.reader(r).locate(ctx, r, c, ref, ours)
}

// newEngines makes the engine that does what the configuration asks for. It
// fails where that needs a git program and there is none.
func newEngines(cfg Config) (engine, error) {
	bounds := limits{memory: cfg.Limits.Memory, disk: cfg.Limits.Disk, objects: cfg.Limits.Objects}
	goGit := &isolated{newGoGit(cfg.Transport, cfg.ConnectTimeout, bounds)}
	if cfg.Engine == EngineGoGit {
		return goGit, nil
	}
	program, err := newProgram(programConfig{
		transport: cfg.Transport, connectTimeout: cfg.ConnectTimeout,
		limits: bounds,
	})
	switch {
	case err != nil && cfg.Engine == EngineGit:
		return nil, err
	case err != nil:
		return goGit, nil
	case cfg.Engine == EngineGit:
		return program, nil
	}
	return &mixed{program: program, goGit: goGit}, nil
}
