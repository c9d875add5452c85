package e2e

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

func init() { registerRole("server", serverRole) }

// serverRole serves E2E_DATA on E2E_LISTEN and prints its address.
func serverRole(ctx context.Context) error {
	s, err := temporalserver.Start(ctx, temporalserver.Options{
		DataDir:          os.Getenv("E2E_DATA"),
		Listen:           os.Getenv("E2E_LISTEN"),
		NoUI:             true,
		SearchAttributes: contract.SearchAttributes(),
		Version:          "e2e",
	})
	if err != nil {
		return err
	}
	defer s.Stop()
	fmt.Println("serving " + s.Address())
	<-ctx.Done()
	return nil
}

func startServer(t *testing.T, dir, listen string) (*roleProcess, string) {
	t.Helper()
	p := startRole(t, "server", "E2E_DATA="+dir, "E2E_LISTEN="+listen)
	return p, p.line("serving ")
}

// threeSteps does a step, waits to be told to go on, and does two more.
func threeSteps(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 10 * time.Second,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1},
	})
	if err := workflow.ExecuteActivity(ctx, "step").Get(ctx, nil); err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "go on").Receive(ctx, nil)
	for range 2 {
		if err := workflow.ExecuteActivity(ctx, "step").Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// Q2: the server is killed with SIGKILL and started again on the same data: work
// that it acknowledged continues, and a step that is done is not done again.
func TestServerContinuesAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, address := startServer(t, dir, "127.0.0.1:0")
	c := dial(t, address)
	queue := unique(t)
	var steps atomic.Int32
	stepped := make(chan struct{}, 10)
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(threeSteps, workflow.RegisterOptions{Name: "threeSteps"})
	w.RegisterActivityWithOptions(func(context.Context) error {
		steps.Add(1)
		stepped <- struct{}{}
		return nil
	}, activity.RegisterOptions{Name: "step"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ctx := t.Context()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "threeSteps")
	if err != nil {
		t.Fatal(err)
	}
	<-stepped
	awaitEvent(t, c, run, "ActivityTaskCompleted")

	server.kill()
	_, again := startServer(t, dir, address)
	if again != address {
		t.Fatalf("restarted on %s, want %s", again, address)
	}
	if err := c.SignalWorkflow(ctx, run.GetID(), run.GetRunID(), "go on", nil); err != nil {
		t.Fatal(err)
	}
	if err := run.Get(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if n := steps.Load(); n != 3 {
		t.Errorf("%d steps ran, want 3", n)
	}
}

// awaitEvent follows a history until it has an event of this type.
func awaitEvent(t *testing.T, c client.Client, run client.WorkflowRun, event string) {
	t.Helper()
	it := c.GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), true, 1)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.GetEventType().String() == event {
			return
		}
	}
	t.Fatalf("the workflow ended without %s", event)
}

// A data directory serves one process; the lock goes with a killed one.
func TestDataDirInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, _ := startServer(t, dir, "127.0.0.1:0")
	_, err := temporalserver.Start(t.Context(), temporalserver.Options{DataDir: dir, Listen: "127.0.0.1:0", NoUI: true})
	inUse := new(temporalserver.InUseError)
	if !errors.As(err, &inUse) {
		t.Fatalf("second start: %v, want an InUseError", err)
	}
	if diff := cmp.Diff(&temporalserver.InUseError{Dir: dir, PID: server.pid()}, inUse); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
	server.kill()
	startServer(t, dir, "127.0.0.1:0")
}

// A taken port is reported with its flag before anything is started or made.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	tests := map[string]struct {
		flag    string
		options temporalserver.Options
	}{
		"frontend": {"--listen", temporalserver.Options{Listen: taken, UIListen: "127.0.0.1:0"}},
		"UI":       {"--ui-listen", temporalserver.Options{Listen: "127.0.0.1:0", UIListen: taken}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.options.DataDir = filepath.Join(t.TempDir(), "data")
			_, err := temporalserver.Start(t.Context(), test.options)
			got := new(temporalserver.PortInUseError)
			if !errors.As(err, &got) {
				t.Fatalf("start: %v, want a PortInUseError", err)
			}
			if diff := cmp.Diff(&temporalserver.PortInUseError{Address: taken, Flag: test.flag}, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if _, err := os.Stat(test.options.DataDir); !os.IsNotExist(err) {
				t.Errorf("the data directory was made: %v", err)
			}
		})
	}
}

