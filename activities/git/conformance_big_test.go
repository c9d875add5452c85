//go:build big

package git

import (
	"testing"

	"github.com/holdfast-dev/holdfast/conformance"
)

// G12, Q4: a million refs, bombs and many files, for each engine. It takes
// minutes, and memory and disk that a test beside it would miss:
//
//	go test -tags big -run TestConformanceBig -timeout 60m ./activities/git
func TestConformanceBig(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			conformance.GitBig(t, func(t *testing.T) conformance.GitAdapter { return adapter(t, engine) })
		})
	}
}
