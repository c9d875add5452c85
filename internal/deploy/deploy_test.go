package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/holdfast-dev/holdfast/contract"
)

const root = "../.."

type service struct {
	Image           string
	Build           *struct{ Args map[string]string }
	ContainerName   string `yaml:"container_name"`
	Hostname        string
	Init            bool
	Command         []string
	Environment     yaml.Node
	Healthcheck     *struct{ Test []string }
	Ports           []string
	Restart         string
	StopGracePeriod string `yaml:"stop_grace_period"`
	Volumes         []any
}

// env is the environment of the service, whether written as a map or a list.
func (s service) env(t *testing.T) map[string]string {
	t.Helper()
	vars := map[string]string{}
	if s.Environment.Kind == yaml.MappingNode {
		if err := s.Environment.Decode(&vars); err != nil {
			t.Fatal(err)
		}
		return vars
	}
	var list []string
	if err := s.Environment.Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		vars[name] = value
	}
	return vars
}

func services(t *testing.T) map[string]service {
	t.Helper()
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(read(t, "docker-compose.yml"), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Services) == 0 {
		t.Fatal("docker-compose.yml has no services")
	}
	return file.Services
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestPortsAreOnLoopback(t *testing.T) {
	t.Parallel()
	published := 0
	for name, s := range services(t) {
		for _, port := range s.Ports {
			published++
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s publishes %s, want it on 127.0.0.1", name, port)
			}
		}
	}
	if published == 0 {
		t.Error("no port is published; the UI and the frontend should be, on loopback")
	}
}

// I4: the namespace job runs what internal/setup is tested for, with our own
// image, on the namespace that the workers use.
func TestNamespaceJob(t *testing.T) {
	t.Parallel()
	job, worker := services(t)["namespace"], services(t)["worker"]
	if diff := cmp.Diff([]string{"setup"}, job.Command); diff != "" {
		t.Errorf("command of the namespace job (-want +got):\n%s", diff)
	}
	if got := job.Build.Args["BINARY"]; got != "starter" {
		t.Errorf("the namespace job is built from %q, want starter", got)
	}
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"} {
		if got, want := job.env(t)[name], worker.env(t)[name]; got != want || got == "" {
			t.Errorf("%s of the namespace job is %q, of the worker %q", name, got, want)
		}
	}
}

// The health checks ask what proves readiness, over IPv4, with what the images have.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"postgres": {"CMD", "pg_isready", "-h", "127.0.0.1", "-U", "temporal"},
		"temporal": {"CMD", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:7243/api/v1/system-info"},
		"ui":       {"CMD", "wget", "-q", "-O", "/dev/null", "http://127.0.0.1:8080/healthz"},
	}
	got := map[string][]string{}
	for name, s := range services(t) {
		if s.Healthcheck != nil {
			got[name] = s.Healthcheck.Test
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("health checks (-want +got):\n%s", diff)
	}
}

func TestSecretsComeFromTheEnvironment(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)(password|_pwd|token|api_key|secret)$`)
	seen := 0
	for name, s := range services(t) {
		for variable, value := range s.env(t) {
			if !secret.MatchString(variable) {
				continue
			}
			seen++
			if value != "" && !regexp.MustCompile(`^\$\{[A-Z_]+:\?.+\}$`).MatchString(value) {
				t.Errorf("%s sets %s to a literal or lets it be empty", name, variable)
			}
		}
	}
	if seen < 4 {
		t.Errorf("%d secrets found, want those of the database and of the worker", seen)
	}
}

func TestServicesCanRunForLong(t *testing.T) {
	t.Parallel()
	jobs := map[string]bool{"schema": true, "namespace": true}
	for name, s := range services(t) {
		if s.ContainerName != "" {
			t.Errorf("%s has a fixed container name", name)
		}
		if want := map[bool]string{true: "on-failure", false: "unless-stopped"}[jobs[name]]; s.Restart != want {
			t.Errorf("%s restarts %q, want %q", name, s.Restart, want)
		}
		// A worker has no port to ask; it ends when it cannot work.
		if !jobs[name] && name != "worker" && s.Healthcheck == nil {
			t.Errorf("%s has no health check", name)
		}
		if s.Build == nil && !regexp.MustCompile(`:\d+(\.\d+)*$`).MatchString(s.Image) {
			t.Errorf("%s runs %q, want a pinned version", name, s.Image)
		}
	}
	grace, err := time.ParseDuration(services(t)["worker"].StopGracePeriod)
	if err != nil || grace <= 30*time.Second {
		t.Errorf("a worker gets %v to stop, want more than the 30 s of its drain", grace)
	}
	if len(services(t)["worker"].Ports) != 0 {
		t.Error("the worker publishes a port, so it cannot be scaled")
	}
}

// G11: a worker that is made anew serves the queue of the host that it served
// before, has the volume that shared roots are on, and leaves no dead processes.
func TestWorkerKeepsItsCheckouts(t *testing.T) {
	t.Parallel()
	worker := services(t)["worker"]
	if err := contract.ValidateGitHost(worker.Hostname); err != nil {
		t.Errorf("hostname %q of the worker: %v", worker.Hostname, err)
	}
	if !worker.Init {
		t.Error("the worker is the first process of its container, and nobody reaps what git leaves behind")
	}
	kept := slices.ContainsFunc(worker.Volumes, func(v any) bool { return v == "holdfast:/var/lib/holdfast" })
	if text := string(read(t, "docker-compose.yml")); !kept || !strings.Contains(text, "shared_roots: [/var/lib/holdfast/checkouts]") {
		t.Errorf("volumes %v, want one at /var/lib/holdfast, and how to name it as a shared root", worker.Volumes)
	}
	if !strings.Contains(string(read(t, "Dockerfile")), "install -d -o nonroot -g nonroot /var/lib/holdfast") {
		t.Error("the worker's user may not write to the volume")
	}
}

// The server reads the file that the compose file mounts, and it has the keys
// that remove fixed waits.
func TestDynamicConfig(t *testing.T) {
	t.Parallel()
	temporal := services(t)["temporal"]
	path := temporal.env(t)["DYNAMIC_CONFIG_FILE_PATH"]
	if want := []any{"./deploy:" + filepath.Dir(path) + ":ro"}; filepath.Base(path) != "dynamicconfig.yaml" || cmp.Diff(want, temporal.Volumes) != "" {
		t.Errorf("volumes %v, want %v with %s", temporal.Volumes, want, path)
	}
	var got map[string][]struct{ Value any }
	if err := yaml.Unmarshal(read(t, "deploy/dynamicconfig.yaml"), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"history.transferProcessorMaxPollRPS":   5000,
		"history.timerProcessorMaxPollRPS":      5000,
		"history.timerProcessorMaxTimeShift":    "50ms",
		"history.visibilityProcessorMaxPollRPS": 5000,
		"matching.numTaskqueueReadPartitions":   1,
		"matching.numTaskqueueWritePartitions":  1,
		"frontend.namespaceRPS.visibility":      200,
		"frontend.enableServerVersionCheck":     false,
	}
	values := map[string]any{}
	for key, list := range got {
		if len(list) != 1 {
			t.Fatalf("%s has %d values, want 1", key, len(list))
		}
		values[key] = list[0].Value
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("dynamic configuration (-want +got):\n%s", diff)
	}
}

func TestDockerfile(t *testing.T) {
	t.Parallel()
	text := string(read(t, "Dockerfile"))
	for _, want := range []string{"CGO_ENABLED=0", "-tags stdjson", "-trimpath", "USER 65532", "git openssh-client"} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile does not say %q", want)
		}
	}
}
