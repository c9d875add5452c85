package profiles_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

func load(t *testing.T, name string) policies.Policy {
	t.Helper()
	p, err := profiles.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// P1.6, P1.7, P5, P6, P8, M3: every number of the default.
func TestDefault(t *testing.T) {
	t.Parallel()
	want := policies.Policy{
		Name:              "default",
		RateLimit:         policies.Budget{Attempts: 16, Min: time.Second, Max: time.Minute, JitterLow: 0.5, JitterHigh: 1.5},
		Transient:         policies.Budget{Attempts: 9, Window: 90 * time.Second, Min: time.Second, Max: 30 * time.Second, JitterLow: 0.5, JitterHigh: 1.5},
		SuccessResets:     "all",
		MaxRetryDelay:     time.Minute,
		FloorAboveCap:     "rotate",
		GuardAttempts:     128,
		NonStreamingAfter: 2,
		SpentTimeout:      "failover",
		Health: policies.HealthPolicy{
			Transient: []time.Duration{}, Auth: []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute},
			Quota: time.Hour, ModelGone: time.Hour, BillingMin: 10 * time.Minute, BillingMax: 24 * time.Hour,
			BlockMin: 10 * time.Minute, BlockMax: time.Hour, ProbeEvery: 30 * time.Second,
		},
		ToolRetry: policies.ToolRetry{Enabled: true, MaxRetries: 2, RetryableTools: []string{}, NonRetryableTools: []string{}},
	}
	if diff := cmp.Diff(want, load(t, "default")); diff != "" {
		t.Errorf("default (-want +got):\n%s", diff)
	}
}

