package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/config"
	"github.com/holdfast-dev/holdfast/internal/process"
	"github.com/holdfast-dev/holdfast/internal/standalone"
)

// I3: a configuration with an unknown key, a bad duration or an unset variable:
// file, line and column, with the nearest key; exit status 2; nothing is started
// by any of the commands.
func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"unknown key":    {"git:\n  engin: auto\n", `:2:3: unknown key "engin" (did you mean "engine"?)`},
		"bad duration":   {"limits:\n  silence: soon\n", `:2:12: bad duration "soon"`},
		"unset variable": {"channels:\n  discord:\n    accounts:\n      main: {token: \"${E2E_NOBODY_SETS_THIS}\"}\n", `:4:21: `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "holdfast.yaml")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			nobody := func(string) (string, bool) { return "", false }

			data := filepath.Join(dir, "data")
			var out bytes.Buffer
			err := standalone.Run(t.Context(), standalone.Options{
				Data: data, Listen: "127.0.0.1:0", UIListen: "127.0.0.1:0", Config: file,
				Env: nobody, Out: &out, Err: &out, Started: time.Now(), Version: "e2e",
			})
			if !standalone.IsUsage(err) || !strings.Contains(err.Error(), file+tc.want) {
				t.Errorf("standalone: %v\nwant a usage error with %s%s", err, file, tc.want)
			}
			if _, err := os.Stat(data); !os.IsNotExist(err) || out.Len() > 0 {
				t.Errorf("standalone made its data (%v) or said %q", err, out.String())
			}

			// Nobody listens there, so an attempt to connect would be status 4.
			const nowhere = "127.0.0.1:1"
			worker := startRole(t, "worker", config.Variable+"="+file, "E2E_ADDRESS="+nowhere)
			if status := worker.wait(); status != contract.ExitUsage || !strings.Contains(worker.stderr.String(), file+tc.want) {
				t.Errorf("worker: exit status %d and errors %q, want %d", status, worker.stderr.String(), contract.ExitUsage)
			}
			a := starterAt(t.Context(), nowhere, "send", "--channel", "discord", "--to", "1", "--text", "x", "--config", file, "--json")
			if a.status != contract.ExitUsage || !strings.Contains(a.errors, file+tc.want) {
				t.Errorf("starter: exit status %d and errors %q, want %d", a.status, a.errors, contract.ExitUsage)
			}
			oneObject(t, a)
		})
	}
}

// I3: a worker refuses a namespace without the search attributes, and says which
// command mends it; starter setup mends it.
func TestWorkerChecksNamespace(t *testing.T) {
	t.Parallel()
	s := newBareStage(t)
	err := process.Worker(s.ctx, process.WorkerOptions{
		Address: s.address, Config: s.config, Env: s.env, Out: s.logs, Err: s.logs, Version: "e2e",
	})
	if process.ExitStatus(err) != contract.ExitUsage || !strings.Contains(err.Error(), "starter setup --namespace default") {
		t.Errorf("worker: %v, want a usage error that names starter setup", err)
	}
	for range 2 {
		if a := s.starter("setup"); a.status != contract.ExitOK {
			t.Fatalf("setup: exit status %d; errors: %s", a.status, a.errors)
		}
	}
	s.worker()
	wantOutcome(t, finish(s, s.send("set-up", contract.SendInput{Channel: "discord", Text: "hello"})), contract.OutcomeDelivered, 1)
}
