package githttp

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Create makes a bare repository with n commits on the branch main, each of which
// changes one of a hundred files. The commits depend only on n, so that two
// repositories with the same n have the same ids. 20,000 commits take a few
// seconds.
func (s *Server) Create(name string, n int) error {
	p := s.platform
	if err := os.MkdirAll(p.dir(name), 0o755); err != nil {
		return fmt.Errorf("githttp: create %s: %w", name, err)
	}
	if _, err := p.gitIn(name, nil, "init", "--quiet", "--bare", "--initial-branch=main", "."); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	return p.commits(name, "main", 1, n, false)
}

// Commit adds n commits to a branch, as if someone else had pushed them. The
// branch is made from main if it does not exist. It is no effect in the ledger.
func (s *Server) Commit(name, branch string, n int) error {
	p := s.platform
	lock := p.lock(name)
	lock.Lock()
	defer lock.Unlock()
	refs := p.refs(name)
	if _, ok := refs["refs/heads/"+branch]; !ok && branch != "main" && refs["refs/heads/main"] != "" {
		if _, err := p.gitIn(name, nil, "branch", branch, "main"); err != nil {
			return err
		}
		refs = p.refs(name)
	}
	_, exists := refs["refs/heads/"+branch]
	from := 1
	if exists {
		count, err := p.gitIn(name, nil, "rev-list", "--count", branch)
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(count, &from); err != nil {
			return fmt.Errorf("githttp: count the commits of %s: %w", name, err)
		}
		from++
	}
	return p.commits(name, branch, from, n, exists)
}

// Refs returns the refs of a repository and the ids they have.
func (s *Server) Refs(name string) map[string]string { return s.platform.refs(name) }

// commits writes n commits by git fast-import, the first of them numbered from.
func (p *platform) commits(name, branch string, from, n int, onTop bool) error {
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
	_, err := p.gitIn(name, r, "fast-import", "--quiet")
	r.CloseWithError(io.ErrClosedPipe)
	return err
}

// refs reads a repository's refs; a repository that cannot be read has none.
func (p *platform) refs(name string) map[string]string {
	refs := map[string]string{}
	out, err := p.gitIn(name, nil, "for-each-ref", "--format=%(refname) %(objectname)")
	if err != nil {
		return refs
	}
	for line := range strings.Lines(out) {
		if ref, id, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[ref] = id
		}
	}
	return refs
}

// gitIn runs git in a repository and returns what it printed.
func (p *platform) gitIn(name string, stdin io.Reader, args ...string) (string, error) {
	cmd := exec.Command(p.git, append([]string{"-c", "safe.directory=*"}, args...)...)
	cmd.Dir = p.dir(name)
	cmd.Stdin = stdin
	// Nothing of the caller's own Git set-up may reach the repositories.
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("githttp: git %s in %s: %w: %s", args[0], name, err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}
