package profiles

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/policies"
	"go.yaml.in/yaml/v3"
)

// Error is a mistake in a profile, with its place.
type Error struct {
	File         string
	Line, Column int
	Problem      string
}

// Error is "FILE:LINE:COLUMN: problem".
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// Base finds a profile that a user's profile extends and that is neither built
// in nor in the same file.
type Base = func(name string) (policies.Policy, error)

// Parse reads a document that maps names to profiles, as "policies" of
// holdfast.yaml does. Every mistake is an [Error]; several are joined. base may
// be nil.
func Parse(file string, data []byte, base Base) (map[string]Profile, error) {
	node, err := document(file, data)
	if err != nil || node == nil {
		return map[string]Profile{}, err
	}
	return ParseNode(file, node, base)
}

// ParseNode is Parse for a node of a larger document.
func ParseNode(file string, node *yaml.Node, base Base) (map[string]Profile, error) {
	d := &decoder{file: file}
	r := resolver{decoder: d, base: base, nodes: map[string]pair{}, done: map[string]Profile{}}
	for _, p := range d.pairs(node, "policies", "") {
		if slices.Contains(builtIn, p.name) {
			d.fail(p.key, "%q is a built-in policy profile; give yours another name and say \"extends: %s\"", p.name, p.name)
			continue
		}
		r.nodes[p.name] = p
	}
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		r.resolve(name, nil)
	}
	return r.done, d.err()
}

// parseBuiltIn reads an embedded file, whose document is one profile.
func parseBuiltIn(name string, data []byte, earlier map[string]Profile) (Profile, error) {
	file := folder + name + ".yaml"
	node, err := document(file, data)
	if err != nil {
		return Profile{}, err
	}
	d := &decoder{file: file}
	parent := Profile{Origins: map[string]Origin{}}
	extends, _ := d.extends(node)
	if extends != "" {
		parent = earlier[extends]
	}
	p := d.apply(name, node, parent)
	p.Extends = extends
	return p, d.err()
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

// document is the root of the YAML document in data; nil where it is empty.
func document(file string, data []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatchIndex(text); m != nil {
			line, _ = strconv.Atoi(text[m[2]:m[3]])
			text = text[m[1]:]
		}
		return nil, &Error{File: file, Line: line, Column: 1, Problem: text}
	}
	if len(doc.Content) == 0 {
		return nil, nil
	}
	return doc.Content[0], nil
}

// resolver reads the profiles of one document, parents first.
type resolver struct {
	decoder *decoder
	base    Base
	nodes   map[string]pair
	done    map[string]Profile
	failed  []string
}

func (r *resolver) resolve(name string, path []string) (Profile, bool) {
	if p, ok := r.done[name]; ok {
		return p, true
	}
	if slices.Contains(r.failed, name) {
		return Profile{}, false
	}
	node := r.nodes[name].value
	extends, at := r.decoder.extends(node)
	if extends == "" {
		extends, at = "default", node
	}
	path = append(slices.Clone(path), name)
	parent, ok := r.parent(extends, at, path)
	if !ok {
		r.failed = append(r.failed, name)
		return Profile{}, false
	}
	p := r.decoder.apply(name, node, parent)
	p.Extends = extends
	r.done[name] = p
	return p, true
}

func (r *resolver) parent(name string, at *yaml.Node, path []string) (Profile, bool) {
	if i := slices.Index(path, name); i >= 0 {
		r.decoder.fail(at, "extends goes in a circle: %s", strings.Join(append(path[i:], name), " → "))
		r.failed = append(r.failed, path...)
		return Profile{}, false
	}
	if _, ok := r.nodes[name]; ok {
		return r.resolve(name, path)
	}
	if slices.Contains(builtIn, name) {
		p, err := LoadProfile(name)
		if err != nil {
			r.decoder.fail(at, "%v", err)
		}
		return p, err == nil
	}
	if r.base != nil {
		if p, err := r.base(name); err == nil {
			return inherited(name, p), true
		}
	}
	known := append(Names(), slices.Sorted(maps.Keys(r.nodes))...)
	r.decoder.fail(at, "unknown policy profile %q%s", name, didYouMean(name, known))
	return Profile{}, false
}

// inherited is a parent of which only the policy is known.
func inherited(name string, policy policies.Policy) Profile {
	p := Profile{Policy: clonePolicy(policy), Origins: map[string]Origin{}}
	for _, f := range fields {
		p.Origins[f.key] = Origin{Profile: name}
	}
	return p
}

// decoder reads nodes and collects what is wrong with them.
type decoder struct {
	file string
	errs []error
}

func (d *decoder) fail(at *yaml.Node, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.file, Line: at.Line, Column: at.Column, Problem: fmt.Sprintf(format, args...)})
}

func (d *decoder) err() error { return errors.Join(d.errs...) }

// pair is one entry of a mapping.
type pair struct {
	name       string
	key, value *yaml.Node
}

// pairs are the entries of a mapping; what names it in errors.
func (d *decoder) pairs(node *yaml.Node, what, hint string) []pair {
	node = target(node)
	if node.Kind != yaml.MappingNode {
		d.fail(node, "%s must be a mapping%s", what, hint)
		return nil
	}
	var out []pair
	for i := 0; i+1 < len(node.Content); i += 2 {
		p := pair{name: node.Content[i].Value, key: node.Content[i], value: target(node.Content[i+1])}
		if slices.ContainsFunc(out, func(o pair) bool { return o.name == p.name }) {
			d.fail(p.key, "key %q is given twice", p.name)
			continue
		}
		out = append(out, p)
	}
	return out
}

// target follows a YAML alias.
func target(node *yaml.Node) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	return node
}

// extends is the profile that node extends, and where it says so.
func (d *decoder) extends(node *yaml.Node) (string, *yaml.Node) {
	node = target(node)
	if node.Kind != yaml.MappingNode {
		return "", node
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "extends" {
			return node.Content[i+1].Value, node.Content[i+1]
		}
	}
	return "", node
}

// apply lays the keys of node over parent.
func (d *decoder) apply(name string, node *yaml.Node, parent Profile) Profile {
	p := parent.clone()
	p.Policy.Name = name
	set := map[string]*yaml.Node{}
	before := len(d.errs)
	d.group(&p.Policy, node, "", fmt.Sprintf("policy profile %q", name), set)
	for key, at := range set {
		p.Origins[key] = Origin{Profile: name, File: d.file, Line: at.Line}
	}
	if len(d.errs) == before {
		d.checkOrder(&p.Policy, node, set)
		d.checkSimple(&p, node)
	}
	return p
}
