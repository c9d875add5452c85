// Command starter starts, watches and steers Holdfast's work on Temporal.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/starter"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal cancels the work, a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(starter.Main(ctx, starter.Program{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Env: os.LookupEnv,
		Version: version, Terminal: starter.Terminal(os.Stdout, os.Stderr),
	}))
}
