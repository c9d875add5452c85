package temporalserver

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
)

// levelSilent is above every level.
const levelSilent = slog.Level(100)

// logger passes to slog what is worth an operator's eye: errors while the server
// starts if it does not start (else they were of parts that waited for others;
// its warnings are then about settings that are ours), warnings and errors while
// it runs, nothing while it stops, which makes many of both.
type logger struct {
	out  *slog.Logger
	gate *gate
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
	g := &gate{level: slog.LevelError, holds: true}
	return logger{out: slog.New(&gated{Handler: out.Handler(), gate: g}), gate: g}
}

func (l logger) Debug(string, ...tag.Tag)           {}
func (l logger) Info(string, ...tag.Tag)            {}
func (l logger) Warn(msg string, tags ...tag.Tag)   { l.log(slog.LevelWarn, msg, tags) }
func (l logger) Error(msg string, tags ...tag.Tag)  { l.log(slog.LevelError, msg, tags) }
func (l logger) DPanic(msg string, tags ...tag.Tag) { l.log(slog.LevelError, msg, tags) }
func (l logger) Panic(msg string, tags ...tag.Tag)  { panic(&fatal{msg: msg, tags: tags}) }
func (l logger) Fatal(msg string, tags ...tag.Tag)  { panic(&fatal{msg: msg, tags: tags}) }
func (l logger) SLog() *slog.Logger                 { return l.out }

func (l logger) With(tags ...tag.Tag) log.Logger {
	return logger{out: l.out.With(attrs(tags)...), gate: l.gate}
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

// gate decides what of a server's log passes.
type gate struct {
	mu    sync.Mutex
	level slog.Level
	// holds says that what would pass is held instead, for flush or for nobody.
	holds bool
	held  []func() error
}

// open lets records of a level and above pass from now on, and forgets what was
// held.
func (g *gate) open(level slog.Level) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.level, g.holds, g.held = level, false, nil
}

// flush passes on what was held.
func (g *gate) flush() {
	g.mu.Lock()
	held := g.held
	g.held = nil
	g.mu.Unlock()
	for _, pass := range held {
		_ = pass() // a log that cannot be written has no other place to say so
	}
}

func (g *gate) enabled(level slog.Level) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return level >= g.level
}

// hold keeps a record if the gate holds, and says whether it does.
func (g *gate) hold(pass func() error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.holds && len(g.held) < maxHeld {
		g.held = append(g.held, pass)
	}
	return g.holds
}

// maxHeld bounds what is held of a server that fails to start again and again.
const maxHeld = 100

// gated is a handler behind a gate.
type gated struct {
	slog.Handler
	gate *gate
}

func (g *gated) Enabled(ctx context.Context, level slog.Level) bool {
	return g.gate.enabled(level) && g.Handler.Enabled(ctx, level)
}

func (g *gated) Handle(ctx context.Context, r slog.Record) error {
	r = r.Clone()
	if g.gate.hold(func() error { return g.Handler.Handle(context.WithoutCancel(ctx), r) }) {
		return nil
	}
	return g.Handler.Handle(ctx, r)
}

func (g *gated) WithAttrs(as []slog.Attr) slog.Handler {
	return &gated{Handler: g.Handler.WithAttrs(as), gate: g.gate}
}

func (g *gated) WithGroup(name string) slog.Handler {
	return &gated{Handler: g.Handler.WithGroup(name), gate: g.gate}
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
