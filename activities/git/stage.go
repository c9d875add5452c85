package git

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// A clone is made beside its target and appears there only once it is whole
// (G2). Where nothing is, the finished clone is renamed into place. An empty
// directory of the user's stays the same directory: the entries of the clone are
// renamed into it, its .git last, and a journal lists them, so that the next
// attempt can take back what one that died had moved.
//
// All this happens under the lock in the staging directory, so that whatever
// else is in there is of a holder that died.

const (
	stageLock    = "lock"
	stageJournal = "journal"
	stagePrefix  = "stage-"
	// cloneMark is the file in a finished clone that says which clone it is.
	cloneMark = ".git/holdfast/cloned"
)

var (
	errNotEmpty  = refuse(policies.ReasonConflict, "G2/not_empty", "the directory of the clone is not empty; it was left as it is: name another directory, or empty it first")
	errOtherDisk = refuse(policies.ReasonFormat, "G2/other_disk", "the directory of the clone is on another file system than the one above it, so a finished clone cannot be moved into it; name a directory below it")
	errNoTarget  = refuse(policies.ReasonConflict, "G2/target", "a file or a link is where the clone is to be; it was left as it is: name another directory, or remove it first")
)

// stage is one clone on its way.
type stage struct {
	root *os.Root // the directory of the target
	at   target
	id   string
}

// mark is what is in the file cloneMark.
type mark struct {
	ID   string           `json:"id"`
	Head contract.GitHead `json:"head"`
}

// journal lists the entries that are moved into the user's directory.
type journal struct {
	ID      string  `json:"id"`
	Entries []entry `json:"entries"`
}

// entry is a file or directory, and which one it is.
type entry struct {
	Name     string `json:"name"`
	Identity string `json:"identity"`
}

func openStage(at target, id string) (*stage, error) {
	root, err := os.OpenRoot(at.parent())
	if err != nil {
		return nil, err
	}
	return &stage{root: root, at: at, id: id}, nil
}

func (s *stage) close() { s.root.Close() }

// cloneID names a clone: the same for every attempt of one workflow, and only as
// long as it asks for the same.
func cloneID(workflow string, in contract.GitRequest) (string, error) {
	in.LimitMS = 0
	asked, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(workflow + "\x00" + string(asked)))
	return hex.EncodeToString(sum[:12]), nil
}

// name is the clone's path below root while it is not finished.
func (s *stage) name() string { return filepath.Join(s.at.staging(), stagePrefix+s.id) }

// path is the same for the engine.
func (s *stage) path() string { return filepath.Join(s.at.parent(), s.name()) }

func (s *stage) journal() string { return filepath.Join(s.at.staging(), stageJournal) }

// sweep takes back what a clone that did not finish had moved, and removes all
// that is unfinished.
func (s *stage) sweep() error {
	if err := s.takeBack(); err != nil {
		return err
	}
	dir, err := s.root.Open(s.at.staging())
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	dir.Close()
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), stagePrefix) {
			err = errors.Join(err, s.root.RemoveAll(filepath.Join(s.at.staging(), e.Name())))
		}
	}
	return err
}

// takeBack removes from the user's directory what a journal lists and what is
// surely the clone's: it is no longer in the stage, and it is the same file. A
// clone that was finished stays.
func (s *stage) takeBack() error {
	content, err := s.root.ReadFile(s.journal())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var j journal
	if json.Unmarshal(content, &j) == nil { // else nothing was moved yet
		from := filepath.Join(s.at.staging(), stagePrefix+j.ID)
		if err := s.takeEntries(j, from); err != nil {
			return err
		}
	}
	return s.root.Remove(s.journal())
}

