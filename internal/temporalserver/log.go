package temporalserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// logger passes the server's warnings and errors to slog until it is silenced.
type logger struct {
	out    *slog.Logger
	silent *atomic.Bool
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
	silent := new(atomic.Bool)
	return logger{out: slog.New(&gate{Handler: out.Handler(), silent: silent}), silent: silent}
}

func (l logger) Debug(string, ...tag.Tag)           {}
func (l logger) Info(string, ...tag.Tag)            {}
func (l logger) Warn(msg string, tags ...tag.Tag)   { l.log(slog.LevelWarn, msg, tags) }
func (l logger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }
func (l logger) Panic(msg string, tags ...tag.Tag)  { panic(newFatal(msg, tags)) }
func (l logger) Fatal(msg string, tags ...tag.Tag)  { panic(newFatal(msg, tags)) }
func (l logger) SLog() *slog.Logger                 { return l.out }
func (l logger) With(tags ...tag.Tag) log.Logger {
	return logger{out: l.out.With(attrs(tags)...), silent: l.silent}
}
func (l logger) log(lv slog.Level, m string, t []tag.Tag) {
	if l.out.Enabled(context.Background(), lv) {
		l.out.Log(context.Background(), lv, m, attrs(t)...)
	}
}

func attrs(tags []tag.Tag) []any {
	out := make([]any, len(tags))
	for i, t := range tags {
		out[i] = slog.Any(t.Key(), t.Value())
	}
	return out
}

// gate lets warnings and errors through while the server is not being stopped;
// a stop makes many of both that mean nothing.
type gate struct {
	slog.Handler
	silent *atomic.Bool
}

func (g *gate) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && !g.silent.Load() && g.Handler.Enabled(ctx, level)
}

func (g *gate) WithAttrs(as []slog.Attr) slog.Handler {
	return &gate{Handler: g.Handler.WithAttrs(as), silent: g.silent}
}

func (g *gate) WithGroup(name string) slog.Handler {
	return &gate{Handler: g.Handler.WithGroup(name), silent: g.silent}
}

// fatal is what the server's Fatal and Panic calls become. While the server is
// put together it is caught and returned as an error; later it ends the
// process, as it would in a server of its own, and the store survives that.
type fatal struct {
	msg  string
	tags []tag.Tag
}

func newFatal(msg string, tags []tag.Tag) *fatal { return &fatal{msg: msg, tags: tags} }

func (f *fatal) Error() string {
	var b strings.Builder
	b.WriteString("temporal server: " + f.msg)
	for _, t := range f.tags {
		fmt.Fprintf(&b, " %s=%v", t.Key(), t.Value())
	}
	return b.String()
}
