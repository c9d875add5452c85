package config

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// Gateway is the section of cmd/gateway (60-gateway), and of the sinks that
// callers may name (M6).
type Gateway struct {
	// Address serves the HTTP API. Defaults to 127.0.0.1:8080. Without Tokens
	// it must be a loopback address (W6).
	Address string `yaml:"address"`
	// AdminAddress serves health and metrics (W7). Defaults to 127.0.0.1:8081.
	AdminAddress string                  `yaml:"admin_address"`
	Tokens       map[string]GatewayToken `yaml:"tokens"`
	Sinks        Sinks                   `yaml:"sinks"`
}

// GatewayToken is one bearer token of the HTTP API and what it may do (W6).
type GatewayToken struct {
	Value Secret `yaml:"value"`
	// Scopes are the parts of the API the token opens: "sends", "runs", "git",
	// "deliveries".
	Scopes []string `yaml:"scopes"`
}

// Sinks says which URLs a caller may name as the http sink of a run (M6).
type Sinks struct {
	// Allow lists URL prefixes: scheme, host and port must be equal, and the
	// path must be the prefix or below it. Loopback is always allowed.
	Allow []string `yaml:"allow"`
}

// SinkAllowed says whether live text may be posted to the URL (M6): it is on
// this machine, or below a URL that gateway.sinks.allow lists. Anything that is
// not an absolute http or https URL without userinfo is refused.
func (c *Config) SinkAllowed(sink string) bool {
	u, err := url.Parse(sink)
	if err != nil || !httpScheme(u.Scheme) || u.Host == "" || u.User != nil {
		return false
	}
	if loopback(u.Hostname()) {
		return true
	}
	for _, allowed := range c.Gateway.Sinks.Allow {
		a, err := url.Parse(allowed)
		if err == nil && sameOrigin(a, u) && below(a.Path, u.Path) {
			return true
		}
	}
	return false
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) &&
		strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	default:
		return "80"
	}
}

// below says whether p is prefix or inside it, whatever dots p holds.
func below(prefix, p string) bool {
	prefix = strings.TrimSuffix(path.Clean("/"+prefix), "/")
	p = path.Clean("/" + p)
	return p == prefix || strings.HasPrefix(p, prefix+"/")
}

func httpScheme(s string) bool { return strings.EqualFold(s, "http") || strings.EqualFold(s, "https") }

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// loopbackAddress says whether a listener at address is reachable from this
// machine only.
func loopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopback(host)
}
