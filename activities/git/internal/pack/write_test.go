package pack

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

func storage(dir string) *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(dir+"/.git"), cache.NewObjectLRUDefault())
}

// all are the objects of a repository.
func all(t *testing.T, dir string) (hashes []plumbing.Hash) {
	t.Helper()
	for _, h := range strings.Fields(string(git(t, dir, nil, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))) {
		hashes = append(hashes, plumbing.NewHash(h))
	}
	return hashes
}

// G6: a pack that is written is one that git reads, holds what it was asked to
// hold and nothing else, and deltas of the store stay deltas where they can.
func TestWrittenPack(t *testing.T) {
	t.Parallel()
	dir := repository(t, 100)
	hashes := all(t, dir)
	sizes := map[string]int{}
	for name, tc := range map[string]struct {
		deltas  bool
		objects []plumbing.Hash
	}{
		"loose or packed": {true, hashes}, "without deltas": {false, hashes}, "bases not sent": {true, hashes[:len(hashes)/2]},
		"twice": {true, append(hashes, hashes...)}, "nothing": {true, nil},
	} {
		var out bytes.Buffer
		wrote := 0
		if err := Write(t.Context(), &out, storage(dir), tc.objects, tc.deltas, func() { wrote++ }); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sizes[name] = out.Len()
		unique := map[plumbing.Hash]bool{}
		for _, h := range tc.objects {
			unique[h] = true
		}
		empty := t.TempDir()
		git(t, empty, nil, "init", "-q")
		if len(unique) > 0 {
			git(t, empty, out.Bytes(), "index-pack", "--stdin")
		}
		if got := all(t, empty); len(got) != len(unique) || wrote != len(unique) {
			t.Errorf("%s: %d objects, %d told, want %d", name, len(got), wrote, len(unique))
		}
	}
	if sizes["loose or packed"]*10 > sizes["without deltas"]*9 {
		t.Errorf("deltas were not kept: %v", sizes)
	}
}

func TestWriteEndsWithItsContextAndItsStore(t *testing.T) {
	t.Parallel()
	dir := repository(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Write(ctx, new(bytes.Buffer), storage(dir), all(t, dir), true, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, deltas := range []bool{true, false} {
		err := Write(t.Context(), new(bytes.Buffer), storage(dir), []plumbing.Hash{{1}}, deltas, nil)
		if !errors.Is(err, plumbing.ErrObjectNotFound) {
			t.Errorf("an object that is not there: %v", err)
		}
	}
}
