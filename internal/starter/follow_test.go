package starter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/mocks"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// screen is an output that several goroutines may write to.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func newSession(ctx context.Context, g Globals) (s *session, out, errs *screen) {
	out, errs = &screen{}, &screen{}
	return &session{
		Program: Program{Out: out, Err: errs}, globals: &g, interrupted: func() bool { return ctx.Err() != nil },
	}, out, errs
}

// server is a Temporal of one send that never ends by itself.
type server struct {
	*mocks.Client
	run *mocks.WorkflowRun
}

// newServer makes a server that calls started when the send has started.
func newServer(t *testing.T, started func()) server {
	t.Helper()
	s := server{&mocks.Client{}, &mocks.WorkflowRun{}}
	s.run.On("GetID").Return("send/k")
	s.run.On("GetRunID").Return("r1")
	start := s.On("ExecuteWorkflow", mock.Anything, mock.Anything, mock.Anything, mock.Anything)
	start.Run(func(args mock.Arguments) {
		started()
		if err := args.Get(0).(context.Context).Err(); err != nil {
			start.ReturnArguments = mock.Arguments{nil, err}
		}
	}).Return(s.run, nil)
	return s
}

// waits lets every wait for the result last until it is given up.
func (s server) waits() {
	get := s.run.On("Get", mock.Anything, mock.Anything)
	get.Run(func(args mock.Arguments) {
		ctx := args.Get(0).(context.Context)
		<-ctx.Done()
		get.ReturnArguments = mock.Arguments{ctx.Err()}
	})
}

// send does what the verb does once it is connected, and returns the exit status.
func (s server) send(ctx context.Context, in *session) int {
	c := holdfast.New(s.Client)
	h, err := begin(ctx, in, func(ctx context.Context) (*holdfast.Handle[contract.SendResult], error) {
		return c.Send(ctx, "k", contract.SendInput{Channel: "telegram", To: "1", Text: "x"})
	})
	if err != nil {
		return in.fail(err)
	}
	f, err := follow(ctx, in, h)
	if err == nil {
		err = conclude(in, h, f, func(r contract.SendResult) contract.Outcome { return r.Outcome }, func(contract.SendResult) {})
	}
	return in.fail(err)
}

// answer is the one JSON object of a verb.
type answer struct {
	WorkflowID string          `json:"workflow_id"`
	Outcome    string          `json:"outcome"`
	Requested  string          `json:"requested"`
	Error      *contract.Error `json:"error"`
}

func (s *screen) answer(t *testing.T) answer {
	t.Helper()
	var a answer
	if err := json.Unmarshal([]byte(s.String()), &a); err != nil {
		t.Fatalf("standard output %q is not one object: %v", s, err)
	}
	if a.Error == nil {
		a.Error = &contract.Error{}
	}
	return a
}

// I1: an interrupt during the start does not lose hold of the work: it is
// cancelled by its id, and its outcome is waited for 5 s, --no-wait or not.
func TestInterruptDuringTheStart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wait  bool
		asks  func(context.Context) error
		wants string
	}{
		{"the request arrives", true, func(context.Context) error { return nil }, "was asked to stop"},
		{"nobody waits", false, func(context.Context) error { return nil }, "was asked to stop"},
		{"the request is refused", true, func(context.Context) error { return errors.New("refused") }, "could not be asked to stop: refused; it goes on"},
		{"the request hangs", true, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, "could not be asked to stop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				server := newServer(t, interrupt)
				server.waits()
				ask := server.On("CancelWorkflow", mock.Anything, "send/k", "r1")
				ask.Run(func(args mock.Arguments) {
					ask.ReturnArguments = mock.Arguments{tc.asks(args.Get(0).(context.Context))}
				})
				s, out, _ := newSession(ctx, Globals{Wait: tc.wait, JSON: true})
				began := time.Now()
				status := server.send(ctx, s)
				a := out.answer(t)
				if status != contract.ExitCancelled || a.WorkflowID != "send/k" || !strings.Contains(a.Error.Message, tc.wants) {
					t.Errorf("exit status %d, %+v %v, want 130 and %q", status, a, a.Error, tc.wants)
				}
				if took := time.Since(began); took != cancelPatience {
					t.Errorf("waited %v for the outcome, want %v", took, cancelPatience)
				}
			})
		})
	}
}

