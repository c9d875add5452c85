package client_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// namespace is a Temporal namespace of one workflow: the first start under a
// key is taken, later ones are told of it.
type namespace struct {
	temporal *mocks.Client
	starts   []temporalclient.StartWorkflowOptions
}

func newNamespace(t *testing.T) *namespace {
	t.Helper()
	n := &namespace{temporal: &mocks.Client{}}
	run := &mocks.WorkflowRun{}
	run.On("GetID").Return("the id")
	run.On("GetRunID").Return("first")
	n.temporal.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Run(func(args mock.Arguments) {
			n.starts = append(n.starts, args.Get(1).(temporalclient.StartWorkflowOptions))
		}).
		Return(run, nil).Once()
	n.temporal.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).
		Run(func(args mock.Arguments) {
			n.starts = append(n.starts, args.Get(1).(temporalclient.StartWorkflowOptions))
		}).
		Return(nil, serviceerror.NewWorkflowExecutionAlreadyStarted("taken", "", "first"))
	describe := n.temporal.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "first")
	describe.Run(func(mock.Arguments) {
		hash, err := converter.GetDefaultDataConverter().ToPayload(n.starts[0].Memo[contract.MemoPayloadHash])
		if err != nil {
			t.Error(err)
		}
		describe.ReturnArguments = mock.Arguments{&workflowservice.DescribeWorkflowExecutionResponse{
			WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Memo: &commonpb.Memo{
				Fields: map[string]*commonpb.Payload{contract.MemoPayloadHash: hash},
			}},
		}, nil}
	})
	n.temporal.On("GetWorkflow", mock.Anything, mock.Anything, "first").Return(run)
	return n
}

// C1: one key stands for one send. The same input again is the first send, and
// another one is refused by name.
func TestSendKey(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	c := client.New(n.temporal)
	in := contract.SendInput{Channel: "telegram", Account: "main", To: "42", Text: "hello"}
	first, err := c.Send(t.Context(), "k", in)
	if err != nil || first.Replayed {
		t.Fatalf("first start: %v, replayed %v", err, first != nil && first.Replayed)
	}
	again, err := c.Send(t.Context(), "k", in)
	if err != nil || !again.Replayed || again.RunID() != "first" {
		t.Errorf("second start: %v, want the first one's handle", err)
	}
	in.Text = "hello!"
	var conflict *client.KeyConflictError
	if _, err := c.Send(t.Context(), "k", in); !errors.As(err, &conflict) || conflict.WorkflowID != "send/k" {
		t.Errorf("another text under the key: %v, want a KeyConflictError for send/k", err)
	}
}

// I4: a start is refused twice, found by its attributes, and queued where its
// channel is.
func TestSendStart(t *testing.T) {
	t.Parallel()
	for channel, queue := range map[string]string{
		"telegram": contract.QueueTelegram, "discord": contract.QueueDiscord,
	} {
		n := newNamespace(t)
		if _, err := client.New(n.temporal).Send(t.Context(), "k", contract.SendInput{Channel: channel, Account: "main", To: "42", Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		o := n.starts[0]
		if o.ID != "send/k" || o.TaskQueue != queue || o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE ||
			o.StaticSummary != "send to "+channel+" 42" {
			t.Errorf("%s: started with %+v", channel, o)
		}
		got := map[string]string{}
		for _, key := range contract.SearchAttributes() {
			if value, ok := o.TypedSearchAttributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(key)); ok {
				got[key] = value
			}
		}
		want := map[string]string{
			contract.AttributeKind: "send", contract.AttributeChannel: channel,
			contract.AttributeAccount: "main", contract.AttributeDestination: "42",
			contract.AttributeState: contract.StateRunning,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: search attributes (-want +got):\n%s", channel, diff)
		}
	}
}

// M2.12: where live text goes is not what a key stands for, so a caller that
// came back may listen elsewhere; what is asked for is.
func TestRunKeyIgnoresTheSink(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	c := client.New(n.temporal)
	in := contract.RunInput{Prompt: "hello", Sink: &contract.Sink{Kind: "http", URL: "http://127.0.0.1:1/"}}
	if _, err := c.Run(t.Context(), "k", in); err != nil {
		t.Fatal(err)
	}
	in.Sink = &contract.Sink{Kind: "http", URL: "http://127.0.0.1:2/"}
	if again, err := c.Run(t.Context(), "k", in); err != nil || !again.Replayed {
		t.Errorf("another sink: %v, want the first run", err)
	}
	in.Prompt = "bye"
	var conflict *client.KeyConflictError
	if _, err := c.Run(t.Context(), "k", in); !errors.As(err, &conflict) {
		t.Errorf("another prompt: %v, want a KeyConflictError", err)
	}
}

// An empty key is made up, and never the same twice.
func TestNewKey(t *testing.T) {
	t.Parallel()
	var ids []string
	for range 2 {
		n := newNamespace(t)
		if _, err := client.New(n.temporal).GitFetch(t.Context(), "", contract.GitFetchInput{Dir: "/c"}); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, n.starts[0].ID)
	}
	if ids[0] == ids[1] || len(ids[0]) < len(contract.PrefixGitFetch)+16 {
		t.Errorf("ids %q", ids)
	}
}

// What Temporal says otherwise is passed on as it is.
func TestStartFails(t *testing.T) {
	t.Parallel()
	m := &mocks.Client{}
	unavailable := serviceerror.NewUnavailable("no server")
	m.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nil, unavailable)
	if _, err := client.New(m).GitLsRemote(t.Context(), "k", contract.GitLsRemoteInput{URL: "https://example.invalid/a.git"}); !errors.Is(err, unavailable) {
		t.Errorf("%v, want %v", err, unavailable)
	}
}
