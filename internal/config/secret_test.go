package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

type hidden struct{ secret Secret }

// I4: no secret in output, whichever way a configuration is printed.
func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	c := loadExample(t)
	if got := c.Channels.Discord.Accounts["main"].Token.Reveal(); got != "canary-DISCORD_TOKEN" {
		t.Fatalf("the token is %q", got)
	}
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "c", c, "t", c.Channels.Discord.Accounts["main"].Token)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "c", c, "t", c.Channels.Discord.Accounts["main"].Token)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	encodedYAML, err := yaml.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	h := hidden{c.Channels.Discord.Accounts["main"].Token}
	outputs := map[string]string{
		"Show": c.Show(), "JSON": string(encoded), "YAML": string(encodedYAML), "log": log.String(),
		"%v": fmt.Sprintf("%v", c), "%+v": fmt.Sprintf("%+v", *c), "%#v": fmt.Sprintf("%#v", *c),
		"%s": fmt.Sprintf("%s", c.AuthProfiles), "%q": fmt.Sprintf("%q", c.Gateway.Tokens), "%x": fmt.Sprintf("%x", c.Providers),
		"unexported": fmt.Sprintf("%v %+v %#v", h, h, &h),
	}
	for how, out := range outputs {
		if strings.Contains(out, "canary-") || strings.Contains(out, fmt.Sprintf("%x", "canary-")) {
			t.Errorf("%s prints a secret:\n%s", how, out)
		}
		if how != "unexported" && !strings.Contains(out, redact.Mark) {
			t.Errorf("%s does not show that something was left out:\n%s", how, out)
		}
	}
	if got := fmt.Sprint(Secret{}); got != "" {
		t.Errorf("an empty secret prints %q", got)
	}
	if got := redact.String("x canary-GITHUB_TOKEN y"); got != "x [redacted] y" {
		t.Errorf("a secret of the configuration is not scrubbed from other texts: %s", got)
	}
}

// What config show prints is a configuration again, and the same one.
func TestShowReadsBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Config{
		"example": loadExample(t),
		"empty":   mustParse(t, ""),
		"dollars": mustParse(t, models+"agents: {a: {model: p/alpha, system: \"$${A} $ $$ $$${B}\"}}\nstorage: {blobs: \"$${C}\"}"),
	} {
		again, err := Parse(c.File(), []byte(c.Show()), nil)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, c.Show())
			continue
		}
		sameSecrets := cmp.Comparer(func(a, b Secret) bool { return a.IsZero() == b.IsZero() })
		ignorePolicies := cmp.Comparer(func(a, b *yaml.Node) bool { return a.Content[0].Value == b.Content[0].Value })
		unexported := cmp.AllowUnexported(Config{})
		if diff := cmp.Diff(c, again, sameSecrets, ignorePolicies, unexported, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-loaded +shown):\n%s", name, diff)
		}
	}
}

