package e2e

import (
	"encoding/base64"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/temporalproto"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/workers"
)

type (
	pendingActivity = *workflowpb.PendingActivityInfo
	described       = *workflowservice.DescribeWorkflowExecutionResponse
)

// record writes the histories that tests keep to the replay tests' directory
// instead of only looking at them; see workflows/testdata/README.md.
var record = flag.Bool("record", false, "write the histories that the replay tests read")

// historyDir is where the replay tests read.
const historyDir = "../../workflows/testdata/histories"

// keep makes the history of a workflow one of the recorded ones, under a name,
// when the tests run with -record.
func (s *stage) keep(name, id string) {
	s.t.Helper()
	if !*record {
		return
	}
	h := s.history(id)
	for _, e := range h.GetEvents() {
		anonymize(e.ProtoReflect())
	}
	data, err := temporalproto.CustomJSONMarshalOptions{Indent: " "}.Marshal(h)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.MkdirAll(historyDir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(historyDir, name+".json"), append(data, '\n'), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// anonymize takes the names of processes and machines out of an event.
func anonymize(m protoreflect.Message) {
	_ = protorange.Range(m, func(p protopath.Values) error {
		last := p.Index(-1)
		fd := last.Step.FieldDescriptor
		if last.Step.Kind() != protopath.FieldAccessStep || fd().Name() != "identity" {
			return nil
		}
		p.Index(-2).Value.Message().Set(fd(), protoreflect.ValueOfString("e2e"))
		return nil
	})
}

// examine looks at all that the server knows of the stage's work: no credential
// is in it (I4), and the workflows as they are give the same commands again.
func (s *stage) examine() {
	if s.t.Failed() || s.examined {
		return
	}
	s.examined = true
	replayer := worker.NewWorkflowReplayer()
	workers.RegisterWorkflows(replayer)
	s.mu.Lock()
	ids := s.ids
	s.mu.Unlock()
	for _, id := range ids {
		h := s.history(id)
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		if err != nil {
			s.t.Errorf("describe %s: %v", id, err)
			continue
		}
		said := append(texts(h), texts(d)...)
		if !mentions(said, id) {
			s.t.Errorf("%s: the scan for credentials does not see the workflow's own id, so it sees nothing", id)
		}
		for _, secret := range forbidden {
			if mentions(said, secret) {
				s.t.Errorf("%s: the server knows %q", id, secret)
			}
		}
		s.attributed(id, d.GetWorkflowExecutionInfo(), d.GetExecutionConfig().GetUserMetadata().GetSummary())
		execution := workflow.Execution{ID: id, RunID: d.GetWorkflowExecutionInfo().GetExecution().GetRunId()}
		err = replayer.ReplayWorkflowHistoryWithOptions(nil, h, worker.ReplayWorkflowHistoryOptions{OriginalExecution: execution})
		if err != nil {
			s.t.Errorf("%s: replay: %v", id, err)
		}
	}
	logs := []string{s.logs.String()}
	for _, p := range s.processes {
		p.kill()
		logs = append(logs, p.stderr.String())
	}
	for _, secret := range forbidden {
		if mentions(logs, secret) {
			s.t.Errorf("a log holds %q", secret)
		}
	}
}

// forbidden is what may be in no history, memo, search attribute or log.
var forbidden = []string{
	discordToken, telegramToken, openaiKey, backupKey, gitToken, "Authorization", "Bearer ", "Bot e2e-", "/bot100200300",
	base64.StdEncoding.EncodeToString([]byte("x-access-token:" + gitToken)),
}

// attributed checks what the web UI shows of a piece of work: its summary, its
// kind, and, when it has ended, its outcome (I4).
func (s *stage) attributed(id string, info *workflowpb.WorkflowExecutionInfo, summary *commonpb.Payload) {
	if len(summary.GetData()) == 0 {
		s.t.Errorf("%s has no static summary", id)
	}
	fields := info.GetSearchAttributes().GetIndexedFields()
	if len(fields[contract.AttributeKind].GetData()) == 0 {
		s.t.Errorf("%s has no %s", id, contract.AttributeKind)
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && len(fields[contract.AttributeOutcome].GetData()) == 0 {
		s.t.Errorf("%s ended without %s", id, contract.AttributeOutcome)
	}
}

// texts are all strings and bytes of a message, those of payloads included.
func texts(m proto.Message) []string {
	var all []string
	_ = protorange.Range(m.ProtoReflect(), func(p protopath.Values) error {
		switch v := p.Index(-1).Value.Interface().(type) {
		case string:
			all = append(all, v)
		case []byte:
			all = append(all, string(v))
		}
		return nil
	})
	return all
}

func mentions(texts []string, word string) bool {
	for _, text := range texts {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// summaries are the summaries of the events of a type, in order.
func summaries(h *historypb.History, kind enumspb.EventType) []string {
	var all []string
	for _, e := range h.GetEvents() {
		if e.GetEventType() == kind {
			all = append(all, strings.Trim(string(e.GetUserMetadata().GetSummary().GetData()), `"`))
		}
	}
	return all
}

// answersAtOnce checks that cancelled work ended within a second of the
// request, by the server's own clock, and without waiting for an activity
// (M3.13).
func (s *stage) answersAtOnce(id string) {
	s.t.Helper()
	var asked time.Time
	for _, e := range s.history(id).GetEvents() {
		switch e.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
			asked = e.GetEventTime().AsTime()
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED, enumspb.EVENT_TYPE_TIMER_FIRED:
			if !asked.IsZero() {
				s.t.Errorf("%s waited for %s before it answered", id, e.GetEventType())
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
			if took := e.GetEventTime().AsTime().Sub(asked); asked.IsZero() || took > 3*time.Second { // a second, on a machine with nothing else to do
				s.t.Errorf("%s answered %s after it was asked to stop, want at once", id, took)
			}
		}
	}
}

// metadataQuery is the SDK's own query for what the web UI shows of a workflow.
const metadataQuery = "__temporal_workflow_metadata"

// details are the current details that the web UI shows of a workflow, in
// Markdown.
func (s *stage) details(id string) string {
	s.t.Helper()
	value, err := s.temporal.QueryWorkflow(s.ctx, id, "", metadataQuery)
	if err != nil {
		s.t.Fatal(err)
	}
	var metadata sdkpb.WorkflowMetadata
	if err := value.Get(&metadata); err != nil {
		s.t.Fatal(err)
	}
	return metadata.GetCurrentDetails()
}

// wantAttributes compares search attributes of a workflow, given as names and
// values in turn (I4).
func (s *stage) wantAttributes(id string, pairs ...string) {
	s.t.Helper()
	d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
	if err != nil {
		s.t.Fatal(err)
	}
	fields := d.GetWorkflowExecutionInfo().GetSearchAttributes().GetIndexedFields()
	for i := 0; i < len(pairs); i += 2 {
		var got string
		_ = converter.GetDefaultDataConverter().FromPayload(fields[pairs[i]], &got)
		if got != pairs[i+1] {
			s.t.Errorf("%s: %s is %q, want %q", id, pairs[i], got, pairs[i+1])
		}
	}
}
