package config

import (
	"errors"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// OwnPolicies reads the user's own policy profiles, which may extend each other
// and the built-in ones.
func (c *Config) OwnPolicies() (map[string]profiles.Profile, error) {
	if len(c.Policies) == 0 {
		return nil, nil
	}
	all := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, name := range slices.Sorted(maps.Keys(c.Policies)) {
		n := c.Policies[name]
		if n == nil {
			n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		}
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name, Line: n.Line, Column: n.Column}
		all.Content = append(all.Content, key, n)
	}
	return profiles.ParseNode(c.file, all, nil)
}

// ownPolicies reports what is wrong with the user's own policy profiles, each
// problem at its place.
func (k *checker) ownPolicies() {
	if len(k.list) > 0 {
		return // a value that could not be expanded would be reported twice
	}
	_, err := k.c.OwnPolicies()
	for _, e := range flatten(err) {
		var at *profiles.Error
		if errors.As(e, &at) {
			k.add(position{at.Line, at.Column}, "%s", at.Problem)
		}
	}
}

func flatten(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	if err == nil {
		return nil
	}
	return []error{err}
}
