package explain

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// Command is "starter explain", to be embedded in a kong grammar. Its Run
// methods take an [Env], which the program binds.
type Command struct {
	Error    ErrorCmd    `cmd:"" help:"What a failure means. Without flags, reads failures as JSON lines from standard input."`
	Schedule ScheduleCmd `cmd:"" help:"When a model call would be tried again."`
	Policy   PolicyCmd   `cmd:"" help:"The effective numbers of a policy profile, and where each comes from."`
}

// Env is what the commands work with.
type Env struct {
	In  io.Reader
	Out io.Writer
	// JSON asks for JSON where a command also has a table.
	JSON bool
	Now  time.Time
	// Judge defaults to policies.Judge.
	Judge Judge
	// Profile finds policy profiles; defaults to profiles.LoadProfile. The
	// program puts those of holdfast.yaml, and CLAUDE_CODE_MAX_RETRIES, in here.
	Profile func(name string) (profiles.Profile, error)
}

func (e *Env) judge() Judge {
	if e.Judge != nil {
		return e.Judge
	}
	return policies.Judge
}

func (e *Env) profile(name string) (profiles.Profile, error) {
	load := e.Profile
	if load == nil {
		load = profiles.LoadProfile
	}
	p, err := load(name)
	if err != nil {
		return p, usage(err)
	}
	return p, nil
}

// ExitError is an error that ends the program with Status. Silent says that
// everything has been said on standard output.
type ExitError struct {
	Status int
	Silent bool
	Err    error
}

func (e *ExitError) Error() string { return e.Err.Error() }

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the exit status, as kong asks for it.
func (e *ExitError) ExitCode() int { return e.Status }

func usage(err error) error { return &ExitError{Status: contract.ExitUsage, Err: err} }

// ErrorCmd is "explain error".
type ErrorCmd struct {
	Surface   string   `placeholder:"SURFACE" help:"Where the request went: model (default), discord, telegram, git, delivery."`
	Provider  string   `placeholder:"NAME" help:"Model provider, such as openai or anthropic."`
	Operation string   `placeholder:"OP" help:"What was asked. Channels: create (Discord message with a nonce), send (new Telegram message), webhook, edit, delete, react, pin, typing, read, write, poll. Git: ls-remote, fetch, clone, push, sync."`
	Status    int      `placeholder:"N" help:"HTTP status; none when no answer came."`
	Header    []string `placeholder:"K:V" sep:"none" help:"Response header; repeatable."`
	Body      string   `placeholder:"TEXT" help:"Error body; - reads it from standard input."`
	Message   string   `placeholder:"TEXT" help:"Text of the error."`
	Code      string   `placeholder:"CODE" help:"Typed code of the body, or a transport code such as ECONNRESET."`
	Type      string   `placeholder:"TYPE" help:"Typed error type of the body."`
	Syscall   string   `placeholder:"NAME" help:"The call that failed, such as connect."`
	Phase     string   `placeholder:"PHASE" help:"How far the request came: connect, headers, first_event, body."`
	Now       string   `placeholder:"TIME" help:"Moment of the failure (RFC 3339); dates are read against it."`
	Stderr    string   `placeholder:"TEXT" help:"Git: what it printed to standard error."`
	ExitCode  *int     `placeholder:"N" help:"Git: how it ended."`
}

// Run answers on env.Out. Bad input ends with status 2.
func (c *ErrorCmd) Run(env *Env) error {
	if reflect.ValueOf(*c).IsZero() {
		bad, err := Errors(env.In, env.Out, env.judge(), env.Now)
		switch {
		case err != nil:
			return err
		case bad > 0:
			return &ExitError{Status: contract.ExitUsage, Silent: true, Err: fmt.Errorf("%d bad lines", bad)}
		}
		return nil
	}
	f, err := c.fault(env)
	if err != nil {
		return usage(err)
	}
	enc := json.NewEncoder(env.Out)
	enc.SetEscapeHTML(false)
	return enc.Encode(Explain(f, env.judge()))
}

func (c *ErrorCmd) fault(env *Env) (*policies.Fault, error) {
	f := &policies.Fault{
		Surface: policies.SurfaceModel, Provider: c.Provider, Status: c.Status, Message: c.Message, Code: c.Code,
		Type: c.Type, Syscall: c.Syscall, Stderr: c.Stderr, ExitCode: c.ExitCode, Now: env.Now,
	}
	words := []struct{ name, value string }{{"surface", c.Surface}, {"operation", c.Operation}, {"phase", c.Phase}}
	for _, w := range words {
		raw, err := json.Marshal(w.value)
		if err != nil {
			return nil, err
		}
		if err := setters[w.name](f, raw); err != nil {
			return nil, fmt.Errorf("--%s: %w", w.name, err)
		}
	}
	if c.Status < 0 || c.Status > 999 {
		return nil, fmt.Errorf("--status: want a whole number such as 429, not %d", c.Status)
	}
	if c.Now != "" {
		t, err := parseTime(c.Now)
		if err != nil {
			return nil, fmt.Errorf("--now: %w", err)
		}
		f.Now = t
	}
	return f, errors.Join(c.headers(f), c.body(f, env.In))
}

