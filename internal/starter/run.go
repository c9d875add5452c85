package starter

import (
	"context"
	"fmt"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// RunCmd is "run".
type RunCmd struct {
	Agent      string `help:"Agent of the configuration; the only one, or main, if left out." placeholder:"NAME"`
	Prompt     string `help:"The prompt; - reads standard input." required:"" placeholder:"TEXT"`
	Model      string `help:"Model to ask instead of the agent's." placeholder:"PROVIDER/MODEL"`
	Policy     string `help:"Policy profile instead of the agent's." placeholder:"NAME"`
	MaxRetries *int   `help:"Retries instead of the policy's; 0 for none." placeholder:"N"`
	Deadline   string `help:"Limit of the run; 30m if left out." placeholder:"DURATION"`
	Stream     *bool  `help:"Show text as it arrives; on if the output is a terminal." negatable:""`
}

// Run starts the run and says how it ended.
func (c *RunCmd) Run(s *session, ctx context.Context) error {
	prompt, err := s.text(c.Prompt)
	if err != nil {
		return err
	}
	if len(prompt) > maxInput {
		return usagef("the prompt is %d bytes long; at most %d are taken", len(prompt), maxInput)
	}
	client, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	in := contract.RunInput{
		Agent: c.Agent, Prompt: prompt, Model: c.Model, Policy: c.Policy, MaxRetries: c.MaxRetries, Deadline: c.Deadline,
	}
	var view *view
	if s.globals.Wait && (c.Stream == nil && s.Terminal && !s.globals.JSON || c.Stream != nil && *c.Stream) {
		var stop func()
		if view, stop, err = s.listen(); err != nil {
			return err
		}
		defer stop()
		in.Sink = view.sink()
		s.viewed = true
	}
	h, err := begin(ctx, s, func(ctx context.Context) (*holdfast.Handle[contract.RunResult], error) {
		return client.Run(ctx, s.key, in)
	})
	if err != nil {
		return err
	}
	f, err := follow(ctx, s, h)
	if err != nil {
		return err
	}
	return conclude(s, h, f, func(r contract.RunResult) contract.Outcome { return r.Outcome }, func(r contract.RunResult) {
		s.showRun(h.ID(), r, view)
	})
}

// showRun prints the answer, or what of it the live view has not shown.
func (s *session) showRun(id string, r contract.RunResult, v *view) {
	v.close()
	if r.Outcome.ExitStatus() != contract.ExitOK {
		v.newline()
		s.lament(id, r.Outcome, r.Error)
		return
	}
	printf(s.Out, "%s\n", v.rest(r.Text))
	served := ""
	if r.Served != "" && r.Served != r.Requested {
		served = ", served by " + r.Served
	}
	if s.Terminal || len(r.Attempts) > 1 {
		printf(s.Err, "%s %s: %s%s, %d tokens in, %d out\n", r.Outcome, id,
			plural(len(r.Attempts), "attempt"), served, r.Usage.InputTokens, r.Usage.OutputTokens)
	}
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
