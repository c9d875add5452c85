// Package client is how a gateway uses Holdfast: thin and typed, with only the
// Temporal SDK beneath.
//
// Every piece of work is started under a key. The key makes the workflow's id
// ("send/KEY"), so a second start with the same key and the same input is
// answered with the first result, and one with another input is refused with a
// [KeyConflictError]. The promise holds as long as Temporal keeps the first
// workflow, which is the namespace's retention.
package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/contract"
)

// Client starts work on a Temporal namespace. It is safe for concurrent use.
type Client struct {
	temporal client.Client
}

// New wraps a Temporal client, which stays the caller's to close.
func New(c client.Client) *Client { return &Client{temporal: c} }

// Temporal is the client beneath.
func (c *Client) Temporal() client.Client { return c.temporal }

// KeyConflictError says that a key is taken by work with another input.
type KeyConflictError struct {
	WorkflowID string
}

func (e *KeyConflictError) Error() string {
	return fmt.Sprintf("%s was started before with another input; use another key", e.WorkflowID)
}

// InputError says what is wrong with an input; nothing was started.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InputError) Unwrap() error { return e.Err }

func inputError(e *contract.Error) error { return &InputError{errors.New(e.Message)} }

// Handle is a started piece of work whose result is a T.
type Handle[T any] struct {
	client *Client
	run    client.WorkflowRun
	// Replayed says that the key was known: this handle is of the first start.
	Replayed bool
}

// ID is the workflow's id.
func (h *Handle[T]) ID() string { return h.run.GetID() }

// RunID is the Temporal run id of the start.
func (h *Handle[T]) RunID() string { return h.run.GetRunID() }

// Get waits for the result. A workflow that was terminated or cancelled from
// outside before it could answer gives an error.
func (h *Handle[T]) Get(ctx context.Context) (T, error) {
	var result T
	err := h.run.Get(ctx, &result)
	return result, err
}

// Cancel asks the work to stop. What has started is finished or reconciled;
// the result says how it ended.
func (h *Handle[T]) Cancel(ctx context.Context) error {
	return h.client.temporal.CancelWorkflow(ctx, h.ID(), h.RunID())
}

// Query asks the work for its state; what it answers depends on the kind of
// work (contract.SendState, contract.RunState, contract.GitState).
func (h *Handle[T]) Query(ctx context.Context, query string, answer any) error {
	value, err := h.client.temporal.QueryWorkflow(ctx, h.ID(), h.RunID(), query)
	if err != nil {
		return err
	}
	return value.Get(answer)
}

// Describe asks Temporal for the execution of the work.
func (h *Handle[T]) Describe(ctx context.Context) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return h.client.temporal.DescribeWorkflowExecution(ctx, h.ID(), h.RunID())
}

// NewKey makes a key for work whose caller has none.
func NewKey() string { return rand.Text() }

// order is what is common to all starts.
type order struct {
	prefix, key, workflow, queue string
	input                        any
	// identity is what of the input makes the work what it is; the whole input
	// if nil.
	identity   any
	details    string // Markdown
	summary    string
	attributes temporal.SearchAttributes
}

// start starts the work of o, or finds the first start of its key.
func start[T any](ctx context.Context, c *Client, o order) (*Handle[T], error) {
	if o.key == "" {
		o.key = NewKey()
	}
	if err := contract.ValidateKey(o.key); err != nil {
		return nil, inputError(err)
	}
	id := o.prefix + o.key
	if o.identity == nil {
		o.identity = o.input
	}
	hash, size, err := payloadHash(o.identity)
	if err != nil {
		return nil, err
	}
	if size > maxInput {
		return nil, &InputError{fmt.Errorf("the input is %d bytes as JSON; at most %d are taken", size, maxInput)}
	}
	run, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       id,
		TaskQueue:                                o.queue,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		Memo:                                     map[string]any{contract.MemoPayloadHash: hash},
		TypedSearchAttributes:                    o.attributes,
		StaticSummary:                            shorten(o.summary, maxSummary),
		StaticDetails:                            shorten(o.details, maxDetails),
	}, o.workflow, o.input)
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &started):
		return first[T](ctx, c, id, started.RunId, hash)
	case err != nil:
		return nil, err
	}
	return &Handle[T]{client: c, run: run}, nil
}

// first finds the first start of a key and checks that it was the same work.
func first[T any](ctx context.Context, c *Client, id, runID, hash string) (*Handle[T], error) {
	d, err := c.temporal.DescribeWorkflowExecution(ctx, id, runID)
	if err != nil {
		return nil, err
	}
	var was string
	if p := d.GetWorkflowExecutionInfo().GetMemo().GetFields()[contract.MemoPayloadHash]; p != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(p, &was); err != nil {
			return nil, err
		}
	}
	if was != hash {
		return nil, &KeyConflictError{WorkflowID: id}
	}
	return &Handle[T]{client: c, run: c.temporal.GetWorkflow(ctx, id, runID), Replayed: true}, nil
}

// maxInput bounds an input, as JSON, so that what follows from it (a plan, a
// review with what was delivered before) stays below Temporal's 2 MiB for one
// payload.
const maxInput = 512 << 10

// payloadHash identifies an input: the SHA-256 of its JSON, whose field order
// is fixed by the type. size is the JSON's.
func payloadHash(input any) (hash string, size int, err error) {
	data, err := json.Marshal(input)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), len(data), nil
}

// maxSummary is the server's limit for a summary, in bytes.
const maxSummary = 400

// maxDetails bounds the details, far below the server's limit.
const maxDetails = 2000

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

func attributes(pairs ...string) temporal.SearchAttributes {
	var updates []temporal.SearchAttributeUpdate
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			updates = append(updates, temporal.NewSearchAttributeKeyKeyword(pairs[i]).ValueSet(pairs[i+1]))
		}
	}
	return temporal.NewSearchAttributes(updates...)
}
