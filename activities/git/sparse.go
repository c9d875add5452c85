package git

import (
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
)

// sparseFile is where a git directory says which files are checked out.
const sparseFile = "info/sparse-checkout"

// conePatterns is the content of sparseFile for directories in cone mode: the
// files at the top, those directly in the parents of each directory, and all that
// is below it.
func conePatterns(dirs []string) (string, error) {
	parents := map[string]bool{}
	whole := map[string]bool{}
	for _, dir := range dirs {
		clean := path.Clean(strings.Trim(dir, "/"))
		if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || strings.ContainsFunc(clean, func(r rune) bool { return r < 0x20 }) {
			return "", refuse(policies.ReasonFormat, "G10/sparse", "a sparse path is no directory inside the repository; give paths like docs or src/api")
		}
		whole[clean] = true
		for parent := path.Dir(clean); parent != "."; parent = path.Dir(parent) {
			parents[parent] = true
		}
	}
	lines := []string{"/*", "!/*/"}
	for _, dir := range sortedKeys(parents) {
		if !whole[dir] && !inside(dir, whole) {
			lines = append(lines, "/"+escapePattern(dir)+"/", "!/"+escapePattern(dir)+"/*/")
		}
	}
	for _, dir := range sortedKeys(whole) {
		if !inside(dir, whole) {
			lines = append(lines, "/"+escapePattern(dir)+"/")
		}
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// inside reports whether a directory lies below one of others.
func inside(dir string, others map[string]bool) bool {
	for parent := path.Dir(dir); parent != "."; parent = path.Dir(parent) {
		if others[parent] {
			return true
		}
	}
	return false
}

func sortedKeys(m map[string]bool) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// escapePattern takes its meaning from what is special in a pattern.
func escapePattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}
