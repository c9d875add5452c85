package redact

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
)

// Handler wraps next so that it sees only scrubbed records: the message and
// every attribute, groups and wrapped errors included, pass through [String].
// An attribute whose key names a credential ("authorization", "token", …) loses
// its value whatever that is.
func Handler(next slog.Handler) slog.Handler { return &handler{next: next} }

type handler struct{ next slog.Handler }

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	clean := slog.NewRecord(r.Time, r.Level, String(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		clean.AddAttrs(scrubAttr(a))
		return true
	})
	return h.next.Handle(ctx, clean)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{next: h.next.WithAttrs(scrubAttrs(attrs))}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{next: h.next.WithGroup(name)}
}

var credentialKey = regexp.MustCompile(`(?i)^(?:` + credentialHeaders + `|` + credentialNames + `)$`)

func scrubAttrs(attrs []slog.Attr) []slog.Attr {
	clean := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		clean[i] = scrubAttr(a)
	}
	return clean
}

func scrubAttr(a slog.Attr) slog.Attr {
	if credentialKey.MatchString(a.Key) {
		return slog.String(a.Key, Mark)
	}
	return slog.Attr{Key: String(a.Key), Value: scrubValue(a.Value.Resolve())}
}

func scrubValue(v slog.Value) slog.Value {
	switch v.Kind() {
	case slog.KindString:
		return slog.StringValue(String(v.String()))
	case slog.KindGroup:
		return slog.GroupValue(scrubAttrs(v.Group())...)
	case slog.KindAny:
		return scrubAny(v)
	default: // numbers, booleans, times and durations
		return v
	}
}

// scrubAny keeps a value that holds nothing to hide, in whichever way the next
// handler prints it, and replaces any other by its scrubbed text.
func scrubAny(v slog.Value) slog.Value {
	switch x := v.Any().(type) {
	case nil:
		return v
	case error:
		return slog.StringValue(String(x.Error()))
	case []byte:
		return slog.StringValue(String(string(x)))
	}
	text := fmt.Sprintf("%+v", v.Any())
	if clean := String(text); clean != text {
		return slog.StringValue(clean)
	}
	if encoded, err := json.Marshal(v.Any()); err == nil {
		if clean := String(string(encoded)); clean != string(encoded) {
			return slog.StringValue(clean)
		}
	}
	return v
}