func TestAddressErrors(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"7233", "example.com:7233", "127.0.0.1:x", "127.0.0.1:70000"} {
		_, err := temporalserver.Start(t.Context(), temporalserver.Options{Ephemeral: true, Listen: address})
		got := new(temporalserver.AddressError)
		if !errors.As(err, &got) {
			t.Errorf("listen on %q: %v, want an AddressError", address, err)
			continue
		}
		if got.Address != address || got.Flag != "--listen" {
			t.Errorf("listen on %q: error is about %q and %s", address, got.Address, got.Flag)
		}
	}
}

// A store of another layout is refused and told apart.
func TestStoreOfAnotherLayout(t *testing.T) {
	t.Parallel()
	const ours = 0x486f6c64
	tests := map[string]struct {
		application, layout int
		says                string
	}{
		"newer":   {ours, temporalserver.Layout + 1, "run the newer holdfast"},
		"older":   {ours, temporalserver.Layout - 1, "finish its work with the holdfast that wrote it"},
		"foreign": {0, temporalserver.Layout, "was not written by holdfast"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := openStore(t, dir)
			for pragma, value := range map[string]int{"application_id": test.application, "user_version": test.layout} {
				if _, err := db.Exec(fmt.Sprintf("PRAGMA %s=%d", pragma, value)); err != nil {
					t.Fatal(err)
				}
			}
			_, err := temporalserver.Start(t.Context(), temporalserver.Options{DataDir: dir, Listen: "127.0.0.1:0", NoUI: true})
			got := new(temporalserver.SchemaError)
			if !errors.As(err, &got) {
				t.Fatalf("start: %v, want a SchemaError", err)
			}
			if !strings.Contains(got.Error(), test.says) {
				t.Errorf("error %q does not say %q", got, test.says)
			}
		})
	}
}

func openStore(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, temporalserver.StoreName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// layoutDigest is the digest of the schema that temporalserver.Layout numbers.
const layoutDigest = "0f59edf467f7a543"

// Search attributes get the same columns in every store; a later start adds what
// is missing; the eleventh keyword does not fit. Stopping says nothing.
func TestNewStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	records := new(recorder)
	options := temporalserver.Options{
		DataDir:          dir,
		Listen:           "127.0.0.1:0",
		Logger:           slog.New(records),
		NoUI:             true,
		SearchAttributes: []string{"A", "B"},
	}
	if diff := cmp.Diff(map[string]string{"Keyword01": "A", "Keyword02": "B"}, aliasesOf(t, options)); diff != "" {
		t.Errorf("attributes of a new store (-want +got):\n%s", diff)
	}
	options.SearchAttributes = []string{"C", "A"}
	if diff := cmp.Diff(map[string]string{"Keyword01": "A", "Keyword02": "B", "Keyword03": "C"}, aliasesOf(t, options)); diff != "" {
		t.Errorf("attributes after a later start (-want +got):\n%s", diff)
	}
	if got := digest(t, openStore(t, dir)); got != layoutDigest {
		t.Errorf("the schema of a new store has digest %s, want %s: raise temporalserver.Layout and change layoutDigest with it", got, layoutDigest)
	}
	options.SearchAttributes = strings.Split("D E F G H I J K", " ")
	_, err := temporalserver.Start(t.Context(), options)
	if !errors.As(err, new(*temporalserver.AttributeLimitError)) {
		t.Errorf("eleven attributes: %v, want an AttributeLimitError", err)
	}
	if diff := cmp.Diff([]string(nil), records.messages()); diff != "" {
		t.Errorf("logged by starting and stopping twice (-want +got):\n%s", diff)
	}
}

