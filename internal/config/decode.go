package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	maxDepth = 32
	// maxValues bounds the values of a file after its aliases are expanded.
	maxValues  = 100_000
	maxNameLen = 128
)

type position struct{ line, column int }

func at(n *yaml.Node) position { return position{n.Line, n.Column} }

// decoder fills a struct from a YAML tree and remembers where everything
// stood, under paths such as "agents.main.fallbacks[0]".
type decoder struct {
	problems
	env func(string) (string, bool)
	// values holds the place of each value, keys that of the key before it.
	values, keys map[string]position
	visited      int
	expanded     int // bytes that came from variables
	exhausted    bool
}

// enter counts a value and refuses what is nested or repeated beyond reason.
func (d *decoder) enter(n *yaml.Node, depth int) bool {
	if d.exhausted {
		return false
	}
	if depth > maxDepth {
		d.add(at(n), "nested deeper than %d levels: an alias may contain itself", maxDepth)
		d.exhausted = true
		return false
	}
	if d.visited++; d.visited > maxValues {
		d.add(at(n), "more than %d values once aliases are expanded: use fewer aliases", maxValues)
		d.exhausted = true
		return false
	}
	return true
}

// shorthand is implemented by mappings that may be written as one text.
type shorthand interface{ fromText(string) }

var (
	durationType = reflect.TypeFor[time.Duration]()
	sizeType     = reflect.TypeFor[Size]()
	secretType   = reflect.TypeFor[Secret]()
	nodeType     = reflect.TypeFor[*yaml.Node]()
)

// decode fills v from n. Problems are collected, never returned.
func (d *decoder) decode(path string, n *yaml.Node, v reflect.Value, depth int) {
	place := at(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !d.enter(n, depth) {
		return
	}
	d.values[path] = place
	if !knownTag(n) {
		d.add(place, "the tag %s has no meaning here: remove it", quote(n.Tag))
		return
	}
	switch v.Type() {
	case durationType, sizeType, secretType:
		d.scalar(place, n, v)
		return
	case nodeType:
		d.raw(place, n, v, depth)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(path, place, n, v, depth)
	case reflect.Map:
		d.names(path, place, n, v, depth)
	case reflect.Slice:
		d.items(path, place, n, v, depth)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.decode(path, n, p.Elem(), depth+1)
		d.values[path] = place
		v.Set(p)
	default:
		d.scalar(place, n, v)
	}
}

func knownTag(n *yaml.Node) bool {
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq", "!!merge":
		return true
	}
	return false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// found names what a node is, for messages.
func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}

// object decodes a mapping with fixed keys.
func (d *decoder) object(path string, place position, n *yaml.Node, v reflect.Value, depth int) {
	if s, ok := v.Addr().Interface().(shorthand); ok && n.Kind == yaml.ScalarNode && !isNull(n) {
		text := ""
		d.scalar(place, n, reflect.ValueOf(&text).Elem())
		s.fromText(text)
		return
	}
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.add(place, "expected a mapping, found %s", found(n))
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range d.entries(n, depth) {
		f, ok := fieldNamed(fields, e.name)
		if !ok {
			d.unknownKey(path, e, fields)
			continue
		}
		child := join(path, e.name)
		d.keys[child] = at(e.key)
		target := v.FieldByIndex(f.index)
		before := len(d.list)
		d.decode(child, e.value, target, depth+1)
		if f.rng != "" && len(d.list) == before && !inRange(target, f.rng) {
			d.add(at(e.value), "%s must be %s", e.name, map[string]string{"positive": "above zero", "not negative": "zero or more", "memory": "at least 32MiB"}[f.rng])
		}
		if f.oneOf != nil && target.Kind() == reflect.String {
			d.oneOf(e.value, e.name, target.String(), f.oneOf)
		}
	}
}

// leastMemory is what a process needs that is to do anything at all, in bytes.
const leastMemory = 32 << 20

func inRange(v reflect.Value, rng string) bool {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	var n float64
	switch v.Kind() {
	case reflect.Float64:
		n = v.Float()
	case reflect.Int, reflect.Int64:
		n = float64(v.Int())
	}
	return n > 0 && rng != "memory" || n == 0 && rng == "not negative" || n >= leastMemory
}

func (d *decoder) unknownKey(path string, e entry, fields []field) {
	switch {
	case d.full():
	case (path == "channels" || strings.HasPrefix(path, "channels.")) && channelTiming(e.name):
		d.add(at(e.key), "channel timings are built in and cannot be set: remove %s", quote(e.name))
	default:
		d.add(at(e.key), "unknown key %s%s", quote(e.name), meant(e.name, keysOf(fields)))
	}
}

// channelTiming tells keys that would set what P1.1 to P1.5 build in.
func channelTiming(key string) bool {
	key = strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(key))
	for _, word := range []string{
		"retry", "retries", "attempt", "backoff", "delay", "jitter", "envelope", "reconnect", "timeout", "wait", "timing", "interval",
	} {
		if strings.Contains(key, word) {
			return true
		}
	}
	return false
}

func (d *decoder) oneOf(n *yaml.Node, key, word string, words []string) {
	if word == "" || slices.Contains(words, word) {
		return // an empty word was reported, or is by the check for required keys
	}
	written := written(n)
	d.add(at(n), "unknown %s %s%s: one of %s", key, quote(written), meant(written, words), strings.Join(words, ", "))
}

// written is the text of a scalar before variables were expanded.
func written(n *yaml.Node) string {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Value
}

// names decodes a mapping whose keys are the user's own names.
func (d *decoder) names(path string, place position, n *yaml.Node, v reflect.Value, depth int) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.add(place, "expected a mapping of names, found %s", found(n))
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, e := range d.entries(n, depth) {
		if strings.HasPrefix(path, "channels.") && channelTiming(e.name) && e.value.Kind == yaml.ScalarNode {
			d.unknownKey(path, e, nil)
			continue
		}
		if fault := badName(e.name); fault != "" {
			d.add(at(e.key), "bad name %s: %s", quote(e.name), fault)
			continue
		}
		child := join(path, e.name)
		d.keys[child] = at(e.key)
		value := reflect.New(v.Type().Elem()).Elem()
		d.decode(child, e.value, value, depth+1)
		m.SetMapIndex(reflect.ValueOf(e.name), value)
	}
	v.Set(m)
}

// badName says what is wrong with a name that the user gave. Names appear in
// "provider/model", in flags and in workflow ids.
func badName(s string) string {
	if len(s) > maxNameLen {
		return fmt.Sprintf("it is longer than %d bytes", maxNameLen)
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("-_.", rune(c))) {
			return "use letters, digits, -, _ and ., and begin with a letter or digit"
		}
	}
	if s == "" {
		return "it is empty"
	}
	return ""
}

func (d *decoder) items(path string, place position, n *yaml.Node, v reflect.Value, depth int) {
	if isNull(n) {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.add(place, "expected a list, found %s: write [a, b]", found(n))
		return
	}
	items := reflect.MakeSlice(v.Type(), 0, 0)
	for i, item := range n.Content {
		value := reflect.New(v.Type().Elem()).Elem()
		d.decode(fmt.Sprintf("%s[%d]", path, i), item, value, depth+1)
		items = reflect.Append(items, value)
		if d.exhausted {
			break
		}
	}
	v.Set(items)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
