package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/process"
	"github.com/holdfast-dev/holdfast/internal/starter"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/simulator/all"
	"github.com/holdfast-dev/holdfast/simulator/discord"
	"github.com/holdfast-dev/holdfast/simulator/githttp"
	"github.com/holdfast-dev/holdfast/simulator/openai"
	"github.com/holdfast-dev/holdfast/simulator/telegram"
	"github.com/holdfast-dev/holdfast/workers"
)

// patience bounds every wait of these tests. Nothing takes as long; a test that
// reaches it has failed.
const patience = 5 * time.Minute

// The credentials of the stage. No history may hold any of them (I4).
const (
	discordToken  = "e2e-discord-credential"
	telegramToken = "100200300:e2e-telegram-credential"
	openaiKey     = "e2e-openai-credential"
	backupKey     = "e2e-backup-credential"
	gitToken      = "e2e-git-credential"
)

// Where the tests send.
const (
	channelID = "730000000000000001"
	chatID    = 4242
	chat      = "4242"
)

// stageHost is what the workers of a stage call their host, whose disk holds the
// checkouts (G11).
const stageHost = "e2e"

const stageConfig = `auth_profiles:
  openai-main: {provider: openai, kind: api_key, value: "${E2E_OPENAI_KEY}"}
  backup-main: {provider: backup, kind: api_key, value: "${E2E_BACKUP_KEY}"}
providers:
  openai: {dialect: openai-responses, base_url: %q, auth_profiles: [openai-main], models: [gpt-5.1]}
  backup: {dialect: openai-responses, base_url: %q, auth_profiles: [backup-main], models: [gpt-5.1-mini]}
agents:
  main: {model: openai/gpt-5.1}
  careful: {model: openai/gpt-5.1, fallbacks: [backup/gpt-5.1-mini]}
channels:
  discord:  {accounts: {main: {token: "${E2E_DISCORD_TOKEN}", api_url: %q}}}
  telegram: {accounts: {main: {token: "${E2E_TELEGRAM_TOKEN}", api_url: %q}}}
git:
  host: ` + stageHost + `
  roots: [%q]
  auth_profiles:
    forge: {kind: token, value: "${E2E_GIT_TOKEN}"}
`

// stageEnv is what the configuration of a stage takes from the environment.
var stageEnv = map[string]string{
	"E2E_OPENAI_KEY": openaiKey, "E2E_BACKUP_KEY": backupKey, "E2E_DISCORD_TOKEN": discordToken,
	"E2E_TELEGRAM_TOKEN": telegramToken, "E2E_GIT_TOKEN": gitToken,
}

func stageVariables() []string {
	var list []string
	for name, value := range stageEnv {
		list = append(list, name+"="+value)
	}
	return list
}

// stage is one test's own outside, its Temporal server, and its configuration.
// At the end of the test every history is scanned for credentials and replayed
// against the workflows as they are.
type stage struct {
	t        *testing.T
	ctx      context.Context // done at the end of the test, or after patience
	world    *all.World
	backup   *openai.Server
	checkout string // where the checkout of the simulated repository is, or is to be
	engine   string // git.engine, for the cases that are seen with each

	config   string // path of the configuration
	address  string
	temporal client.Client
	holdfast *holdfast.Client
	logs     *logBuffer

	mu        sync.Mutex
	ids       []string
	processes []*roleProcess

	examined bool
}

// repository is the simulated repository.
const repository = "team/project"

// newStage starts the outside and a server in memory; more is added to the
// configuration.
func newStage(t *testing.T, more ...string) *stage {
	t.Helper()
	return serverFor(newOutside(t, more...), contract.SearchAttributes())
}

// newBareStage is newStage with a namespace that is not set up.
func newBareStage(t *testing.T) *stage {
	t.Helper()
	return serverFor(newOutside(t), nil)
}

