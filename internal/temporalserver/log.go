package temporalserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// levelSilent is above every level.
const levelSilent = slog.Level(100)

// logger passes to slog what is worth an operator's eye: errors while the server
// starts (its warnings are then about settings that are ours), warnings and
// errors while it runs, nothing while it stops, which makes many of both.
type logger struct {
	out   *slog.Logger
	level *slog.LevelVar
}

var (
	_ log.Logger      = logger{}
	_ log.WithLogger  = logger{}
	_ log.SLogWrapper = logger{}
)

func newLogger(out *slog.Logger) logger {
	if out == nil {
		out = slog.New(slog.DiscardHandler)
	}
	level := new(slog.LevelVar)
	level.Set(slog.LevelError)
	return logger{out: slog.New(&gate{Handler: out.Handler(), level: level}), level: level}
}

func (l logger) setLevel(level slog.Level) { l.level.Set(level) }

func (l logger) Debug(string, ...tag.Tag)           {}
func (l logger) Info(string, ...tag.Tag)            {}
func (l logger) Warn(msg string, tags ...tag.Tag)   { l.log(slog.LevelWarn, msg, tags) }
func (l logger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }
func (l logger) Panic(msg string, tags ...tag.Tag)  { panic(&fatal{msg: msg, tags: tags}) }
func (l logger) Fatal(msg string, tags ...tag.Tag)  { panic(&fatal{msg: msg, tags: tags}) }
func (l logger) SLog() *slog.Logger                 { return l.out }

func (l logger) With(tags ...tag.Tag) log.Logger {
	return logger{out: l.out.With(attrs(tags)...), level: l.level}
}

func (l logger) log(level slog.Level, msg string, tags []tag.Tag) {
	if l.out.Enabled(context.Background(), level) {
		l.out.Log(context.Background(), level, msg, attrs(tags)...)
	}
}

func attrs(tags []tag.Tag) []any {
	out := make([]any, len(tags))
	for i, t := range tags {
		out[i] = slog.Any(t.Key(), t.Value())
	}
	return out
}

// gate is a handler whose least level can be changed.
type gate struct {
	slog.Handler
	level *slog.LevelVar
}

func (g *gate) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= g.level.Level() && g.Handler.Enabled(ctx, level)
}

func (g *gate) WithAttrs(as []slog.Attr) slog.Handler {
	return &gate{Handler: g.Handler.WithAttrs(as), level: g.level}
}

func (g *gate) WithGroup(name string) slog.Handler {
	return &gate{Handler: g.Handler.WithGroup(name), level: g.level}
}

// fatal is what the server's Fatal and Panic calls become. While the server is
// put together it is caught and returned as an error; later it ends the
// process, as it would in a server of its own, and the store survives that.
type fatal struct {
	msg  string
	tags []tag.Tag
}

func (f *fatal) Error() string {
	var b strings.Builder
	b.WriteString("temporal server: " + f.msg)
	for _, t := range f.tags {
		fmt.Fprintf(&b, " %s=%v", t.Key(), t.Value())
	}
	return b.String()
}

// address is the address that the server could not listen on, if that was it.
func (f *fatal) address() string {
	for _, t := range f.tags {
		if address, ok := t.Value().(string); ok && t.Key() == tag.Address("").Key() {
			return address
		}
	}
	return ""
}
