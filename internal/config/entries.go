package config

import "go.yaml.in/yaml/v3"

// entry is one key of a mapping and its value.
type entry struct {
	name       string
	key, value *yaml.Node
}

// entries lists the keys of a mapping, those of its merge keys (<<) included:
// a key that stands in the mapping itself is stronger, and of several merged
// mappings the first. A key that stands twice is a problem.
func (d *decoder) entries(n *yaml.Node, depth int) []entry {
	var own, merged []entry
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		switch {
		case !d.enter(key, depth):
			return nil
		case key.Kind != yaml.ScalarNode:
			d.add(at(key), "a key must be text, found %s", found(key))
		case key.ShortTag() == "!!merge":
			merged = append(merged, d.merged(value, depth+1)...)
		case seen[key.Value] != nil:
			d.add(at(key), "the key %s stands twice; the first is in line %d", quote(key.Value), seen[key.Value].Line)
		default:
			seen[key.Value] = key
			own = append(own, entry{key.Value, key, value})
		}
	}
	for _, e := range merged {
		if seen[e.name] == nil {
			seen[e.name] = e.key
			own = append(own, e)
		}
	}
	return own
}

// merged lists what a merge key brings: the keys of one mapping or of several.
func (d *decoder) merged(n *yaml.Node, depth int) []entry {
	place := at(n)
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if !d.enter(n, depth) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.entries(n, depth+1)
	case yaml.SequenceNode:
		var all []entry
		for _, item := range n.Content {
			if item.Kind == yaml.SequenceNode {
				d.add(at(item), "<< takes mappings, found a list")
				continue
			}
			all = append(all, d.merged(item, depth+1)...)
		}
		return all
	}
	d.add(place, "<< takes a mapping or a list of mappings, found %s", found(n))
	return nil
}
