package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// I3: the section of the specification, as it stands there.
const specExample = `
auth_profiles:
  openai-main: {provider: openai, kind: api_key, value: "${OPENAI_API_KEY}"}   # or file: …, or command: […]
  anthropic-main: {provider: anthropic, kind: api_key, value: "${ANTHROPIC_API_KEY}"}
providers:
  openai:    {dialect: openai-responses, base_url: "http://127.0.0.1:9001/v1", auth_profiles: [openai-main], models: [gpt-5.1, {name: gpt-5.1-mini, context_window: 400000, input_price: 0.25, output_price: 2.0}]}   # prices per million tokens
  anthropic: {dialect: anthropic, base_url: "http://127.0.0.1:9004", auth_profiles: [anthropic-main], models: [claude-sonnet-4-5, claude-haiku-4-5]}
  google:    {dialect: gemini, base_url: "http://127.0.0.1:9005", auth_profiles: [], models: [gemini-3-pro]}
  local:     {dialect: openai-chat, base_url: "http://127.0.0.1:11434/v1", models: [llama3.1]}
agents:
  main: {model: openai/gpt-5.1, fallbacks: [anthropic/claude-sonnet-4-5, local/llama3.1], system: "…", max_output_tokens: 2048, policy: default, max_retries: 8, tools: [search]}
tools:
  search: {kind: mcp, url: "http://127.0.0.1:9010/mcp", retryable: false, approval: none}   # or command: […] for stdio; kind: activity, task_queue: …
limits: {connect: 10s, headers: 60s, headers_no_stream: 600s, first_event: 120s, silence: 120s, silence_with_pings: 30s, progress: 300s}
channels:
  discord:  {accounts: {main: {token: "${DISCORD_TOKEN}", api_url: "http://127.0.0.1:9002/api/v10"}}}
  telegram: {accounts: {main: {token: "${TELEGRAM_TOKEN}", api_url: "http://127.0.0.1:9003", review_chat: ""}}}
git:
  engine: auto
  roots: ["./checkouts"]          # where managed checkouts may be; shared_roots: […] for storage all hosts see
  limits: {memory: 512MiB, disk: 10GiB, objects: 5000000}
  auth_profiles: {github: {kind: token, username: x-access-token, value: "${GITHUB_TOKEN}"}}
`

// anyEnv gives every variable a value.
func anyEnv(name string) (string, bool) { return "value-of-" + name, true }

