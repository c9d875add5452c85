package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/connect"
	"github.com/holdfast-dev/holdfast/internal/explain"
	"github.com/holdfast-dev/holdfast/policies/profiles"
)

// Globals are the flags that every verb takes.
type Globals struct {
	Address     string        `help:"Temporal's address." env:"TEMPORAL_ADDRESS" placeholder:"HOST:PORT"`
	Namespace   string        `help:"Temporal namespace." env:"TEMPORAL_NAMESPACE" placeholder:"NAME"`
	Config      string        `help:"Configuration file." env:"HOLDFAST_CONFIG" placeholder:"FILE"`
	JSON        bool          `help:"Print one JSON object at the end."`
	Wait        bool          `help:"Wait for the outcome." default:"true" negatable:""`
	WaitTimeout time.Duration `help:"Wait at most this long; the work goes on." placeholder:"DURATION"`
	Key         *string       `help:"Idempotency key: the same key is the same work." placeholder:"KEY"`
}

type grammar struct {
	Globals

	Send    SendCmd         `cmd:"" help:"Send a message."`
	Run     RunCmd          `cmd:"" help:"Run one turn of an agent."`
	Git     GitCmd          `cmd:"" help:"Managed Git."`
	Review  ReviewCmd       `cmd:"" help:"Decide what became of parts whose outcome is unknown."`
	Watch   WatchCmd        `cmd:"" help:"Follow a piece of work to its end."`
	Cancel  CancelCmd       `cmd:"" help:"Ask a piece of work to stop; completed means that it was asked, watch says how it ended."`
	Config_ config.Command  `cmd:"" name:"config" help:"Check or show holdfast.yaml."`
	Explain explain.Command `cmd:"" help:"What Holdfast would do with a failure. Needs no server."`
	Setup   SetupCmd        `cmd:"" help:"Make a Temporal namespace ready: retention and search attributes."`
	Version VersionCmd      `cmd:"" help:"Print the version."`
}

// Program is one invocation of the starter.
type Program struct {
	Args    []string
	In      io.Reader
	Out     io.Writer
	Err     io.Writer
	Env     config.Env
	Version string
	// Terminal says that Out and Err are a terminal, where long work shows a
	// live line and runs stream.
	Terminal bool

	// dial is client.DialContext unless a test replaces it.
	dial func(context.Context, client.Options) (client.Client, error)
}

// Main parses the arguments, runs the verb and returns the exit status. ctx
// ends on the user's interrupt.
func Main(ctx context.Context, p Program) int {
	var g grammar
	exited := false
	parser, err := kong.New(&g,
		kong.Name("starter"),
		kong.Description("Start, watch and steer Holdfast's work."),
		kong.Writers(p.Out, p.Err),
		kong.Exit(func(int) { exited = true }),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		fmt.Fprintln(p.Err, "starter:", err)
		return contract.ExitUsage
	}
	k, err := parser.Parse(p.Args)
	if exited {
		return contract.ExitOK
	}
	s := &session{Program: p, globals: &g.Globals, interrupted: func() bool { return ctx.Err() != nil }}
	if err != nil {
		s.globals.JSON = s.globals.JSON || wantsJSON(p.Args)
		return s.fail(&usageError{err})
	}
	if key := g.Globals.Key; key != nil {
		// An empty one comes from a variable that is not set: a made-up key in its
		// place would send twice what was meant to be sent once.
		if *key == "" {
			return s.fail(usagef("--key is empty; give a key, or leave the flag out"))
		}
		s.key = *key
	}
	k.Bind(s, &config.CommandContext{
		Flag: g.Globals.Config, Env: p.Env, Stdout: p.Out, JSON: g.Globals.JSON,
	}, &explain.Env{In: p.In, Out: p.Out, JSON: g.Globals.JSON, Now: time.Now(), Profile: s.profile})
	k.BindTo(ctx, (*context.Context)(nil))
	return s.fail(k.Run())
}

// profile finds a policy profile: one of the configuration's own, or a built-in
// one. A configuration that cannot be read hides none of the built-in ones.
func (s *session) profile(name string) (profiles.Profile, error) {
	c, err := config.LoadDefault(s.globals.Config, s.Env)
	if err == nil {
		own, _ := c.OwnPolicies()
		if p, ok := own[name]; ok {
			return p, nil
		}
	} else if s.globals.Config != "" {
		return profiles.Profile{}, err
	}
	return profiles.LoadProfile(name)
}

