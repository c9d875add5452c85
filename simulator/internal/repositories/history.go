package repositories

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Init makes an empty bare repository.
func (d *Dir) Init(name string) error {
	if err := os.MkdirAll(d.Path(name), 0o755); err != nil {
		return err
	}
	_, err := d.Run(name, nil, "init", "--quiet", "--bare", "--initial-branch=main", ".")
	return err
}

// Create makes a repository with n commits on main, which depend only on n.
func (d *Dir) Create(name string, n int) error {
	if err := d.Init(name); err != nil || n == 0 {
		return err
	}
	return d.commits(name, "main", 1, n, false)
}

// Commit adds n commits to a branch, which is made from main if it does not
// exist.
func (d *Dir) Commit(name, branch string, n int) error {
	defer d.Lock(name)()
	refs := d.Refs(name)
	if _, ok := refs["refs/heads/"+branch]; !ok && branch != "main" && refs["refs/heads/main"] != "" {
		if _, err := d.Run(name, nil, "branch", branch, "main"); err != nil {
			return err
		}
		refs = d.Refs(name)
	}
	_, exists := refs["refs/heads/"+branch]
	from := 1
	if exists {
		count, err := d.Run(name, nil, "rev-list", "--count", branch)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(count, &from); err != nil {
			return fmt.Errorf("count the commits of %s: %w", name, err)
		}
		from++
	}
	return d.commits(name, branch, from, n, exists)
}

// commits writes n commits by git fast-import, the first of them numbered from.
func (d *Dir) commits(name, branch string, from, n int, onTop bool) error {
	const firstDate = 1_700_000_000
	r, w := io.Pipe()
	go func() {
		var b bytes.Buffer
		for i := from; i < from+n; i++ {
			b.Reset()
			message := fmt.Sprintf("Commit %d on %s", i, branch)
			fmt.Fprintf(&b, "commit refs/heads/%s\ncommitter Simulator <simulator@example.com> %d +0000\ndata %d\n%s\n",
				branch, firstDate+i, len(message), message)
			if i == from && onTop {
				fmt.Fprintf(&b, "from refs/heads/%s^0\n", branch)
			}
			content := fmt.Sprintf("%s, version %d\n", branch, i)
			fmt.Fprintf(&b, "M 100644 inline files/%02d.txt\ndata %d\n%s\n", i%100, len(content), content)
			if _, err := w.Write(b.Bytes()); err != nil {
				return // git has ended, and says why
			}
		}
		w.Close()
	}()
	_, err := d.Run(name, r, "fast-import", "--quiet")
	r.CloseWithError(io.ErrClosedPipe)
	return err
}

// SetRef makes a ref point at an object, or deletes it where id is empty.
func (d *Dir) SetRef(name, ref, id string) error {
	defer d.Lock(name)()
	args := []string{"update-ref", ref, id}
	if id == "" {
		args = []string{"update-ref", "-d", ref}
	}
	_, err := d.Run(name, nil, args...)
	return err
}

// Protect makes a repository refuse every push to some refs, with a text for the
// one who pushes.
func (d *Dir) Protect(name, says string, refs ...string) error {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	quoted := make([]string, 0, len(refs))
	for _, ref := range refs {
		quoted = append(quoted, quote(ref))
	}
	hook := fmt.Sprintf("#!/bin/sh\ncase \"$1\" in\n%s) printf '%%s\\n' %s >&2; exit 1 ;;\nesac\n", strings.Join(quoted, "|"), quote(says))
	dir := filepath.Join(d.Path(name), "hooks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "update"), []byte(hook), 0o755)
}

// Replicate makes a repository at dir, outside the others, that has the objects
// of name, now and later, and the refs that it has now, which are returned.
func (d *Dir) Replicate(name, dir string) (map[string]string, error) {
	defer d.Lock(name)()
	refs := d.Refs(name)
	replica := &Dir{Root: filepath.Dir(dir), Git: d.Git}
	if err := replica.Init(filepath.Base(dir)); err != nil {
		return nil, err
	}
	head, err := os.ReadFile(filepath.Join(d.Path(name), "HEAD"))
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	for _, c := range Changes(nil, refs) {
		fmt.Fprintf(&packed, "%s %s\n", c.New, c.Ref)
	}
	for file, content := range map[string][]byte{
		"HEAD":                    head,
		"packed-refs":             packed.Bytes(),
		"objects/info/alternates": []byte(filepath.Join(d.Path(name), "objects") + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(file)), content, 0o644); err != nil {
			return nil, err
		}
	}
	return refs, nil
}
