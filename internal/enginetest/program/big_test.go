//go:build big

package program

import (
	"testing"

	"github.com/holdfast-dev/holdfast/activities/git"
	"github.com/holdfast-dev/holdfast/internal/enginetest"
)

// G12, Q4: a million refs, bombs and many files. It takes minutes:
//
//	go test -tags big -run TestGitConformanceBig -timeout 60m ./internal/enginetest/program
func TestGitConformanceBig(t *testing.T) { enginetest.RunBig(t, git.EngineGit) }
