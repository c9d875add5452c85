package git

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
)

// moving is the note of a fast-forward that has begun.
type moving struct {
	Branch string `json:"branch"`
	From   string `json:"from"`
	To     string `json:"to"`
}

var movingFile = filepath.Join("holdfast", "moving")

func writeMoving(root *os.Root, m moving) error {
	content, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := root.Mkdir("holdfast", 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return root.WriteFile(movingFile, content, 0o666)
}

// forgetMoving removes the note; one that stays is found to be over.
func forgetMoving(root *os.Root) {
	root.Remove(movingFile)
	root.Remove("holdfast") // unless something is in it
}

// resume finishes a fast-forward during which a worker died, so that the files
// are of the commit that the branch names before anything else is done. A note
// that does not fit what is here is dropped.
func (a *Activities) resume(ctx context.Context, s *forward, p *progress) error {
	root, err := os.OpenRoot(s.c.gitDir)
	if err != nil {
		return err
	}
	defer root.Close()
	content, err := root.ReadFile(movingFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var m moving
	if json.Unmarshal(content, &m) != nil || m.Branch != s.branch.String() || m.From != s.from.String() || !objectID.MatchString(m.To) {
		forgetMoving(root)
		return nil
	}
	ahead, err := a.engine.descends(ctx, s.c, m.To, m.From)
	if err != nil {
		return err
	}
	if !ahead {
		forgetMoving(root)
		return nil
	}
	err = a.engine.advance(ctx, s.c, p, advanceSpec{from: m.From, to: m.To, again: true})
	if isImpossible(err) {
		forgetMoving(root) // what cannot begin now did not begin then
		return nil
	}
	if errors.Is(err, errLocalChanges) {
		return errHalfMoved
	}
	if err != nil {
		return err // the note stays, for the files are as they were left
	}
	begun := *s
	begun.to = plumbing.NewHash(m.To)
	err = begun.land(ctx, root)
	s.from = begun.from
	return err
}

// isImpossible reports whether a commit has files that can never be brought in.
func isImpossible(err error) bool {
	return isRefused(err) && (errors.Is(err, errHostilePath) || errors.Is(err, errBadTree) || errors.Is(err, errMemoryLimit))
}
