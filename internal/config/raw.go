package config

import (
	"reflect"

	"go.yaml.in/yaml/v3"
)

// raw keeps a mapping as nodes, with aliases, merge keys and variables
// expanded, for a package that knows its keys.
func (d *decoder) raw(place position, n *yaml.Node, v reflect.Value, depth int) {
	if n.Kind != yaml.MappingNode {
		d.add(place, "expected a mapping, found %s", found(n))
		return
	}
	v.Set(reflect.ValueOf(d.clone(n, depth)))
}

// clone copies a tree without aliases and merge keys and with variables
// expanded. The nodes keep their places.
func (d *decoder) clone(n *yaml.Node, depth int) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	if !d.enter(n, depth) {
		return c
	}
	if !knownTag(n) {
		d.add(at(n), "the tag %s has no meaning here: remove it", quote(n.Tag))
		return c
	}
	switch n.Kind {
	case yaml.MappingNode:
		for _, e := range d.entries(n, depth) {
			key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: e.name, Line: e.key.Line, Column: e.key.Column}
			c.Content = append(c.Content, key, d.clone(e.value, depth+1))
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			c.Content = append(c.Content, d.clone(item, depth+1))
		}
	case yaml.ScalarNode:
		text, expanded, _ := d.text(at(n), n)
		c.Value = text
		if expanded && n.Style == 0 {
			c.Tag = "" // what a plain ${NAME} stands for may be a number
		}
	}
	return c
}