func mustParse(t testing.TB, text string) *Config {
	t.Helper()
	c, err := Parse("f.yaml", []byte(text), anyEnv)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSpecificationExample(t *testing.T) {
	t.Parallel()
	c := mustParse(t, specExample)
	if got := c.AuthProfiles["openai-main"].Value.Reveal(); got != "value-of-OPENAI_API_KEY" {
		t.Errorf("the variable was not expanded: %q", got)
	}
	mini, ok := c.Providers["openai"].Model("gpt-5.1-mini")
	if want := (Model{"gpt-5.1-mini", 400000, 0.25, 2}); !ok || mini != want {
		t.Errorf("model = %+v, want %+v", mini, want)
	}
	main := c.Agents["main"]
	if *main.MaxRetries != 8 || main.MaxOutputTokens != 2048 || main.Model != "openai/gpt-5.1" || main.Temperature != nil {
		t.Errorf("agent = %+v", main)
	}
	if c.Git.Limits != (GitLimits{512 << 20, 10 << 30, 5_000_000}) {
		t.Errorf("git limits = %+v", c.Git.Limits)
	}
	if got := c.Channels.Telegram.Accounts["main"]; got.APIURL != "http://127.0.0.1:9003" || got.ReviewChat != "" {
		t.Errorf("telegram = %+v", got)
	}
}

// M2.2: the limits have these defaults, and a provider's are stronger than the
// top's.
func TestLimits(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
limits: {silence: 50s}
providers:
  a: {dialect: gemini, models: [m], limits: {silence: 5s, connect: 1s500ms}}
  b: {dialect: gemini, models: [m]}
`)
	want := Limits{10 * time.Second, 60 * time.Second, 600 * time.Second, 120 * time.Second, 50 * time.Second, 30 * time.Second, 300 * time.Second}
	if diff := cmp.Diff(want, c.Providers["b"].Limits); diff != "" {
		t.Errorf("provider without limits (-want +got):\n%s", diff)
	}
	want.Silence, want.Connect = 5*time.Second, 1500*time.Millisecond
	if diff := cmp.Diff(want, c.Providers["a"].Limits); diff != "" {
		t.Errorf("provider with limits (-want +got):\n%s", diff)
	}
}

// M2.11: start-up buffering is on, the slow-stream guard and going on
// mid-stream are off; M3.4: max_retries 0 is not "unset".
func TestAgentDefaults(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
policy: simple
policies: {mine: {extends: default}}
providers: {p: {dialect: gemini, models: [m]}}
agents:
  a: {model: p/m}
  b: {model: p/m, policy: mine, max_retries: 0, startup_buffering: false, slow_stream: {tokens_per_second: 1.5, for: 20s}, continue_mid_stream: true}
`)
	a, b := c.Agents["a"], c.Agents["b"]
	if !a.BuffersStartup() || a.SlowStream != (SlowStream{}) || a.ContinueMidStream || a.MaxRetries != nil || a.Policy != "simple" || a.Deadline != 30*time.Minute {
		t.Errorf("defaults: %+v", a)
	}
	if b.BuffersStartup() || b.SlowStream != (SlowStream{1.5, 20 * time.Second}) || !b.ContinueMidStream || b.MaxRetries == nil || *b.MaxRetries != 0 || b.Policy != "mine" {
		t.Errorf("set: %+v", b)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "# nothing\n", "---\n", "{}", "null", "agents:\nproviders:\ngit:\n  roots:\n"} {
		c := mustParse(t, text)
		if c.Limits != DefaultLimits() || c.Policy != "default" {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

// I1: it starts without any configuration and says what is missing for which
// kind of work.
func TestMissing(t *testing.T) {
	t.Parallel()
	var got []string
	for _, gap := range mustParse(t, "").Missing() {
		got = append(got, gap.String())
	}
	want := []string{
		"discord: no account configured (channels.discord.accounts)",
		"telegram: no account configured (channels.telegram.accounts)",
		"model: no provider configured (providers)",
		"model: no agent configured (agents)",
		"git: no directory for checkouts configured; ls-remote works without (git.roots)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if gaps := mustParse(t, specExample).Missing(); len(gaps) != 0 {
		t.Errorf("a full configuration has gaps: %v", gaps)
	}
}

// G11: a host's own name is the machine's unless the file gives one.
func TestGitHost(t *testing.T) {
	t.Parallel()
	machine, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"": machine, "git: {engine: git}": machine, "git: {host: build-1.example}": "build-1.example"} {
		if got := mustParse(t, text).Git.Host; got != want {
			t.Errorf("%q: host %q, want %q", text, got, want)
		}
	}
}

func TestExpansion(t *testing.T) {
	t.Parallel()
	env := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "a", "EMPTY": "", "N": "7", "D": "5s", "B": "false", "NESTED": "${A}", "S": "1GiB"}[name]
		return v, ok
	}
	c, err := Parse("f", []byte(`
providers: {p: {dialect: gemini, models: [m], stream: "${B}"}}
agents:
  a: {model: p/m, system: "<${A}|$${A}|${EMPTY}|${NESTED}|$A|$$|100$>", max_retries: "${N}", deadline: "${D}"}
git: {limits: {memory: "${S}"}}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Agents["a"]
	if want := "<a|${A}||${A}|$A|$$|100$>"; a.System != want {
		t.Errorf("system = %q, want %q", a.System, want)
	}
	if *a.MaxRetries != 7 || a.Deadline != 5*time.Second || c.Providers["p"].Streaming() || c.Git.Limits.Memory != 1<<30 {
		t.Errorf("numbers from variables: %+v", a)
	}
}

func TestAliasesAndMergeKeys(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
providers:
  a: &base {dialect: openai-chat, base_url: "http://a/v1", models: &models [m], limits: {silence: 1s}}
  b: {<<: *base, base_url: "http://b/v1"}
  c: {<<: [{base_url: "http://c/v1"}, *base]}
  d: {dialect: gemini, models: *models}
`)
	for name, want := range map[string]string{"a": "http://a/v1", "b": "http://b/v1", "c": "http://c/v1"} {
		if p := c.Providers[name]; p.BaseURL != want || p.Dialect != DialectOpenAIChat || p.Limits.Silence != time.Second {
			t.Errorf("%s = %+v", name, p)
		}
	}
	if len(c.Providers["d"].Models) != 1 {
		t.Errorf("d = %+v", c.Providers["d"])
	}
}

// I3: the user's own policy profiles are read with aliases, merge keys and
// variables expanded, and what is wrong with them is told at its place.
func TestOwnPolicies(t *testing.T) {
	t.Parallel()
	c, err := Parse("f", []byte(`
policies:
  mine: &m
    extends: default
    rate_limit:
      attempts: ${N}
  other: {<<: *m, max_retry_delay: 30s}
`), func(string) (string, bool) { return "7", true })
	if err != nil {
		t.Fatal(err)
	}
	own, err := c.OwnPolicies()
	if err != nil {
		t.Fatal(err)
	}
	if got := own["other"].Policy; got.RateLimit.Attempts != 7 || got.MaxRetryDelay != 30*time.Second {
		t.Errorf("other = %+v", got)
	}
	for text, want := range map[string]string{
		"policies:\n  mine:\n    extends: defualt\n":      `f:3:14: unknown policy profile "defualt" (did you mean "default"?)`,
		"policies:\n  mine:\n    rate_limti: {max: 1s}\n": `f:3:5: unknown key "rate_limti" (did you mean "rate_limit"?)`,
	} {
		if _, err := Parse("f", []byte(text), anyEnv); err == nil || err.Error() != want {
			t.Errorf("errors %v\nwant   %s", err, want)
		}
	}
}

// M6: the operator's configuration says which http sinks are allowed; loopback
// always is.
func TestSinkAllowed(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `gateway: {sinks: {allow: ["https://live.example.com/a", "http://10.0.0.1:8000"]}}`)
	tests := map[string]bool{
		"http://127.0.0.1:9/x":                     true,
		"http://[::1]:9/x":                         true,
		"http://[::ffff:127.0.0.1]/":               true,
		"http://localhost/":                        true,
		"https://live.example.com/a":               true,
		"https://LIVE.example.com:443/a/b?c=d":     true,
		"http://10.0.0.1:8000/anything":            true,
		"http://live.example.com/a":                false,
		"https://live.example.com/ab":              false,
		"https://live.example.com/a/../b":          false,
		"https://live.example.com/a/%2e%2e/b":      false,
		"https://live.example.com:8443/a":          false,
		"https://live.example.com.evil.net/a":      false,
		"https://u:p@live.example.com/a":           false,
		"https://live.example.com@evil.net/a":      false,
		"http://127.0.0.1.evil.net/":               false,
		"http://localhost.evil.net/":               false,
		"ftp://127.0.0.1/":                         false,
		"file:///etc/passwd":                       false,
		"//127.0.0.1/x":                            false,
		"":                                         false,
		"http://":                                  false,
		"https://live.example.com\\@127.0.0.1/a\n": false,
	}
	for sink, want := range tests {
		if got := c.SinkAllowed(sink); got != want {
			t.Errorf("SinkAllowed(%q) = %v, want %v", sink, got, want)
		}
	}
}

