package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/holdfast-dev/holdfast/"

// pkg is one package of the module as "go list" tells of it.
type pkg struct {
	Dir, ImportPath, Name              string
	GoFiles                            []string
	Imports, TestImports, XTestImports []string
}

// path is the package's import path without the module's.
func (p pkg) path() string { return strings.TrimPrefix(p.ImportPath, module) }

// packages lists the packages of the module by their path in it, once.
var packages = sync.OnceValues(func() (map[string]pkg, error) {
	list := exec.Command("go", "list", "-json=Dir,ImportPath,Name,GoFiles,Imports,TestImports,XTestImports", module+"...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.path()] = p
	}
})

func load(t *testing.T) map[string]pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("go list knows %d packages only", len(all))
	}
	return all
}

// ours is the path of an import within the module, if it is of the module.
func ours(imported string) (path string, ok bool) { return strings.CutPrefix(imported, module) }

func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// in reports whether path is one of roots or lies beneath one.
func in(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// Imports run one way. Each rule says whom it binds, and what these may import
// when they are built into the product.
func TestImports(t *testing.T) {
	t.Parallel()
	all := load(t)
	for _, rule := range []struct {
		name    string
		binds   []string
		allowed func(imported string) bool
	}{
		{"contract imports the standard library only", []string{"contract"}, standard},
		{"policies import the standard library, and profiles a YAML parser, only", []string{"policies"}, func(imported string) bool {
			path, own := ours(imported)
			return standard(imported) || imported == "go.yaml.in/yaml/v3" || own && in(path, "policies")
		}},
		{"failure imports contract and policies of ours", []string{"failure"}, only("contract", "policies")},
		{"client and workflows never import activities, nor what touches the outside", []string{"client", "workflows"},
			only("contract", "failure", "policies", "internal/transcript")},
		{"activities import no workflows, workers or clients", []string{"activities"},
			only("activities", "contract", "failure", "policies", "internal/attempt", "internal/redact", "internal/sse", "internal/transcript")},
		{"simulator imports nothing of ours", []string{"simulator"}, only("simulator")},
		{"conformance imports contract and simulator of ours", []string{"conformance"}, only("contract", "simulator")},
	} {
		bound := 0
		for path, p := range all {
			if !in(path, rule.binds...) {
				continue
			}
			bound++
			for _, imported := range p.Imports {
				if !rule.allowed(imported) {
					t.Errorf("%s: %s imports %s", rule.name, path, imported)
				}
			}
		}
		if bound < len(rule.binds) {
			t.Errorf("%s: binds %d packages only", rule.name, bound)
		}
	}
	for _, imported := range all["policies"].Imports {
		if !standard(imported) {
			t.Errorf("policies itself imports the standard library only, not %s", imported)
		}
	}
}

// only allows what is not of ours, and of ours what is named.
func only(roots ...string) func(string) bool {
	return func(imported string) bool {
		path, own := ours(imported)
		return !own || in(path, roots...)
	}
}

// reach reports which packages import, themselves or through others of ours,
// what is wanted. Tests count where tests is set, but only a package's own.
func reach(all map[string]pkg, wanted func(imported string) bool, tests bool) map[string]bool {
	known := map[string]bool{}
	var reaches func(path string) bool
	imports := func(list []string) bool {
		return slices.ContainsFunc(list, func(imported string) bool {
			path, own := ours(imported)
			return wanted(imported) || own && reaches(path)
		})
	}
	reaches = func(path string) bool {
		found, ok := known[path]
		if !ok {
			known[path] = false
			found = imports(all[path].Imports)
			known[path] = found
		}
		return found
	}
	out := map[string]bool{}
	for path, p := range all {
		if reaches(path) || tests && (imports(p.TestImports) || imports(p.XTestImports)) {
			out[path] = true
		}
	}
	return out
}

// A cold build of the embedded server takes minutes, so few packages link it,
// their tests included.
func TestWhoLinksTheServer(t *testing.T) {
	t.Parallel()
	got := reach(load(t), func(imported string) bool {
		return in(imported, "go.temporal.io/server", "github.com/temporalio/ui-server/v2")
	}, true)
	allowed := []string{"cmd/standalone", "internal/demo", "internal/e2e", "internal/standalone", "internal/temporalserver"}
	for path := range got {
		if !slices.Contains(allowed, path) {
			t.Errorf("%s links the embedded server; only %s may", path, strings.Join(allowed, ", "))
		}
	}
	if !got["internal/temporalserver"] || !got["internal/e2e"] {
		t.Errorf("the rule sees only %v", got)
	}
}

// The product talks to the outside, never to what stands in for it; only the
// standalone server and the demo bring their own.
func TestWhoImportsTheSimulator(t *testing.T) {
	t.Parallel()
	got := reach(load(t), func(imported string) bool {
		path, own := ours(imported)
		return own && in(path, "simulator", "conformance", "internal/activitytest", "internal/enginetest", "internal/gitbench")
	}, false)
	for path := range got {
		if !in(path, "simulator", "conformance", "internal/enginetest", "internal/gitbench", "internal/standalone", "internal/demo", "cmd/standalone") {
			t.Errorf("%s imports a simulator, or what is for tests, into the product", path)
		}
	}
	if !got["internal/demo"] {
		t.Errorf("the rule sees only %v", got)
	}
}

// Every package that can be imported says in its package comment what it holds.
func TestPackageComments(t *testing.T) {
	t.Parallel()
	for path, p := range load(t) {
		if p.Name == "main" || len(p.GoFiles) == 0 {
			continue
		}
		documented := slices.ContainsFunc(p.GoFiles, func(name string) bool {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Error(err)
				return true
			}
			return says(f, p.Name)
		})
		if !documented {
			t.Errorf("%s has no comment that begins with %q", path, "Package "+p.Name)
		}
	}
}

func says(f *ast.File, name string) bool {
	return f.Doc != nil && strings.HasPrefix(f.Doc.Text(), "Package "+name+" ")
}
