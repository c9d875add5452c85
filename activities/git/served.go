package git

import "fmt"

// Engines says which engine does what, in words for whoever starts a worker.
func (a *Activities) Engines() string {
	switch e := a.engine.(type) {
	case *program:
		return e.name() + " for everything"
	case *mixed:
		return e.name() + " for clone, fetch and files, go-git for ls-remote and push"
	}
	return "go-git for everything"
}

func (g *program) name() string {
	return fmt.Sprintf("git %d.%d", g.version[0], g.version[1])
}
