package git

import (
	"regexp"
	"testing"
)

// I3: what git.engine comes to on this machine is said in words.
func TestEngines(t *testing.T) {
	for engine, want := range map[string]string{
		EngineAuto:  `^git \d+\.\d+ for clone, fetch and files, go-git for ls-remote and push$`,
		EngineGit:   `^git \d+\.\d+ for everything$`,
		EngineGoGit: `^go-git for everything$`,
	} {
		a, err := New(Config{Engine: engine})
		if err != nil {
			t.Fatal(err)
		}
		if got := a.Engines(); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s: %q, want %s", engine, got, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	a, err := New(Config{})
	if err != nil || a.Engines() != "go-git for everything" {
		t.Errorf("without a git program: %v, want go-git for everything", err)
	}
}
