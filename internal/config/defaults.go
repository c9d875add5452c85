package config

import (
	"os"
	"time"
)

// Defaults that are addresses of the outside.
const (
	DiscordAPI   = "https://discord.com/api/v10"
	TelegramAPI  = "https://api.telegram.org"
	openAIAPI    = "https://api.openai.com/v1"
	anthropicAPI = "https://api.anthropic.com"
	geminiAPI    = "https://generativelanguage.googleapis.com"
)

// DefaultLimits are those of M2.2.
func DefaultLimits() Limits {
	return Limits{
		Connect:          10 * time.Second,
		Headers:          60 * time.Second,
		HeadersNoStream:  600 * time.Second,
		FirstEvent:       120 * time.Second,
		Silence:          120 * time.Second,
		SilenceWithPings: 30 * time.Second,
		Progress:         300 * time.Second,
	}
}

// or fills what l leaves open from weaker limits.
func (l Limits) or(weaker Limits) Limits {
	orDefault(&l.Connect, weaker.Connect)
	orDefault(&l.Headers, weaker.Headers)
	orDefault(&l.HeadersNoStream, weaker.HeadersNoStream)
	orDefault(&l.FirstEvent, weaker.FirstEvent)
	orDefault(&l.Silence, weaker.Silence)
	orDefault(&l.SilenceWithPings, weaker.SilenceWithPings)
	orDefault(&l.Progress, weaker.Progress)
	return l
}

func orDefault[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

func (c *Config) setDefaults() {
	orDefault(&c.Policy, "default")
	c.Limits = c.Limits.or(DefaultLimits())
	for name, p := range c.Providers {
		c.Providers[name] = p.withDefaults(c.Limits)
	}
	for name, a := range c.AuthProfiles {
		a.Name = name
		c.AuthProfiles[name] = a
	}
	for name, a := range c.Agents {
		c.Agents[name] = a.withDefaults(c.Policy)
	}
	for name, t := range c.Tools {
		orDefault(&t.Retries, new(2)) // P8
		orDefault(&t.Approval, "none")
		c.Tools[name] = t
	}
	for name, a := range c.Channels.Discord.Accounts {
		orDefault(&a.APIURL, DiscordAPI)
		c.Channels.Discord.Accounts[name] = a
	}
	for name, a := range c.Channels.Telegram.Accounts {
		orDefault(&a.APIURL, TelegramAPI)
		c.Channels.Telegram.Accounts[name] = a
	}
	c.Git.setDefaults()
	orDefault(&c.Storage.Blobs, "./.holdfast/blobs")
	orDefault(&c.Telemetry.LogFormat, "auto")
	orDefault(&c.Gateway.Address, "127.0.0.1:8080")
	orDefault(&c.Gateway.AdminAddress, "127.0.0.1:8081")
}

func (p Provider) withDefaults(limits Limits) Provider {
	switch p.Dialect {
	case DialectOpenAIResponses:
		orDefault(&p.BaseURL, openAIAPI)
	case DialectAnthropic:
		orDefault(&p.BaseURL, anthropicAPI)
	case DialectGemini:
		orDefault(&p.BaseURL, geminiAPI)
	}
	orDefault(&p.Stream, new(true))
	p.Limits = p.Limits.or(limits)
	return p
}

func (a Agent) withDefaults(policy string) Agent {
	orDefault(&a.Policy, policy)
	orDefault(&a.Deadline, 30*time.Minute)
	orDefault(&a.StartupBuffering, new(true))
	return a
}

func (g *Git) setDefaults() {
	orDefault(&g.Engine, "auto")
	if g.Host == "" {
		g.Host, _ = os.Hostname() // whoever needs it and has none says so
	}
	orDefault(&g.Limits.Memory, 512<<20)
	orDefault(&g.Limits.Disk, 10<<30)
	orDefault(&g.Limits.Objects, 5_000_000)
	for name, a := range g.AuthProfiles {
		a.Name = name
		switch a.Kind {
		case GitAuthToken:
			orDefault(&a.Username, "x-access-token")
		case GitAuthSSHKey, GitAuthSSHAgent:
			orDefault(&a.Username, "git")
		}
		g.AuthProfiles[name] = a
	}
}
