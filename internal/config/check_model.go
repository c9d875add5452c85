package config

import (
	"slices"
	"strings"
	"unicode"
)

func (k *checker) authProfile(path string, a AuthProfile) {
	if k.required(path, "provider", a.Provider) {
		k.reference(join(path, "provider"), "provider", a.Provider, sortedKeys(k.c.Providers))
	}
	switch {
	case !k.required(path, "kind", a.Kind):
	case a.Kind == AuthNone:
		k.noSource(path, a.Kind)
	default:
		k.source(path, a.Source)
	}
}

func (k *checker) provider(path, name string, p Provider) {
	if k.required(path, "dialect", p.Dialect) && p.BaseURL == "" {
		k.add(k.keyPlace(path), "%s lacks the key \"base_url\": dialect %s has no address of its own", path, p.Dialect)
	}
	k.url(join(path, "base_url"), p.BaseURL, false)
	k.url(join(path, "proxy"), p.Proxy, false)
	for i, ref := range p.AuthProfiles {
		place := item(join(path, "auth_profiles"), i)
		if !k.reference(place, "auth profile", ref, sortedKeys(k.c.AuthProfiles)) {
			continue
		}
		if owner := k.c.AuthProfiles[ref].Provider; owner != "" && owner != name {
			k.fail(place, "auth profile %s belongs to provider %s, not to %s", quote(ref), quote(owner), quote(name))
		}
	}
	k.once(join(path, "auth_profiles"), p.AuthProfiles)
	k.models(path, p)
	for header, value := range p.Headers {
		k.header(join(path, "headers"), header, value)
	}
}

func (k *checker) models(path string, p Provider) {
	list := join(path, "models")
	if len(p.Models) == 0 {
		k.add(k.keyPlace(list), "%s lacks models: list at least one", path)
	}
	names := make([]string, len(p.Models))
	for i, m := range p.Models {
		names[i] = m.Name
		place := item(list, i)
		switch {
		case m.Name == "" && k.set(join(place, "name")):
			k.fail(join(place, "name"), "a model's name must not be empty")
		case m.Name == "":
			k.fail(place, "a model needs a name")
		case strings.ContainsAny(m.Name, " \t\r\n"):
			k.fail(place, "the model name %s contains white space", quote(m.Name))
		}
	}
	k.once(list, names)
}

var credentialHeaders = []string{"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}

func (k *checker) header(path, name string, value Secret) {
	place := join(path, name)
	switch {
	case slices.Contains(credentialHeaders, strings.ToLower(name)):
		k.add(k.keyPlace(place), "no credentials in headers: remove %s and use an auth profile", quote(name))
	case strings.ContainsFunc(value.Reveal(), unicode.IsControl):
		k.fail(place, "not the value of a header: it holds a line break or another control character")
	}
}

func (k *checker) agent(path string, a Agent) {
	if k.required(path, "model", a.Model) {
		k.model(join(path, "model"), a.Model)
	}
	list := join(path, "fallbacks")
	for i, f := range a.Fallbacks {
		if k.model(item(list, i), f) && f == a.Model {
			k.fail(item(list, i), "%s is the agent's model already", quote(f))
		}
	}
	k.once(list, a.Fallbacks)
	for i, name := range a.Tools {
		k.reference(item(join(path, "tools"), i), "tool", name, sortedKeys(k.c.Tools))
	}
	k.once(join(path, "tools"), a.Tools)
	if a.Temperature != nil && (*a.Temperature < 0 || *a.Temperature > 2) {
		k.fail(join(path, "temperature"), "temperature must be from 0 to 2")
	}
	if (a.SlowStream.TokensPerSecond > 0) != (a.SlowStream.For > 0) {
		k.fail(join(path, "slow_stream"), "slow_stream needs both tokens_per_second and for, or neither")
	}
}

// model checks a "provider/model" reference.
func (k *checker) model(path, ref string) bool {
	provider, model, ok := strings.Cut(ref, "/")
	if !ok || provider == "" || model == "" {
		k.fail(path, "expected provider/model, found %s", quote(ref))
		return false
	}
	if !k.reference(path, "provider", provider, sortedKeys(k.c.Providers)) {
		return false
	}
	p := k.c.Providers[provider]
	if _, ok := p.Model(model); ok {
		return true
	}
	known := make([]string, len(p.Models))
	for i, m := range p.Models {
		known[i] = m.Name
	}
	k.fail(path, "provider %s has no model %s%s", quote(provider), quote(model), meant(model, known))
	return false
}

func (k *checker) tool(path string, t Tool) {
	if !k.required(path, "kind", t.Kind) {
		return
	}
	url, command, queue := k.set(join(path, "url")), k.set(join(path, "command")), k.set(join(path, "task_queue"))
	switch t.Kind {
	case "mcp":
		if url == command {
			k.add(k.keyPlace(path), "%s needs exactly one of url and command", path)
		}
		if queue {
			k.add(k.keyPlace(join(path, "task_queue")), "kind mcp takes no task_queue: remove it")
		}
		if command && (len(t.Command) == 0 || t.Command[0] == "") {
			k.fail(join(path, "command"), "command must not be empty")
		}
		if url {
			k.required(path, "url", t.URL)
		}
	case "activity":
		k.required(path, "task_queue", t.TaskQueue)
		for _, key := range []string{"url", "command"} {
			if k.set(join(path, key)) {
				k.add(k.keyPlace(join(path, key)), "kind activity takes no %s: remove it", key)
			}
		}
	}
	k.url(join(path, "url"), t.URL, true)
}
