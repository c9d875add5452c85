// Command standalone runs Holdfast in one process: a Temporal server with its
// store in one file, the Temporal web UI, and a worker.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/demo"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/workers"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

type flags struct {
	Data      string           `help:"Directory of the data." default:"./.holdfast" placeholder:"DIR"`
	Ephemeral bool             `help:"Keep everything in memory and nothing afterwards."`
	Listen    string           `help:"Address of the Temporal server." default:"${listen}" placeholder:"IP:PORT"`
	UIListen  string           `name:"ui-listen" help:"Address of the web UI." default:"${ui_listen}" placeholder:"IP:PORT"`
	NoUI      bool             `name:"no-ui" help:"Do not serve the web UI."`
	Config    string           `help:"Configuration file; ./holdfast.yaml if left out." env:"HOLDFAST_CONFIG" placeholder:"FILE"`
	Queues    []string         `help:"What the worker serves: ${queues}. All if left out." placeholder:"NAME,…"`
	NoWorker  bool             `name:"no-worker" help:"Server and UI alone."`
	Simulate  bool             `help:"Start simulators of the outside, and a configuration that points at them."`
	Demo      bool             `help:"Start with simulators and show what Holdfast does, then stay up."`
	Exit      bool             `help:"End after the demo."`
	Version   kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	started := time.Now()
	var f flags
	parser := kong.Must(&f,
		kong.Name("standalone"),
		kong.Description("Temporal server, web UI and Holdfast worker in one process."),
		kong.Vars{
			"version":   version,
			"listen":    temporalserver.DefaultListen,
			"ui_listen": temporalserver.DefaultUIListen,
			"queues":    strings.Join(workers.QueueNames(), ", "),
		})
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		os.Exit(fail(err, contract.ExitUsage))
	}
	o, err := options(f, started)
	if err != nil {
		os.Exit(fail(err, contract.ExitUsage))
	}
	// The first signal drains, a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err = standalone.Run(ctx, o)
	switch {
	case err == nil:
		os.Exit(contract.ExitOK)
	case standalone.IsUsage(err):
		os.Exit(fail(err, contract.ExitUsage))
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		os.Exit(contract.ExitOK)
	}
	os.Exit(fail(err, contract.ExitFailed))
}

func options(f flags, started time.Time) (standalone.Options, error) {
	o := standalone.Options{
		Data: f.Data, Ephemeral: f.Ephemeral, Listen: f.Listen, UIListen: f.UIListen, NoUI: f.NoUI,
		Config: f.Config, Queues: f.Queues, NoWorker: f.NoWorker, Simulate: f.Simulate || f.Demo,
		Env: os.LookupEnv, Out: os.Stdout, Err: os.Stderr, Started: started, Version: version,
	}
	switch {
	case f.Exit && !f.Demo:
		return o, errors.New("--exit goes with --demo")
	case f.NoWorker && o.Simulate:
		return o, errors.New("--no-worker leaves nobody to use the simulators; leave out one of the two")
	}
	if f.Demo {
		o.Guide, o.Exit = demo.Run, f.Exit
		o.Logger = func(l *slog.Logger) *slog.Logger { return demo.Logger(os.Stderr, l.Handler()) }
	}
	return o, nil
}

func fail(err error, status int) int {
	fmt.Fprintf(os.Stderr, "standalone: %v\n", err)
	return status
}