// session is what a verb works with.
type session struct {
	Program
	globals     *Globals
	sent        bool        // a request that may change something is on its way
	key         string      // the caller's; empty if none was given
	said        bool        // the one JSON object is out
	viewed      bool        // live text has the terminal, so no other live line may
	unread      error       // why a configuration that nobody named was left out
	interrupted func() bool // by the user
}

// usageError is the user's to mend: exit status 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// workError is the end of work that gave no outcome of its own.
type workError struct {
	id, runID string
	outcome   contract.Outcome
	reason    string
	message   string
}

func (e *workError) Error() string { return e.message }

// endError carries the exit status of work that ended.
type endError struct{ status int }

func (e *endError) Error() string { return "" }

// fail says err and returns the exit status.
func (s *session) fail(err error) int {
	var end *endError
	var exit *explain.ExitError
	var unreachable *connect.UnreachableError
	var usage *usageError
	var work *workError
	var lost *lostError
	switch {
	case err == nil:
		return contract.ExitOK
	case errors.As(err, &end):
		return end.status
	case errors.As(err, &exit):
		if !exit.Silent {
			s.report("usage_error", "format", exit.Err)
		}
		return exit.Status
	case errors.As(err, &work):
		s.say(&work.id, &work.runID, string(work.outcome), work.reason, err)
		return work.outcome.ExitStatus()
	case errors.As(err, &lost):
		s.say(&lost.id, &lost.runID, "unreachable", "unreachable", err)
		return contract.ExitUnreachable
	case s.interrupted() && s.sent && (errors.Is(err, context.Canceled) || errors.As(err, new(*serviceerror.Canceled))):
		s.report(string(contract.OutcomeCancelled), "cancelled", errors.New("interrupted; what was asked for may have been done"))
		return contract.ExitCancelled
	case s.interrupted() && !s.sent && !errors.As(err, &usage):
		s.report(string(contract.OutcomeCancelled), "cancelled", errors.New("interrupted before any work was started"))
		return contract.ExitCancelled
	case errors.As(err, &unreachable):
		s.report("unreachable", "unreachable", err)
		return contract.ExitUnreachable
	case errors.As(err, &usage), errors.As(err, new(*config.ReadError)), errors.As(err, new(config.Errors)):
		s.report("usage_error", "format", err)
		return contract.ExitUsage
	}
	s.report("failed", "unclassified", err)
	return contract.ExitFailed
}

// report says an error that is not the outcome of any work.
func (s *session) report(outcome, reason string, err error) { s.say(nil, nil, outcome, reason, err) }

func (s *session) say(id, runID *string, outcome, reason string, err error) {
	printf(s.Err, "starter: %v\n", err)
	if s.globals.JSON && !s.said {
		s.object(id, runID, struct {
			Outcome string          `json:"outcome"`
			Error   *contract.Error `json:"error"`
		}{outcome, &contract.Error{Reason: reason, Message: err.Error()}})
	}
}

func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--json" {
			return true
		}
	}
	return false
}

// text reads an argument that may stand for standard input.
func (s *session) text(arg string) (string, error) {
	if arg != "-" {
		return arg, nil
	}
	data, err := io.ReadAll(io.LimitReader(s.In, maxInput+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(data) > maxInput {
		return "", usagef("standard input holds more than %d bytes", maxInput)
	}
	return strings.TrimRight(string(data), "\n"), nil
}

// maxInput is what one piece of work may carry: well below Temporal's limit of
// 2 MiB for one payload.
const maxInput = 1 << 20

// VersionCmd is "version".
type VersionCmd struct{}

// Run prints the version.
func (VersionCmd) Run(s *session) error {
	if s.globals.JSON {
		s.object(nil, nil, map[string]any{"outcome": contract.OutcomeCompleted, "version": s.Version})
		return nil
	}
	_, err := fmt.Fprintln(s.Out, "holdfast", s.Version)
	return err
}

// Terminal reports whether both files are terminals.
func Terminal(files ...*os.File) bool {
	for _, f := range files {
		info, err := f.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice == 0 {
			return false
		}
	}
	return true
}
