package policies

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vector is one known pair of input and result; testdata/vectors holds them,
// one file per area.
type vector struct {
	Area   string          `json:"area"`
	ID     string          `json:"id"`
	Input  json.RawMessage `json:"input"`
	Expect json.RawMessage `json:"expect"`
	Basis  string          `json:"basis"`
}

// runVectors checks every row of an area but those left out, and asserts that
// exactly so many were checked and exactly those were left out. leftOut maps
// the id of a row to the reason why it does not bind.
func runVectors(t *testing.T, area string, checked int, leftOut map[string]string, check func(t *testing.T, v vector)) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "vectors", area+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []vector
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatalf("%s: %v", area, err)
	}
	done := 0
	var skipped []string
	for _, v := range rows {
		if leftOut[v.ID] != "" {
			skipped = append(skipped, v.ID)
			continue
		}
		done++
		t.Run(v.ID, func(t *testing.T) { check(t, v) })
	}
	if done != checked {
		t.Errorf("%s: checked %d vectors, want %d", area, done, checked)
	}
	slices.Sort(skipped)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(leftOut)), skipped); diff != "" {
		t.Errorf("%s: vectors left out (-want +got):\n%s", area, diff)
	}
}

func decode[T any](t *testing.T, raw json.RawMessage) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}
