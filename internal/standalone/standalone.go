// Package standalone is what cmd/standalone does: one process with a Temporal
// server, its web UI and a worker.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

// Options says what to run; I1 describes the flags that set them.
type Options struct {
	// Attach starts what uses the server, a worker above all, and returns how to
	// drain it. Draining comes before the server stops. Nil attaches nothing.
	Attach func(context.Context, *temporalserver.Server) (drain func(), err error)

	Data      string
	Ephemeral bool
	Listen    string
	UIListen  string
	NoUI      bool

	// Logger takes warnings and errors of the server; nil discards them.
	Logger *slog.Logger

	// Out gets the block with the addresses.
	Out io.Writer

	// Started is when the process began, for the time it took to be ready.
	Started time.Time

	Version string
}

// Run serves until ctx is done, then drains and stops. Errors for which
// [IsUsage] holds are the user's to mend.
func Run(ctx context.Context, o Options) error {
	server, err := temporalserver.Start(ctx, temporalserver.Options{
		DataDir:          o.Data,
		Ephemeral:        o.Ephemeral,
		Listen:           o.Listen,
		Logger:           o.Logger,
		NoUI:             o.NoUI,
		SearchAttributes: contract.SearchAttributes(),
		UIListen:         o.UIListen,
		Version:          o.Version,
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	if o.Attach != nil {
		drain, err := o.Attach(ctx, server)
		if err != nil {
			return err
		}
		defer drain()
	}
	if err := announce(o, server); err != nil {
		return fmt.Errorf("write the addresses: %w", err)
	}
	<-ctx.Done()
	return nil
}

func announce(o Options, server *temporalserver.Server) error {
	store := o.Data
	if o.Ephemeral {
		store = "in memory, nothing is kept"
	}
	ui := server.UIURL()
	if ui == "" {
		ui = "off"
	}
	_, err := fmt.Fprintf(o.Out, `holdfast %s
  temporal  %s  (namespace %s)
  web UI    %s
  data      %s
ready in %s; Ctrl-C stops
`, o.Version, server.Address(), server.Namespace(), ui, store, time.Since(o.Started).Round(time.Millisecond))
	return err
}

// IsUsage reports whether err comes from what the user asked for or from the
// place it was asked to run in, so that another flag mends it.
func IsUsage(err error) bool {
	return errors.As(err, new(*temporalserver.AddressError)) ||
		errors.As(err, new(*temporalserver.PortInUseError)) ||
		errors.As(err, new(*temporalserver.InUseError)) ||
		errors.As(err, new(*temporalserver.SchemaError)) ||
		errors.As(err, new(*temporalserver.AttributeLimitError))
}
