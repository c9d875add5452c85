package starter

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
)

// doing is a pending activity with what its last heartbeat told.
func doing(t *testing.T, id, activity string, heartbeat any) *workflowpb.PendingActivityInfo {
	t.Helper()
	a := &workflowpb.PendingActivityInfo{
		ActivityId: id, ActivityType: &commonpb.ActivityType{Name: activity}, State: enums.PENDING_ACTIVITY_STATE_STARTED, Attempt: 1, MaximumAttempts: 1,
	}
	if heartbeat != nil {
		details, err := converter.GetDefaultDataConverter().ToPayloads(heartbeat)
		if err != nil {
			t.Fatal(err)
		}
		a.HeartbeatDetails = details
	}
	return a
}

// G10: the live line shows the step, the attempt and the progress of its last
// heartbeat.
func TestGitLine(t *testing.T) {
	t.Parallel()
	type heartbeat struct {
		Phase   string `json:"phase"`
		Objects int64  `json:"objects"`
		Done    int64  `json:"done"`
		Bytes   int64  `json:"bytes"`
	}
	waits := doing(t, "1", contract.ActivityGitFetch, nil)
	waits.State = enums.PENDING_ACTIVITY_STATE_SCHEDULED
	for want, a := range map[string]*workflowpb.PendingActivityInfo{
		"git clone, attempt 2: receiving, 1200 of 100000 objects, 3.5 MiB": doing(t, "1", contract.ActivityGitClone, heartbeat{"receiving", 100_000, 1200, 3<<20 + 512<<10}),
		"git clone, attempt 2: files, 7 objects":                           doing(t, "1", contract.ActivityGitClone, heartbeat{"files", 0, 7, 0}),
		"git push, attempt 2: sending, 900 B":                              doing(t, "1", contract.ActivityGitPush, heartbeat{"sending", 0, 0, 900}),
		"git fetch, attempt 2: waiting for the lock":                       doing(t, "1", contract.ActivityGitFetch, heartbeat{Phase: "waiting for the lock"}),
		"git push, looking for it at the remote, attempt 2":                doing(t, "1", contract.ActivityGitLocate, nil),
		"git ls-remote, attempt 2":                                         doing(t, "1", contract.ActivityGitLsRemote, "not what a heartbeat holds"),
		"git fetch, attempt 2: waits for a worker":                         waits,
	} {
		if got := gitLine(a, 2); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 5 << 30: "5.0 GiB", 3 << 50: "3072.0 TiB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

// I1, G10: what the live line says of a Git operation as it goes on: each
// activity's attempt is asked for once, and a wait shows its notice.
func TestGitLiveStatus(t *testing.T) {
	t.Parallel()
	temporal := newServer(t, func() {})
	h, err := holdfast.New(temporal.Client).GitFetch(t.Context(), "k", contract.GitFetchInput{Dir: "/c", Host: "h"})
	if err != nil {
		t.Fatal(err)
	}
	var state contract.GitState
	asked := 0
	value := &mocks.Value{}
	value.On("Get", mock.Anything).Run(func(args mock.Arguments) {
		asked++
		data, err := json.Marshal(state)
		if err == nil {
			err = json.Unmarshal(data, args.Get(0))
		}
		if err != nil {
			t.Error(err)
		}
	}).Return(nil)
	temporal.On("QueryWorkflow", mock.Anything, "send/k", "r1", contract.QueryState).Return(value, nil)
	describe := temporal.On("DescribeWorkflowExecution", mock.Anything, "send/k", "r1").Return(nil, nil)
	var last gitGlance
	shows := func(want string, pending ...*workflowpb.PendingActivityInfo) {
		t.Helper()
		describe.ReturnArguments = mock.Arguments{&workflowservice.DescribeWorkflowExecutionResponse{PendingActivities: pending}, nil}
		if got := status(t.Context(), h, &last); got != want {
			t.Errorf("the line is %q, want %q", got, want)
		}
	}
	state = contract.GitState{State: "running", Attempt: 1}
	shows("git fetch, attempt 1: connect", doing(t, "5", contract.ActivityGitFetch, gitProgress{Phase: "connect"}))
	shows("git fetch, attempt 1: receiving, 3 of 9 objects", doing(t, "5", contract.ActivityGitFetch, gitProgress{Phase: "receiving", Objects: 9, Done: 3}))
	if asked != 1 {
		t.Errorf("the attempt of one activity was asked for %d times", asked)
	}
	state = contract.GitState{State: "waiting", Attempt: 2, Notice: "wait 1 s: server_error, attempt 2 of 2"}
	shows("wait 1 s: server_error, attempt 2 of 2")
	shows("git fetch, attempt 2", doing(t, "9", contract.ActivityGitFetch, nil))
	shows("may_push attempt 1 of 1", doing(t, "11", "may_push", nil))
}

// G11, I1: work that waits for a host that nobody serves says so once, after two
// seconds, and goes on waiting.
func TestUnattendedHost(t *testing.T) {
	now := func(ago time.Duration) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{LastAccessTime: timestamppb.New(time.Now().Add(-ago))}
	}
	for _, tc := range []struct {
		name, host, queue string
		pollers           func() []*taskqueuepb.PollerInfo
		err               error
		want              string
	}{
		{"nobody", "h", "holdfast-git-h", nil, nil, "no worker serves host h; start one there, or name another with --host\n"},
		{"a worker that is gone", "h", "holdfast-git-h", func() []*taskqueuepb.PollerInfo { return []*taskqueuepb.PollerInfo{now(3 * time.Minute)} }, nil,
			"no worker serves host h; start one there, or name another with --host\n"},
		{"shared", "", contract.QueueGit, nil, nil, "no worker serves Git yet; start one: worker --queues git\n"},
		{"served", "h", "holdfast-git-h", func() []*taskqueuepb.PollerInfo {
			return []*taskqueuepb.PollerInfo{now(3 * time.Minute), now(50 * time.Second)}
		}, nil, ""},
		{"not known", "h", "holdfast-git-h", nil, errors.New("no answer"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				temporal := &mocks.Client{}
				answer := &workflowservice.DescribeTaskQueueResponse{}
				if tc.pollers != nil {
					answer.Pollers = tc.pollers()
				}
				temporal.On("DescribeTaskQueue", mock.Anything, tc.queue, enums.TASK_QUEUE_TYPE_WORKFLOW).Return(answer, tc.err)
				s, _, errs := newSession(t.Context(), Globals{Wait: true, JSON: true})
				stop := s.attend(t.Context(), temporal, tc.host)
				time.Sleep(attendAfter - time.Millisecond)
				synctest.Wait()
				if errs.String() != "" {
					t.Errorf("said too early: %q", errs)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if errs.String() != tc.want {
					t.Errorf("said %q, want %q", errs, tc.want)
				}
				stop()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, _, errs := newSession(t.Context(), Globals{Wait: true})
		began := time.Now()
		s.attend(t.Context(), &mocks.Client{}, "h")()
		if errs.String() != "" || time.Since(began) != 0 {
			t.Errorf("work that ended at once: said %q, took %v", errs, time.Since(began))
		}
	})
}
