// Package connect says where Temporal is: flags outrank the SDK's TEMPORAL_*
// environment and profile file, which outrank holdfast.yaml (I1, I3).
package connect

import (
	"cmp"
	"fmt"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/holdfast-dev/holdfast/internal/config"
)

// DefaultAddress is where the standalone process listens.
const DefaultAddress = "127.0.0.1:7233"

// Options returns the SDK's client options with address and namespace filled
// in; empty arguments leave the choice to the weaker sources.
func Options(address, namespace string, file config.Temporal) (client.Options, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return o, fmt.Errorf("read the TEMPORAL_* environment: %w", err)
	}
	o.HostPort = cmp.Or(address, o.HostPort, file.Address, DefaultAddress)
	o.Namespace = cmp.Or(namespace, o.Namespace, file.Namespace, client.DefaultNamespace)
	return o, nil
}

// UnreachableError says that Temporal does not answer.
type UnreachableError struct {
	Address string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no Temporal server answers at %s; start one with \"go run ./cmd/standalone\", or name yours with --address (TEMPORAL_ADDRESS): %v",
		e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }
