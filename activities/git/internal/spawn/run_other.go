//go:build !unix

package spawn

import (
	"context"
	"errors"
)

func run(context.Context, Command) (Result, error) {
	return Result{}, errors.New("spawn: this system has no process groups; run the worker on Linux or another Unix")
}