// M1: a credential comes from its value, a file or a command, and a rotated one
// is picked up without a restart.
func TestResolve(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	resolve := func(s Source) string {
		t.Helper()
		got, err := AuthProfile{Name: "n", Kind: AuthAPIKey, Source: s}.Resolve(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := resolve(Source{Value: NewSecret("by-value")}); got != "by-value" {
		t.Errorf("value: %q", got)
	}
	for _, text := range []string{"first-one\n", "  second-one\r\n"} {
		write(text)
		want := strings.TrimSpace(text)
		if got := resolve(Source{File: file}); got != want {
			t.Errorf("file: %q, want %q", got, want)
		}
		if got := resolve(Source{Command: []string{"cat", file}}); got != want {
			t.Errorf("command: %q, want %q", got, want)
		}
		if got := redact.String(want); got != redact.Mark {
			t.Errorf("a resolved credential is not scrubbed from other texts: %q", got)
		}
	}
	if got := resolve(Source{Command: []string{"echo", "$HOME; echo x"}}); got != "$HOME; echo x" {
		t.Errorf("a shell took part: %q", got)
	}
	for _, kind := range []string{AuthNone} {
		if got, err := (AuthProfile{Kind: kind}).Resolve(context.Background()); got != "" || err != nil {
			t.Errorf("kind %s: %q, %v", kind, got, err)
		}
	}
	git := GitAuthProfile{Name: "g", Kind: GitAuthToken, Source: Source{File: file}}
	if got, err := git.Resolve(context.Background()); got != "second-one" || err != nil {
		t.Errorf("git: %q, %v", got, err)
	}
	if got, err := (GitAuthProfile{Kind: GitAuthSSHAgent}).Resolve(context.Background()); got != "" || err != nil {
		t.Errorf("ssh agent: %q, %v", got, err)
	}
}

func TestResolveErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	empty := filepath.Join(dir, "empty")
	for name, text := range map[string]string{large: strings.Repeat("canary", 20_000), empty: " \n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	tests := []struct {
		name string
		ctx  context.Context
		s    Source
		want string
	}{
		{"no file", nil, Source{File: filepath.Join(dir, "no")}, "no such file"},
		{"large file", nil, Source{File: large}, "larger than 64 KiB"},
		{"empty file", nil, Source{File: empty}, "it is empty"},
		{"no program", nil, Source{Command: []string{"holdfast-no-such-program", "canary"}}, "not found"},
		{"failing command", nil, Source{Command: []string{"sh", "-c", "echo canary; echo canary >&2; exit 3"}}, "sh: exit status 3"},
		{"large output", nil, Source{Command: []string{"cat", large}}, "printed more than 64 KiB"},
		{"silent command", nil, Source{Command: []string{"true"}}, "it is empty"},
		{"cancelled", ended, Source{Command: []string{"sleep", "60"}}, "did not end in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx := tt.ctx
			if ctx == nil {
				ctx = context.Background()
			}
			got, err := AuthProfile{Name: "main", Kind: AuthToken, Source: tt.s}.Resolve(ctx)
			if got != "" || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), `auth profile "main": `) {
				t.Fatalf("got %q, %v; want %s", got, err, tt.want)
			}
			if strings.Contains(err.Error(), "canary") {
				t.Errorf("the error shows the output or the arguments: %v", err)
			}
			var resolve *ResolveError
			if !errors.As(err, &resolve) {
				t.Errorf("not typed: %T", err)
			}
		})
	}
}

// I1: config check and config show.
func TestCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for name, text := range map[string]string{good: "channels: {discord: {accounts: {m: {token: \"${T}\"}}}}", bad: "gti: {}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(jsonOutput bool, args ...string) (string, error) {
		t.Helper()
		var cli struct {
			Config Command `cmd:""`
		}
		parser, err := kong.New(&cli)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.Parse(append([]string{"config"}, args...))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = parsed.Run(&CommandContext{
			Flag: good, Stdout: &out, JSON: jsonOutput,
			Env: func(string) (string, bool) { return "canary-token", true },
		})
		return out.String(), err
	}
	out, err := run(false, "check")
	if err != nil || !strings.HasPrefix(out, good+" is valid\nmissing for telegram: no account configured (channels.telegram.accounts)\n") {
		t.Errorf("check: %v\n%s", err, out)
	}
	out, err = run(false, "show")
	if err != nil || !strings.Contains(out, "token: '[redacted]'") || strings.Contains(out, "canary") {
		t.Errorf("show: %v\n%s", err, out)
	}
	out, err = run(false, "check", bad)
	if err == nil || err.Error() != bad+`:1:1: unknown key "gti" (did you mean "git"?)` || out != "" {
		t.Errorf("check of a bad file: %v\n%s", err, out)
	}
	for _, verb := range []string{"check", "show"} {
		out, err = run(true, verb)
		var object map[string]any
		if err != nil || json.Unmarshal([]byte(out), &object) != nil {
			t.Fatalf("%s --json: %v\n%s", verb, err, out)
		}
		if id, ok := object["workflow_id"]; !ok || id != nil || object["outcome"] != "completed" || strings.Contains(out, "canary") {
			t.Errorf("%s --json: %s", verb, out)
		}
	}
}
