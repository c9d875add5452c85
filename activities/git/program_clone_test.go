package git

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// write makes files in the author's copy, and commits them.
func (w *world) write(files map[string]string) string {
	w.t.Helper()
	for name, content := range files {
		path := filepath.Join(w.author, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	run(w.t, w.author, "add", "-A")
	run(w.t, w.author, "commit", "-q", "-m", "files")
	return run(w.t, w.author, "rev-parse", "HEAD")
}

// filesIn are the files of a work tree, by name.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// G10: a clone is as deep, as wide and as full as asked for, and so are later
// fetches.
func TestProgramClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.commit("second")
	run(t, w.author, "tag", "-a", "-m", "x", "v1")
	run(t, w.author, "checkout", "-q", "-b", "side")
	side := w.commit("side")
	run(t, w.author, "checkout", "-q", "main")
	main := w.write(map[string]string{"docs/a/one": "1", "docs/two": "2", "src/api/three": "3", "src/four": "4", "src/ui/five": "5", "odd [x]*/six": "6"})
	w.push("main", "side", "v1")
	v1 := run(t, w.author, "rev-parse", "v1^{commit}")
	run(t, w.author, "config", "--file", ".gitmodules", "submodule.x.path", "x")
	all := []string{"docs/a/one", "docs/two", "file", "odd [x]*/six", "src/api/three", "src/four", "src/ui/five"}
	g := newTestProgram(t, limits{})
	for _, tc := range []struct {
		name    string
		spec    cloneSpec
		head    contract.GitHead
		commits string
		refs    string
		files   []string
	}{
		{"all", cloneSpec{}, contract.GitHead{Ref: "refs/heads/main", OID: main}, "3", "heads/main remotes/origin/HEAD remotes/origin/main remotes/origin/side tags/v1", all},
		{"a branch", cloneSpec{ref: "side"}, contract.GitHead{Ref: "refs/heads/side", OID: side}, "3", "heads/side remotes/origin/HEAD remotes/origin/main remotes/origin/side tags/v1", []string{"file"}},
		{"a full name", cloneSpec{ref: "refs/heads/side", singleBranch: true}, contract.GitHead{Ref: "refs/heads/side", OID: side}, "3", "heads/side remotes/origin/side tags/v1", []string{"file"}},
		{"a tag", cloneSpec{ref: "v1"}, contract.GitHead{OID: v1}, "2", "remotes/origin/HEAD remotes/origin/main remotes/origin/side tags/v1", []string{"file"}},
		{"depth", cloneSpec{depth: 1}, contract.GitHead{Ref: "refs/heads/main", OID: main}, "1", "heads/main remotes/origin/HEAD remotes/origin/main", all},
		{"one branch without tags", cloneSpec{singleBranch: true, noTags: true}, contract.GitHead{Ref: "refs/heads/main", OID: main}, "3", "heads/main remotes/origin/HEAD remotes/origin/main", all},
		{"sparse", cloneSpec{sparse: []string{"src/api", "docs/"}}, contract.GitHead{Ref: "refs/heads/main", OID: main}, "3",
			"heads/main remotes/origin/HEAD remotes/origin/main remotes/origin/side tags/v1", []string{"docs/a/one", "docs/two", "file", "src/api/three", "src/four"}},
		{"an odd directory", cloneSpec{sparse: []string{"odd [x]*"}}, contract.GitHead{Ref: "refs/heads/main", OID: main}, "3",
			"heads/main remotes/origin/HEAD remotes/origin/main remotes/origin/side tags/v1", []string{"file", "odd [x]*/six"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "clone")
			ctx, rec := recorded(t)
			r := remoteAt(t, w.url(), Credentials{})
			head, err := g.clone(ctx, r, dir, tc.spec)
			if err != nil || head != tc.head {
				t.Fatalf("%+v, %+v; want %+v", head, failureOf(t, policies.OpClone, rec, err), tc.head)
			}
			if got := run(t, dir, "rev-list", "--count", "HEAD"); got != tc.commits {
				t.Errorf("%s commits, want %s", got, tc.commits)
			}
			if got := strings.Fields(run(t, dir, "for-each-ref", "--format=%(refname:lstrip=1)")); strings.Join(got, " ") != tc.refs {
				t.Errorf("refs %v, want %s", got, tc.refs)
			}
			if diff := cmp.Diff(tc.files, filesIn(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if got := run(t, dir, "status", "--porcelain"); got != "" {
				t.Errorf("status:\n%s", got)
			}
			if p := r.progress.snapshot(); p.Bytes == 0 || p.Objects == 0 {
				t.Errorf("progress %+v", p)
			}
			if _, err := os.Stat(filepath.Join(dir, ".git", "hooks")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a template was copied: %v", err)
			}
			// What was cloned can be fetched into, and it stays as narrow.
			if updates, err := g.fetch(ctx, r, openAt(t, dir), ""); err != nil || len(updates) != 0 {
				t.Errorf("fetch: %+v, %+v", updates, failureOf(t, policies.OpFetch, rec, err))
			}
		})
	}
}

// Clones that cannot be made, and the clone of nothing.
func TestProgramCloneRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	run(t, w.root, "init", "-q", "--bare", "-b", "trunk", filepath.Join(w.root, "srv", "empty.git"))
	ctx, rec := recorded(t)
	head, err := g.clone(ctx, remoteAt(t, w.server.RepoURL("empty.git"), Credentials{}), filepath.Join(w.root, "empty"), cloneSpec{})
	if err != nil || head.OID != "" || head.Ref != "refs/heads/trunk" {
		t.Errorf("an empty repository: %+v, %+v", head, failureOf(t, policies.OpClone, rec, err))
	}
	for name, tc := range map[string]struct {
		spec cloneSpec
		rule string
	}{
		"no such branch": {cloneSpec{ref: "missing"}, "G3/ref_not_found"},
		"an option":      {cloneSpec{ref: "--upload-pack=touch x"}, "G3/ref_not_found"},
		"outside":        {cloneSpec{sparse: []string{"../x"}}, "G10/sparse"},
		"all":            {cloneSpec{sparse: []string{"/"}}, "G10/sparse"},
	} {
		ctx, rec := recorded(t)
		_, err := g.clone(ctx, remoteAt(t, w.url(), Credentials{}), filepath.Join(w.root, "refused"), tc.spec)
		if f := failureOf(t, policies.OpClone, rec, err); f.Rule != tc.rule || f.RetrySame {
			t.Errorf("%s: %+v, want %s", name, f, tc.rule)
		}
	}
}

// rawEntry is one entry of a tree object.
type rawEntry struct{ mode, name, oid string }

// tree writes a tree object as it is given, whatever git thinks of its names.
func tree(t *testing.T, dir string, entries ...rawEntry) string {
	t.Helper()
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%s %s\x00", e.mode, e.name)
		for i := 0; i < len(e.oid); i += 2 {
			var c byte
			fmt.Sscanf(e.oid[i:i+2], "%02x", &c)
			b.WriteByte(c)
		}
	}
	return writeObject(t, dir, "tree", b.String())
}

