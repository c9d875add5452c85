package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
)

// Logger is the process's log while the demo runs: the notices of retries and
// failovers (I5) come as plain lines while they happen, other warnings and
// errors go to rest. The SDK's line about each failed attempt is left out, since
// the timeline tells of it.
func Logger(w io.Writer, rest slog.Handler) *slog.Logger {
	return slog.New(&notices{out: w, rest: rest})
}

type notices struct {
	out  io.Writer
	rest slog.Handler
}

func (n *notices) Enabled(ctx context.Context, level slog.Level) bool {
	return n.rest.Enabled(ctx, level)
}

func (n *notices) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &notices{out: n.out, rest: n.rest.WithAttrs(attrs)}
}

func (n *notices) WithGroup(name string) slog.Handler {
	return &notices{out: n.out, rest: n.rest.WithGroup(name)}
}

func (n *notices) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == "Activity error.":
		return nil
	case strings.HasPrefix(r.Message, "[RETRY]"), strings.HasPrefix(r.Message, "[FAILOVER]"), r.Message == "git retry":
		_, err := fmt.Fprintln(n.out, "  "+notice(r))
		return err
	}
	return n.rest.Handle(ctx, r)
}

// notice is the message with those attributes that are the notice's own.
func notice(r slog.Record) string {
	s := r.Message
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "rule", "operation", "attempt", "max_attempts", "delay":
			s += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	return s
}
