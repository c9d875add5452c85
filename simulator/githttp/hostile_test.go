package githttp_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/simulator/githttp"
)

// G12: hostile repositories travel as they are, git itself refuses to check out
// those that are called refused, and their innocent commits are innocent.
func TestHostiles(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	safe := []string{"-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"}
	for i, h := range githttp.Hostiles() {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26)) + ".git"
		dir := t.TempDir()
		outside := filepath.Join(dir, "outside")
		if err := os.Mkdir(outside, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := s.CreateHostile(name, h, outside); err != nil {
			t.Fatal(err)
		}
		bare := filepath.Join(dir, "bare")
		must(t, dir, "clone", "--quiet", "--mirror", s.RepoURL(name), bare)
		if out, err := git(t, bare, "fsck", "--strict", "--no-dangling"); h.Refused && err == nil && !tooLong(h) {
			t.Errorf("%s: git fsck finds nothing: %s", h.Name, out)
		}
		work := filepath.Join(dir, "work")
		must(t, dir, append(safe, "clone", "--quiet", "--branch", "good", s.RepoURL(name), work)...)
		out, err := git(t, work, append(safe, "read-tree", "-m", "-u", "HEAD", "origin/main")...)
		if (err != nil) != h.Refused {
			t.Errorf("%s: git read-tree: %v\n%s", h.Name, err, out)
		}
		if left := found(t, outside); len(left) != 0 {
			t.Errorf("%s: outside has %v", h.Name, left)
		}
	}
}

// tooLong says that a path is sound, but too long for the file system.
func tooLong(h githttp.Hostile) bool { return strings.Contains(h.Name, "too ") }

func found(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// G12: an honest repository with symbolic links is one.
func TestSymlinks(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	if err := s.CreateSymlinks("p.git"); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", s.RepoURL("p.git"), work)
	must(t, work, "fsck", "--strict")
	if content, err := os.ReadFile(filepath.Join(work, "linkdir", "up")); err != nil || string(content) != "hello\n" {
		t.Errorf("through two links: %q, %v", content, err)
	}
}

// G12: bombs are small on the wire and large when they are unpacked.
func TestBombs(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	size := func(name string) (packed int64) {
		dir := filepath.Join(t.TempDir(), "bare")
		must(t, "", "init", "--quiet", "--bare", dir)
		must(t, dir, "-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", s.RepoURL(name), "main")
		packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
		if err != nil {
			t.Fatal(err)
		}
		for _, pack := range packs {
			info, err := os.Stat(pack)
			if err != nil {
				t.Fatal(err)
			}
			packed += info.Size()
		}
		return packed
	}

	if err := s.CreateZipBomb("zip.git", 200<<20); err != nil {
		t.Fatal(err)
	}
	if n := size("zip.git"); n < 100_000 || n > 1<<20 {
		t.Errorf("the pack of 200 MiB has %d bytes", n)
	}
	if out := must(t, s.Dir("zip.git"), "cat-file", "-s", "main:zeros"); out != "209715200" {
		t.Errorf("the file has %s bytes", out)
	}

	if err := s.CreateDeltaBomb("delta.git", 3, 50<<20); err != nil {
		t.Fatal(err)
	}
	if out := must(t, s.Dir("delta.git"), "cat-file", "-s", "main:result000002"); out != "52428800" {
		t.Errorf("a result has %s bytes", out)
	}
	bare := filepath.Join(t.TempDir(), "bare")
	must(t, "", "init", "--quiet", "--bare", bare)
	// The client unpacks all of it before it finds that the ids are not those.
	if out, err := git(t, bare, "fetch", "--no-tags", s.RepoURL("delta.git"), "main"); err == nil || !strings.Contains(out, "did not send all necessary objects") {
		t.Errorf("the delta bomb was fetched: %v\n%s", err, out)
	}

	if err := s.CreateTreeBomb("tree.git", 10, 9); err != nil {
		t.Fatal(err)
	}
	if n := size("tree.git"); n > 4096 {
		t.Errorf("the pack of a milliard files has %d bytes", n)
	}
	if out := must(t, s.Dir("tree.git"), "rev-parse", "main:top"+strings.Repeat("/d000009", 9)); len(out) != 40 {
		t.Errorf("the last file: %s", out)
	}
}

// G12: repositories with many refs and many files.
func TestMany(t *testing.T) {
	t.Parallel()
	s := start(t, githttp.Options{})
	if err := s.CreateRefs("refs.git", 10_000); err != nil {
		t.Fatal(err)
	}
	if refs := s.Refs("refs.git"); len(refs) != 10_002 || refs["refs/heads/b0009999"] != refs["refs/heads/main"] {
		t.Errorf("%d refs", len(refs))
	}
	if err := s.CreateFiles("files.git", 2500); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(t.TempDir(), "work")
	must(t, "", "clone", "--quiet", s.RepoURL("files.git"), work)
	if out := must(t, work, "ls-files"); strings.Count(out, "\n")+1 != 2501 {
		t.Errorf("%d files", strings.Count(out, "\n")+1)
	}
	must(t, work, "fsck", "--strict")
}
