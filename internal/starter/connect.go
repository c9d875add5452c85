package starter

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	sdklog "go.temporal.io/sdk/log"

	holdfast "github.com/holdfast-dev/holdfast/client"
)

// dialTimeout is how long a Temporal that does not answer is waited for.
const dialTimeout = 5 * time.Second

// DefaultAddress is where the standalone process listens.
const DefaultAddress = "127.0.0.1:7233"

// unreachableError says that Temporal does not answer: exit status 4.
type unreachableError struct {
	address string
	err     error
}

func (e *unreachableError) Error() string {
	return fmt.Sprintf("no Temporal server answers at %s; start one with \"go run ./cmd/standalone\", or name yours with --address (TEMPORAL_ADDRESS): %v",
		e.address, e.err)
}

func (e *unreachableError) Unwrap() error { return e.err }

// connect dials Temporal with the SDK's environment and profile file, which the
// flags outrank.
func (s *session) connect(ctx context.Context) (*holdfast.Client, func(), error) {
	o, err := ClientOptions(s.globals.Address, s.globals.Namespace)
	if err != nil {
		return nil, nil, &usageError{err}
	}
	o.Logger = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, nil, &unreachableError{o.HostPort, err}
	}
	return holdfast.New(c), c.Close, nil
}

// ClientOptions are the SDK's TEMPORAL_* environment and profile file with an
// address and a namespace, where given, on top.
func ClientOptions(address, namespace string) (client.Options, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return o, fmt.Errorf("read the TEMPORAL_* environment: %w", err)
	}
	if address != "" {
		o.HostPort = address
	}
	if o.HostPort == "" {
		o.HostPort = DefaultAddress
	}
	if namespace != "" {
		o.Namespace = namespace
	}
	return o, nil
}
