package conformance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
)

// gitState is what an operation that fails must leave as it was.
type gitState struct {
	Head string
	// Refs have the ids of all refs by name, Files the modes and contents of all
	// files by path.
	Refs, Files map[string]string
	// Status is what git says of the files; empty if they are those of HEAD.
	Status string
}

func (w *gitWorld) state(dir string) gitState {
	w.t.Helper()
	at := w.gitDirs(dir)
	files := w.listing(dir)
	if known := w.known[dir]; files != "" && known.files == files {
		return known.state
	}
	s := gitState{Refs: w.refs(dir), Files: w.files(dir), Head: w.read(at.gitDir, "HEAD")}
	if !at.bare {
		s.Status = w.git(dir, "status", "--porcelain")
	}
	w.known[dir] = gitKnown{files: files, state: s}
	return s
}

// gitKnown is what git has said of a repository with these files. It says the same
// as long as none has been written.
type gitKnown struct {
	files string
	state gitState
	sound bool
}

// listing names all files of a repository, with what changes when one is written,
// apart from those that only the engine looks at. It is empty if that cannot be
// told.
func (w *gitWorld) listing(dir string) string {
	var all strings.Builder
	at := w.gitDirs(dir)
	for _, root := range slices.Compact(slices.Sorted(slices.Values([]string{dir, at.gitDir, at.common}))) {
		if filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if path == filepath.Join(at.common, "holdfast") || path == filepath.Join(at.gitDir, "holdfast") {
					return filepath.SkipDir
				}
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(&all, "%q %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
			return err
		}) != nil {
			return ""
		}
	}
	return all.String()
}

// gitDirs are the directories of a repository.
type gitDirs struct {
	gitDir, common string
	bare           bool
}

func (w *gitWorld) gitDirs(dir string) gitDirs {
	w.t.Helper()
	at, ok := w.dirs[dir]
	if !ok {
		lines := strings.Split(w.git(dir, "rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--is-bare-repository"), "\n")
		at = gitDirs{gitDir: lines[0], common: lines[1], bare: lines[2] == "true"}
		w.dirs[dir] = at
	}
	return at
}

// unchanged checks that a checkout is as it was, sound, and clean of leftovers.
func (w *gitWorld) unchanged(what, dir string, before gitState) {
	w.t.Helper()
	if diff := cmp.Diff(before, w.state(dir)); diff != "" {
		w.t.Errorf("%s: the checkout changed (-before +after):\n%s", what, diff)
	}
	w.whole(what, dir)
}

// refs are the refs of a repository by name, without symbolic ones.
func (w *gitWorld) refs(dir string) map[string]string {
	w.t.Helper()
	refs := map[string]string{}
	for line := range strings.Lines(w.git(dir, "for-each-ref", "--format=%(refname) %(objectname) %(symref)")) {
		if parts := strings.Fields(line); len(parts) == 2 {
			refs[parts[0]] = parts[1]
		}
	}
	return refs
}

// hasRefs checks the refs of a repository.
func (w *gitWorld) hasRefs(what, dir string, want map[string]string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.refs(dir)); diff != "" {
		w.t.Errorf("%s: refs (-want +got):\n%s", what, diff)
	}
}

// files are the files below a directory, without those of git.
func (w *gitWorld) files(dir string) map[string]string {
	w.t.Helper()
	files := map[string]string{}
	w.check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || name == "." {
			return err
		}
		if d.Name() == ".git" {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		switch {
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			files[filepath.ToSlash(name)] = "link to " + target
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		mode := ""
		if info.Mode()&0o100 != 0 {
			mode = "executable: "
		}
		files[filepath.ToSlash(name)] = mode + string(content)
		return err
	}))
	return files
}

