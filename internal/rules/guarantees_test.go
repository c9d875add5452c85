package rules

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Q2: every test that docs/guarantees.md names exists, and every row of its
// tables names one.
func TestGuaranteesNameTests(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := testFunctions(t, root)
	name := regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	for _, match := range name.FindAllStringSubmatch(string(doc), -1) {
		if !known[match[1]] {
			t.Errorf("there is no test %s", match[1])
		}
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| failure") || strings.HasPrefix(line, "| rule") || strings.HasPrefix(line, "| ---") {
			continue
		}
		rows++
		if !name.MatchString(line) {
			t.Errorf("no test is named in %s", line)
		}
	}
	for i := range 12 {
		if id := fmt.Sprintf("| G%d | ", i+1); !strings.Contains(string(doc), id) {
			t.Errorf("no row for %q", id)
		}
	}
	if rows < 20 {
		t.Errorf("%d rows found, want at least 20", rows)
	}
}

func testFunctions(t *testing.T, root string) map[string]bool {
	t.Helper()
	known := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range function.FindAllStringSubmatch(string(source), -1) {
			known[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}
