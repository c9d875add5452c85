package policies

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// P4.13: a status-only failure allocates nothing.
func TestJudgeModelStatusOnlyAllocatesNothing(t *testing.T) {
	now := time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)
	for _, f := range []*Fault{
		{Surface: SurfaceModel, Provider: "openai", Status: 429, Now: now},
		{Surface: SurfaceModel, Provider: "openai", Status: 409, Now: now},
		{Surface: SurfaceModel, Provider: "anthropic", Status: 503, Header: http.Header{"Retry-After": {"7"}, "Content-Type": {"text/html"}}, Now: now},
		{Surface: SurfaceModel, Provider: "openai", Status: 429, Header: http.Header{
			"X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"6m0s"}}, Now: now},
		{Surface: SurfaceModel, Phase: PhaseConnect, NotStarted: true},
	} {
		if n := testing.AllocsPerRun(100, func() { JudgeModel(f) }); n != 0 {
			t.Errorf("status %d: %v allocations, want 0", f.Status, n)
		}
	}
}

func BenchmarkJudgeModelStatusOnly(b *testing.B) {
	f := &Fault{Surface: SurfaceModel, Provider: "openai", Status: 503, Now: time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)}
	b.ReportAllocs()
	for b.Loop() {
		JudgeModel(f)
	}
}

// worstBodies are bodies of 64 KiB that are meant to be slow.
func worstBodies() map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, MaxBody/len(unit)+1)[:MaxBody] }
	nested := `{"message":"` + fill("rate limit ")[:8000] + `"}`
	for range 3 {
		nested = `{"message":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(nested) + `"}`
	}
	return map[string]string{
		"braces":    fill("{"),
		"brackets":  fill("["),
		"quotes":    fill(`"`),
		"slashes":   `{"message":"` + fill(`\\`),
		"angles":    fill("<"),
		"prefixes":  fill("model the context window rate exceed "),
		"hints":     fill("try again in 1 "),
		"retries":   fill("retry-after: "),
		"limits":    fill("limit 1 "),
		"models":    fill("model "),
		"chinese":   fill("上下文"),
		"digits":    fill("4"),
		"statuses":  fill(" status 4"),
		"members":   "{" + fill(`"code":"x",`),
		"messages":  "{" + fill(`"message":"{\"message\":\"rate limit\"}",`),
		"escapes":   `{"message":"` + fill(`\u0061`),
		"halfopen":  fill(`{"`),
		"escaped":   fill(`{\"`),
		"json":      nested,
		"urls":      fill("http 5 http 4 "),
		"retryinfo": fill(`{"@type":"google.rpc.RetryInfo","retryDelay":"1s"}`),
	}
}

func BenchmarkJudgeModelWorstBody(b *testing.B) {
	now := time.Date(2026, 9, 20, 12, 0, 0, 0, time.UTC)
	for name, body := range worstBodies() {
		b.Run(name, func(b *testing.B) {
			f := &Fault{Surface: SurfaceModel, Status: 400, Body: []byte(body), Now: now}
			b.ReportAllocs()
			for b.Loop() {
				JudgeModel(f)
			}
		})
	}
}