func serverFor(s *stage, attributes []string) *stage {
	s.t.Helper()
	server, err := temporalserver.Start(s.t.Context(), temporalserver.Options{
		Ephemeral: true, Listen: "127.0.0.1:0", NoUI: true, SearchAttributes: attributes, Version: "e2e",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(server.Stop)
	s.connect(server.Address())
	return s
}

// newOutside starts the outside and writes its configuration.
func newOutside(t *testing.T, more ...string) *stage {
	t.Helper()
	s := &stage{t: t, logs: &logBuffer{}}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	var err error
	if s.world, err = all.Start(all.Options{
		Discord:  discord.Options{Tokens: map[string]string{discordToken: discord.DefaultUserID}},
		Telegram: telegram.Options{Tokens: []string{telegramToken}},
		OpenAI:   openai.Options{Keys: []string{openaiKey}},
		Git:      githttp.Options{Users: map[string]string{"x-access-token": gitToken}},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.world.Close() })
	if s.backup, err = openai.Start(openai.Options{Keys: []string{backupKey}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.backup.Close() })

	dir := t.TempDir()
	root := filepath.Join(dir, "checkouts")
	s.checkout = filepath.Join(root, "project")
	u := s.world.URLs()
	text := fmt.Sprintf(stageConfig, u.OpenAI, s.backup.BaseURL(), u.Discord, u.Telegram, root) + strings.Join(more, "")
	s.config = filepath.Join(dir, "holdfast.yaml")
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect dials the server at an address, and has its histories examined at the
// end.
func (s *stage) connect(address string) {
	s.t.Helper()
	s.address = address
	c, err := client.Dial(client.Options{
		HostPort: address, Identity: "e2e", Logger: sdklog.NewStructuredLogger(slog.New(slog.NewJSONHandler(s.logs, nil))),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.temporal, s.holdfast = c, holdfast.New(c)
	s.t.Cleanup(c.Close)
	s.t.Cleanup(s.examine)
}

func (s *stage) env(name string) (string, bool) {
	value, ok := stageEnv[name]
	return value, ok
}

// work starts the workers of the configuration in this process.
func (s *stage) work(interceptors ...interceptor.WorkerInterceptor) {
	s.t.Helper()
	c, err := config.Load(s.config, s.env)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := workers.Start(s.temporal, workers.Options{
		Config: c, Logger: process.NewLogger(s.logs, "json"), Interceptors: interceptors,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(w.Stop)
}

func init() { registerRole("worker", workerRole) }

// workerRole is cmd/worker without its flags.
func workerRole(ctx context.Context) error {
	var queues []string
	if q := os.Getenv("E2E_QUEUES"); q != "" {
		queues = strings.Split(q, ",")
	}
	err := process.Worker(ctx, process.WorkerOptions{
		Address: os.Getenv("E2E_ADDRESS"), Queues: queues, Env: os.LookupEnv,
		Out: os.Stdout, Err: os.Stderr, Version: "e2e",
	})
	if err != nil {
		return &exitError{status: process.ExitStatus(err), err: err}
	}
	return nil
}

// worker starts a worker in a process of its own and waits until it polls.
func (s *stage) worker(queues ...string) *roleProcess {
	s.t.Helper()
	p := startRole(s.t, "worker", append(stageVariables(),
		config.Variable+"="+s.config, "E2E_ADDRESS="+s.address, "E2E_QUEUES="+strings.Join(queues, ","))...)
	p.line("holdfast worker")
	s.processes = append(s.processes, p)
	return p
}

// track has the history of a workflow examined at the end of the test, for the
// cases that do not start it through the stage.
func (s *stage) track(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.ids, id) {
		s.ids = append(s.ids, id)
	}
}

func start[T any](s *stage, h *holdfast.Handle[T], err error) *holdfast.Handle[T] {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.track(h.ID())
	return h
}

// send starts a send under a key that names the case.
func (s *stage) send(key string, in contract.SendInput) *holdfast.Handle[contract.SendResult] {
	s.t.Helper()
	if in.Account == "" {
		in.Account = "main"
	}
	if in.To == "" {
		in.To = map[string]string{"discord": channelID, "telegram": chat}[in.Channel]
	}
	h, err := s.holdfast.Send(s.ctx, key, in)
	return start(s, h, err)
}

func (s *stage) run(key string, in contract.RunInput) *holdfast.Handle[contract.RunResult] {
	s.t.Helper()
	if in.Agent == "" {
		in.Agent = "main"
	}
	if in.Prompt == "" {
		in.Prompt = "Why is the sky blue?"
	}
	h, err := s.holdfast.Run(s.ctx, key, in)
	return start(s, h, err)
}

// finish waits for the result.
func finish[T any](s *stage, h *holdfast.Handle[T]) T {
	s.t.Helper()
	result, err := h.Get(s.ctx)
	if err != nil {
		s.t.Fatalf("%s: %v", h.ID(), err)
	}
	return result
}

// history is the whole history of the first run of a workflow.
func (s *stage) history(id string) *historypb.History {
	s.t.Helper()
	h := &historypb.History{}
	it := s.temporal.GetWorkflowHistory(s.ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			s.t.Fatalf("history of %s: %v", id, err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

// until describes a workflow, again and again, until it is as wanted.
func (s *stage) until(id, what string, met func(described) bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d, err := s.temporal.DescribeWorkflowExecution(s.ctx, id, "")
		if err == nil && met(d) {
			return
		}
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("%s: no %s: %v (%v)", id, what, s.ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// attempt is met once the pending activity of a workflow waits for, or makes,
// attempt n.
func attempt(n int32) func(described) bool {
	return func(d described) bool {
		return slices.ContainsFunc(d.GetPendingActivities(), func(a pendingActivity) bool { return a.GetAttempt() >= n })
	}
}

// answer is what one invocation of the starter said.
type answer struct {
	status      int
	out, errors string
}

// starter runs cmd/starter without its process. Its work is examined at the end
// if a key is given.
func (s *stage) starter(args ...string) answer {
	s.t.Helper()
	return s.starterWith(s.ctx, args...)
}

func (s *stage) starterWith(ctx context.Context, args ...string) answer {
	s.t.Helper()
	return starterAt(ctx, s.address, args...)
}

func starterAt(ctx context.Context, address string, args ...string) answer {
	var out, errors logBuffer
	status := starter.Main(ctx, starter.Program{
		Args: append([]string{"--address", address}, args...), In: strings.NewReader(""), Out: &out, Err: &errors,
		Env: func(string) (string, bool) { return "", false }, Version: "e2e",
	})
	return answer{status, out.String(), errors.String()}
}

// object decodes the one JSON object that an invocation with --json printed, and
// fails the test if it printed anything else.
func (s *stage) object(a answer) map[string]any {
	s.t.Helper()
	return oneObject(s.t, a)
}

func oneObject(t *testing.T, a answer) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(a.out))
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		t.Fatalf("standard output is no JSON object: %v\noutput: %q\nerrors: %s", err, a.out, a.errors)
	}
	if d.More() {
		t.Fatalf("standard output holds more than one JSON object:\n%s", a.out)
	}
	for _, field := range []string{"workflow_id", "run_id", "outcome"} {
		if _, ok := object[field]; !ok {
			t.Errorf("the JSON object has no %s: %s", field, slices.Sorted(maps.Keys(object)))
		}
	}
	return object
}

// logBuffer takes what several goroutines write.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// poll asks again and again until met.
func (s *stage) poll(what string, met func() bool) {
	s.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !met() {
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("no %s: %v", what, s.ctx.Err())
		case <-tick.C:
		}
	}
}
