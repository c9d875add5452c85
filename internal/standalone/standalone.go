// Package standalone is what cmd/standalone does: one process with a Temporal
// server, its web UI and a worker, and on request the simulators of the outside.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/process"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/workers"
)

// Options says what to run; I1 describes the flags that set them.
type Options struct {
	Data      string
	Ephemeral bool
	Listen    string
	UIListen  string
	NoUI      bool

	// Config names the configuration file; Queues what the worker serves.
	// NoWorker leaves the worker out.
	Config   string
	Queues   []string
	NoWorker bool

	// Simulate starts the simulators and a configuration that points at them,
	// instead of a configuration file.
	Simulate bool

	// Guide, where set, is called when everything is ready; the demo is one. Exit
	// ends the process when it returns.
	Guide func(context.Context, *Ready) error
	Exit  bool

	Env config.Env
	// Logger, where set, makes the process's log of its usual one.
	Logger func(*slog.Logger) *slog.Logger
	// Out gets the block with the addresses, Err the logs.
	Out io.Writer
	Err io.Writer
	// Started is when the process began, for the time it took to be ready.
	Started time.Time
	Version string
}

// Ready is the running process as a guide sees it.
type Ready struct {
	Client    client.Client
	Address   string
	UIURL     string
	Namespace string
	World     *World // nil without simulators
	Data      string
	// Checkouts is where managed checkouts may be, on the disk of GitHost; set with
	// simulators.
	Checkouts string
	GitHost   string
	Out       io.Writer
	// OnStop registers what is to be done when the process ends, after the
	// worker has drained.
	OnStop func(func())
}

// Run serves until ctx is done, then drains and stops. Errors for which
// [IsUsage] holds are the user's to mend; nothing is left running after them.
func Run(ctx context.Context, o Options) error {
	p := &running{o: o}
	defer p.stop()
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := p.announce(); err != nil {
		return fmt.Errorf("write the addresses: %w", err)
	}
	var err error
	if o.Guide != nil {
		err = o.Guide(ctx, p.ready())
		if o.Exit || ctx.Err() != nil {
			return err
		}
		if err != nil {
			fmt.Fprintf(o.Err, "%v\n", err)
		}
		fmt.Fprintln(o.Out, "\nstill up; Ctrl-C stops")
	}
	<-ctx.Done()
	return err
}

type running struct {
	o      Options
	config *config.Config
	world  *World
	server *temporalserver.Server
	client client.Client
	worker *workers.Workers

	checkouts string // where managed checkouts may be when the outside is simulated
	onStop    []func()
}

func (p *running) start(ctx context.Context) (err error) {
	o := p.o
	if p.config, err = p.configure(); err != nil {
		return err
	}
	log := process.NewLogger(o.Err, p.config.Telemetry.LogFormat)
	if o.Logger != nil {
		log = o.Logger(log)
	}
	p.server, err = temporalserver.Start(ctx, temporalserver.Options{
		DataDir: o.Data, Ephemeral: o.Ephemeral, Listen: o.Listen, UIListen: o.UIListen, NoUI: o.NoUI,
		Logger: log, SearchAttributes: contract.SearchAttributes(), Version: o.Version,
	})
	if err != nil || o.NoWorker {
		return err
	}
	if err := p.dial(ctx, log); err != nil {
		return err
	}
	p.worker, err = workers.Start(p.client, workers.Options{Config: p.config, Queues: o.Queues, Logger: log})
	return err
}

// configure reads the configuration before anything is started, so that a
// mistake in it leaves nothing behind.
func (p *running) configure() (*config.Config, error) {
	o := p.o
	if !o.Simulate {
		return config.LoadDefault(o.Config, o.Env)
	}
	if o.Config != "" {
		return nil, errTwoConfigs
	}
	world, err := startWorld()
	if err != nil {
		return nil, err
	}
	p.world = world
	if err := p.placeCheckouts(); err != nil {
		return nil, err
	}
	return config.Parse("simulators", world.config(p.checkouts), o.Env)
}

var errTwoConfigs = errors.New("--simulate brings its own configuration; leave out --config")

// placeCheckouts chooses where managed checkouts may be: below the data, or in a
// directory that goes with the process if nothing is to be kept.
func (p *running) placeCheckouts() (err error) {
	if !p.o.Ephemeral {
		p.checkouts, err = filepath.Abs(filepath.Join(p.o.Data, "checkouts"))
		return err
	}
	if p.checkouts, err = os.MkdirTemp("", "holdfast-checkouts-"); err != nil {
		return fmt.Errorf("make a directory for checkouts: %w", err)
	}
	p.onStop = append(p.onStop, func() { _ = os.RemoveAll(p.checkouts) })
	return nil
}

func (p *running) dial(ctx context.Context, log *slog.Logger) (err error) {
	p.client, err = client.DialContext(ctx, client.Options{
		HostPort: p.server.Address(), Namespace: p.server.Namespace(), Logger: sdklog.NewStructuredLogger(log),
	})
	if err != nil {
		return fmt.Errorf("connect to the server of this process: %w", err)
	}
	return nil
}

// stop drains the worker first, then ends the server and the simulators.
func (p *running) stop() {
	if p.worker != nil {
		p.worker.Stop()
	}
	for _, f := range slices.Backward(p.onStop) {
		f()
	}
	if p.client != nil {
		p.client.Close()
	}
	if p.server != nil {
		p.server.Stop()
	}
	if p.world != nil {
		p.world.close()
	}
}

func (p *running) ready() *Ready {
	return &Ready{
		Client: p.client, Address: p.server.Address(), UIURL: p.server.UIURL(), Namespace: p.server.Namespace(),
		World: p.world, Data: p.o.Data, Checkouts: p.checkouts, GitHost: p.config.Git.Host, Out: p.o.Out,
		OnStop: func(f func()) { p.onStop = append(p.onStop, f) },
	}
}

// IsUsage reports whether err comes from what the user asked for or from the
// place it was asked to run in, so that another flag mends it.
func IsUsage(err error) bool {
	return errors.Is(err, errTwoConfigs) ||
		errors.As(err, new(config.Errors)) ||
		errors.As(err, new(*config.ReadError)) ||
		errors.As(err, new(*workers.QueueError)) ||
		errors.As(err, new(*workers.GitError)) ||
		errors.As(err, new(*temporalserver.AddressError)) ||
		errors.As(err, new(*temporalserver.PortInUseError)) ||
		errors.As(err, new(*temporalserver.InUseError)) ||
		errors.As(err, new(*temporalserver.SchemaError)) ||
		errors.As(err, new(*temporalserver.AttributeLimitError))
}
