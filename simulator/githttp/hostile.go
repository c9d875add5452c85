package githttp

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator/internal/repositories"
)

// HostileContent is what the files of hostile repositories hold, so that a test
// can look for it where it must not be.
const HostileContent = "written by a hostile repository\n"

// Hostile is a repository that no honest client makes: its newest commit would
// have a careless client write outside the checkout, or into its .git.
type Hostile struct {
	Name string
	// Refused says that the newest commit cannot be checked out at all. Of the
	// others a client may check out what is harmless.
	Refused bool
	// commits are the trees of its history; outside is the absolute path of a
	// directory.
	commits func(outside string) [][]entry
}

type entry = repositories.Entry

// Hostiles are the kinds of hostile repositories. Where one climbs out of the
// checkout by "..", it aims at a directory "outside" beside the checkout.
func Hostiles() []Hostile {
	var all []Hostile
	for _, name := range forbiddenNames {
		all = append(all, refused("entry "+name, dir(name, file("config"), dir("hooks", program("post-checkout")))))
	}
	all = append(all,
		refused("new hook", dir(".git", dir("hooks", program("post-checkout")))),
		refused("file named ..", file("..")),
		refused("file named .", file(".")),
		refused("directory ..", dir("..", dir("outside", file("file")))),
		refused("slashes in a name", file("../outside/file")),
		refused("absolute name", file("/outside/file")),
		refused("slash to .git", file(".git/config")),
		refused("file .git", file(".git")),
		refused("symlink .git", link(".git", "../outside")),
		refused("submodule .git", entry{Mode: repositories.ModeSubmodule, Name: ".git", ID: strings.Repeat("1", 40)}),
		refused(".git below a directory", dir("sub", dir(".git", file("config")))),
		refused("symlink .gitmodules", link(".gitmodules", "../outside/file")),
		refused("name that is too long", file(strings.Repeat("n", 300))),
		refused("path that is too deep", nested(3000)),
		Hostile{"symlink and directory of one name", false, func(outside string) [][]entry {
			return [][]entry{{readme}, {readme, link("a", "../outside"), dir("a", file("file"))}}
		}},
		Hostile{"directory and symlink of one name", false, func(outside string) [][]entry {
			return [][]entry{{readme}, {readme, dir("a", file("file")), link("a", "../outside")}}
		}},
		Hostile{"symlink into .git and directory of one name", false, func(outside string) [][]entry {
			return [][]entry{{readme}, {readme, link("a", ".git/hooks"), dir("a", program("post-checkout"))}}
		}},
		Hostile{"symlink, then directory", false, func(outside string) [][]entry {
			return [][]entry{{readme, link("a", "../outside")}, {readme, dir("a", file("file"))}}
		}},
		Hostile{"absolute symlink, then directory", false, func(outside string) [][]entry {
			return [][]entry{{readme, link("a", outside)}, {readme, dir("a", file("file"))}}
		}},
		Hostile{"symlink, then file", false, func(outside string) [][]entry {
			return [][]entry{{readme, link("a", "../outside/file")}, {readme, file("a")}}
		}},
		Hostile{"symlink of a parent, then directory", false, func(outside string) [][]entry {
			return [][]entry{{readme, link("a", "../outside")}, {readme, dir("a", dir("b", dir("c", file("file"))))}}
		}},
		Hostile{"directory, then symlink", false, func(outside string) [][]entry {
			return [][]entry{{readme, dir("a", file("file"))}, {readme, link("a", "../outside")}}
		}},
		Hostile{"absolute symlink", false, func(outside string) [][]entry {
			return [][]entry{{readme}, {readme, link("a", outside+"/file")}}
		}},
		Hostile{"symlink into .git, then file", false, func(outside string) [][]entry {
			return [][]entry{{readme, link("a", ".git/config")}, {readme, file("a")}}
		}},
		Hostile{"backslashes in names", false, func(string) [][]entry {
			return [][]entry{{readme}, {file("..\\outside\\file"), file("a\\..\\..\\outside\\file"), readme}}
		}},
		Hostile{"submodules", false, hostileModules},
	)
	return all
}

