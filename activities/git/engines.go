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
	engine // the git program
	lister engine
	pusher engine
}

func (m *mixed) lsRemote(ctx context.Context, r *remote) ([]contract.GitRef, error) {
	return m.lister.lsRemote(ctx, r)
}

func (m *mixed) push(ctx context.Context, r *remote, c *checkout, p contract.GitPushIntent) error {
	return m.pusher.push(ctx, r, c, p)
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
	return &mixed{engine: program, lister: goGit, pusher: goGit}, nil
}