// The table of policy profiles in 00-overview: where each differs from default.
func TestDifferences(t *testing.T) {
	t.Parallel()
	transients := []policies.Reason{
		policies.ReasonRateLimit, policies.ReasonOverloaded, policies.ReasonServerError, policies.ReasonTimeout,
		policies.ReasonStreamInterrupted, policies.ReasonMalformedStream, policies.ReasonDegenerateOutput, policies.ReasonEmptyResponse,
	}
	simple := func(retries int, initial time.Duration, multiplier float64, longest time.Duration) func(*policies.Policy) {
		return func(p *policies.Policy) {
			p.NonStreamingAfter = 0
			p.Simple = &policies.Simple{
				Retries: retries, Initial: initial, Multiplier: multiplier, Max: longest, Retryable: transients,
				RespectRetryAfter: true, RetryAfterCap: time.Minute, FailoverPermanent: true,
			}
		}
	}
	differences := map[string]func(*policies.Policy){
		"openclaw-classic": func(p *policies.Policy) {
			p.RateLimit.Attempts, p.RateLimit.Max = 10, 30*time.Second
			p.SuccessResets, p.FloorAboveCap, p.SpentTimeout = "window", "wait", "surface"
			p.Rotations, p.NonStreamingAfter = 1, 0
			p.Health.Transient = []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour}
			p.Health.Auth = []time.Duration{5 * time.Hour, 10 * time.Hour, 20 * time.Hour, 24 * time.Hour}
			p.Health.BillingMin, p.Health.BlockMin = 5*time.Hour, 5*time.Hour
			p.Health.BlockMax = 24 * time.Hour
		},
		"fast-failover":     func(p *policies.Policy) { p.SwitchAfter, p.SwitchWait = 2, 15*time.Second },
		"simple":            simple(3, time.Second, 2, 30*time.Second),
		"simple-aggressive": simple(5, 500*time.Millisecond, 2, time.Minute),
		"simple-fast-fail":  simple(1, time.Second, 1, 5*time.Second),
		"simple-none":       simple(0, time.Second, 2, 30*time.Second),
		"claude-code": func(p *policies.Policy) {
			p.RateLimit = policies.Budget{Attempts: 11, Min: 500 * time.Millisecond, Max: 32 * time.Second, JitterLow: 1, JitterHigh: 1.25}
			p.Transient = p.RateLimit
			p.MoveAfterOverloads = 3
		},
	}
	if got, want := len(profiles.Names()), len(differences)+1; got != want {
		t.Errorf("%d built-in profiles, want %d", got, want)
	}
	for name, differ := range differences {
		want := load(t, "default")
		want.Name = name
		differ(&want)
		if diff := cmp.Diff(want, load(t, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every embedded file is listed, and default.yaml sets every key, so that every
// number has an origin.
func TestEmbeddedFilesAreComplete(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".yaml") {
			files++
		}
	}
	if files != len(profiles.Names()) {
		t.Errorf("%d YAML files, %d names", files, len(profiles.Names()))
	}
	for _, name := range profiles.Names() {
		p, err := profiles.LoadProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Settings() {
			if s.Origin.File == "" || s.Origin.Line == 0 || s.Value == "" {
				t.Errorf("%s: %s = %q comes from nowhere", name, s.Key, s.Value)
			}
		}
	}
}

// A caller that changes what it loaded changes nobody else's.
func TestLoadIsACopy(t *testing.T) {
	t.Parallel()
	p := load(t, "simple")
	p.Simple.Retryable[0], p.Simple.Retries, p.Health.Auth[0] = "x", 99, 0
	if again := load(t, "simple"); again.Simple.Retryable[0] == "x" || again.Simple.Retries == 99 || again.Health.Auth[0] == 0 {
		t.Error("the built-in profile was changed")
	}
}

func TestLoadUnknown(t *testing.T) {
	t.Parallel()
	_, err := profiles.Load("openclaw-clasic")
	if err == nil || !strings.Contains(err.Error(), `did you mean "openclaw-classic"?`) {
		t.Errorf("error %v", err)
	}
}

// A user's profile extends a built-in one or another of its own, whatever the
// order, and knows where each number comes from.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := profiles.Parse("holdfast.yaml", []byte(`
calm:
  extends: patient
  max_retry_delay: 5m
patient:
  extends: openclaw-classic
  rate_limit: {attempts: 12}
  health:
    transient: [10s, 20s]
plain: {}
terse:
  extends: simple
  simple: {retryable: [rate_limit], respect_retry_after: false}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	calm := got["calm"].Policy
	if calm.Name != "calm" || calm.RateLimit.Attempts != 12 || calm.MaxRetryDelay != 5*time.Minute || calm.SuccessResets != "window" {
		t.Errorf("calm: %+v", calm)
	}
	if diff := cmp.Diff([]time.Duration{10 * time.Second, 20 * time.Second}, calm.Health.Transient); diff != "" {
		t.Error(diff)
	}
	want := map[string]string{
		"max_retry_delay":     "calm (holdfast.yaml:4)",
		"rate_limit.attempts": "patient (holdfast.yaml:7)",
		"success_resets":      "openclaw-classic (policies/profiles/openclaw-classic.yaml:7)",
	}
	for key, origin := range want {
		if got := got["calm"].Origins[key].String(); got != origin {
			t.Errorf("%s comes from %s, want %s", key, got, origin)
		}
	}
	if p := got["plain"]; p.Extends != "default" || p.Policy.RateLimit.Attempts != 16 {
		t.Errorf("a profile extends default unless it says otherwise: %+v", p)
	}
	if s := got["terse"].Policy.Simple; len(s.Retryable) != 1 || s.RespectRetryAfter || s.Retries != 3 {
		t.Errorf("terse: %+v", s)
	}
}

