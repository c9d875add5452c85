package standalone

import (
	"fmt"
	"net"
	"strconv"

	"github.com/holdfast-dev/holdfast/simulator/all"
	"github.com/holdfast-dev/holdfast/simulator/openai"
)

// World is the simulated outside: a platform of each kind, and a second model
// server that runs can fail over to.
type World struct {
	*all.World
	Backup *openai.Server
}

// The simulated accounts and agents.
const (
	SimAccount  = "main"
	SimModel    = "openai/gpt-5.1"
	SimFallback = "backup/gpt-5.1-mini"
)

// SimPorts is the first of the five ports that the simulators take where they
// are free: Discord, Telegram, OpenAI, Git, and the second model server.
const SimPorts = 9001

// SimRepository is the repository that the simulated Git host has.
const SimRepository = "hello.git"

func startWorld() (*World, error) {
	w, err := all.Start(simOptions())
	if err != nil { // somebody took a port just now
		w, err = all.Start(all.Options{})
	}
	if err != nil {
		return nil, fmt.Errorf("start the simulators: %w", err)
	}
	backup, err := openai.Start(openai.Options{Addr: simAddr(4)})
	if err != nil {
		backup, err = openai.Start(openai.Options{})
	}
	if err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("start the second model simulator: %w", err)
	}
	world := &World{World: w, Backup: backup}
	if err := w.Git.Create(SimRepository, 3); err != nil {
		world.close()
		return nil, fmt.Errorf("make the simulated repository: %w", err)
	}
	return world, nil
}

func simOptions() all.Options {
	var o all.Options
	o.Discord.Addr, o.Telegram.Addr, o.OpenAI.Addr, o.Git.Addr = simAddr(0), simAddr(1), simAddr(2), simAddr(3)
	return o
}

// simAddr is the simulator's own port, or any free one where that is taken.
func simAddr(i int) string {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(SimPorts+i))
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "127.0.0.1:0"
	}
	_ = l.Close()
	return addr
}

func (w *World) close() {
	_ = w.Backup.Close()
	_ = w.World.Close()
}

type address struct{ name, url string }

func (w *World) addresses() []address {
	u := w.URLs()
	return []address{
		{"discord", u.Discord}, {"telegram", u.Telegram}, {"openai", u.OpenAI}, {"backup", w.Backup.BaseURL()}, {"git", u.Git},
	}
}

// config is a configuration that points at the simulators.
func (w *World) config(checkouts string) []byte {
	u := w.URLs()
	return fmt.Appendf(nil, `auth_profiles:
  openai-main: {provider: openai, kind: api_key, value: simulated-key-openai}
  backup-main: {provider: backup, kind: api_key, value: simulated-key-backup}
providers:
  openai: {dialect: openai-responses, base_url: %q, auth_profiles: [openai-main], models: [gpt-5.1]}
  backup: {dialect: openai-responses, base_url: %q, auth_profiles: [backup-main], models: [gpt-5.1-mini]}
agents:
  main: {model: openai/gpt-5.1, fallbacks: [backup/gpt-5.1-mini]}
channels:
  discord:  {accounts: {main: {token: simulated-discord-token, api_url: %q}}}
  telegram: {accounts: {main: {token: "100200300:simulated-telegram-token", api_url: %q}}}
git:
  roots: [%q]
`, u.OpenAI, w.Backup.BaseURL(), u.Discord, u.Telegram, checkouts)
}
