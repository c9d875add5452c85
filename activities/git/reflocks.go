package git

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// refJournal lists the ref locks that are being taken, so that those of a worker
// that was killed meanwhile can be told from those of others and removed.
const refJournal = workDir + "/refs"

// writeRefJournal lists the locks that moving refs will take.
func writeRefJournal(root *os.Root, updates []update) error {
	if err := root.MkdirAll(filepath.FromSlash(workDir), 0o777); err != nil {
		return err
	}
	f, err := root.Create(filepath.FromSlash(refJournal))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, u := range updates {
		w.WriteString(u.new.String() + " " + u.name.String() + "\n")
	}
	return errors.Join(w.Flush(), f.Close())
}

// sweepRefLocks removes the locks that a journal lists and that hold what the
// journal's writer puts into them, or the beginning of it.
func sweepRefLocks(root *os.Root) error {
	f, err := root.Open(filepath.FromSlash(refJournal))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		oid, name, _ := strings.Cut(lines.Text(), " ")
		ref := plumbing.ReferenceName(name)
		if !strings.HasPrefix(name, "refs/") || ref.Validate() != nil {
			continue // half a line, or not ours
		}
		if err := removeRefLock(root, filepath.FromSlash(name+".lock"), []byte(oid+"\n")); err != nil {
			return err
		}
	}
	return lines.Err()
}

func removeRefLock(root *os.Root, lock string, content []byte) error {
	info, err := root.Lstat(lock)
	if err != nil || !info.Mode().IsRegular() || info.Size() > int64(len(content)) {
		return nil // gone, or another's
	}
	f, err := root.Open(lock)
	if err != nil {
		return nil
	}
	there, err := io.ReadAll(io.LimitReader(f, int64(len(content))+1))
	f.Close()
	if err != nil || !bytes.HasPrefix(content, there) {
		return nil
	}
	return root.Remove(lock)
}
