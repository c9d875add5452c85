package starter

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/setup"
)

// SetupCmd is "setup".
type SetupCmd struct{}

// Run makes the namespace ready.
func (SetupCmd) Run(s *session, ctx context.Context) error {
	c, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	o, err := s.options()
	if err != nil {
		return err
	}
	name := o.Namespace
	s.sent = true
	did, err := setup.Apply(ctx, c.Temporal(), name)
	if err != nil {
		return err
	}
	if s.globals.JSON {
		s.object(nil, nil, map[string]any{"outcome": contract.OutcomeCompleted, "namespace": name, "did": append([]string{}, did...)})
		return nil
	}
	if len(did) == 0 {
		fmt.Fprintf(s.Out, "the namespace %s is ready\n", name)
	}
	for _, line := range did {
		fmt.Fprintln(s.Out, line)
	}
	return nil
}
