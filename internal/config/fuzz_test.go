package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// Parse never panics, names a place for every problem, and what it accepts can
// be shown and read again.
func FuzzParse(f *testing.F) {
	if data, err := os.ReadFile(exampleFile); err == nil {
		f.Add(string(data))
	}
	for _, seed := range []string{
		specExample, "", "a: &a [*a]", "<<: {policy: x}", "policies: {a: &a {b: *a, <<: *a}}",
		"agents: {a: {model: p/m, system: \"${A} $${B} ${\"}}", models + "agents: {a: {model: p/alpha, max_retries: 0x7}}",
		"limits: {connect: 1e309s, silence: 9999999999h}", "git: {limits: {memory: 9223372036854775807B}}", "? {a: b}\n: c",
		"channels: {discord: {accounts: {m: {token: \"${SECRET}\", retry: 1}}}}", "---\n---\n", "!!binary x", "\xff\xfe", "policy: |\n  a\n b",
		"gateway: {address: \":\", sinks: {allow: [\"http://[::1]:x\", \"http:a\", \"\"]}}",
	} {
		f.Add(seed)
	}
	env := func(name string) (string, bool) { return "canary-" + name, name != "NOPE" }
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse("f", []byte(text), env)
		if err != nil {
			var all Errors
			if !errors.As(err, &all) {
				t.Fatalf("not typed: %T", err)
			}
			for _, e := range all {
				if e.Line < 1 || e.Column < 1 || e.Message == "" {
					t.Errorf("a problem without a place or text: %+v", e)
				}
			}
			if strings.Contains(err.Error(), "canary-") && !strings.Contains(text, "canary-") {
				t.Errorf("a variable's value is shown: %v", err)
			}
			return
		}
		c.Missing()
		c.SinkAllowed(text)
		if _, err := Parse("f", []byte(c.Show()), nil); err != nil {
			t.Errorf("what is shown cannot be read: %v\n%s", err, c.Show())
		}
	})
}