// The lists that operators ask for are served by an index of the store, and so is
// the state of Holdfast's own work (I4).
func TestListsUseIndexes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, _ := startServer(t, dir, "127.0.0.1:0")
	server.kill()
	state := fmt.Sprintf("Keyword%02d", 1+slices.Index(contract.SearchAttributes(), contract.AttributeState))
	db := openStore(t, dir)
	for condition, index := range map[string]string{
		"":                    "by_temporal_namespace_division",
		"status = ? AND":      "by_status",
		"workflow_id = ? AND": "by_workflow_id",
		state + " = ? AND":    "by_keyword_07",
		"run_id = ? AND":      "sqlite_autoindex_executions_visibility_1",
	} {
		plan := queryPlan(t, db, `SELECT workflow_id FROM executions_visibility
			WHERE namespace_id = ? AND `+condition+` TemporalNamespaceDivision IS NULL
			ORDER BY COALESCE(close_time, '9999-12-31 23:59:59+00:00') DESC, start_time DESC, run_id LIMIT 100`)
		if !strings.Contains(plan, index+" ") {
			t.Errorf("a list with %q uses %s, want index %s", condition, plan, index)
		}
		if strings.Contains(plan, "TEMP B-TREE FOR ORDER BY") && index != "sqlite_autoindex_executions_visibility_1" {
			t.Errorf("a list with %q is sorted after it is read: %s", condition, plan)
		}
	}
}

func queryPlan(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	for i := range args {
		args[i] = "x"
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step)
	}
	return strings.Join(steps, "; ")
}

// aliasesOf starts a server, asks it for its search attributes and stops it.
func aliasesOf(t *testing.T, o temporalserver.Options) map[string]string {
	t.Helper()
	s, err := temporalserver.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	return describe(t, s).GetConfig().GetCustomSearchAttributeAliases()
}

func describe(t *testing.T, s *temporalserver.Server) *workflowservice.DescribeNamespaceResponse {
	t.Helper()
	c := dial(t, s.Address())
	ns, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: s.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func digest(t *testing.T, db *sql.DB) string {
	t.Helper()
	rows, err := db.Query(`SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY type, name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	h := sha256.New()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		io.WriteString(h, line+"\n")
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:16]
}

// recorder keeps the messages of a logger.
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }
func (r *recorder) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := rec.Level.String() + " " + rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	r.list = append(r.list, line)
	return nil
}

func (r *recorder) messages() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.list
}

// The namespace keeps closed work for 30 days, so a repeated start is recognised
// for as long, and has every search attribute of the contract (I4).
func TestNamespace(t *testing.T) {
	t.Parallel()
	config := describe(t, shared(t)).GetConfig()
	if got := config.GetWorkflowExecutionRetentionTtl().AsDuration(); got != 30*24*time.Hour {
		t.Errorf("retention %v, want 30 days", got)
	}
	var names []string
	for i := range contract.SearchAttributes() {
		names = append(names, config.GetCustomSearchAttributeAliases()[fmt.Sprintf("Keyword%02d", i+1)])
	}
	if diff := cmp.Diff(contract.SearchAttributes(), names); diff != "" {
		t.Errorf("search attributes (-want +got):\n%s", diff)
	}
}

// The UI serves its page, reaches the frontend, and fetches no news.
func TestUI(t *testing.T) {
	t.Parallel()
	s := shared(t)
	if page := get(t, s.UIURL()+"/"); !strings.Contains(strings.ToLower(page), "<!doctype html>") {
		t.Errorf("the page is no HTML: %.80q", page)
	}
	var ns struct {
		NamespaceInfo struct{ Name string }
	}
	if err := json.Unmarshal([]byte(get(t, s.UIURL()+"/api/v1/namespaces/"+s.Namespace())), &ns); err != nil {
		t.Fatal(err)
	}
	if ns.NamespaceInfo.Name != s.Namespace() {
		t.Errorf("the UI's API answers for namespace %q, want %q", ns.NamespaceInfo.Name, s.Namespace())
	}
	var settings struct{ DisableNewsFetch bool }
	if err := json.Unmarshal([]byte(get(t, s.UIURL()+"/api/v1/settings")), &settings); err != nil {
		t.Fatal(err)
	}
	if !settings.DisableNewsFetch {
		t.Error("the UI fetches news")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %.200s", url, resp.Status, body)
	}
	return string(body)
}
