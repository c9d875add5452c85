// Command standalone runs Holdfast in one process: a Temporal server with its
// store in one file, and the Temporal web UI.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

// version is set at build time with -ldflags "-X main.version=…".
var version = "dev"

type flags struct {
	Data      string           `help:"Directory of the data." default:"./.holdfast" placeholder:"DIR"`
	Ephemeral bool             `help:"Keep everything in memory and nothing afterwards."`
	Listen    string           `help:"Address of the Temporal server." default:"${listen}" placeholder:"IP:PORT"`
	UIListen  string           `name:"ui-listen" help:"Address of the web UI." default:"${ui_listen}" placeholder:"IP:PORT"`
	NoUI      bool             `name:"no-ui" help:"Do not serve the web UI."`
	Version   kong.VersionFlag `help:"Print the version and exit."`
}

func main() {
	started := time.Now()
	var f flags
	parser := kong.Must(&f,
		kong.Name("standalone"),
		kong.Description("Temporal server and web UI in one process."),
		kong.Vars{
			"version":   version,
			"listen":    temporalserver.DefaultListen,
			"ui_listen": temporalserver.DefaultUIListen,
		})
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "standalone: %v\n", err)
		os.Exit(contract.ExitUsage)
	}
	// The first signal drains, a second one ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := standalone.Run(ctx, standalone.Options{
		Data:      f.Data,
		Ephemeral: f.Ephemeral,
		Listen:    f.Listen,
		UIListen:  f.UIListen,
		NoUI:      f.NoUI,
		Logger:    slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Out:       os.Stdout,
		Started:   started,
		Version:   version,
	})
	os.Exit(exitStatus(err))
}

func exitStatus(err error) int {
	if err == nil {
		return contract.ExitOK
	}
	fmt.Fprintf(os.Stderr, "standalone: %v\n", err)
	if standalone.IsUsage(err) {
		return contract.ExitUsage
	}
	return contract.ExitFailed
}
