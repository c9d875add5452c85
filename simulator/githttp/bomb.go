package githttp

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/holdfast-dev/holdfast/simulator/internal/repositories"
)

// What follows is small on the wire and large for who unpacks it. The branch good
// of each is at an innocent commit before.

// CreateDeltaBomb makes a repository with n blobs of size bytes each, which are
// deltas of a few hundred bytes against a common base of 16 MiB of zeros. Their
// ids are made up, so that nobody here has to unpack them; a client that does
// finds objects that the tree does not name.
func (s *Server) CreateDeltaBomb(name string, n int, size int64) error {
	return explain("create a delta bomb "+name, s.platform.packBomb(name, func(p *repositories.Pack) ([]entry, error) {
		const baseSize = 16 << 20
		base, err := p.Blob(baseSize, func() io.Reader { return repositories.Zeros(baseSize) })
		if err != nil {
			return nil, err
		}
		entries := []entry{{Mode: repositories.ModeFile, Name: "base", ID: base}}
		for i := range n {
			delta := repositories.Repeat(baseSize, size, fmt.Sprintf("result %d", i))
			id, err := p.Delta(base, int64(len(delta)), delta, fmt.Sprintf("%s %d", name, i))
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{Mode: repositories.ModeFile, Name: fmt.Sprintf("result%06d", i), ID: id})
		}
		return entries, nil
	}))
}

// CreateZipBomb makes a repository with a file of size zero bytes, of which a
// thousandth is sent.
func (s *Server) CreateZipBomb(name string, size int64) error {
	return explain("create a zip bomb "+name, s.platform.packBomb(name, func(p *repositories.Pack) ([]entry, error) {
		id, err := p.Blob(size, func() io.Reader { return repositories.Zeros(size) })
		return []entry{{Mode: repositories.ModeFile, Name: "zeros", ID: id}}, err
	}))
}

// packBomb makes a repository whose second commit has the entries that fill puts
// into a pack.
func (p *platform) packBomb(name string, fill func(*repositories.Pack) ([]entry, error)) error {
	if err := p.Init(name); err != nil {
		return err
	}
	var pack repositories.Pack
	entries, err := fill(&pack)
	if err != nil {
		return err
	}
	if err := p.WritePack(name, &pack); err != nil {
		return err
	}
	_, err = p.history(name, [][]entry{{readme}, entries})
	return err
}

// CreateTreeBomb makes a repository whose trees are nested so deep, each with
// width times the next one, that a checkout has width to the power of depth files.
// It has depth + 1 small trees.
func (s *Server) CreateTreeBomb(name string, width, depth int) error {
	return explain("create a tree bomb "+name, s.platform.treeBomb(name, width, depth))
}

func (p *platform) treeBomb(name string, width, depth int) error {
	if err := p.Init(name); err != nil {
		return err
	}
	e := entry{Mode: repositories.ModeFile, Content: HostileContent}
	for range depth {
		var entries []entry
		for i := range width {
			e.Name = fmt.Sprintf("d%06d", i)
			entries = append(entries, e)
		}
		id, err := p.WriteTree(name, entries)
		if err != nil {
			return err
		}
		e = entry{Mode: repositories.ModeTree, ID: id}
	}
	e.Name = "top"
	_, err := p.history(name, [][]entry{{readme}, {readme, e}})
	return err
}

// CreateFiles makes a repository with n files of one content, a thousand in each
// directory.
func (s *Server) CreateFiles(name string, n int) error {
	return explain("create "+name, s.platform.files(name, n))
}

func (p *platform) files(name string, n int) error {
	if err := p.Init(name); err != nil {
		return err
	}
	blob, err := p.Write(name, "blob", []byte("one of many\n"))
	if err != nil {
		return err
	}
	top := []entry{readme}
	for i := 0; i < n; i += 1000 {
		d := dir(fmt.Sprintf("d%06d", i/1000))
		for j := i; j < min(n, i+1000); j++ {
			d.Tree = append(d.Tree, entry{Mode: repositories.ModeFile, Name: fmt.Sprintf("f%07d", j), ID: blob})
		}
		top = append(top, d)
	}
	_, err = p.history(name, [][]entry{{readme}, top})
	return err
}

// CreateRefs makes a repository with two commits and n more branches, named
// b0000000 and so on, at the newer one.
func (s *Server) CreateRefs(name string, n int) error {
	return explain("create "+name, s.platform.manyRefs(name, n))
}

func (p *platform) manyRefs(name string, n int) error {
	newest, err := p.history(name, [][]entry{{readme}, {readme, file("file")}})
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(p.Path(name), "packed-refs"))
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, "# pack-refs with: peeled fully-peeled sorted ")
	for i := range n {
		fmt.Fprintf(w, "%s refs/heads/b%07d\n", newest, i)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
