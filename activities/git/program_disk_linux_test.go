package git

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/policies"
)

// small mounts a file system of a few mebibytes; the test is skipped where that
// is not allowed.
func small(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("only root may mount a small disk")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// G3: a disk that is full is said to be, is never tried again, and keeps its refs.
func TestProgramDiskFull(t *testing.T) {
	t.Parallel()
	dir := small(t, "3m")
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	w.checkout = filepath.Join(dir, "checkout")
	ctx, rec := recorded(t)
	if _, err := g.clone(ctx, remoteAt(t, w.url(), Credentials{}), w.checkout, cloneSpec{}); err != nil {
		t.Fatalf("%+v", failureOf(t, policies.OpClone, rec, err))
	}
	before := w.refs()
	content := make([]byte, 6<<20)
	rand.NewChaCha8([32]byte{}).Read(content)
	w.write(map[string]string{"big": string(content)})
	w.push("main")
	_, err := g.fetch(ctx, remoteAt(t, w.url(), Credentials{}), w.open(), "")
	if f := failureOf(t, policies.OpFetch, rec, err); f.Reason != "no_space" || f.RetrySame {
		t.Errorf("%+v, want no_space", f)
	}
	if diff := cmp.Diff(before, w.refs()); diff != "" {
		t.Errorf("refs moved:\n%s", diff)
	}
	w.whole()
	workIsEmpty(t, filepath.Join(w.checkout, ".git"))
	_, err = g.clone(ctx, remoteAt(t, w.url(), Credentials{}), filepath.Join(dir, "second"), cloneSpec{})
	if f := failureOf(t, policies.OpClone, rec, err); f.Reason != "no_space" || f.RetrySame {
		t.Errorf("clone: %+v, want no_space", f)
	}
	if _, err := os.Stat(filepath.Join(dir, "second", ".git", "objects")); !errors.Is(err, os.ErrNotExist) {
		t.Logf("the caller has something to remove: %v", err)
	}
}