func (c *ErrorCmd) headers(f *policies.Fault) error {
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return fmt.Errorf("--header %q: want NAME:VALUE", h)
		}
		if f.Header == nil {
			f.Header = http.Header{}
		}
		f.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	return nil
}

func (c *ErrorCmd) body(f *policies.Fault, in io.Reader) error {
	switch c.Body {
	case "":
		return nil
	case "-":
		body, err := io.ReadAll(io.LimitReader(in, policies.MaxBody))
		f.Body = body
		return err
	}
	f.Body = []byte(c.Body[:min(len(c.Body), policies.MaxBody)])
	return nil
}

// ScheduleCmd is "explain schedule".
type ScheduleCmd struct {
	Policy     string        `default:"default" placeholder:"NAME" help:"Policy profile."`
	Fail       []string      `placeholder:"FAILURE" sep:"none" help:"What attempts end with, in order: [CANDIDATE=]REASON[@FLOOR][*[TIMES]], such as rate_limit@20s*3, server_error* (for ever) or openai/gpt-5.1=overloaded*. Repeatable; attempts beyond the script complete."`
	Candidate  []string      `default:"primary/model" placeholder:"PROVIDER/MODEL" help:"The requested candidate; further ones with #AUTH-PROFILE are its auth profiles."`
	Sibling    []string      `placeholder:"PROVIDER/MODEL" help:"Another model of the requested provider, not configured as a fallback; repeatable."`
	Fallback   []string      `placeholder:"PROVIDER/MODEL" help:"A fallback, in order; repeatable."`
	Deadline   time.Duration `placeholder:"DURATION" help:"Run deadline; none when absent."`
	Took       time.Duration `default:"1s" placeholder:"DURATION" help:"How long every attempt takes."`
	MaxRetries *int          `placeholder:"N" help:"Overrides the number of retries."`
	Unsafe     bool          `help:"The attempts are not replay-safe."`
	Seed       uint64        `default:"1" placeholder:"N" help:"Seed of the jitter."`
	Plot       string        `placeholder:"FILE" type:"path" help:"Draw the schedule as SVG into FILE."`
}

// Run writes the schedule as a table, as JSON, or as a plot.
func (c *ScheduleCmd) Run(env *Env) error {
	scenario, err := c.scenario(env)
	if err != nil {
		return err
	}
	schedule, err := Plan(scenario)
	if err != nil {
		return usage(err)
	}
	if c.Plot != "" {
		if err := plotTo(c.Plot, schedule); err != nil {
			return err
		}
	}
	if env.JSON {
		return json.NewEncoder(env.Out).Encode(schedule)
	}
	return schedule.Table(env.Out)
}

func plotTo(path string, schedule Schedule) error {
	file, err := os.Create(path)
	if err != nil {
		return usage(err)
	}
	return errors.Join(schedule.SVG(file), file.Close())
}

func (c *ScheduleCmd) scenario(env *Env) (Scenario, error) {
	profile, err := env.profile(c.Policy)
	if err != nil {
		return Scenario{}, err
	}
	if c.Deadline < 0 || c.Took < 0 || (c.MaxRetries != nil && *c.MaxRetries < 0) {
		return Scenario{}, usage(errors.New("--deadline, --took and --max-retries cannot be negative"))
	}
	s := Scenario{
		Policy: profile.Policy, Took: c.Took, Deadline: c.Deadline, MaxRetries: c.MaxRetries, Unsafe: c.Unsafe, Seed: c.Seed,
	}
	for i, names := range [][]string{c.Candidate, c.Sibling, c.Fallback} {
		for _, name := range names {
			t, err := ParseTarget(name)
			if err != nil {
				return s, usage(err)
			}
			t.Sibling = i == 1
			s.Targets = append(s.Targets, t)
		}
	}
	for _, fail := range c.Fail {
		f, err := ParseFailure(fail)
		if err != nil {
			return s, usage(err)
		}
		s.Failures = append(s.Failures, f)
	}
	return s, nil
}

// PolicyCmd is "explain policy".
type PolicyCmd struct {
	Name string `arg:"" help:"Policy profile: default, openclaw-classic, fast-failover, simple, simple-aggressive, simple-fast-fail, simple-none, claude-code, or one of your own."`
}

// Run writes the numbers as a table, or as one JSON object.
func (c *PolicyCmd) Run(env *Env) error {
	p, err := env.profile(c.Name)
	if err != nil {
		return err
	}
	if env.JSON {
		return PolicyJSON(env.Out, p)
	}
	return PolicyTable(env.Out, p)
}
