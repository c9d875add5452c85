package pack

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-git/go-git/v5/plumbing"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// git runs the git program in a directory, away from anyone's configuration.
func git(t testing.TB, dir string, stdin []byte, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(),
		"LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.invalid",
	)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out
}

// repository is a new one with some history: texts that grow, a tag, a submodule.
func repository(t testing.TB, commits int) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, nil, "init", "-q", "-b", "main")
	var in bytes.Buffer
	for i := range commits {
		text := strings.Repeat("a line that stays as it is\n", 200) + strings.Repeat("a line that is added\n", i)
		in.WriteString("commit refs/heads/main\ncommitter A <a@example.invalid> 1700000000 +0000\ndata 1\nx\n")
		if i == 0 {
			in.WriteString("M 160000 1111111111111111111111111111111111111111 module\n")
		}
		in.WriteString("M 100644 inline dir/file\ndata " + strconv.Itoa(len(text)) + "\n" + text + "\n")
	}
	in.WriteString("tag v1\nfrom refs/heads/main\ntagger A <a@example.invalid> 1700000000 +0000\ndata 1\nx\n")
	git(t, dir, in.Bytes(), "fast-import", "--quiet")
	return dir
}

// packOf is a pack of everything in a repository.
func packOf(t testing.TB, dir string, args ...string) []byte {
	t.Helper()
	return git(t, dir, nil, append([]string{"pack-objects", "-q", "--all", "--stdout"}, args...)...)
}

func receive(t testing.TB, r io.Reader, o Options) (*Pack, error) {
	t.Helper()
	o.Dir = t.TempDir()
	p, err := Receive(t.Context(), r, o)
	if err != nil {
		left, globErr := filepath.Glob(filepath.Join(o.Dir, "*"))
		if globErr != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, globErr)
		}
	}
	return p, err
}

// G12: a pack is indexed as git indexes it, to the byte, whatever kinds of delta
// it has and however little memory may be used.
func TestIndexIsThatOfGit(t *testing.T) {
	t.Parallel()
	dir := repository(t, 300)
	for name, args := range map[string][]string{
		"by offset": {"--delta-base-offset"}, "by hash": nil, "whole objects": {"--depth=0"}, "deep": {"--delta-base-offset", "--depth=4000", "--window=50"},
	} {
		for _, memory := range []int64{0, 256 << 10} {
			data := packOf(t, dir, args...)
			var counted, scanned, resolving, resolved int
			p, err := receive(t, iotest.HalfReader(bytes.NewReader(data)), Options{
				Limits:  Limits{Memory: memory},
				Counted: func(n int) { counted = n }, Resolving: func(n int) { resolving = n },
				Scanned: func() { scanned++ }, Resolved: func() { resolved++ },
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if counted != p.Objects || scanned != p.Objects || resolved != resolving || p.Bytes != int64(len(data)) || p.Objects < 900 {
				t.Errorf("%s: %d objects, counted %d, scanned %d; %d of %d deltas; %d bytes of %d", name, p.Objects, counted, scanned, resolved, resolving, p.Bytes, len(data))
			}
			if (name == "whole objects") != (resolving == 0) {
				t.Errorf("%s: %d deltas", name, resolving)
			}
			store := filepath.Join(t.TempDir(), "pack")
			if err := p.Install(store); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(store, "pack-"+p.sum.String()+".idx"))
			if err != nil {
				t.Fatal(err)
			}
			theirs := filepath.Join(t.TempDir(), "git")
			if err := os.WriteFile(theirs+".pack", data, 0o600); err != nil {
				t.Fatal(err)
			}
			git(t, dir, nil, "index-pack", theirs+".pack")
			want, err := os.ReadFile(theirs + ".idx")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s: the index differs from git's", name)
			}
		}
	}
}

// G4: a pack that ends early is that and nothing else, wherever it ends, and
// what broke the reading is what is reported.
func TestPackThatEndsEarly(t *testing.T) {
	t.Parallel()
	data := packOf(t, repository(t, 10), "--delta-base-offset")
	broken := errors.New("broken")
	for n := 0; n < len(data); n += 1 + n/40 { // each of the first, and some of the others
		if _, err := receive(t, bytes.NewReader(data[:n]), Options{}); err != io.ErrUnexpectedEOF {
			t.Fatalf("after %d bytes of %d: %v", n, len(data), err)
		}
		if _, err := receive(t, io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(broken)), Options{}); err != broken {
			t.Fatalf("broken after %d bytes of %d: %v", n, len(data), err)
		}
	}
}

// G3: damage is seen, wherever it is.
func TestDamagedPack(t *testing.T) {
	t.Parallel()
	data := packOf(t, repository(t, 5), "--delta-base-offset")
	for n := 0; n < len(data); n += 1 + n/200 {
		damaged := bytes.Clone(data)
		damaged[n] ^= 0x10
		_, err := receive(t, bytes.NewReader(damaged), Options{Limits: Limits{Memory: 1 << 20, Disk: 1 << 20, Objects: 1000}})
		var limit *LimitError
		if err != io.ErrUnexpectedEOF && !errors.Is(err, ErrDamaged) && !errors.As(err, &limit) {
			t.Errorf("byte %d of %d: %v", n, len(data), err)
		}
	}
}

// G4: a pack that does not hold all that its objects name is not complete,
// unless the rest is here, or is behind the edge of a shallow history.
func TestIncompletePack(t *testing.T) {
	t.Parallel()
	dir := repository(t, 3)
	all := strings.Fields(string(git(t, dir, nil, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")))
	parent := plumbing.NewHash(strings.TrimSpace(string(git(t, dir, nil, "rev-parse", "main~1"))))
	for i := 0; i < len(all); i += 2 {
		missing := plumbing.NewHash(all[i])
		var rest bytes.Buffer
		for j := 0; j < len(all); j += 2 {
			if j != i {
				rest.WriteString(all[j] + "\n")
			}
		}
		data := git(t, dir, rest.Bytes(), "pack-objects", "-q", "--stdout", "--depth=0")
		named := all[i+1] != "tag"
		if _, err := receive(t, bytes.NewReader(data), Options{}); errors.Is(err, ErrIncomplete) != named {
			t.Errorf("without a %s: %v", all[i+1], err)
		}
		here := Options{Has: func(h plumbing.Hash) (bool, error) { return h == missing, nil }}
		if _, err := receive(t, bytes.NewReader(data), here); err != nil {
			t.Errorf("with a %s that is here: %v", all[i+1], err)
		}
		unknown := errors.New("cannot look")
		here.Has = func(plumbing.Hash) (bool, error) { return false, unknown }
		if _, err := receive(t, bytes.NewReader(data), here); err != unknown {
			t.Errorf("with a store that cannot be read: %v", err)
		}
	}
	edge := git(t, dir, []byte("main\n^main~2\n"), "pack-objects", "-q", "--stdout", "--revs", "--depth=0")
	if _, err := receive(t, bytes.NewReader(edge), Options{}); !errors.Is(err, ErrIncomplete) {
		t.Errorf("without the parent: %v", err)
	}
	has := func(h plumbing.Hash) (bool, error) { // blobs and trees, but no commit
		return string(bytes.TrimSpace(git(t, dir, nil, "cat-file", "-t", h.String()))) != "commit", nil
	}
	if _, err := receive(t, bytes.NewReader(edge), Options{Has: has, Shallow: map[plumbing.Hash]bool{parent: true}}); err != nil {
		t.Errorf("with a shallow edge: %v", err)
	}
}
