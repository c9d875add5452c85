package client

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/contract"
)

// Send starts a logical send under a key (C1); an empty key is made up. It
// returns as soon as the send is durable. Input that cannot be taken is an
// [InputError], and does not use up the key.
func (c *Client) Send(ctx context.Context, key string, in contract.SendInput) (*Handle[contract.SendResult], error) {
	if err := in.Validate(); err != nil {
		return nil, inputError(err)
	}
	queue := contract.QueueDiscord
	if in.Channel == "telegram" {
		queue = contract.QueueTelegram
	}
	return start[contract.SendResult](ctx, c, order{
		prefix: contract.PrefixSend, key: key, workflow: contract.WorkflowSend, queue: queue, input: in,
		summary: fmt.Sprintf("send to %s %s", in.Channel, in.To),
		details: fmt.Sprintf("A message of %d characters to %s `%s`, account `%s`.", utf8.RuneCountInString(in.Text), in.Channel, in.To, in.Account),
		attributes: attributes(
			contract.AttributeKind, "send",
			contract.AttributeChannel, in.Channel,
			contract.AttributeAccount, in.Account,
			contract.AttributeDestination, in.To,
			contract.AttributeState, contract.StateRunning,
		),
	})
}

// Run starts one turn of an agent. Where its live text goes is not part of what
// the key stands for.
func (c *Client) Run(ctx context.Context, key string, in contract.RunInput) (*Handle[contract.RunResult], error) {
	if err := in.Validate(); err != nil {
		return nil, inputError(err)
	}
	provider, model, _ := strings.Cut(in.Model, "/")
	identity := in
	identity.Sink = nil
	return start[contract.RunResult](ctx, c, order{
		prefix: contract.PrefixRun, key: key, workflow: contract.WorkflowRun, queue: contract.QueueModel, input: in, identity: identity,
		summary: strings.TrimSpace(fmt.Sprintf("run %s %s", in.Agent, in.Model)),
		details: fmt.Sprintf("One turn of agent `%s` on a prompt of %d characters.", in.Agent, utf8.RuneCountInString(in.Prompt)),
		attributes: attributes(
			contract.AttributeKind, "run",
			contract.AttributeProvider, provider,
			contract.AttributeModel, model,
			contract.AttributeState, contract.StateRunning,
		),
	})
}

// Settle records the message id that the part under review got.
func (c *Client) Settle(ctx context.Context, key string, d contract.ReviewDecision) (contract.ReviewResult, error) {
	return c.decide(ctx, key, contract.UpdateSettle, d)
}

// Retry sends the part under review again, as a new send that may double it.
func (c *Client) Retry(ctx context.Context, key string, d contract.ReviewDecision) (contract.ReviewResult, error) {
	return c.decide(ctx, key, contract.UpdateRetry, d)
}

// Abandon leaves the part under review unsent.
func (c *Client) Abandon(ctx context.Context, key string, d contract.ReviewDecision) (contract.ReviewResult, error) {
	return c.decide(ctx, key, contract.UpdateAbandon, d)
}
