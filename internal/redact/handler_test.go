package redact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

type nested struct{ Inner *inner }

type inner struct{ Header string }

type secretStringer struct{}

func (secretStringer) String() string { return "Bearer canary-0123456789" }

type lazy struct{}

func (lazy) LogValue() slog.Value { return slog.StringValue("Bearer canary-0123456789") }

// I4: whatever an attribute is, the credential in it does not reach the log.
func TestHandler(t *testing.T) {
	t.Parallel()
	const canary = "canary-0123456789"
	header := "Authorization: Bearer " + canary
	log := map[string]func(*slog.Logger){
		"message":       func(l *slog.Logger) { l.Info(header) },
		"string":        func(l *slog.Logger) { l.Info("m", "a", header) },
		"key":           func(l *slog.Logger) { l.Info("m", "token", canary) },
		"number by key": func(l *slog.Logger) { l.Info("m", "secret", 1) },
		"error":         func(l *slog.Logger) { l.Info("m", "err", fmt.Errorf("x: %w", errors.New(header))) },
		"bytes":         func(l *slog.Logger) { l.Info("m", "a", []byte(header)) },
		"struct":        func(l *slog.Logger) { l.Info("m", "a", inner{header}) },
		"pointer":       func(l *slog.Logger) { l.Info("m", "a", nested{&inner{header}}) },
		"stringer":      func(l *slog.Logger) { l.Info("m", "a", secretStringer{}) },
		"log valuer":    func(l *slog.Logger) { l.Info("m", "a", lazy{}) },
		"group":         func(l *slog.Logger) { l.Info("m", slog.Group("g", slog.Group("h", "a", header))) },
		"with":          func(l *slog.Logger) { l.With("a", header).Info("m") },
		"with group":    func(l *slog.Logger) { l.WithGroup("g").With("a", header).Info("m", "b", header) },
	}
	for name, write := range log {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			for _, next := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
				write(slog.New(Handler(next)))
			}
			if strings.Contains(out.String(), canary) {
				t.Errorf("the log holds the secret:\n%s", out.String())
			}
			if strings.Count(out.String(), Mark) < 2 {
				t.Errorf("the log does not show that something was left out:\n%s", out.String())
			}
		})
	}
}

func TestHandlerKeepsTheRest(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := Handler(slog.NewJSONHandler(&out, &slog.HandlerOptions{
		Level: slog.LevelInfo,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	l := slog.New(h)
	l.Info("retry", "attempt", 2, "model", "openai/gpt-5.1", "list", []string{"a"}, "none", nil)
	const want = `{"level":"INFO","msg":"retry","attempt":2,"model":"openai/gpt-5.1","list":["a"],"none":null}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	if h.Enabled(context.Background(), slog.LevelDebug) {
		t.Error("the level of the next handler is not respected")
	}
}
