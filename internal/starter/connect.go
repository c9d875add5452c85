package starter

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/connect"
)

// dialTimeout is how long a Temporal that does not answer is waited for.
const dialTimeout = 5 * time.Second

// connect dials Temporal with the SDK's environment and profile file, which the
// flags outrank.
func (s *session) connect(ctx context.Context) (*holdfast.Client, func(), error) {
	o, err := s.options()
	if err != nil {
		return nil, nil, err
	}
	o.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dial := client.DialContext
	if s.dial != nil {
		dial = s.dial
	}
	c, err := dial(ctx, o)
	if err != nil {
		return nil, nil, &connect.UnreachableError{Address: o.HostPort, Err: err}
	}
	return holdfast.New(c), c.Close, nil
}

// options says where Temporal is. A holdfast.yaml that nobody named and that
// cannot be read, for want of a worker's variables, does not stand in the way.
func (s *session) options() (client.Options, error) {
	var file config.Temporal
	c, err := config.LoadDefault(s.globals.Config, s.Env)
	switch {
	case err == nil:
		file = c.Temporal
	case s.globals.Config != "":
		return client.Options{}, err
	}
	o, err := connect.Options(s.globals.Address, s.globals.Namespace, file)
	if err != nil {
		return o, &usageError{err}
	}
	return o, nil
}