func (s *stage) takeEntries(j journal, from string) error {
	if m, ok := s.marked(); ok && m.ID == j.ID {
		return nil
	}
	for _, e := range j.Entries {
		there := filepath.Join(s.at.base, e.Name)
		info, err := s.root.Lstat(there)
		if err != nil || e.Identity == "" || identity(info) != e.Identity || s.exists(filepath.Join(from, e.Name)) {
			continue
		}
		if err := s.root.RemoveAll(there); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) exists(name string) bool {
	_, err := s.root.Lstat(name)
	return err == nil
}

// marked is the mark of a finished clone in the target.
func (s *stage) marked() (m mark, ok bool) {
	content, err := s.root.ReadFile(filepath.Join(s.at.base, filepath.FromSlash(cloneMark)))
	return m, err == nil && json.Unmarshal(content, &m) == nil
}

// look says what is in the target's place: a finished clone of our own, an empty
// directory, or nothing. Anything else is refused.
func (s *stage) look() (own *mark, empty bool, err error) {
	info, err := s.root.Lstat(s.at.base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	case !info.IsDir():
		return nil, false, errNoTarget
	}
	dir, err := s.root.Open(s.at.base)
	if err != nil {
		return nil, false, err
	}
	_, err = dir.ReadDir(1)
	dir.Close()
	if errors.Is(err, io.EOF) {
		return nil, true, s.sameDisk(info)
	}
	if err != nil {
		return nil, false, err
	}
	if m, ok := s.marked(); ok && m.ID == s.id {
		return &m, false, nil
	}
	return nil, false, errNotEmpty
}

// sameDisk checks before anything is fetched that files can be renamed into the
// user's directory.
func (s *stage) sameDisk(there fs.FileInfo) error {
	above, err := s.root.Stat(".")
	if err == nil && disk(above) != disk(there) {
		return errOtherDisk
	}
	return err
}

// finish brings a whole clone to its place.
func (s *stage) finish(head contract.GitHead, empty bool) error {
	if err := sweepWork(filepath.Join(s.path(), ".git")); err != nil {
		return err
	}
	steps, err := s.publish(head, empty)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// publish are the steps by which a whole clone gets from the stage to its place.
// After any of them the process may die.
func (s *stage) publish(head contract.GitHead, empty bool) ([]func() error, error) {
	steps := []func() error{func() error { return s.writeMark(head) }}
	if !empty {
		return append(steps, func() error { return s.appear(s.name(), s.at.base) }), nil
	}
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	steps = append(steps, func() error { return s.writeJournal(names) })
	for _, name := range names {
		steps = append(steps, func() error {
			return s.appear(filepath.Join(s.name(), name), filepath.Join(s.at.base, name))
		})
	}
	return append(steps,
		func() error { return s.root.Remove(s.journal()) },
		func() error { return s.root.Remove(s.name()) }), nil
}

// appear renames to where nothing may be.
func (s *stage) appear(from, to string) error {
	err := renameNew(s.root, from, to)
	switch {
	case errors.Is(err, fs.ErrExist):
		return errNotEmpty
	case errors.Is(err, syscall.EXDEV):
		return errOtherDisk
	case err != nil:
		return err
	}
	return syncAll(filepath.Dir(filepath.Join(s.at.parent(), to)))
}

// names are the entries of the stage, .git last.
func (s *stage) names() ([]string, error) {
	dir, err := s.root.Open(s.name())
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".git" {
			names = append(names, e.Name())
		}
	}
	return append(names, ".git"), nil
}

func (s *stage) writeMark(head contract.GitHead) error {
	name := filepath.Join(s.name(), filepath.FromSlash(cloneMark))
	if err := s.root.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return s.write(name, mark{ID: s.id, Head: head})
}

func (s *stage) writeJournal(names []string) error {
	j := journal{ID: s.id}
	for _, name := range names {
		info, err := s.root.Lstat(filepath.Join(s.name(), name))
		if err != nil {
			return err
		}
		j.Entries = append(j.Entries, entry{Name: name, Identity: identity(info)})
	}
	return s.write(s.journal(), j)
}

// write writes a file that is on disk before anything else is done.
func (s *stage) write(name string, v any) error {
	content, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := s.root.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncAll(filepath.Dir(filepath.Join(s.at.parent(), name)))
}

// renameChecked looks before it renames, which is all that some systems can do.
func renameChecked(root *os.Root, from, to string) error {
	if _, err := root.Lstat(to); err == nil {
		return &os.PathError{Op: "rename", Path: to, Err: fs.ErrExist}
	}
	return root.Rename(from, to)
}
