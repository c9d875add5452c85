package files

import (
	"strings"
)

// Cone is a set of directories of a sparse checkout: each with all that is in it,
// and of those above it, and of the top, the files.
type Cone struct {
	whole, above map[string]bool
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
