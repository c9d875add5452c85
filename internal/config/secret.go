package config

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/holdfast-dev/holdfast/internal/redact"
)

// Secret is a value that cannot be printed by accident: every way of
// formatting or encoding it gives "[redacted]", or nothing when it is empty.
// The value lies behind a pointer, so that even a struct that hides a Secret in
// an unexported field prints an address at most.
type Secret struct{ value *string }

// NewSecret returns a Secret that holds s, and registers s with
// [redact.Add] so that logs and errors are scrubbed of it.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	redact.Add(s)
	return Secret{&s}
}

// Reveal returns the value. Give it only to the request that needs it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero says whether the secret is empty.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal compares the values.
func (s Secret) Equal(o Secret) bool { return s.Reveal() == o.Reveal() }

// String returns "[redacted]", or "" if the secret is empty.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redact.Mark
}

// Format prints String for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText encodes String.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON encodes String.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalYAML encodes String.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
