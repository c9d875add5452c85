package policies

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// channelVector is one shared vector of the channel, Git and delivery areas.
type channelVector struct {
	Area   string         `json:"area"`
	ID     string         `json:"id"`
	Input  map[string]any `json:"input"`
	Expect map[string]any `json:"expect"`
	Basis  string         `json:"basis"`
}

// channelVectorArea says what of one area is checked, and what is left out
// with the reason.
type channelVectorArea struct {
	name    string
	checked int
	leftOut map[string]string
	check   func(t *testing.T, v channelVector)
}

func (a channelVectorArea) run(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "vectors", a.name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []channelVector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	checked, leftOut := 0, []string{}
	for _, v := range vectors {
		if a.leftOut[v.ID] != "" {
			leftOut = append(leftOut, v.ID)
			continue
		}
		checked++
		t.Run(a.name+"/"+v.ID, func(t *testing.T) { a.check(t, v) })
	}
	if checked != a.checked {
		t.Errorf("%s: checked %d vectors, want %d", a.name, checked, a.checked)
	}
	slices.Sort(leftOut)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(a.leftOut)), leftOut, cmp.Transformer("empty", func(s []string) []string {
		return append([]string{}, s...)
	})); diff != "" {
		t.Errorf("%s: left out (-want +got):\n%s", a.name, diff)
	}
}

func (v channelVector) number(key string) float64 { return vectorNumber(v.Input[key]) }

func (v channelVector) text(key string) string {
	s, _ := v.Input[key].(string)
	return s
}

func vectorNumber(x any) float64 {
	n, _ := x.(float64)
	return n
}

func vectorMillis(x any) time.Duration {
	return time.Duration(vectorNumber(x) * float64(time.Millisecond))
}

// channelVectorFault turns an error of the vectors, which is shaped like those
// of Node.js, into a fault.
func channelVectorFault(surface Surface, op Operation, x any) Fault {
	f := Fault{Surface: surface, Operation: op, Now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	e, ok := x.(map[string]any)
	if !ok {
		return f
	}
	f.Code, _ = e["code"].(string)
	f.Syscall, _ = e["syscall"].(string)
	f.Message, _ = e["message"].(string)
	f.Type, _ = e["name"].(string)
	if kind, ok := e["kind"].(string); ok {
		f.Type = kind
	}
	f.Status = channelVectorStatus(e)
	if e["parameters"] != nil || e["response"] != nil || e["error"] != nil && f.Type != "HttpError" {
		f.Body, _ = json.Marshal(e)
	}
	beneath := []any{e["cause"], e["reason"]}
	if list, ok := e["errors"].([]any); ok {
		beneath = append(beneath, list...)
	}
	if f.Type == "HttpError" {
		beneath = append(beneath, e["error"])
	}
	for _, cause := range beneath {
		if cause != nil {
			f.Causes = append(f.Causes, channelVectorFault(surface, op, cause))
		}
	}
	return f
}

func channelVectorStatus(e map[string]any) int {
	for _, key := range []string{"status", "statusCode", "error_code"} {
		switch status := e[key].(type) {
		case float64:
			return int(status)
		case string:
			if n, ok := ParseStatus(status); ok {
				return n
			}
		}
	}
	return 0
}

// channelVectorCalls plays a request that always fails the same way through
// an envelope and counts the requests.
func channelVectorCalls(v Verdict, e Envelope) int {
	n := 1
	for v.RetrySame && e.Allows(n+1) {
		n++
	}
	return n
}

func wantVerdictRetry(t *testing.T, v Verdict, want bool) {
	t.Helper()
	if v.RetrySame != want {
		t.Errorf("RetrySame = %v, want %v (%+v)", v.RetrySame, want, v)
	}
}
