package explain_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/internal/explain"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// run parses and runs a command line as the starter does.
func run(t *testing.T, env *explain.Env, args ...string) (stdout string, err error) {
	t.Helper()
	var command explain.Command
	parser, err := kong.New(&command)
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	env.Out, env.Now = &out, now
	err = ctx.Run(env)
	return out.String(), err
}

func status(err error) int {
	var exit *explain.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// I2: the flags of "explain error".
func TestErrorCommand(t *testing.T) {
	t.Parallel()
	r := recorder{verdict: policies.Verdict{Reason: policies.ReasonRateLimit, Rule: "r"}}
	env := &explain.Env{In: strings.NewReader("from standard input"), Judge: r.judge}
	out, err := run(t, env, "error", "--surface", "discord", "--provider", "p", "--operation", "create", "--status", "429",
		"--header", "Retry-After: 2", "--header", "x-list:a,b", "--body", "-", "--message", "m", "--code", "c", "--type", "t",
		"--syscall", "connect", "--phase", "headers", "--now", "2026-05-06T07:08:09Z", "--stderr", "s", "--exit-code", "0")
	if err != nil {
		t.Fatal(err)
	}
	zero := 0
	want := policies.Fault{
		Surface: policies.SurfaceDiscord, Provider: "p", Operation: policies.OpCreate, Status: 429,
		Header: http.Header{"Retry-After": {"2"}, "X-List": {"a,b"}}, Body: []byte("from standard input"),
		Message: "m", Code: "c", Type: "t", Syscall: "connect", Phase: policies.PhaseHeaders, Stderr: "s", ExitCode: &zero,
		Now: r.faults[0].Now,
	}
	if diff := cmp.Diff(want, r.faults[0]); diff != "" {
		t.Errorf("fault (-want +got):\n%s", diff)
	}
	if got := r.faults[0].Now.Format("15:04:05"); got != "07:08:09" {
		t.Errorf("--now was read as %s", got)
	}
	if strings.Count(out, "\n") != 1 || !json.Valid([]byte(out)) {
		t.Errorf("output %q", out)
	}
}

// I2: bad flags are usage errors, and say which flag.
func TestErrorCommandUsage(t *testing.T) {
	t.Parallel()
	for flag, args := range map[string][]string{
		"--surface":   {"error", "--surface", "discrod"},
		"--operation": {"error", "--operation", "sned"},
		"--phase":     {"error", "--phase", "bdy"},
		"--header":    {"error", "--header", "no colon"},
		"--now":       {"error", "--now", "noon"},
		"--status":    {"error", "--status=-5"},
	} {
		r := recorder{}
		_, err := run(t, &explain.Env{Judge: r.judge}, args...)
		if status(err) != 2 || !strings.HasPrefix(err.Error(), flag) || len(r.faults) != 0 {
			t.Errorf("%v: status %d, %v", args, status(err), err)
		}
	}
}

// I2: without flags it reads lines; bad ones make status 2 at the end.
func TestErrorCommandLines(t *testing.T) {
	t.Parallel()
	r := recorder{}
	out, err := run(t, &explain.Env{In: strings.NewReader("{}\n{\"x\":1}\n{}\n"), Judge: r.judge}, "error")
	if status(err) != 2 || strings.Count(out, "\n") != 3 || len(r.faults) != 2 {
		t.Errorf("status %d, %d judged:\n%s", status(err), len(r.faults), out)
	}
	if _, err := run(t, &explain.Env{In: strings.NewReader("{}\n"), Judge: r.judge}, "error"); err != nil {
		t.Error(err)
	}
}

// I2: the help lists every operation.
func TestErrorCommandHelpListsOperations(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeOf(explain.ErrorCmd{}).FieldByName("Operation")
	help := field.Tag.Get("help")
	for _, op := range []policies.Operation{
		policies.OpCreate, policies.OpSend, policies.OpWebhook, policies.OpEdit, policies.OpDelete, policies.OpReact, policies.OpPin,
		policies.OpTyping, policies.OpRead, policies.OpWrite, policies.OpPoll, policies.OpLsRemote, policies.OpFetch, policies.OpClone, policies.OpPush, "sync",
	} {
		if !strings.Contains(help, string(op)) {
			t.Errorf("%s is not in the help", op)
		}
		if _, err := run(t, &explain.Env{Judge: (&recorder{}).judge}, "error", "--operation", string(op)); err != nil {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// I2: a scenario as JSON; the same seed gives the same schedule.
func TestScheduleCommand(t *testing.T) {
	t.Parallel()
	args := []string{"schedule", "--policy", "fast-failover", "--fail", "rate_limit@2s*2", "--fail", "primary/model=server_error*",
		"--fallback", "other/model", "--took", "500ms", "--seed", "7", "--deadline", "10m"}
	out, err := run(t, &explain.Env{JSON: true}, args...)
	if err != nil {
		t.Fatal(err)
	}
	var got explain.Schedule
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if got.Outcome != "completed" || len(got.Attempts) != 4 || got.Attempts[3].Candidate != "other/model" || !got.Attempts[3].Failover {
		t.Errorf("schedule: %s", out)
	}
	if a := got.Attempts[1]; a.WaitMS < 2000 || a.StartedMS != 500+a.WaitMS || a.Attempt != 2 || a.Of != 16 || *a.FloorMS != 2000 {
		t.Errorf("second attempt: %+v", a)
	}
	if got.Attempts[3].Rule != "M3.6/switch_after" || *got.DeadlineMS != 600_000 {
		t.Errorf("schedule: %s", out)
	}
	again, _ := run(t, &explain.Env{JSON: true}, args...)
	if again != out {
		t.Error("the same seed gave another schedule")
	}
	args[len(args)-3] = "8"
	if other, _ := run(t, &explain.Env{JSON: true}, args...); other == out {
		t.Error("another seed gave the same schedule")
	}
}

// I2: the table, and how a failure without end is told.
func TestScheduleTable(t *testing.T) {
	t.Parallel()
	out, err := run(t, &explain.Env{}, "schedule", "--fail", "rate_limit@90s*", "--candidate", "a/m#one", "--candidate", "a/m#two", "--sibling", "a/mini#one")
	if err != nil {
		t.Fatal(err)
	}
	want := `#  AT  WAIT  CANDIDATE     ATTEMPT  WHY                 ENDED  RESULT      FLOOR
1  0s  0s    a/m#one       1 of 9   M3.8/start          1s     rate_limit  1m30s
2  1s  0s    → a/m#two     1 of 9   P5/floor_above_cap  2s     rate_limit  1m30s
3  2s  0s    → a/mini#one  1 of 9   P5/floor_above_cap  3s     rate_limit  1m30s
failed after 3s: rate_limit (P5/floor_above_cap); no completed response after 3 tries over 3 s on a/m, a/mini; next reset in 1m28s
`
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestScheduleUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`unknown policy profile "defualt" (did you mean "default"?)`: {"schedule", "--policy", "defualt"},
		`unknown reason "rate_limt" (did you mean "rate_limit"?)`:    {"schedule", "--fail", "rate_limt"},
		`floor "soon"`:                    {"schedule", "--fail", "rate_limit@soon"},
		`"x" is not a number of times`:    {"schedule", "--fail", "timeout*x"},
		`"0" is not a number of times`:    {"schedule", "--fail", "timeout*0"},
		`candidate "a"`:                   {"schedule", "--candidate", "a"},
		`candidate "a/"`:                  {"schedule", "--fail", "a/=timeout"},
		`cannot be negative`:              {"schedule", "--max-retries=-1"},
		`unknown policy profile "nobody"`: {"policy", "nobody"},
	} {
		_, err := run(t, &explain.Env{}, args...)
		if status(err) != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: status %d, %v", args, status(err), err)
		}
	}
}

// I2: the plot is well-formed, has a lane per candidate, a dot per attempt and
// a bar per wait, a mark per floor, and shows names as text, not as markup.
func TestSchedulePlot(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "out.svg")
	_, err := run(t, &explain.Env{}, "schedule", "--fail", "rate_limit@20s*3", "--fail", "a/<m>&=billing", "--candidate", "a/<m>&",
		"--fallback", "b/m", "--deadline", "70s", "--max-retries", "5", "--plot", path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count, text := map[string]int{}, ""
	for d := xml.NewDecoder(bytes.NewReader(data)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			count[token.Name.Local]++
		case xml.CharData:
			text += string(token)
		}
	}
	// Two dots and one bar are the legend's; one rectangle is the background.
	if count["circle"] != 5+2 || count["rect"] != 3+2 {
		t.Errorf("%d dots and %d rectangles", count["circle"], count["rect"])
	}
	if got := strings.Count(string(data), "#b44d12"); got != 3+1 {
		t.Errorf("%d floor marks", got)
	}
	for _, want := range []string{"a/<m>&", "b/m", "deadline", "time since the start"} {
		if !strings.Contains(text, want) {
			t.Errorf("the plot does not say %q", want)
		}
	}
	if _, err := run(t, &explain.Env{}, "schedule", "--plot", t.TempDir()); status(err) != 2 {
		t.Errorf("a plot into a directory: %v", err)
	}
}

// Every profile and every reason gives a schedule that ends and can be drawn.
func TestScheduleAlwaysEnds(t *testing.T) {
	t.Parallel()
	for _, profile := range profiles.Names() {
		for _, fail := range []string{"rate_limit*", "timeout*", "worker_lost*", "billing*", "empty_response@inf*", "output_limit*", "overloaded@1000h*"} {
			out, err := run(t, &explain.Env{JSON: true}, "schedule", "--policy", profile, "--fail", fail, "--fallback", "b/m", "--took", "0s")
			if err != nil {
				t.Fatal(err)
			}
			var s explain.Schedule
			if err := json.Unmarshal([]byte(out), &s); err != nil || s.Outcome != "failed" {
				t.Errorf("%s, %s: %v, %s", profile, fail, err, s.Outcome)
			}
			if err := s.SVG(io.Discard); err != nil {
				t.Error(err)
			}
		}
	}
}

// I2: the effective numbers, and where each comes from.
func TestPolicyCommand(t *testing.T) {
	t.Parallel()
	out, err := run(t, &explain.Env{}, "policy", "simple-aggressive")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"policy profile                  simple-aggressive",
		"extends                         simple",
		"simple.retries                  5",
		"simple-aggressive (policies/profiles/simple-aggressive.yaml:4)",
		"max_retry_delay                 1m",
		"default (policies/profiles/default.yaml:",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	out, err = run(t, &explain.Env{JSON: true, Profile: func(name string) (profiles.Profile, error) {
		p, err := profiles.LoadProfile(name)
		if err != nil {
			return p, err
		}
		return p.WithMaxRetries("3")
	}}, "policy", "claude-code")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Policy   string
		Settings map[string]struct{ Value, From string }
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if s := got.Settings["transient.attempts"]; got.Policy != "claude-code" || s.Value != "4" || s.From != "$CLAUDE_CODE_MAX_RETRIES" {
		t.Errorf("%+v", got)
	}
	if _, ok := got.Settings["simple.retries"]; ok {
		t.Error("shows keys of a policy it does not have")
	}
}
