package config

import (
	"encoding/json"
	"fmt"
	"io"
)

// Command is the verb "config" of the starter (I1), for kong. Its Run methods
// take a *CommandContext, bound by the program.
type Command struct {
	Check CheckCommand `cmd:"" help:"Check holdfast.yaml and say what is missing for which kind of work."`
	Show  ShowCommand  `cmd:"" help:"Print the effective configuration, defaults included, with secrets redacted."`
}

// CommandContext is what the verbs need of the program that runs them.
type CommandContext struct {
	Flag   string // --config; empty if it was not given
	Env    Env
	Stdout io.Writer
	JSON   bool // --json
}

func (c *CommandContext) load(file string) (*Config, error) {
	if file == "" {
		file = c.Flag
	}
	return LoadDefault(file, c.Env)
}

// report is the one object of --json (I1).
type report struct {
	WorkflowID *string `json:"workflow_id"`
	RunID      *string `json:"run_id"`
	Outcome    string  `json:"outcome"`
	File       string  `json:"file"`
	Missing    []Gap   `json:"missing"`
	Config     string  `json:"config,omitempty"`
}

func (c *CommandContext) json(cfg *Config, shown string) error {
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(report{Outcome: "completed", File: cfg.File(), Missing: append([]Gap{}, cfg.Missing()...), Config: shown})
}

// CheckCommand is "config check [FILE]".
type CheckCommand struct {
	File string `arg:"" optional:"" help:"The file to check; the one of --config if it is left out."`
}

// Run checks the file. It returns the errors of Load, which mean exit status 2.
func (k *CheckCommand) Run(c *CommandContext) error {
	cfg, err := c.load(k.File)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.json(cfg, "")
	}
	first := cfg.File() + " is valid"
	if cfg.File() == "" {
		first = "there is no " + DefaultFile + " here; nothing is configured"
	}
	if _, err := fmt.Fprintln(c.Stdout, first); err != nil {
		return err
	}
	for _, gap := range cfg.Missing() {
		if _, err := fmt.Fprintln(c.Stdout, "missing for", gap); err != nil {
			return err
		}
	}
	return nil
}

// ShowCommand is "config show [FILE]".
type ShowCommand struct {
	File string `arg:"" optional:"" help:"The file to show; the one of --config if it is left out."`
}

// Run prints the configuration. It returns the errors of Load, which mean exit
// status 2.
func (k *ShowCommand) Run(c *CommandContext) error {
	cfg, err := c.load(k.File)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.json(cfg, cfg.Show())
	}
	_, err = io.WriteString(c.Stdout, cfg.Show())
	return err
}
