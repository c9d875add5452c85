package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// checker looks at what one value alone cannot tell: references, required keys
// and values that exclude each other.
type checker struct {
	*decoder
	c *Config
	// bad holds the places of values that did not decode; what follows from
	// that is not reported as well.
	bad map[position]bool
}

func (k *checker) check() {
	k.bad = map[position]bool{}
	for _, e := range k.list {
		k.bad[position{e.Line, e.Column}] = true
	}
	k.policies()
	for name, a := range k.c.AuthProfiles {
		k.authProfile("auth_profiles."+name, a)
	}
	for name, p := range k.c.Providers {
		k.provider("providers."+name, name, p)
	}
	for name, a := range k.c.Agents {
		k.agent("agents."+name, a)
	}
	for name, t := range k.c.Tools {
		k.tool("tools."+name, t)
	}
	k.channels()
	k.git()
	k.gateway()
	k.address("telemetry.metrics_address", k.c.Telemetry.MetricsAddress)
}

// set says whether the file holds a key.
func (k *checker) set(path string) bool {
	_, ok := k.values[path]
	return ok
}

// fail reports a problem at a value, or at the nearest key around it.
func (k *checker) fail(path, format string, args ...any) {
	if place := k.place(path); !k.bad[place] {
		k.add(place, format, args...)
	}
}

func (k *checker) place(path string) position {
	if p, ok := k.values[path]; ok {
		return p
	}
	for path != "" {
		if p, ok := k.keys[path]; ok {
			return p
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return position{1, 1}
}

// required reports a key of the mapping at path that must be there. A value
// that is there but bad was reported when it was decoded.
func (k *checker) required(path, key, value string) bool {
	if value != "" {
		return true
	}
	if k.set(join(path, key)) {
		k.fail(join(path, key), "%s must not be empty", key)
	} else {
		k.add(k.keyPlace(path), "%s lacks the key %q", path, key)
	}
	return false
}

func (k *checker) keyPlace(path string) position {
	if p, ok := k.keys[path]; ok {
		return p
	}
	return k.place(path)
}

func (k *checker) policies() {
	k.ownPolicies()
	k.policy("policy", k.c.Policy)
	for name, a := range k.c.Agents {
		k.policy("agents."+name+".policy", a.Policy)
	}
}

func (k *checker) policy(path, name string) {
	if !k.set(path) || name == "" {
		return
	}
	known := append(sortedKeys(k.c.Policies), profiles.Names()...)
	k.reference(path, "policy", name, known)
}

// reference reports a name that is not among the known ones.
func (k *checker) reference(path, what, name string, known []string) bool {
	if slices.Contains(known, name) {
		return true
	}
	hint := meant(name, known)
	if hint == "" && len(known) == 0 {
		hint = ": none is configured"
	}
	k.fail(path, "unknown %s %s%s", what, quote(name), hint)
	return false
}

// once reports an entry of a list that stands twice.
func (k *checker) once(path string, list []string) {
	seen := map[string]bool{}
	for i, s := range list {
		if seen[s] {
			k.fail(item(path, i), "%s stands twice", quote(s))
		}
		seen[s] = true
	}
}

func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// source checks that exactly one of value, file and command is there.
func (k *checker) source(path string, s Source) {
	var given []string
	for _, key := range []string{"value", "file", "command"} {
		if k.set(join(path, key)) {
			given = append(given, key)
		}
	}
	if len(given) != 1 {
		has := "none"
		if len(given) > 0 {
			has = strings.Join(given, " and ")
		}
		k.add(k.keyPlace(path), "%s needs exactly one of value, file and command, and has %s", path, has)
		return
	}
	place := join(path, given[0])
	if s.Value.IsZero() && s.File == "" && (len(s.Command) == 0 || s.Command[0] == "") {
		k.fail(place, "%s must not be empty", given[0])
	}
}

// noSource checks that a kind without a credential is given none.
func (k *checker) noSource(path, kind string) {
	for _, key := range []string{"value", "file", "command"} {
		if k.set(join(path, key)) {
			k.add(k.keyPlace(join(path, key)), "kind %s takes no %s: remove it", kind, key)
		}
	}
}

// token checks a credential that is sent in a header or path as it stands.
func (k *checker) token(path, key string, s Secret) {
	place := join(path, key)
	switch {
	case !k.required(path, key, s.Reveal()):
	case strings.ContainsFunc(s.Reveal(), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		k.fail(place, "%s contains white space: write the token alone", key)
	}
}

// url checks an address that requests are sent to. Its messages do not show
// it, for it may hold a credential.
func (k *checker) url(path, address string, query bool) {
	if address == "" || !k.set(path) {
		return
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Host == "", u.Opaque != "":
		k.fail(path, "not a URL: write https://host/path")
	case !httpScheme(u.Scheme):
		k.fail(path, "the scheme %s is not supported: use http or https", quote(u.Scheme))
	case u.User != nil:
		k.fail(path, "no credentials in URLs: remove the part before @ and use an auth profile")
	case u.Hostname() == "":
		k.fail(path, "the URL has no host")
	case u.RawQuery != "" && !query:
		k.fail(path, "a query is not allowed in this URL: remove the part after ?")
	case u.Fragment != "":
		k.fail(path, "a fragment is not allowed in this URL: remove the part after #")
	}
}

// address checks host:port to listen at or to dial.
func (k *checker) address(path, address string) bool {
	if address == "" || !k.set(path) {
		return true
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		k.fail(path, "not an address: write host:port, such as 127.0.0.1:8080")
		return false
	}
	return true
}
