package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"

	"github.com/holdfast-dev/holdfast/contract"
)

// ReviewCmd is "review".
type ReviewCmd struct {
	List    ReviewListCmd    `cmd:"" help:"List the open reviews with their texts."`
	Settle  ReviewSettleCmd  `cmd:"" help:"The part arrived: record its message id."`
	Retry   ReviewRetryCmd   `cmd:"" help:"The part did not arrive: send it again, with what was to follow it."`
	Abandon ReviewAbandonCmd `cmd:"" help:"Leave the part as it is."`
}

// ReviewListCmd is "review list".
type ReviewListCmd struct{}

// Run lists the open reviews.
func (ReviewListCmd) Run(s *session, ctx context.Context) error {
	client, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	open, err := client.Reviews(ctx)
	if err != nil {
		return startError(err)
	}
	if s.globals.JSON {
		type row struct {
			Key string `json:"key"`
			contract.ReviewInput
		}
		rows := []row{}
		for _, o := range open {
			rows = append(rows, row{o.Key, o.Input})
		}
		s.object(nil, nil, map[string]any{"outcome": contract.OutcomeListed, "reviews": rows})
		return nil
	}
	if len(open) == 0 {
		fmt.Fprintln(s.Out, "no open reviews")
	}
	for _, o := range open {
		fmt.Fprintf(s.Out, "%s  part %d to %s %s\n", o.Key, o.Input.Review.Part, o.Input.Send.Channel, o.Input.Send.To)
		s.showReview(o.Input.Review)
	}
	return nil
}

// ReviewSettleCmd is "review settle".
type ReviewSettleCmd struct {
	ID      string `arg:"" name:"key" help:"Key of the review."`
	Receipt string `help:"Message id that the part got." required:"" placeholder:"ID"`
	Reason  string `help:"Why; kept in history." placeholder:"TEXT"`
}

// Run settles.
func (c *ReviewSettleCmd) Run(s *session, ctx context.Context) error {
	return s.decide(ctx, contract.UpdateSettle, c.ID, contract.ReviewDecision{Receipt: c.Receipt, Reason: c.Reason})
}

// ReviewRetryCmd is "review retry".
type ReviewRetryCmd struct {
	ID     string `arg:"" name:"key" help:"Key of the review."`
	Reason string `help:"Why; kept in history." placeholder:"TEXT"`
}

// Run retries; --key names the new send.
func (c *ReviewRetryCmd) Run(s *session, ctx context.Context) error {
	return s.decide(ctx, contract.UpdateRetry, c.ID, contract.ReviewDecision{Reason: c.Reason, Key: s.globals.Key})
}

// ReviewAbandonCmd is "review abandon".
type ReviewAbandonCmd struct {
	ID     string `arg:"" name:"key" help:"Key of the review."`
	Reason string `help:"Why; kept in history." placeholder:"TEXT"`
}

// Run abandons.
func (c *ReviewAbandonCmd) Run(s *session, ctx context.Context) error {
	return s.decide(ctx, contract.UpdateAbandon, c.ID, contract.ReviewDecision{Reason: c.Reason})
}

func (s *session) decide(ctx context.Context, update, key string, d contract.ReviewDecision) error {
	client, closeClient, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	key = strings.TrimPrefix(key, contract.PrefixReview)
	var result contract.ReviewResult
	switch update {
	case contract.UpdateSettle:
		result, err = client.Settle(ctx, key, d)
	case contract.UpdateRetry:
		result, err = client.Retry(ctx, key, d)
	default:
		result, err = client.Abandon(ctx, key, d)
	}
	if errors.As(err, new(*serviceerror.NotFound)) {
		return usagef("there is no open review %q; see starter review list", key)
	}
	if err != nil {
		return startError(err)
	}
	id := contract.PrefixReview + key
	if s.globals.JSON {
		s.object(&id, nil, struct {
			Outcome contract.Outcome `json:"outcome"`
			contract.ReviewResult
		}{contract.OutcomeCompleted, result})
		return nil
	}
	fmt.Fprintf(s.Out, "%s %s\n", result.Decision, id)
	if result.RetryID != "" {
		fmt.Fprintln(s.Out, "  started", result.RetryID)
	}
	return nil
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
