// Command worker serves Holdfast's task queues on an existing Temporal.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/process"
	"github.com/holdfast-dev/holdfast/workers"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

type flags struct {
	Address   string           `help:"Temporal's address." env:"TEMPORAL_ADDRESS" placeholder:"HOST:PORT"`
	Namespace string           `help:"Temporal namespace." env:"TEMPORAL_NAMESPACE" placeholder:"NAME"`
	Config    string           `help:"Configuration file." env:"HOLDFAST_CONFIG" placeholder:"FILE"`
	Queues    []string         `help:"What to serve: ${queues}. All if left out." placeholder:"NAME,…"`
	Version   kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	var f flags
	parser := kong.Must(&f,
		kong.Name("worker"),
		kong.Description("Serve Holdfast's task queues on an existing Temporal."),
		kong.Vars{"version": version, "queues": strings.Join(workers.QueueNames(), ", ")})
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		os.Exit(contract.ExitUsage)
	}
	// The first signal drains, a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := process.Worker(ctx, process.WorkerOptions{
		Address: f.Address, Namespace: f.Namespace, Config: f.Config, Queues: f.Queues,
		Env: os.LookupEnv, Out: os.Stdout, Err: os.Stderr, Version: version,
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
	}
	os.Exit(process.ExitStatus(err))
}