// I1: only where nothing was sent does an interrupt say so.
func TestInterruptBeforeTheStart(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	server := newServer(t, func() { t.Error("the send was started") })
	s, out, _ := newSession(ctx, Globals{Wait: true, JSON: true})
	status := server.send(ctx, s)
	if a := out.answer(t); status != contract.ExitCancelled || !strings.Contains(a.Error.Message, "before any work was started") {
		t.Errorf("exit status %d, %q", status, a.Error.Message)
	}
	s, out, _ = newSession(ctx, Globals{JSON: true})
	s.sent = true
	status = s.fail(ctx.Err())
	if a := out.answer(t); status != contract.ExitCancelled || strings.Contains(a.Error.Message, "before any work") {
		t.Errorf("after a request: exit status %d, %q", status, a.Error.Message)
	}
}

// I1: a server that stays dead during the wait is exit status 4, with the id of
// the work.
func TestServerDiesDuringTheWait(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		serviceerror.NewUnavailable("gone"),
		serviceerror.NewDeadlineExceeded("poll"),
		fmt.Errorf("poll: %w", context.DeadlineExceeded),
	} {
		for _, limit := range []time.Duration{0, time.Hour} {
			server := newServer(t, func() {})
			server.run.On("Get", mock.Anything, mock.Anything).Return(err)
			s, out, _ := newSession(t.Context(), Globals{Wait: true, JSON: true, WaitTimeout: limit})
			status := server.send(t.Context(), s)
			if a := out.answer(t); status != contract.ExitUnreachable || a.WorkflowID != "send/k" || a.Outcome != "unreachable" {
				t.Errorf("%v, limit %v: exit status %d, %+v", err, limit, status, a)
			}
		}
	}
}

func described(status enums.WorkflowExecutionStatus) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status}}
}

// I1: --wait-timeout bounds every wait; the work goes on.
func TestWaitTimeout(t *testing.T) {
	const limit = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, func() {})
		server.waits()
		s, out, _ := newSession(t.Context(), Globals{Wait: true, JSON: true, WaitTimeout: limit})
		began := time.Now()
		status := server.send(t.Context(), s)
		if a := out.answer(t); status != contract.ExitOK || a.Outcome != "started" || time.Since(began) != limit {
			t.Errorf("send: exit status %d, %+v after %v", status, a, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		temporal := &mocks.Client{}
		d := described(enums.WORKFLOW_EXECUTION_STATUS_RUNNING)
		d.WorkflowExecutionInfo.Execution = execution("send/k")
		temporal.On("DescribeWorkflowExecution", mock.Anything, "send/k", "").Return(d, nil)
		temporal.On("QueryWorkflow", mock.Anything, "send/k", "", contract.QueryState).Return(nil, errors.New("no worker"))
		s, out, _ := newSession(t.Context(), Globals{JSON: true, WaitTimeout: limit})
		began := time.Now()
		status := s.fail((&watch{session: s, id: "send/k", temporal: temporal}).follow(t.Context()))
		if a := out.answer(t); status != contract.ExitOK || a.Outcome != "started" || time.Since(began) > limit+watchEvery {
			t.Errorf("watch: exit status %d, %+v after %v", status, a, time.Since(began))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s, out, _ := newSession(t.Context(), Globals{JSON: true, WaitTimeout: limit})
		ctx, cancel := s.bounded(t.Context())
		defer cancel()
		<-ctx.Done()
		status := s.fail(s.late(ctx, ctx.Err(), "nothing happened"))
		if a := out.answer(t); status != contract.ExitFailed || !strings.Contains(a.Error.Message, "within 3s") {
			t.Errorf("review: exit status %d, %q", status, a.Error.Message)
		}
	})
}