// I3: every mistake has file, line, column and a way out.
func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"unknown key", "mine:\n  max_retry_dely: 5s\n", `f.yaml:2:3: unknown key "max_retry_dely" (did you mean "max_retry_delay"?)`},
		{"unknown key of a group", "mine:\n  rate_limit:\n    atempts: 5\n", `f.yaml:3:5: unknown key "atempts" (did you mean "attempts"?)`},
		{"nothing near", "mine: {zzzzzz: 1}\n", `f.yaml:1:8: unknown key "zzzzzz"`},
		{"no window for rate limits", "mine: {rate_limit: {window: 90s}}\n", `f.yaml:1:21: unknown key "window"`},
		{"misspelt extends", "mine: {extend: default}\n", `f.yaml:1:8: unknown key "extend" (did you mean "extends"?)`},
		{"duration without unit", "mine: {max_retry_delay: 60}\n", `f.yaml:1:25: max_retry_delay: want a duration such as "90s" or "1h30m", not "60"`},
		{"negative duration", "mine: {max_retry_delay: -5s}\n", `f.yaml:1:25: max_retry_delay: want a duration such as "90s" or "1h30m", not "-5s"`},
		{"below a millisecond", "mine: {max_retry_delay: 1500us}\n", `f.yaml:1:25: max_retry_delay: want whole milliseconds, not "1500us"`},
		{"fraction", "mine: {switch_after: 1.5}\n", `f.yaml:1:22: switch_after: want a whole number from 0 to 1000, not "1.5"`},
		{"text for a number", "mine: {switch_after: \"2\"}\n", `f.yaml:1:22: switch_after: want a whole number from 0 to 1000, not "2"`},
		{"NaN", "mine: {rate_limit: {jitter_low: .nan}}\n", `f.yaml:1:33: rate_limit.jitter_low: want a number from 0 to 100, not ".nan"`},
		{"infinity", "mine: {rate_limit: {jitter_high: .inf}}\n", `f.yaml:1:34: rate_limit.jitter_high: want a number from 0 to 100, not ".inf"`},
		{"M3.4: more than 16", "mine: {rate_limit: {attempts: 17}}\n", `f.yaml:1:31: rate_limit.attempts: want a whole number from 1 to 16, not "17"`},
		{"nothing", "mine:\n  switch_after:\n", `f.yaml:2:16: switch_after: want a whole number from 0 to 1000, not nothing`},
		{"word", "mine: {success_resets: widow}\n", `f.yaml:1:24: success_resets: want one of all, window, not "widow" (did you mean "window"?)`},
		{"bool", "mine: {refusal_failover: maybe}\n", `f.yaml:1:26: refusal_failover: want true or false, not "maybe"`},
		{"list", "mine: {health: {auth: 5m}}\n", `f.yaml:1:23: health.auth: want a list, not "5m"`},
		{"item", "mine: {health: {auth: [5m, soon]}}\n", `f.yaml:1:23: health.auth: item 2: want a duration such as "90s" or "1h30m", not "soon"`},
		{"reason", "mine: {extends: simple, simple: {retryable: [ratelimit]}}\n", `f.yaml:1:45: simple.retryable: item 1: want one of rate_limit, overloaded, server_error, timeout, stream_interrupted, malformed_stream, degenerate_output, empty_response, not "ratelimit" (did you mean "rate_limit"?)`},
		{"group", "mine: {rate_limit: 5}\n", `f.yaml:1:20: rate_limit must be a mapping`},
		{"profile", "mine: 5\n", `f.yaml:1:7: policy profile "mine" must be a mapping`},
		{"document", "[]\n", `f.yaml:1:1: policies must be a mapping`},
		{"twice", "mine: {switch_after: 1, switch_after: 2}\n", `f.yaml:1:25: key "switch_after" is given twice`},
		{"least above greatest", "mine: {transient: {min: 40s}}\n", `f.yaml:1:20: transient.min (40s) is above transient.max (30s)`},
		{"half a simple policy", "mine: {simple: {retries: 1}}\n", `f.yaml:1:7: simple lacks initial, multiplier, max, retryable, respect_retry_after, retry_after_cap, failover_permanent; say "extends: simple" to inherit them`},
		{"P1.1–P1.5", "mine: {telegram: {min: 1s}}\n", `f.yaml:1:8: "telegram": channel timings (P1.1–P1.5) are built in and cannot be set; remove the key`},
		{"P1.1–P1.5, channels", "mine: {channels: {discord: {retry: 3}}}\n", `f.yaml:1:8: "channels": channel timings (P1.1–P1.5) are built in and cannot be set; remove the key`},
		{"unknown parent", "mine: {extends: defalt}\n", `f.yaml:1:17: unknown policy profile "defalt" (did you mean "default"?)`},
		{"built-in name", "default: {switch_after: 1}\n", `f.yaml:1:1: "default" is a built-in policy profile; give yours another name and say "extends: default"`},
		{"circle", "a: {extends: b}\nb: {extends: c}\nc: {extends: a}\n", `f.yaml:3:14: extends goes in a circle: a → b → c → a`},
		{"own parent", "a: {extends: a}\n", `f.yaml:1:14: extends goes in a circle: a → a`},
		{"syntax", "mine:\n  switch_after: 1\n  health: \"x\n", `f.yaml:3:1: found unexpected end of stream`},
		{"two mistakes", "mine:\n  switch_after: x\n  rotatoins: 1\n", "f.yaml:2:17: switch_after: want a whole number from 0 to 1000, not \"x\"\nf.yaml:3:3: unknown key \"rotatoins\" (did you mean \"rotations\"?)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := profiles.Parse("f.yaml", []byte(tt.text), nil)
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			var at *profiles.Error
			if !errors.As(err, &at) {
				t.Errorf("%T is no *profiles.Error", err)
			}
		})
	}
}

