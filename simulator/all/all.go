// Package all starts the simulators of every outside system at once, for
// `standalone --simulate`, for the demo and for tests of whole flows.
package all

import (
	"errors"
	"fmt"
	"net"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/openai"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
)

// Options are the settings of a [World]. Each simulator's own Addr says where it
// listens.
type Options struct {
	Discord  discord.Options
	Telegram telegram.Options
	OpenAI   openai.Options
	Git      githttp.Options
}

// Ports makes options that listen on four ports of 127.0.0.1 in a row: Discord on
// first, then Telegram, OpenAI and Git.
func Ports(first int) Options {
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", fmt.Sprint(first+i)) }
	return Options{
		Discord:  discord.Options{Addr: addr(0)},
		Telegram: telegram.Options{Addr: addr(1)},
		OpenAI:   openai.Options{Addr: addr(2)},
		Git:      githttp.Options{Addr: addr(3)},
	}
}

// World is the outside: one simulator of each kind.
type World struct {
	Discord  *discord.Server
	Telegram *telegram.Server
	OpenAI   *openai.Server
	Git      *githttp.Server
}

// Start starts the four simulators; the zero Options take free ports. If one
// cannot start, none is left running.
func Start(o Options) (*World, error) {
	w := &World{}
	var err error
	if w.Discord, err = discord.Start(o.Discord); err != nil {
		return nil, fmt.Errorf("discord: %w", err)
	}
	if w.Telegram, err = telegram.Start(o.Telegram); err != nil {
		return nil, errors.Join(fmt.Errorf("telegram: %w", err), w.Close())
	}
	if w.OpenAI, err = openai.Start(o.OpenAI); err != nil {
		return nil, errors.Join(fmt.Errorf("openai: %w", err), w.Close())
	}
	if w.Git, err = githttp.Start(o.Git); err != nil {
		return nil, errors.Join(fmt.Errorf("git: %w", err), w.Close())
	}
	return w, nil
}

// URLs are the base addresses, as clients are configured with them.
type URLs struct {
	Discord  string `json:"discord"`
	Telegram string `json:"telegram"`
	OpenAI   string `json:"openai"`
	Git      string `json:"git"`
}

// URLs returns the base addresses: Discord's with /api/v10, OpenAI's with /v1.
func (w *World) URLs() URLs {
	return URLs{Discord: w.Discord.APIURL(), Telegram: w.Telegram.URL(), OpenAI: w.OpenAI.BaseURL(), Git: w.Git.URL()}
}

// Servers returns the servers by name, for what concerns scripts and ledgers.
func (w *World) Servers() map[string]*simulator.Server {
	return map[string]*simulator.Server{
		"discord": w.Discord.Server, "telegram": w.Telegram.Server, "openai": w.OpenAI.Server, "git": w.Git.Server,
	}
}

// Reset empties every script and ledger.
func (w *World) Reset() {
	for _, s := range w.Servers() {
		s.Reset()
	}
}

// Close stops what was started.
func (w *World) Close() error {
	var errs []error
	if w.Discord != nil {
		errs = append(errs, w.Discord.Close())
	}
	if w.Telegram != nil {
		errs = append(errs, w.Telegram.Close())
	}
	if w.OpenAI != nil {
		errs = append(errs, w.OpenAI.Close())
	}
	if w.Git != nil {
		errs = append(errs, w.Git.Close())
	}
	return errors.Join(errs...)
}
