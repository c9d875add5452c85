package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// The words an input may use.
var (
	surfaces = []string{
		string(policies.SurfaceModel), string(policies.SurfaceDiscord), string(policies.SurfaceTelegram),
		string(policies.SurfaceGit), string(policies.SurfaceDelivery),
	}
	operations = []string{
		string(policies.OpCreate), string(policies.OpSend), string(policies.OpWebhook), string(policies.OpEdit),
		string(policies.OpDelete), string(policies.OpReact), string(policies.OpPin), string(policies.OpTyping),
		string(policies.OpRead), string(policies.OpWrite), string(policies.OpPoll),
		string(policies.OpLsRemote), string(policies.OpFetch), string(policies.OpClone), string(policies.OpPush), opSync,
	}
	phases = []string{
		string(policies.PhaseConnect), string(policies.PhaseHeaders), string(policies.PhaseFirstEvent), string(policies.PhaseBody),
	}
	terminations = []string{"signal", "timeout", "output_limit"}
)

// opSync is a sync, of which only the fetch asks the outside (G7).
const opSync = "sync"

// setters read the keys of an input line.
var setters = map[string]func(*policies.Fault, json.RawMessage) error{
	"surface":     word(surfaces, func(f *policies.Fault, s string) { f.Surface = policies.Surface(s) }),
	"operation":   word(operations, setOperation),
	"phase":       word(phases, func(f *policies.Fault, s string) { f.Phase = policies.Phase(s) }),
	"termination": word(terminations, func(f *policies.Fault, s string) { f.Termination = s }),
	"provider":    text(func(f *policies.Fault) *string { return &f.Provider }),
	"message":     text(func(f *policies.Fault) *string { return &f.Message }),
	"code":        text(func(f *policies.Fault) *string { return &f.Code }),
	"type":        text(func(f *policies.Fault) *string { return &f.Type }),
	"syscall":     text(func(f *policies.Fault) *string { return &f.Syscall }),
	"stderr":      text(func(f *policies.Fault) *string { return &f.Stderr }),
	"status":      setStatus,
	"headers":     setHeaders,
	"body":        setBody,
	"argv":        setArgv,
	"details":     setDetails,
	"exit_code":   setExitCode,
	"now":         setNow,
}

// keys are the keys of an input line, sorted, for hints.
var keys = sorted(setters)

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// parseFault reads one input line. null means "not known".
func parseFault(line []byte, now time.Time) (*policies.Fault, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return nil, notAnObject(err)
	}
	if object == nil {
		return nil, errors.New("want a JSON object, not null")
	}
	f := &policies.Fault{Surface: policies.SurfaceModel, Now: now}
	for _, name := range sorted(object) {
		set, ok := setters[name]
		if !ok {
			return nil, fmt.Errorf("unknown key %q%s", name, hint(name, keys))
		}
		if raw := object[name]; !isNull(raw) {
			if err := set(f, raw); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return f, nil
}

func notAnObject(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("not JSON at byte %d: %w", syntax.Offset, err)
	}
	return errors.New("want a JSON object")
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

func hint(name string, known []string) string {
	if near := profiles.Nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

func word(known []string, set func(*policies.Fault, string)) func(*policies.Fault, json.RawMessage) error {
	return func(f *policies.Fault, raw json.RawMessage) error {
		s, err := textOf(raw)
		if err != nil {
			return err
		}
		if s != "" && !slices.Contains(known, s) {
			return fmt.Errorf("unknown word %q%s; want one of %s", s, hint(s, known), strings.Join(known, ", "))
		}
		if s != "" {
			set(f, s)
		}
		return nil
	}
}

func text(at func(*policies.Fault) *string) func(*policies.Fault, json.RawMessage) error {
	return func(f *policies.Fault, raw json.RawMessage) (err error) {
		*at(f), err = textOf(raw)
		return err
	}
}

// textOf reads a string; numbers and booleans are taken as written, since codes
// and headers come as all of them.
func textOf(raw json.RawMessage) (string, error) {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String(), nil
	}
	var b bool
	if json.Unmarshal(raw, &b) == nil {
		return strconv.FormatBool(b), nil
	}
	return "", errors.New("want a string")
}

func texts(raw json.RawMessage) ([]string, error) {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		items = []json.RawMessage{raw}
	}
	out := make([]string, len(items))
	for i, item := range items {
		s, err := textOf(item)
		if err != nil {
			return nil, errors.New("want a string or a list of strings")
		}
		out[i] = s
	}
	return out, nil
}

func setOperation(f *policies.Fault, s string) {
	if f.Operation = policies.Operation(s); s == opSync {
		f.Operation = policies.OpFetch
	}
}

func setStatus(f *policies.Fault, raw json.RawMessage) error {
	if json.Unmarshal(raw, &f.Status) != nil || f.Status < 0 || f.Status > 999 {
		return errors.New("want a whole number such as 429")
	}
	return nil
}

// setHeaders takes an object of strings or lists; anything else is no headers.
func setHeaders(f *policies.Fault, raw json.RawMessage) error {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return nil
	}
	f.Header = make(http.Header, len(object))
	for _, name := range sorted(object) {
		raw := object[name]
		if isNull(raw) {
			continue
		}
		values, err := texts(raw)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		name = http.CanonicalHeaderKey(name)
		f.Header[name] = append(f.Header[name], values...)
	}
	return nil
}

// setBody takes a string as the body's text, and any other JSON as the body.
func setBody(f *policies.Fault, raw json.RawMessage) error {
	body := []byte(raw)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		body = []byte(s)
	}
	f.Body = slices.Clone(body[:min(len(body), policies.MaxBody)])
	return nil
}

func setArgv(f *policies.Fault, raw json.RawMessage) (err error) {
	f.Argv, err = texts(raw)
	return err
}

func setDetails(f *policies.Fault, raw json.RawMessage) (err error) {
	f.Details, err = texts(raw)
	return err
}

func setExitCode(f *policies.Fault, raw json.RawMessage) error {
	var code int
	if json.Unmarshal(raw, &code) != nil {
		return errors.New("want a whole number such as 128")
	}
	f.ExitCode = &code
	return nil
}

func setNow(f *policies.Fault, raw json.RawMessage) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return errors.New(wantTime)
	}
	t, err := parseTime(s)
	if err == nil {
		f.Now = t
	}
	return err
}

const wantTime = "want a time such as \"2026-01-02T15:04:05Z\""

func parseTime(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.New(wantTime)
	}
	return t, nil
}
