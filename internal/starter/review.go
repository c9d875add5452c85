package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.temporal.io/api/serviceerror"

	holdfast "github.com/holdfast-dev/holdfast/client"
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
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	open, err := client.Reviews(ctx)
	if err != nil {
		return s.late(ctx, err, "the reviews could not be listed")
	}
	s.showReviews(open)
	return nil
}

// late is err, or why it came if --wait-timeout broke the request off.
func (s *session) late(ctx context.Context, err error, what string) error {
	if s.globals.WaitTimeout > 0 && over(ctx, err) && !s.interrupted() {
		return fmt.Errorf("%s within %v; try again with a longer --wait-timeout: %w", what, s.globals.WaitTimeout, err)
	}
	return startError(err)
}

func (s *session) showReviews(open []holdfast.OpenReview) {
	if s.globals.JSON {
		type row struct {
			Key string `json:"key"`
			contract.ReviewInput
			Unread string `json:"unread,omitempty"`
		}
		rows := []row{}
		for _, o := range open {
			r := row{Key: o.Key, ReviewInput: o.Input}
			if o.Unread != nil {
				r.Unread = o.Unread.Error()
			}
			rows = append(rows, r)
		}
		s.object(nil, nil, map[string]any{"outcome": contract.OutcomeListed, "reviews": rows})
		return
	}
	if len(open) == 0 {
		fmt.Fprintln(s.Out, "no open reviews")
	}
	for _, o := range open {
		if o.Unread != nil {
			printf(s.Out, "%s  its texts cannot be read now: %v\n", o.Key, o.Unread)
			continue
		}
		printf(s.Out, "%s  part %d to %s %s\n", o.Key, o.Input.Review.Part, o.Input.Send.Channel, o.Input.Send.To)
		s.showReview(brief(o.Input.Review))
	}
}

// maxListed is how many characters of a text a list shows.
const maxListed = 200

// brief is r with its texts shortened for a list.
func brief(r contract.Review) contract.Review {
	r.Text = shorten(r.Text)
	r.Delivered = slices.Clone(r.Delivered)
	for i := range r.Delivered {
		r.Delivered[i].Text = shorten(r.Delivered[i].Text)
	}
	return r
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxListed {
		return string(runes[:maxListed-1]) + "…"
	}
	return text
}

// ReviewSettleCmd is "review settle".
type ReviewSettleCmd struct {
	ID      string `arg:"" name:"key" help:"Key of the review."`
	Receipt string `help:"Message id that the part got." required:"" placeholder:"ID"`
	Reason  string `help:"Why; kept in history." placeholder:"TEXT"`
}

// Run settles.
func (c *ReviewSettleCmd) Run(s *session, ctx context.Context) error {
	if strings.TrimSpace(c.Receipt) == "" || strings.ContainsFunc(c.Receipt, unicode.IsControl) {
		return usagef("--receipt %q is no message id", c.Receipt)
	}
	return s.decide(ctx, contract.UpdateSettle, c.ID, contract.ReviewDecision{Receipt: c.Receipt, Reason: c.Reason})
}

// ReviewRetryCmd is "review retry".
type ReviewRetryCmd struct {
	ID     string `arg:"" name:"key" help:"Key of the review."`
	Reason string `help:"Why; kept in history." placeholder:"TEXT"`
}

// Run retries; --key names the new send.
func (c *ReviewRetryCmd) Run(s *session, ctx context.Context) error {
	return s.decide(ctx, contract.UpdateRetry, c.ID, contract.ReviewDecision{Reason: c.Reason, Key: s.key})
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
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	s.sent = true
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
		return s.late(ctx, err, "no worker took the decision, which may still be recorded (see starter review list),")
	}
	id := contract.PrefixReview + key
	if s.globals.JSON {
		s.object(&id, nil, struct {
			Outcome contract.Outcome `json:"outcome"`
			contract.ReviewResult
		}{contract.OutcomeCompleted, result})
		return nil
	}
	printf(s.Out, "%s %s\n", result.Decision, id)
	if result.RetryID != "" {
		fmt.Fprintln(s.Out, "  started", result.RetryID)
	}
	return nil
}

func indent(text string) string { return "    " + strings.ReplaceAll(text, "\n", "\n    ") }
