// Package demo is the guided run of "standalone --demo".
package demo

import (
	"context"

	"github.com/holdfast-dev/holdfast/internal/standalone"
)

// Run shows what Holdfast does, with the simulators of r as the outside.
func Run(ctx context.Context, r *standalone.Ready) error { return ctx.Err() }