// whole checks that a repository is sound, that its refs are at objects that are
// there, and that nothing of an attempt is left.
func (w *gitWorld) whole(what, dir string) {
	w.t.Helper()
	known := w.known[dir]
	if files := w.listing(dir); files == "" || known.files != files || !known.sound {
		if out, err := w.try(dir, "fsck", "--strict", "--no-dangling"); err != nil {
			w.t.Errorf("%s: git fsck: %v\n%s", what, err, out)
		} else if known.files == files {
			known.sound = true
			w.known[dir] = known
		}
	}
	if left := w.leftovers(dir); len(left) != 0 {
		w.t.Errorf("%s: left behind: %v", what, left)
	}
}

// leftovers are the temporary files and locks in a repository.
func (w *gitWorld) leftovers(dir string) []string {
	w.t.Helper()
	var left []string
	at := w.gitDirs(dir)
	for _, gitDir := range slices.Compact([]string{at.common, at.gitDir}) {
		w.check(filepath.WalkDir(gitDir, func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it is being cleaned up
			}
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(gitDir, path)
			if err != nil {
				return err
			}
			base := d.Name()
			if strings.HasSuffix(base, ".lock") || strings.HasSuffix(base, ".keep") || strings.HasPrefix(base, "tmp_") ||
				strings.HasPrefix(base, ".tmp-") || strings.Contains(name, "incoming-") || isOurs(name) {
				left = append(left, name)
			}
			return nil
		}))
	}
	return left
}

// isOurs says that a file in a git directory is of an operation of ours that has
// not ended. A clone may keep a note of which one it was.
func isOurs(name string) bool {
	name = filepath.ToSlash(name)
	return strings.HasPrefix(name, "holdfast/") && name != "holdfast/cloned"
}

// beside lists the directory of checkouts, in which an operation leaves nothing
// but its checkout.
func (w *gitWorld) beside() []string {
	w.t.Helper()
	entries, err := os.ReadDir(w.work)
	w.check(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sameNames checks what is in the directory of checkouts.
func (w *gitWorld) sameNames(what string, want []string) {
	w.t.Helper()
	want = slices.Sorted(slices.Values(want))
	if diff := cmp.Diff(want, w.beside()); diff != "" {
		w.t.Errorf("%s: beside the checkout (-want +got):\n%s", what, diff)
	}
}

// eventually waits until a check of what an interrupted operation leaves behind
// says nothing more. The limit is where waiting becomes a failure.
func (w *gitWorld) eventually(what string, left func() []string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		rest := left()
		if len(rest) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Errorf("%s: still left: %v", what, rest)
			return
		}
	}
}

// processes are those that work in the checkouts, where the system tells.
func (w *gitWorld) processes() []string {
	var found []string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if reason := w.worksHere(filepath.Join("/proc", e.Name())); reason != "" {
			found = append(found, fmt.Sprintf("%d: %s", pid, reason))
		}
	}
	return found
}

// worksHere says by what a process shows that it works in the checkouts.
func (w *gitWorld) worksHere(proc string) string {
	here := func(path string) bool { return path == w.work || strings.HasPrefix(path, w.work+"/") }
	if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && here(cwd) {
		return "directory " + cwd
	}
	for _, file := range []string{"cmdline", "environ"} {
		content, err := os.ReadFile(filepath.Join(proc, file))
		if err == nil && strings.Contains(string(content), w.work) {
			return file
		}
	}
	open, err := filepath.Glob(filepath.Join(proc, "fd", "*"))
	if err != nil {
		return ""
	}
	for _, fd := range open {
		if target, err := os.Readlink(fd); err == nil && here(target) {
			return "has open " + target
		}
	}
	return ""
}

// unharmed checks what lies beside the checkouts, at the end of every test.
func (w *gitWorld) unharmed() {
	if w.t.Failed() && len(w.files(w.outside)) == 0 {
		return
	}
	if diff := cmp.Diff(map[string]string{"canary": "sings\n"}, w.files(w.outside)); diff != "" {
		w.t.Errorf("outside the checkouts (-before +after):\n%s", diff)
	}
	if left := w.processes(); len(left) != 0 {
		w.eventually("processes", w.processes)
	}
}
