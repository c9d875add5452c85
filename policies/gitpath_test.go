package policies

import (
	"path/filepath"
	"strings"
	"testing"
)

// G12: what a tree may not name, in every form that some file system takes for
// it, and that what looks like it but is not stays allowed.
func TestSafeTreePath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"a": true, "dir/sub/file.txt": true, ".gitignore": true, ".gitmodules": true, ".github/workflows/x.yml": true,
		"git": true, "git~2": true, "git~10": true, ".git~1": true, ".gitx": true, "a.git": true, "repo.git/config": true,
		"..a": true, "a..": true, "a/..b": true, "a b ": true, "a:b": true, "...x": true, `system\x2dcryptsetup.slice`: true,
		"ｇｉｔ": true, ".ｇｉｔ": true, ".gıt": true, "．git": true, "\xff\xfe": true, "new\nline": true,

		"": false, "/": false, "/etc/passwd": false, "a/": false, "a//b": false, "./a": false, "a/.": false,
		"..": false, "../a": false, "a/../../b": false, "a/..": false, "...": false, ".. ": false, ". .": false, " ": false, "..:x": false,
		".git": false, ".git/config": false, "a/.git/hooks/post-checkout": false, ".GIT/config": false, ".Git": false, "a/.gIt": false,
		".git.": false, ".git ": false, ".git . .": false, "git~1": false, "GIT~1/config": false, "git~1.": false,
		".git:stream": false, ".git::$INDEX_ALLOCATION/config": false, ".GIT :x": false, "git~1:$DATA": false,
		`..\a`: false, `a\..\b`: false, `.git\config`: false, `a\.GIT`: false, `\a`: false, `a\`: false, `a\\b`: false,
		".g\u200cit": false, "\u200e.git": false, ".gi\u202et/config": false, ".git\u206f": false, "\ufeff.GIT": false, ".g\u200cit.": false, ".\u200dg\u200ci\u200bt": true,
		"a\x00b":                             false,
		strings.Repeat("a", MaxTreePath):     true,
		strings.Repeat("a", MaxTreePath+1):   false,
		strings.Repeat("d/", 2000) + "a":     true,
		strings.Repeat("d/", 2000) + ".git":  false,
		strings.Repeat("../", 1000) + "a":    false,
		strings.Repeat("a/../", 300) + ".it": false,
	} {
		if got := SafeTreePath(path); got != want {
			t.Errorf("SafeTreePath(%.60q) = %v, want %v", path, got, want)
		}
	}
}

func TestSafeTreeLink(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"a": true, ".gitignore": true, "gitmodules": true, "gitmod~10": true, ".gitmodules2": true,
		".gitmodules": false, ".GITmodules": false, ".gitmodules .": false, ".gitmodules:$DATA": false, "gitmod~1": false, "GITMOD~4": false,
		"gi7eba~1": false, ".git\u200cmodules": false, ".gitmodules\u200c.": false,
	} {
		if got := SafeTreeLink(name); got != want {
			t.Errorf("SafeTreeLink(%q) = %v, want %v", name, got, want)
		}
	}
}

// G12: what is accepted stays below the root that it is joined to, and no
// component of it folds to .git.
func FuzzSafeTreePath(f *testing.F) {
	for _, seed := range []string{
		"a/b", "../x", ".git", ".GIT./x", "git~1", ".g\u200cit/config", `a\..\..\b`, "a//b", "/x", ".git::$INDEX_ALLOCATION", "a/./b", "... /x", "\xff/..",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if !SafeTreePath(path) {
			return
		}
		for _, system := range []string{path, strings.ReplaceAll(path, `\`, "/")} {
			joined := filepath.Join("/srv/checkout", filepath.FromSlash(system))
			if rel, err := filepath.Rel("/srv/checkout", joined); err != nil || rel == "." || !filepath.IsLocal(rel) {
				t.Errorf("%q is %q, which is outside", path, joined)
			}
			for _, component := range strings.Split(system, "/") {
				if seen := worstFold(component); seen == ".git" || seen == "git~1" || seen == "" || seen == "." || seen == ".." {
					t.Errorf("%q has the component %q, which is %q", path, component, seen)
				}
			}
		}
	})
}

// hfsIgnored are the code points that HFS+ skips, one by one.
var hfsIgnored = strings.NewReplacer(
	"\u200c", "", "\u200d", "", "\u200e", "", "\u200f", "", "\u202a", "", "\u202b", "", "\u202c", "", "\u202d", "", "\u202e", "",
	"\u206a", "", "\u206b", "", "\u206c", "", "\u206d", "", "\u206e", "", "\u206f", "", "\ufeff", "",
)

// worstFold is the worst that file systems together may make of a name: no stream,
// no code points that are skipped, no dots and spaces at the end unless nothing
// else is there, one case.
func worstFold(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.ToLower(hfsIgnored.Replace(name))
	if trimmed := strings.TrimRight(name, ". "); trimmed != "" {
		return trimmed
	}
	return strings.TrimRight(name, " ")
}
