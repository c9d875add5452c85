package git

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/contract"
)

// G10: a clone of more branches than are written one file each has them all, and
// knows the remote's own branch.
func TestCloneManyBranches(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{EngineGit, EngineGoGit} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			at := run(t, w.bare, "rev-parse", "main")
			var packed strings.Builder
			packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
			for i := range packAbove + 1 {
				fmt.Fprintf(&packed, "%s refs/heads/branch-%05d\n", at, i)
			}
			put(t, filepath.Join(w.bare, "packed-refs"), packed.String())
			dir := filepath.Join(w.root, "clone")
			a := newActivities(t, Config{Engine: engine})
			res, f := ask(t, caller{}, a.Clone, contract.GitRequest{URL: w.url(), Dir: dir, LimitMS: 60_000})
			if f.Reason != "" || res.Outcome != contract.OutcomeCloned {
				t.Fatalf("outcome %q, failure %+v", res.Outcome, f)
			}
			if n := len(strings.Fields(run(t, dir, "for-each-ref", "--format=%(refname)", "refs/remotes/origin/branch-*"))); n != packAbove+1 {
				t.Errorf("%d branches, want %d", n, packAbove+1)
			}
			if head := run(t, dir, "symbolic-ref", "refs/remotes/origin/HEAD"); head != "refs/remotes/origin/main" {
				t.Errorf("the remote's own branch is %q", head)
			}
		})
	}
}
