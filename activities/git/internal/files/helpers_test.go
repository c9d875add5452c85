package files

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/activities/git/internal/packtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a repository with a checkout.
type place struct {
	t       testing.TB
	dir     string
	objects *filesystem.Storage
}

func newPlace(t testing.TB) *place {
	t.Helper()
	p := &place{t: t, dir: t.TempDir()}
	p.git("init", "-q", "-b", "main")
	p.objects = filesystem.NewStorage(osfs.New(p.dir+"/.git"), cache.NewObjectLRUDefault())
	if err := os.MkdirAll(p.work(), 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) work() string { return filepath.Join(p.dir, ".git", "holdfast", "work") }

// git runs the git program, away from anyone's configuration.
func (p *place) git(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// store adds an object.
func (p *place) store(kind plumbing.ObjectType, content []byte) plumbing.Hash {
	p.t.Helper()
	obj := p.objects.NewEncodedObject()
	obj.SetType(kind)
	w, err := obj.Writer()
	if err != nil {
		p.t.Fatal(err)
	}
	w.Write(content)
	w.Close()
	h, err := p.objects.SetEncodedObject(obj)
	if err != nil {
		p.t.Fatal(err)
	}
	return h
}

func (p *place) blob(content string) plumbing.Hash {
	return p.store(plumbing.BlobObject, []byte(content))
}

func (p *place) raw(entries ...packtest.Entry) plumbing.Hash {
	return p.store(plumbing.TreeObject, packtest.Tree(entries...))
}

// tree makes a tree from paths and contents. A content that begins with "-> " is
// a symbolic link, "#!" an executable, "module" another repository.
func (p *place) tree(files map[string]string) plumbing.Hash {
	p.t.Helper()
	below := map[string]map[string]string{}
	var entries []packtest.Entry
	for path, content := range files {
		if dir, rest, ok := strings.Cut(path, "/"); ok {
			if below[dir] == nil {
				below[dir] = map[string]string{}
			}
			below[dir][rest] = content
			continue
		}
		e := packtest.Entry{Mode: "100644", Name: path}
		switch target, link := strings.CutPrefix(content, "-> "); {
		case link:
			e.Mode, e.Hash = "120000", p.blob(target)
		case content == "module":
			e.Mode, e.Hash = "160000", plumbing.Hash{1}
		case strings.HasPrefix(content, "#!"):
			e.Mode, e.Hash = "100755", p.blob(content)
		default:
			e.Hash = p.blob(content)
		}
		entries = append(entries, e)
	}
	for dir, files := range below {
		entries = append(entries, packtest.Entry{Mode: "40000", Name: dir, Hash: p.tree(files)})
	}
	slices.SortFunc(entries, func(a, b packtest.Entry) int { return strings.Compare(sortName(a), sortName(b)) })
	return p.raw(entries...)
}

// sortName is what git sorts the entries of a tree by.
func sortName(e packtest.Entry) string {
	if e.Mode == "40000" {
		return e.Name + "/"
	}
	return e.Name
}

func (p *place) options() Options {
	return Options{
		Files: p.open(p.dir), Git: p.open(filepath.Join(p.dir, ".git")), Work: p.open(p.work()),
		Objects: p.objects, Memory: 64 << 20, Disk: 1 << 30,
	}
}

func (p *place) open(dir string) *os.Root {
	p.t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { root.Close() })
	return root
}

func (p *place) advance(from, to plumbing.Hash) error {
	return Advance(p.t.Context(), p.options(), from, to)
}

// must is advance without an error, after which the files are those of the tree.
func (p *place) must(from, to plumbing.Hash) {
	p.t.Helper()
	if err := p.advance(from, to); err != nil {
		p.t.Fatalf("advance: %v", err)
	}
	p.clean(to)
}

// clean checks, by git, that index and files are those of a tree and that nothing
// else is there.
func (p *place) clean(to plumbing.Hash) {
	p.t.Helper()
	if to.IsZero() {
		to = p.raw() // git's word for nothing
	}
	if out := p.git("diff-index", "--cached", "--raw", to.String()); out != "" {
		p.t.Errorf("the index differs from the tree:\n%s", out)
	}
	if out := p.git("diff-files", "--raw"); out != "" {
		p.t.Errorf("files differ from the index:\n%s", out)
	}
	if out := p.git("ls-files", "--others", "--directory"); out != "" {
		p.t.Errorf("files that are in no tree:\n%s", out)
	}
	p.nothingLeft()
}

// nothingLeft checks that nothing unfinished is there.
func (p *place) nothingLeft() {
	p.t.Helper()
	left, err := os.ReadDir(p.work())
	if err != nil || len(left) > 0 {
		p.t.Errorf("left in the work directory: %v, %v", left, err)
	}
}

// put writes a file of the user's.
func (p *place) put(path, content string) {
	p.t.Helper()
	full := filepath.Join(p.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		p.t.Fatal(err)
	}
	var err error
	if target, ok := strings.CutPrefix(content, "-> "); ok {
		err = os.Symlink(target, full)
	} else {
		err = os.WriteFile(full, []byte(content), 0o666)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) remove(path string) {
	p.t.Helper()
	if err := os.RemoveAll(filepath.Join(p.dir, path)); err != nil {
		p.t.Fatal(err)
	}
}

// snapshot is everything below a directory, but objects and what is unfinished.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || rel == filepath.Join(".git", "objects") {
			return errOr(err, fs.SkipDir)
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(path)
			out[rel] = info.Mode().String() + " " + string(content)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[rel] = "-> " + target
			return err
		}
		out[rel] = info.Mode().String()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// files are those of the checkout in the words of tree.
func (p *place) files() map[string]string {
	out := map[string]string{}
	for path, what := range snapshot(p.t, p.dir) {
		if first, _, _ := strings.Cut(path, "/"); first == ".git" || path == "." {
			continue
		}
		mode, content, ok := strings.Cut(what, " ")
		switch {
		case mode == "->":
			out[path] = what
		case ok && strings.HasPrefix(content, "#!") == (mode[3] == 'x'):
			out[path] = content
		case ok:
			out[path] = what
		default:
			out[path+"/"] = ""
		}
	}
	for path := range out { // a directory that holds something is none of them
		for dir := parent(strings.TrimSuffix(path, "/")); dir != ""; dir = parent(dir) {
			delete(out, dir+"/")
		}
	}
	for path := range out {
		if name, ok := strings.CutSuffix(path, "/"); ok {
			delete(out, path)
			out[name] = "module"
		}
	}
	return out
}

func errOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// index gives lines to git update-index.
func (p *place) index(lines string) {
	p.t.Helper()
	cmd := exec.Command("git", "update-index", "--index-info")
	cmd.Dir, cmd.Stdin = p.dir, strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git update-index: %v\n%s", err, out)
	}
}

func fifo(p *place, path string) {
	p.t.Helper()
	if err := syscall.Mkfifo(filepath.Join(p.dir, path), 0o600); err != nil {
		p.t.Fatal(err)
	}
}