// I1: --config, else HOLDFAST_CONFIG, else ./holdfast.yaml; only a named file
// must exist.
func TestLoadDefault(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	env := func(string) (string, bool) { return "", false }
	named := filepath.Join(dir, "named.yaml")
	fromEnv := func(name string) (string, bool) { return named, name == Variable }

	if c, err := LoadDefault("", env); err != nil || c.File() != "" {
		t.Errorf("without any file: %v, %v", c, err)
	}
	for _, load := range []func() (*Config, error){
		func() (*Config, error) { return LoadDefault(named, env) },
		func() (*Config, error) { return LoadDefault("", fromEnv) },
	} {
		_, err := load()
		var read *ReadError
		if !errors.As(err, &read) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "check --config") {
			t.Errorf("a named file that is missing: %v", err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(DefaultFile, "policy: simple")
	write(named, "policy: fast-failover")
	write("flag.yaml", "policy: claude-code")
	for _, tt := range []struct {
		flag string
		env  Env
		want string
	}{{"flag.yaml", fromEnv, "claude-code"}, {"", fromEnv, "fast-failover"}, {"", env, "simple"}, {"", nil, "simple"}} {
		c, err := LoadDefault(tt.flag, tt.env)
		if err != nil || c.Policy != tt.want {
			t.Errorf("LoadDefault(%q): %v, %v; want %s", tt.flag, c, err, tt.want)
		}
	}
	write(DefaultFile, "polcy: x")
	if _, err := LoadDefault("", env); err == nil || err.Error() != `holdfast.yaml:1:1: unknown key "polcy" (did you mean "policy"?)` {
		t.Errorf("a bad default file: %v", err)
	}
	if _, err := Load(dir, env); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("a directory: %v", err)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Size{"0B": 0, "1B": 1, "3KiB": 3 << 10, "512MiB": 512 << 20, "10 GiB": 10 << 30, "1TiB": 1 << 40} {
		got, err := ParseSize(text)
		if err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v", text, got, err)
		}
		if again, err := ParseSize(got.String()); err != nil || again != got {
			t.Errorf("%v does not read back: %v, %v", got, again, err)
		}
	}
	for _, text := range []string{"", "MiB", "-1MiB", "1.5GiB", "1MB", "1mib", "9000000TiB", "99999999999999999999B", "12", "1 2MiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %v, want an error", text, got)
		}
	}
}
