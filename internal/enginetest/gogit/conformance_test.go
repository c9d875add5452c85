// Package gogit holds the tests of the engine that is go-git.
package gogit

import (
	"testing"

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/internal/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

// G1–G12: the suite that every Git engine passes, for go-git.
func TestGitConformance(t *testing.T) {
	t.Parallel()
	enginetest.Run(t, git.EngineGoGit)
}