func writeObject(t *testing.T, dir, kind, content string) string {
	t.Helper()
	cmd := exec.Command("git", "hash-object", "-t", kind, "--literally", "-w", "--stdin")
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(content)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// G12: a repository whose paths would lead outside the checkout, or into its
// .git, in whatever spelling, is refused, and writes nothing there.
func TestProgramHostilePaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := newTestProgram(t, limits{})
	blob := writeObject(t, w.bare, "blob", "#!/bin/sh\ntouch escaped\n")
	outside := filepath.Join(w.root, "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	link := writeObject(t, w.bare, "blob", outside)
	file := func(name string) rawEntry { return rawEntry{"100755", name, blob} }
	below := func(name string, entries ...rawEntry) rawEntry {
		return rawEntry{"40000", name, tree(t, w.bare, entries...)}
	}
	for name, entries := range map[string][]rawEntry{
		"dot dot":         {below("..", file("escaped"))},
		"dot dot in name": {file("../escaped")},
		"absolute":        {file(outside + "/escaped")},
		"dot git":         {below(".git", below("hooks", file("post-checkout")))},
		"upper case":      {below(".GIT", below("hooks", file("post-checkout")))},
		"short name":      {below("git~1", below("hooks", file("post-checkout")))},
		"trailing dot":    {below(".git.", below("hooks", file("post-checkout")))},
		"trailing space":  {below(".git ", below("hooks", file("post-checkout")))},
		"ignored rune":    {below(".g\u200cit", below("hooks", file("post-checkout")))},
		"stream":          {below(".git::$INDEX_ALLOCATION", below("hooks", file("post-checkout")))},
		"backslash":       {file(".git\\hooks\\post-checkout")},
		"link and below":  {{"120000", "link", link}, below("link", file("escaped"))},
		"modules link":    {{"120000", ".gitmodules", link}},
	} {
		t.Run(name, func(t *testing.T) {
			commit := writeObject(t, w.bare, "commit", "tree "+tree(t, w.bare, entries...)+
				"\nauthor A <a@example.invalid> 1700000000 +0000\ncommitter A <a@example.invalid> 1700000000 +0000\n\nx\n")
			run(t, w.bare, "update-ref", "refs/heads/hostile", commit)
			dir := filepath.Join(t.TempDir(), "a", "clone")
			if err := os.Mkdir(filepath.Dir(dir), 0o700); err != nil {
				t.Fatal(err)
			}
			ctx, rec := recorded(t)
			_, err := g.clone(ctx, remoteAt(t, w.url(), Credentials{}), dir, cloneSpec{ref: "hostile"})
			f := failureOf(t, policies.OpClone, rec, err)
			// git makes one of the two a file or a directory, which harms nobody.
			if harmless := name == "link and below" && err == nil; !harmless && (f.Rule != "G12/path" || f.RetrySame) {
				t.Errorf("%+v, want G12/path", f)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(dir)), "*", "*"))
			if err != nil || slices.ContainsFunc(left, func(p string) bool { return p != dir }) {
				t.Errorf("beside the clone: %v %v", left, err)
			}
			if hooks, _ := filepath.Glob(filepath.Join(dir, ".[gG][iI][tT]*", "hooks", "*")); len(hooks) > 0 {
				t.Errorf("hooks: %v", hooks)
			}
		})
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside: %v", left)
	}
}

// G10: the patterns are those that git itself writes in cone mode.
func TestConePatterns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, dirs := range [][]string{
		{"docs"}, {"src/api", "docs/"}, {"a/b/c", "a/b", "a/x/y/z"}, {"a", "a/b"}, {"odd [x]*/y?", `back\slash`}, {"b/c", "b-c", "b"}, {"x//y/", "./z"},
	} {
		got, err := conePatterns(dirs)
		if err != nil {
			t.Fatal(err)
		}
		run(t, w.checkout, append([]string{"sparse-checkout", "set", "--cone", "--skip-checks"}, dirs...)...)
		want, err := os.ReadFile(filepath.Join(w.checkout, ".git", sparseFile))
		if err != nil {
			t.Fatal(err)
		}
		sorted := func(s string) []string {
			lines := strings.Fields(strings.ReplaceAll(s, " ", "\u00a0"))
			slices.Sort(lines)
			return lines
		}
		if diff := cmp.Diff(sorted(string(want)), sorted(got)); diff != "" {
			t.Errorf("%q (-git +ours):\n%s", dirs, diff)
		}
	}
}
