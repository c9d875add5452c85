package worktree

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
)

// Cone is a set of directories of a sparse checkout: each with all that is in it,
// and of those above it, and of the top, the files.
type Cone struct {
	whole, above map[string]bool
}

// NewCone makes the cone of some directories. It fails for a path that no tree
// may have.
func NewCone(dirs []string) (*Cone, error) {
	c := &Cone{whole: map[string]bool{}, above: map[string]bool{}}
	for _, dir := range dirs {
		dir = strings.Trim(dir, "/")
		if !policies.SafeTreePath(dir) || strings.ContainsAny(dir, "\n\r") {
			return nil, ErrSparse
		}
		c.add(dir)
	}
	return c, nil
}

func (c *Cone) add(dir string) {
	c.whole[dir] = true
	for i := strings.LastIndexByte(dir, '/'); i > 0; i = strings.LastIndexByte(dir[:i], '/') {
		c.above[dir[:i]] = true
	}
}

// holds reports whether a file is checked out.
func (c *Cone) holds(path string) bool {
	if c == nil {
		return true
	}
	i := strings.LastIndexByte(path, '/')
	if i < 0 || c.above[path[:i]] {
		return true
	}
	for ; i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if c.whole[path[:i]] {
			return true
		}
	}
	return false
}

// special are the characters that patterns take for more than themselves.
var (
	special   = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)
	unspecial = strings.NewReplacer(`\\`, `\`, `\*`, `*`, `\?`, `?`, `\[`, `[`)
)

// Patterns are the lines of info/sparse-checkout, as git writes them.
func (c *Cone) Patterns() string {
	dirs := map[string]bool{}
	for dir := range c.above {
		dirs[dir] = true
	}
	for dir := range c.whole {
		dirs[dir] = true
	}
	sorted := make([]string, 0, len(dirs))
	for dir := range dirs {
		sorted = append(sorted, dir)
	}
	slices.Sort(sorted)
	out := "/*\n!/*/\n"
	for _, dir := range sorted {
		pattern := "/" + special.Replace(dir) + "/"
		out += pattern + "\n"
		if !c.whole[dir] {
			out += "!" + pattern + "*/\n"
		}
	}
	return out
}

// ReadCone reads the lines of info/sparse-checkout. Patterns that are not those
// of cone mode are ErrSparse.
func ReadCone(patterns string) (*Cone, error) {
	rest, ok := strings.CutPrefix(patterns, "/*\n!/*/\n")
	if !ok {
		return nil, ErrSparse
	}
	c := &Cone{whole: map[string]bool{}, above: map[string]bool{}}
	for line := range strings.SplitSeq(strings.TrimRight(rest, "\n"), "\n") {
		if line == "" {
			continue
		}
		inner, not := strings.CutPrefix(line, "!")
		if !not {
			dir, ok := within(inner, "/", "/")
			if !ok {
				return nil, ErrSparse
			}
			c.add(dir)
			continue
		}
		dir, ok := within(inner, "/", "/*/")
		if !ok || !c.whole[dir] {
			return nil, ErrSparse
		}
		delete(c.whole, dir)
		c.above[dir] = true
	}
	return c, nil
}

// within is the directory that a pattern names between two ends.
func within(pattern, begin, end string) (dir string, ok bool) {
	pattern, begins := strings.CutPrefix(pattern, begin)
	pattern, ends := strings.CutSuffix(pattern, end)
	dir = unspecial.Replace(pattern)
	return dir, begins && ends && dir != "" && special.Replace(dir) == pattern
}
