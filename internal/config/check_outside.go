package config

import (
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/contract"
)

func (k *checker) channels() {
	for name, a := range k.c.Channels.Discord.Accounts {
		path := "channels.discord.accounts." + name
		k.token(path, "token", a.Token)
		k.url(join(path, "api_url"), a.APIURL, false)
	}
	for name, a := range k.c.Channels.Telegram.Accounts {
		path := "channels.telegram.accounts." + name
		k.token(path, "token", a.Token)
		k.url(join(path, "api_url"), a.APIURL, false)
	}
}

func (k *checker) git() {
	g := k.c.Git
	if k.set("git.host") {
		if err := contract.ValidateGitHost(g.Host); err != nil {
			k.fail("git.host", "not a name for a task queue: use letters, digits, -, _ and ., and begin with a letter or digit")
		}
	}
	own := k.directories("git.roots", g.Roots)
	shared := k.directories("git.shared_roots", g.SharedRoots)
	for i, dir := range shared {
		if slices.Contains(own, dir) {
			k.fail(item("git.shared_roots", i), "%s is listed in git.roots too: it is either this host's or shared", quote(dir))
		}
	}
	for name, a := range g.AuthProfiles {
		k.gitAuthProfile("git.auth_profiles."+name, a)
	}
}

func (k *checker) directories(path string, dirs []string) []string {
	clean := make([]string, len(dirs))
	for i, dir := range dirs {
		if strings.TrimSpace(dir) == "" {
			k.fail(item(path, i), "a directory must not be empty")
		}
		clean[i] = filepath.Clean(dir)
	}
	k.once(path, clean)
	return clean
}

func (k *checker) gitAuthProfile(path string, a GitAuthProfile) {
	if !k.required(path, "kind", a.Kind) {
		return
	}
	switch a.Kind {
	case GitAuthToken:
		k.source(path, a.Source)
	case GitAuthBasic:
		k.required(path, "username", a.Username)
		k.source(path, a.Source)
	case GitAuthSSHKey:
		k.required(path, "file", a.File)
		for _, key := range []string{"value", "command"} {
			if k.set(join(path, key)) {
				k.add(k.keyPlace(join(path, key)), "kind ssh_key takes no %s: name the private key with file", key)
			}
		}
	case GitAuthSSHAgent:
		k.noSource(path, a.Kind)
	}
	ssh := a.Kind == GitAuthSSHKey || a.Kind == GitAuthSSHAgent
	if known := join(path, "known_hosts"); k.set(known) && !ssh {
		k.add(k.keyPlace(known), "kind %s takes no known_hosts: remove it", quote(a.Kind))
	}
	if plain := join(path, "plain_http"); k.set(plain) && ssh {
		k.add(k.keyPlace(plain), "kind %s takes no plain_http: remove it", quote(a.Kind))
	}
	hosts := join(path, "hosts")
	if k.set(hosts) && len(a.Hosts) == 0 {
		k.fail(hosts, "no host is listed: list some, or remove hosts to allow all")
	}
	for i, host := range a.Hosts {
		if !bareHost(host) {
			k.fail(item(hosts, i), "not a host: write its name or address alone, such as github.com or ::1")
		}
	}
	k.once(hosts, a.Hosts)
}

// bareHost says whether a host is named as an address of a remote names it,
// without scheme, user, port and path.
func bareHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == ""
	}
	return host != "" && !strings.HasSuffix(host, ".") && !strings.ContainsAny(host, "/:@[]?#* \t\n")
}

var gatewayScopes = []string{"sends", "runs", "git", "deliveries"}

func (k *checker) gateway() {
	g := k.c.Gateway
	if k.address("gateway.address", g.Address) && len(g.Tokens) == 0 && !loopbackAddress(g.Address) {
		k.fail("gateway.address", "without gateway.tokens the gateway listens on loopback only: add a token, or use 127.0.0.1")
	}
	k.address("gateway.admin_address", g.AdminAddress)
	for name, t := range g.Tokens {
		path := "gateway.tokens." + name
		k.token(path, "value", t.Value)
		scopes := join(path, "scopes")
		if len(t.Scopes) == 0 {
			k.add(k.keyPlace(scopes), "%s lacks scopes: list some of %s", path, strings.Join(gatewayScopes, ", "))
		}
		for i, s := range t.Scopes {
			k.reference(item(scopes, i), "scope", s, gatewayScopes)
		}
		k.once(scopes, t.Scopes)
	}
	for i, prefix := range g.Sinks.Allow {
		path := item("gateway.sinks.allow", i)
		if u, err := url.Parse(prefix); prefix == "" || err == nil && u.Path != "" && !strings.HasPrefix(u.Path, "/") {
			k.fail(path, "not a URL: write https://host/path")
			continue
		}
		k.url(path, prefix, false)
	}
}
