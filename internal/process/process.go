// Package process is what cmd/worker does, and what every process that hosts
// workers shares: its log, its connection to Temporal, and its exit status.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/connect"
	"github.com/holdfast-dev/holdfast/internal/redact"
	"github.com/holdfast-dev/holdfast/internal/setup"
	"github.com/holdfast-dev/holdfast/workers"
)

// WorkerOptions of a worker process.
type WorkerOptions struct {
	Address   string
	Namespace string
	Config    string
	Queues    []string
	Env       config.Env
	Out       io.Writer
	Err       io.Writer
	Version   string
}

// connectPatience is how long a Temporal that does not answer yet is waited for:
// a worker is often started together with its server.
const connectPatience = 30 * time.Second

// Worker serves until ctx ends, then drains.
func Worker(ctx context.Context, o WorkerOptions) error {
	c, err := config.LoadDefault(o.Config, o.Env)
	if err != nil {
		return err
	}
	log := NewLogger(o.Err, c.Telemetry.LogFormat)
	t, namespace, err := dial(ctx, o, c, log)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := setup.Check(ctx, t, namespace); err != nil {
		return err
	}
	w, err := workers.Start(t, workers.Options{Config: c, Queues: o.Queues, Logger: log})
	if err != nil {
		return err
	}
	served := o.Queues
	if len(served) == 0 {
		served = workers.QueueNames()
	}
	fmt.Fprintf(o.Out, "holdfast worker %s serves %s; Ctrl-C drains\n", o.Version, strings.Join(served, ", "))
	if git := w.Git(); git != "" {
		fmt.Fprintln(o.Out, "managed Git:", git)
	}
	for _, gap := range c.Missing() {
		fmt.Fprintln(o.Out, "missing for", gap)
	}
	<-ctx.Done()
	w.Stop()
	return nil
}

// dial connects to Temporal, waiting for one that is still starting.
func dial(ctx context.Context, o WorkerOptions, c *config.Config, log *slog.Logger) (client.Client, string, error) {
	opts, err := connect.Options(o.Address, o.Namespace, c.Temporal)
	if err != nil {
		return nil, "", err
	}
	opts.Logger = sdklog.NewStructuredLogger(log)
	deadline, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		t, err := client.DialContext(deadline, opts)
		if err == nil {
			return t, opts.Namespace, nil
		}
		select {
		case <-deadline.Done():
			return nil, "", &connect.UnreachableError{Address: opts.HostPort, Err: err}
		case <-tick.C:
		}
	}
}

// NewLogger returns a log of warnings and errors, text on a terminal and JSON
// otherwise (I5), in which secrets are scrubbed.
func NewLogger(w io.Writer, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelWarn}
	text := format == "text"
	if f, ok := w.(*os.File); ok && format != "json" && !text {
		info, err := f.Stat()
		text = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	if text {
		return slog.New(redact.Handler(slog.NewTextHandler(w, o)))
	}
	return slog.New(redact.Handler(slog.NewJSONHandler(w, o)))
}

// ExitStatus maps an error to the process's exit status (I1).
func ExitStatus(err error) int {
	var unreachable *connect.UnreachableError
	switch {
	case err == nil:
		return contract.ExitOK
	case errors.As(err, &unreachable):
		return contract.ExitUnreachable
	case errors.As(err, new(config.Errors)), errors.As(err, new(*config.ReadError)),
		errors.As(err, new(*setup.MissingError)), errors.As(err, new(*workers.QueueError)), errors.As(err, new(*workers.GitError)):
		return contract.ExitUsage
	}
	return contract.ExitFailed
}