// forbiddenNames stand for .git or for a parent somewhere: plainly, on file
// systems that fold case, that ignore some characters of Unicode (HFS+), or that
// know short names, streams, trailing dots and backslashes (NTFS).
var forbiddenNames = []string{
	".git", ".GIT", ".Git", "git~1", "GIT~1",
	".g\u200cit", "\u200d.git", ".git\ufeff", ".G\u206aIT",
	".git ", ".git.", ".git...", ".git::$INDEX_ALLOCATION", ".git\\hooks",
}

var readme = entry{Mode: repositories.ModeFile, Name: "README", Content: "hello\n"}

// refused has an innocent commit and then one with an entry that must not be.
func refused(name string, e entry) Hostile {
	return Hostile{name, true, func(string) [][]entry { return [][]entry{{readme}, {e, readme}} }}
}

func file(name string) entry {
	return entry{Mode: repositories.ModeFile, Name: name, Content: HostileContent}
}

func program(name string) entry {
	return entry{Mode: repositories.ModeExecutable, Name: name, Content: "#!/bin/sh\necho '" + strings.TrimSpace(HostileContent) + "' > \"$PWD/../outside/ran\"\n"}
}

func link(name, target string) entry {
	return entry{Mode: repositories.ModeSymlink, Name: name, Content: target}
}

func dir(name string, entries ...entry) entry {
	return entry{Mode: repositories.ModeTree, Name: name, Tree: entries}
}

func nested(depth int) entry {
	e := file("file")
	for range depth {
		e = dir("d", e)
	}
	return e
}

// hostileModules are submodules whose URLs and paths are options, commands and
// places outside.
func hostileModules(outside string) [][]entry {
	modules := fmt.Sprintf(`[submodule "a"]
	path = sub
	url = --upload-pack=touch %[1]s/ran
	update = !touch %[1]s/ran
[submodule "../../outside"]
	path = ../outside/module
	url = ext::touch %[1]s/ran
[submodule "c"]
	path = -c
	url = -u./payload
`, outside)
	return [][]entry{{readme}, {
		{Mode: repositories.ModeFile, Name: ".gitmodules", Content: modules},
		readme,
		{Mode: repositories.ModeSubmodule, Name: "sub", ID: strings.Repeat("1", 40)},
	}}
}

// CreateHostile makes a hostile repository. Its branch main is at the newest
// commit, its branch good at the one before, which can be checked out. outside is
// the absolute path of the directory "outside" that will be beside the checkout.
func (s *Server) CreateHostile(name string, h Hostile, outside string) error {
	_, err := s.platform.history(name, h.commits(outside))
	return explain("create a hostile "+name, err)
}

// CreateSymlinks makes an honest repository with symbolic links: to a file, to a
// directory, upward inside, and to nothing.
func (s *Server) CreateSymlinks(name string) error {
	tree := []entry{
		readme,
		link("dangling", "nothing"),
		link("link", "README"),
		link("linkdir", "sub"),
		dir("sub", entry{Mode: repositories.ModeExecutable, Name: "run", Content: "#!/bin/sh\n"}, link("up", "../README")),
	}
	_, err := s.platform.history(name, [][]entry{{readme}, tree})
	return explain("create "+name, err)
}

// history makes a repository whose commits have the trees; the newest is main,
// the one before good.
func (p *platform) history(name string, trees [][]entry) (newest string, err error) {
	if err := p.Init(name); err != nil {
		return "", err
	}
	for i, entries := range trees {
		tree, err := p.WriteTree(name, entries)
		if err != nil {
			return "", err
		}
		parent := newest
		if newest, err = p.WriteCommit(name, tree, parent, fmt.Sprintf("Commit %d", i+1)); err != nil {
			return "", err
		}
		if i == len(trees)-1 && parent != "" {
			err = p.PointAt(name, "refs/heads/good", parent)
		}
		if err != nil {
			return "", err
		}
	}
	return newest, p.PointAt(name, "refs/heads/main", newest)
}
