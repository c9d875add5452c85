package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

func init() { registerRole("standalone", standaloneRole) }

// standaloneRole is cmd/standalone without its flags: E2E_LISTEN is its address.
func standaloneRole(ctx context.Context) error {
	err := standalone.Run(ctx, standalone.Options{
		Guide: func(_ context.Context, r *standalone.Ready) error {
			r.OnStop(func() {
				conn, err := net.Dial("tcp", r.Address)
				fmt.Println("drained while serving:", err == nil)
				if err == nil {
					conn.Close()
				}
			})
			fmt.Println("guided")
			return nil
		},
		Ephemeral: true,
		Listen:    os.Getenv("E2E_LISTEN"),
		NoUI:      true,
		Env:       func(string) (string, bool) { return "", false },
		Out:       os.Stdout,
		Err:       os.Stderr,
		Started:   time.Now(),
		Version:   "e2e",
	})
	if standalone.IsUsage(err) {
		return &exitError{status: contract.ExitUsage, err: err}
	}
	return err
}

// I1: standalone says when it is ready; a signal drains it while the server
// still serves, and it ends well.
func TestStandaloneDrains(t *testing.T) {
	t.Parallel()
	p := startRole(t, "standalone", "E2E_LISTEN=127.0.0.1:0")
	p.line("ready in ")
	p.line("guided")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if got := p.line("drained while serving: "); got != "true" {
		t.Errorf("drained while serving: %s, want true", got)
	}
	if status := p.wait(); status != contract.ExitOK {
		t.Errorf("exit status %d, want %d; errors:\n%s", status, contract.ExitOK, p.stderr.String())
	}
}

// I1: what the user can mend is one line and exit status 2.
func TestStandaloneUsageError(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := startRole(t, "standalone", "E2E_LISTEN="+l.Addr().String())
	if status := p.wait(); status != contract.ExitUsage {
		t.Errorf("exit status %d, want %d", status, contract.ExitUsage)
	}
	want := (&temporalserver.PortInUseError{Address: l.Addr().String(), Flag: "--listen"}).Error() + "\n"
	if diff := cmp.Diff(want, p.stderr.String()); diff != "" {
		t.Errorf("standard error (-want +got):\n%s", diff)
	}
}

// What no flag mends is not a usage error.
func TestIsUsage(t *testing.T) {
	t.Parallel()
	if standalone.IsUsage(errors.New("disk on fire")) || standalone.IsUsage(nil) {
		t.Error("an unknown error is called a usage error")
	}
	if !standalone.IsUsage(fmt.Errorf("start: %w", &temporalserver.SchemaError{})) {
		t.Error("a SchemaError is not called a usage error")
	}
}
