package config

import (
	"bytes"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/redact"
	"go.yaml.in/yaml/v3"
)

// Show returns the effective configuration as YAML, defaults included, with
// every secret redacted.
func (c *Config) Show() string {
	var root yaml.Node
	if err := root.Encode(c); err != nil {
		return "# " + redact.Error(err) + "\n"
	}
	literal(&root)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&root); err != nil {
		return "# " + redact.Error(err) + "\n"
	}
	return out.String()
}

// literal scrubs all texts, in case a credential stands where none belongs, and
// writes them so that reading them again expands nothing.
func literal(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		n.Value = strings.ReplaceAll(redact.String(n.Value), "${", "$${")
	}
	for _, child := range n.Content {
		literal(child)
	}
}

// Gap is something that is not configured, and the work that cannot be done
// without it.
type Gap struct {
	Work string `json:"work"` // "discord", "telegram", "model", "git"
	What string `json:"what"`
	Key  string `json:"key"` // the key of holdfast.yaml that mends it
}

// String is "discord: no account configured (channels.discord.accounts)".
func (g Gap) String() string { return g.Work + ": " + g.What + " (" + g.Key + ")" }

// Missing lists what is not configured for which kind of work (I1).
func (c *Config) Missing() []Gap {
	var gaps []Gap
	missing := func(absent bool, work, what, key string) {
		if absent {
			gaps = append(gaps, Gap{work, what, key})
		}
	}
	missing(len(c.Channels.Discord.Accounts) == 0, "discord", "no account configured", "channels.discord.accounts")
	missing(len(c.Channels.Telegram.Accounts) == 0, "telegram", "no account configured", "channels.telegram.accounts")
	missing(len(c.Providers) == 0, "model", "no provider configured", "providers")
	missing(len(c.Agents) == 0, "model", "no agent configured", "agents")
	noRoot := len(c.Git.Roots)+len(c.Git.SharedRoots) == 0
	missing(noRoot, "git", "no directory for checkouts configured; ls-remote works without", "git.roots")
	return gaps
}
