package policies

import "strings"

// MaxTreePath is the longest path of a tree that is written to a disk, in bytes:
// longer ones cannot be opened on any system.
const MaxTreePath = 4096

// SafeTreePath reports whether a path of a Git tree may be written below a
// checkout (G12). Refused are paths that leave the checkout, that some file
// system takes for its .git directory (in any case, with the endings that NTFS
// drops, as the short name git~1, as a stream of it, or with the code points
// that HFS+ does not see), and those with empty components. A backslash counts
// as a separator as well, for it is one on Windows.
func SafeTreePath(path string) bool {
	if path == "" || len(path) > MaxTreePath {
		return false
	}
	for component := range strings.SplitSeq(path, "/") {
		if !SafeTreeName(component) {
			return false
		}
	}
	return true
}

// SafeTreeName is [SafeTreePath] for one entry of a tree.
func SafeTreeName(name string) bool {
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return false
	}
	for part := range strings.SplitSeq(name, `\`) {
		if onlyDots(part) || isDotGit(part) {
			return false
		}
	}
	return true
}

// SafeTreeLink reports whether a symbolic link may have this name: one that Git
// would read its submodules from may not (G12).
func SafeTreeLink(name string) bool {
	least := folded(name)
	short, ok := strings.CutPrefix(least, "gitmod~")
	return least != ".gitmodules" && !strings.HasPrefix(least, "gi7eba~") && !(ok && len(short) == 1)
}

// onlyDots reports whether a name is the directory itself or its parent, or may
// be nothing at all, on a file system that drops a part of it.
func onlyDots(name string) bool {
	name, _, _ = strings.Cut(withoutIgnored(name), ":")
	return strings.Trim(name, ". ") == ""
}

func isDotGit(name string) bool {
	least := folded(name)
	return least == ".git" || least == "git~1"
}

// folded is the least that file systems make of a name: no code points that HFS+
// skips, no stream, no dots and spaces at the end, one case.
func folded(name string) string {
	name, _, _ = strings.Cut(withoutIgnored(name), ":")
	return strings.ToLower(strings.TrimRight(name, ". "))
}

// withoutIgnored removes the code points that HFS+ skips when it compares names.
func withoutIgnored(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
}