func TestParseEmpty(t *testing.T) {
	t.Parallel()
	got, err := profiles.Parse("f.yaml", []byte("# nothing\n"), nil)
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// A profile may extend one that only the caller knows.
func TestParseBase(t *testing.T) {
	t.Parallel()
	base := func(name string) (policies.Policy, error) {
		if name != "house" {
			return policies.Policy{}, errors.New("no such profile")
		}
		p := load(t, "default")
		p.SwitchAfter = 7
		return p, nil
	}
	got, err := profiles.Parse("f.yaml", []byte("mine: {extends: house, rotations: 2}\n"), base)
	if err != nil {
		t.Fatal(err)
	}
	p := got["mine"]
	if p.Policy.SwitchAfter != 7 || p.Policy.Rotations != 2 {
		t.Errorf("%+v", p.Policy)
	}
	if got := p.Origins["switch_after"].String(); got != "house" {
		t.Errorf("switch_after comes from %s", got)
	}
}

// CLAUDE_CODE_MAX_RETRIES is honoured; a rate-limit outage keeps its 16.
func TestWithMaxRetries(t *testing.T) {
	t.Parallel()
	p, err := profiles.LoadProfile("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string][2]int{"": {11, 11}, "0": {1, 1}, "3": {4, 4}, "40": {41, 16}} {
		got, err := p.WithMaxRetries(value)
		if err != nil {
			t.Fatal(err)
		}
		if got.Policy.Transient.Attempts != want[0] || got.Policy.RateLimit.Attempts != want[1] {
			t.Errorf("%q: %d and %d attempts, want %v", value, got.Policy.Transient.Attempts, got.Policy.RateLimit.Attempts, want)
		}
	}
	for _, value := range []string{"many", "-1", "1e3", "99999"} {
		if _, err := p.WithMaxRetries(value); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
	if p.Policy.Transient.Attempts != 11 {
		t.Error("the original was changed")
	}
}

// The parser refuses or accepts, but never panics.
func FuzzParse(f *testing.F) {
	for _, name := range profiles.Names() {
		data, err := os.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add("mine:\n  " + strings.ReplaceAll(string(data), "\n", "\n  "))
	}
	f.Add("a: &x {extends: b}\nb: *x\n")
	f.Add("a: {<<: {switch_after: 1}}\n")
	f.Add("? [a, b]\n: c\n")
	f.Add("a: &a\n  health: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := profiles.Parse("f.yaml", []byte(text), nil)
		if err != nil {
			return
		}
		for name, p := range got {
			if p.Policy.Name != name {
				t.Errorf("%q is called %q", name, p.Policy.Name)
			}
		}
	})
}
