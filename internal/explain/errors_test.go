package explain_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/internal/explain"
	"github.com/holdfast-dev/holdfast/policies"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// recorder is a judge that keeps what it was asked.
type recorder struct {
	faults  []policies.Fault
	verdict policies.Verdict
}

func (r *recorder) judge(f *policies.Fault) policies.Verdict {
	r.faults = append(r.faults, *f)
	return r.verdict
}

func lines(t *testing.T, in string, judge explain.Judge) (out []string, bad int) {
	t.Helper()
	var buf bytes.Buffer
	bad, err := explain.Errors(strings.NewReader(in), &buf, judge, now)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(buf.String(), "\n"), "\n"), bad
}

// I2: the names of the input are those of the fault.
func TestErrorsInput(t *testing.T) {
	t.Parallel()
	code := 128
	tests := []struct {
		name, line string
		want       policies.Fault
	}{
		{
			"everything",
			`{"surface":"git","provider":"p","status":429,"headers":{"retry-after":"3","X-A":["1","2"],"x-n":5},"body":"text","message":"m","code":"ECONNRESET","type":"t","syscall":"connect","phase":"body","operation":"fetch","argv":["git","fetch"],"stderr":"fatal","exit_code":128,"termination":"signal","details":["d"],"now":"2026-05-06T07:08:09Z"}`,
			policies.Fault{
				Surface: policies.SurfaceGit, Provider: "p", Status: 429,
				Header: http.Header{"Retry-After": {"3"}, "X-A": {"1", "2"}, "X-N": {"5"}}, Body: []byte("text"),
				Message: "m", Code: "ECONNRESET", Type: "t", Syscall: "connect", Phase: policies.PhaseBody, Operation: policies.OpFetch,
				Argv: []string{"git", "fetch"}, Stderr: "fatal", ExitCode: &code, Termination: "signal", Details: []string{"d"},
				Now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC),
			},
		},
		{"the model surface and the time are assumed", `{}`, policies.Fault{Surface: policies.SurfaceModel, Now: now}},
		{"a JSON body", `{"body":{"error": {"code": 1}}}`, policies.Fault{Surface: policies.SurfaceModel, Body: []byte(`{"error": {"code": 1}}`), Now: now}},
		{"null is not known", `{"status":null,"headers":null,"body":null,"exit_code":null,"now":null}`, policies.Fault{Surface: policies.SurfaceModel, Now: now}},
		{"headers that are no object", `{"headers":["retry-after: 3"]}`, policies.Fault{Surface: policies.SurfaceModel, Now: now}},
		{"headers as text", `{"headers":"retry-after: 3"}`, policies.Fault{Surface: policies.SurfaceModel, Now: now}},
		{"a code as a number", `{"code":1113}`, policies.Fault{Surface: policies.SurfaceModel, Code: "1113", Now: now}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var r recorder
			if out, bad := lines(t, tt.line+"\n", r.judge); bad != 0 {
				t.Fatalf("refused: %s", out)
			}
			if diff := cmp.Diff([]policies.Fault{tt.want}, r.faults); diff != "" {
				t.Errorf("fault (-want +got):\n%s", diff)
			}
		})
	}
}

