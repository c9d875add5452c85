package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/policies"
)

// DefaultTTL is a send's time to live where it names none (C1).
const DefaultTTL = 24 * time.Hour

// Send is one logical send (C1). It plans the text into parts and delivers them
// in order, each with its own receipt; a part that fails leaves the earlier ones
// alone, and one whose outcome is unknown is reconciled before anything else is
// sent.
func Send(ctx workflow.Context, in contract.SendInput) (contract.SendResult, error) {
	s := &send{in: in, id: workflow.GetInfo(ctx).WorkflowExecution.ID, state: "planning"}
	if err := s.setup(ctx); err != nil {
		return contract.SendResult{}, err
	}
	end := s.run(ctx)
	end.Receipts = s.receipts
	if end.Receipts == nil {
		end.Receipts = []contract.Receipt{}
	}
	s.state = string(end.Outcome)
	notice := ""
	if end.Error != nil {
		notice = end.Error.Message
	}
	s.describe(ctx, notice)
	s.notice = ""
	return end, recordEnd(ctx, end.Outcome, end.Error)
}

type send struct {
	in    contract.SendInput
	id    string
	route route

	parts    []contract.Part
	receipts []contract.Receipt
	dropped  *contract.Error // last part that on_unknown: drop left out
	moved    string          // where the destination has moved to, once it said so
	attempts int             // requests made, over all parts
	started  time.Time
	expires  time.Time

	state  string
	part   int
	notice string
}

func (s *send) setup(ctx workflow.Context) error {
	err := workflow.SetQueryHandlerWithOptions(ctx, contract.QueryState, func() (contract.SendState, error) {
		return contract.SendState{
			State: s.state, Part: s.part, Parts: len(s.parts), Receipts: s.receipts, Notice: s.notice,
		}, nil
	}, workflow.QueryHandlerOptions{Description: "Where the send is: part, receipts, notice"})
	if err != nil {
		return err
	}
	return workflow.SetQueryHandlerWithOptions(ctx, contract.QueryParts, func() ([]contract.Part, error) {
		return s.parts, nil
	}, workflow.QueryHandlerOptions{Description: "The planned parts with their text"})
}

func (s *send) run(ctx workflow.Context) contract.SendResult {
	if err := s.plan(ctx); err != nil {
		return contract.SendResult{Outcome: contract.OutcomeRejected, Error: err}
	}
	s.state = "sending"
	for i := range s.parts {
		s.part = i + 1
		s.describe(ctx, "")
		p := &delivery{send: s, part: &s.parts[i]}
		if end := p.run(ctx); end != nil {
			return *end
		}
	}
	return s.delivered()
}

// delivered is the end of a send all of whose parts are done. Parts that were
// dropped at the sender's wish are told of, not hidden.
func (s *send) delivered() contract.SendResult {
	outcome := contract.OutcomeDelivered
	if len(s.receipts) == 0 {
		outcome = contract.OutcomeNotSent
	}
	return contract.SendResult{Outcome: outcome, Error: s.dropped}
}

// plan checks the input and cuts the text into parts. A plan of more than one
// part is recorded, so that a later version of the cutter cannot change a send
// that is under way.
func (s *send) plan(ctx workflow.Context) *contract.Error {
	route, err := routeOf(s.in)
	if err != nil {
		return err
	}
	s.route = route
	s.started = workflow.Now(ctx)
	s.expires = s.started.Add(ttlOf(s.in))
	texts := []string{s.in.Text}
	if limit := route.limit; limit.Len(s.in.Text) > limit.Max {
		encoded := workflow.SideEffect(ctx, func(workflow.Context) any {
			return policies.Chunk(s.in.Text, limit)
		})
		if getErr := encoded.Get(&texts); getErr != nil {
			return &contract.Error{Reason: string(policies.ReasonFormat), Message: "the recorded plan cannot be read: " + getErr.Error()}
		}
	}
	for i, text := range texts {
		part := contract.Part{N: i + 1, Text: text, Format: s.in.Format}
		if part.Format == "" {
			part.Format = contract.FormatPlain
		}
		if i == 0 {
			part.ReplyTo = s.in.ReplyTo
		}
		s.parts = append(s.parts, part)
	}
	return nil
}

func (s *send) describe(ctx workflow.Context, notice string) {
	s.notice = notice
	workflow.SetCurrentDetails(ctx, s.details())
}

func (s *send) details() string {
	d := fmt.Sprintf("**%s** to %s `%s`", s.state, s.in.Channel, cut(s.in.To, 200))
	if len(s.parts) > 0 {
		d += fmt.Sprintf(" – part %d of %d", s.part, len(s.parts))
	}
	if s.notice != "" {
		d += "\n\n" + cut(s.notice, 1000)
	}
	if len(s.receipts) > 0 {
		d += "\n\n| part | message |\n| --- | --- |"
		from := max(0, len(s.receipts)-maxRows)
		if from > 0 {
			d += fmt.Sprintf("\n| … | %d more |", from)
		}
		for _, r := range s.receipts[from:] {
			d += fmt.Sprintf("\n| %d | %s |", r.Part, cut(r.MessageID, 100))
		}
	}
	return d
}

// failed is the error of the send's result for a failure of one part.
func (s *send) failed(f contract.Failure) *contract.Error {
	return &contract.Error{Reason: f.Reason, Message: f.Message, Rule: f.Rule, Attempts: s.attempts}
}

// ttlOf is the time to live of a send that is valid.
func ttlOf(in contract.SendInput) time.Duration {
	if ttl, err := time.ParseDuration(in.TTL); err == nil {
		return ttl
	}
	return DefaultTTL
}
