package workflows

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/failure"
)

// seen is what a workflow asked for, as an interceptor sees it.
type seen struct {
	interceptor.WorkerInterceptorBase
	activities []workflow.ActivityOptions
	timers     []timer
	children   []workflow.ChildWorkflowOptions
	childInput []any
}

type timer struct {
	D       time.Duration
	Summary string
}

func (s *seen) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &seenInbound{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, seen: s}
}

type seenInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	seen *seen
}

func (i *seenInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return i.Next.Init(&seenOutbound{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, seen: i.seen})
}

type seenOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	seen *seen
}

// ExecuteActivity also makes up for two things the test environment does not do
// as the server does: an activity that is waited for is not cut off by a
// cancellation, and a lost worker's attempt is not repeated where the policy
// says so.
func (o *seenOutbound) ExecuteActivity(ctx workflow.Context, kind string, args ...any) workflow.Future {
	options := workflow.GetActivityOptions(ctx)
	o.seen.activities = append(o.seen.activities, options)
	if options.WaitForCancellation && ctx.Err() == nil {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	if slices.Contains(options.RetryPolicy.NonRetryableErrorTypes, "TemporalTimeout:Heartbeat") {
		policy := *options.RetryPolicy
		policy.MaximumAttempts = 1
		ctx = workflow.WithRetryPolicy(ctx, policy)
	}
	return o.Next.ExecuteActivity(ctx, kind, args...)
}

func (o *seenOutbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	o.seen.timers = append(o.seen.timers, timer{d, options.Summary})
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

func (o *seenOutbound) ExecuteChildWorkflow(ctx workflow.Context, kind string, args ...any) workflow.ChildWorkflowFuture {
	o.seen.children = append(o.seen.children, workflow.GetChildWorkflowOptions(ctx))
	o.seen.childInput = append(o.seen.childInput, args...)
	return o.Next.ExecuteChildWorkflow(ctx, kind, args...)
}

// run is one workflow in skipped time.
type harness struct {
	t     *testing.T
	env   *testsuite.TestWorkflowEnvironment
	start time.Time
	logs  bytes.Buffer
	seen  seen
}

var testStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newHarness(t *testing.T, id string) *harness {
	t.Helper()
	h := &harness{t: t, start: testStart}
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(&h.logs, nil))))
	h.env = suite.NewTestWorkflowEnvironment()
	h.env.SetStartTime(h.start)
	h.env.SetStartWorkflowOptions(clientOptions(id))
	h.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&h.seen}})
	return h
}

// since is how long the workflow has run.
func (h *harness) since() time.Duration { return h.env.Now().Sub(h.start) }

// details are the current details as the web UI shows them.
func (h *harness) details() string {
	h.t.Helper()
	value, err := h.env.QueryWorkflow("__temporal_workflow_metadata")
	if err != nil {
		h.t.Fatal(err)
	}
	var m sdkpb.WorkflowMetadata
	if err := value.Get(&m); err != nil {
		h.t.Fatal(err)
	}
	return m.GetCurrentDetails()
}

func (h *harness) query(name string, into any) {
	h.t.Helper()
	value, err := h.env.QueryWorkflow(name)
	if err == nil {
		err = value.Get(into)
	}
	if err != nil {
		h.t.Errorf("query %s: %v", name, err)
	}
}

// check holds for every workflow: it ends with a value, and what it shows stays
// within the server's limits (I4).
func (h *harness) check(result any) {
	h.t.Helper()
	if err := h.env.GetWorkflowError(); err != nil {
		h.t.Fatalf("the workflow failed: %v", err)
	}
	if err := h.env.GetWorkflowResult(result); err != nil {
		h.t.Fatal(err)
	}
	for _, a := range h.seen.activities {
		if a.Summary == "" || len(a.Summary) > maxSummary {
			h.t.Errorf("I4: the summary of an activity is %q", a.Summary)
		}
	}
	for _, tm := range h.seen.timers {
		if tm.Summary == "" || len(tm.Summary) > maxSummary {
			h.t.Errorf("I4: the summary of a timer is %q", tm.Summary)
		}
	}
	if d := h.details(); len(d) >= maxDetails || d == "" {
		h.t.Errorf("I4: the current details have %d bytes", len(d))
	}
}