// I2: the names and forms of the output.
func TestErrorsOutput(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		line    string
		verdict policies.Verdict
		want    string
	}{
		{
			"a floor", `{"status":429}`,
			policies.Verdict{Reason: policies.ReasonRateLimit, RetrySame: true, Failover: true, Rule: "P4.1/rate_limit", Floor: policies.Floor{Wait: 1500*time.Millisecond + 1, Source: policies.FloorText}},
			`{"reason":"rate_limit","retry_same":true,"failover":true,"permanent":false,"effect":"none","floor_ms":1501,"floor_infinite":false,"floor_source":"text","rule":"P4.1/rate_limit"}`,
		},
		{
			"a floor of zero", `{}`,
			policies.Verdict{Reason: policies.ReasonRateLimit, Rule: "r", Floor: policies.Floor{Source: policies.FloorRetryAfter}},
			`{"reason":"rate_limit","retry_same":false,"failover":false,"permanent":false,"effect":"none","floor_ms":0,"floor_infinite":false,"floor_source":"retry-after","rule":"r"}`,
		},
		{
			"an infinite floor", `{}`,
			policies.Verdict{Reason: policies.ReasonRateLimit, Rule: "r", Floor: policies.Floor{Infinite: true, Source: policies.FloorRetryAfterMS}},
			`{"reason":"rate_limit","retry_same":false,"failover":false,"permanent":false,"effect":"none","floor_ms":null,"floor_infinite":true,"floor_source":"retry-after-ms","rule":"r"}`,
		},
		{
			"no floor, an effect that the model surface does not have", `{"surface":"model"}`,
			policies.Verdict{Reason: policies.ReasonFormat, Permanent: true, Effect: policies.EffectUnknown, Rule: "r"},
			`{"reason":"format","retry_same":false,"failover":false,"permanent":true,"effect":"none","floor_ms":null,"floor_infinite":false,"floor_source":null,"rule":"r"}`,
		},
		{
			"an effect", `{"surface":"telegram"}`,
			policies.Verdict{Reason: policies.ReasonTimeout, Effect: policies.EffectUnknown, Rule: "C2.5/<&>"},
			`{"reason":"timeout","retry_same":false,"failover":false,"permanent":false,"effect":"unknown","floor_ms":null,"floor_infinite":false,"floor_source":null,"rule":"C2.5/<&>"}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := recorder{verdict: tt.verdict}
			out, bad := lines(t, tt.line, r.judge) // no newline at the end of the input
			if bad != 0 || len(out) != 1 {
				t.Fatalf("%d bad, %d lines", bad, len(out))
			}
			if diff := cmp.Diff(tt.want, out[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// I2: a bad line is answered with its number and what is wrong; the others are
// answered as if it were not there.
func TestErrorsBadLines(t *testing.T) {
	t.Parallel()
	tests := []struct{ line, want string }{
		{`{"status":429`, "not JSON at byte 13: unexpected end of JSON input"},
		{`[]`, "want a JSON object"},
		{`null`, "want a JSON object, not null"},
		{``, "the line is empty; want a JSON object"},
		{`{"stauts":429}`, `unknown key "stauts" (did you mean "status"?)`},
		{`{"completely_else":1}`, `unknown key "completely_else"`},
		{`{"status":"429"}`, "status: want a whole number such as 429"},
		{`{"status":42.9}`, "status: want a whole number such as 429"},
		{`{"status":-1}`, "status: want a whole number such as 429"},
		{`{"surface":"telegarm"}`, `surface: unknown word "telegarm" (did you mean "telegram"?); want one of model, discord, telegram, git, delivery`},
		{`{"phase":"late"}`, `phase: unknown word "late"; want one of connect, headers, first_event, body`},
		{`{"message":{}}`, "message: want a string"},
		{`{"argv":[{}]}`, "argv: want a string or a list of strings"},
		{`{"headers":{"a":{}}}`, `headers: "a": want a string or a list of strings`},
		{`{"exit_code":"x"}`, "exit_code: want a whole number such as 128"},
		{`{"now":"yesterday"}`, `now: want a time such as "2026-01-02T15:04:05Z"`},
		{`{"now":5}`, `now: want a time such as "2026-01-02T15:04:05Z"`},
	}
	var in strings.Builder
	for _, tt := range tests {
		in.WriteString("{}\n" + tt.line + "\r\n")
	}
	r := recorder{verdict: policies.Verdict{Rule: "r"}}
	out, bad := lines(t, in.String(), r.judge)
	if bad != len(tests) || len(out) != 2*len(tests) {
		t.Fatalf("%d bad of %d lines, want %d of %d", bad, len(out), len(tests), 2*len(tests))
	}
	for i, tt := range tests {
		if !strings.Contains(out[2*i], `"rule":"r"`) {
			t.Errorf("line %d: %s", 2*i+1, out[2*i])
		}
		var got struct {
			Line  int    `json:"line"`
			Error string `json:"error"`
		}
		if err := json.Unmarshal([]byte(out[2*i+1]), &got); err != nil {
			t.Fatal(err)
		}
		if got.Line != 2*i+2 || got.Error != tt.want {
			t.Errorf("%s\n got %d: %s\nwant %d: %s", tt.line, got.Line, got.Error, 2*i+2, tt.want)
		}
	}
}

// I2: lines of a mebibyte work; the body is cut where a worker cuts it; a line
// above MaxLine is a bad line and hurts no other.
func TestErrorsLongLines(t *testing.T) {
	t.Parallel()
	mebi := `{"status":503,"body":"` + strings.Repeat("x", 1<<20) + `"}`
	huge := `{"body":"` + strings.Repeat("x", explain.MaxLine) + `"}`
	r := recorder{verdict: policies.Verdict{Rule: "r"}}
	out, bad := lines(t, mebi+"\n"+huge+"\n"+mebi+"\n", r.judge)
	if bad != 1 || len(out) != 3 || len(r.faults) != 2 {
		t.Fatalf("%d bad of %d lines, %d judged", bad, len(out), len(r.faults))
	}
	if got := len(r.faults[1].Body); got != policies.MaxBody {
		t.Errorf("body of %d bytes, want %d", got, policies.MaxBody)
	}
	if want := fmt.Sprintf(`{"line":2,"error":"the line is longer than %d bytes"}`, explain.MaxLine); out[1] != want {
		t.Errorf("got %s, want %s", out[1], want)
	}
}

func TestErrorsNoInput(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	bad, err := explain.Errors(strings.NewReader(""), &buf, policies.Judge, now)
	if bad != 0 || err != nil || buf.Len() != 0 {
		t.Errorf("%d, %v, %q", bad, err, buf.String())
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Read([]byte) (int, error)  { return 0, errBroken }
func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestErrorsBrokenPipes(t *testing.T) {
	t.Parallel()
	r := recorder{}
	if _, err := explain.Errors(brokenPipe{}, &bytes.Buffer{}, r.judge, now); !errors.Is(err, errBroken) {
		t.Errorf("reading: %v", err)
	}
	if _, err := explain.Errors(strings.NewReader("{}\n"), brokenPipe{}, r.judge, now); !errors.Is(err, errBroken) {
		t.Errorf("writing: %v", err)
	}
}

// The surfaces whose judges need no injection are judged for real.
func TestErrorsWithTheRealJudge(t *testing.T) {
	t.Parallel()
	out, bad := lines(t, `{"surface":"telegram","operation":"send","status":429,"body":{"parameters":{"retry_after":7}}}`, policies.Judge)
	var got map[string]any
	if err := json.Unmarshal([]byte(out[0]), &got); err != nil || bad != 0 {
		t.Fatal(err, bad)
	}
	want := map[string]any{"reason": "rate_limit", "effect": "not_sent", "floor_ms": 7000.0, "floor_source": "body"}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s: %v, want %v", key, got[key], value)
		}
	}
}

// I2: 10,000 lines belong under two seconds; each op here is one line.
func BenchmarkErrors(b *testing.B) {
	line := `{"surface":"telegram","operation":"send","status":429,"headers":{"retry-after":"3","content-type":"application/json"},"body":{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 3","parameters":{"retry_after":3}},"now":"2026-01-02T03:04:05Z"}` + "\n"
	in := strings.NewReader(strings.Repeat(line, b.N))
	b.ReportAllocs()
	b.ResetTimer()
	var out bytes.Buffer
	if bad, err := explain.Errors(in, &out, policies.Judge, now); bad != 0 || err != nil {
		b.Fatal(bad, err)
	}
}

// FuzzErrors: whatever the line, there is one answer to it and no panic.
func FuzzErrors(f *testing.F) {
	f.Add(`{"surface":"git","argv":["git"],"exit_code":1}`)
	f.Add(`{"headers":{"a":[1,true,"x"]},"body":[],"now":"2026-01-02T03:04:05Z"}`)
	f.Add(`{"status":1e3}`)
	f.Add(`nonsense`)
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.NewReplacer("\n", " ", "\r", " ").Replace(line)
		r := recorder{}
		out, bad := lines(t, line+"\n", r.judge)
		if len(out) != 1 || bad+len(r.faults) != 1 || !json.Valid([]byte(out[0])) {
			t.Fatalf("%d answers, %d bad, %d judged", len(out), bad, len(r.faults))
		}
	})
}