// sendRun drives one Send through scripted attempts.
type sendRun struct {
	*harness
	script []func(contract.MessageInput) (contract.MessageResult, error)
	inputs []contract.MessageInput
	at     []time.Duration
	lists  []contract.DiscordListInput
	listAt []time.Duration
	// channel is what a read of the Discord channel finds.
	channel func(contract.DiscordListInput) ([]contract.DiscordMessage, error)
}

func newSendRun(t *testing.T, script ...func(contract.MessageInput) (contract.MessageResult, error)) *sendRun {
	t.Helper()
	s := &sendRun{harness: newHarness(t, "send/k"), script: script}
	attempt := func(_ context.Context, in contract.MessageInput) (contract.MessageResult, error) {
		s.inputs = append(s.inputs, in)
		s.at = append(s.at, s.since())
		if n := len(s.inputs); n <= len(s.script) {
			return s.script[n-1](in)
		}
		return contract.MessageResult{MessageID: fmt.Sprint("m", len(s.inputs)), Attempts: 1}, nil
	}
	for _, name := range []string{contract.ActivityDiscordCreateMessage, contract.ActivityTelegramSendMessage} {
		s.env.RegisterActivityWithOptions(attempt, activity.RegisterOptions{Name: name})
	}
	s.env.RegisterActivityWithOptions(func(context.Context, contract.DiscordListInput) (contract.DiscordUserResult, error) {
		return contract.DiscordUserResult{ID: "900"}, nil
	}, activity.RegisterOptions{Name: contract.ActivityDiscordCurrentUser})
	s.env.RegisterActivityWithOptions(func(_ context.Context, in contract.DiscordListInput) (contract.DiscordListResult, error) {
		s.lists = append(s.lists, in)
		s.listAt = append(s.listAt, s.since())
		if s.channel == nil {
			t.Error("a read that was not expected")
			return contract.DiscordListResult{}, nil
		}
		messages, err := s.channel(in)
		return contract.DiscordListResult{Messages: messages}, err
	}, activity.RegisterOptions{Name: contract.ActivityDiscordListMessages})
	s.env.RegisterWorkflowWithOptions(func(workflow.Context, contract.ReviewInput) (contract.ReviewResult, error) {
		return contract.ReviewResult{}, nil
	}, workflow.RegisterOptions{Name: contract.WorkflowReview})
	return s
}

func (s *sendRun) run(in contract.SendInput) contract.SendResult {
	s.t.Helper()
	if in.To == "" {
		in.To = "42"
	}
	if in.Text == "" {
		in.Text = "hello"
	}
	s.env.ExecuteWorkflow(Send, in)
	var result contract.SendResult
	s.check(&result)
	return result
}

// texts are the texts that were sent, in order.
func (s *sendRun) texts() []string {
	var texts []string
	for _, in := range s.inputs {
		texts = append(texts, in.Text)
	}
	return texts
}

// sendFailure is a failed attempt of a channel activity that does not repeat
// itself.
func sendFailure(reason, effect string, change ...func(*contract.Failure)) func(contract.MessageInput) (contract.MessageResult, error) {
	f := contract.Failure{Surface: "channel", Reason: reason, Rule: "C2/test", Effect: effect, Message: "the platform said so", Attempts: 1}
	for _, c := range change {
		c(&f)
	}
	return func(contract.MessageInput) (contract.MessageResult, error) {
		return contract.MessageResult{}, failure.New(f, failure.Options{})
	}
}

func floor(d time.Duration) func(*contract.Failure) {
	return func(f *contract.Failure) {
		ms := d.Milliseconds()
		f.RetrySame, f.FloorMS, f.DelayMS, f.FloorSource = true, &ms, ms+ms/20, "body"
	}
}

func attempts(n int) func(*contract.Failure) { return func(f *contract.Failure) { f.Attempts = n } }

// lost is an attempt whose worker vanished.
func lost(kind enumspb.TimeoutType) func(contract.MessageInput) (contract.MessageResult, error) {
	return func(contract.MessageInput) (contract.MessageResult, error) {
		return contract.MessageResult{}, temporal.NewTimeoutError(kind, nil)
	}
}

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func words(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }
