package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	holdfast "github.com/holdfast-dev/holdfast/client"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/standalone"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/discord"
)

func init() { registerRole("standalone", standaloneRole) }

// standaloneRole is cmd/standalone without its flags: E2E_LISTEN is its address,
// E2E_DATA its directory. With data it starts a send whose answer is held back
// until the process drains.
func standaloneRole(ctx context.Context) error {
	o := standalone.Options{
		Data: os.Getenv("E2E_DATA"), Listen: os.Getenv("E2E_LISTEN"), NoUI: true, Simulate: true,
		Env: os.LookupEnv, Out: os.Stdout, Err: os.Stderr, Started: time.Now(), Version: "e2e",
	}
	if o.Data != "" {
		o.Guide = sendUnderWay
	} else {
		o.Ephemeral = true
	}
	err := standalone.Run(ctx, o)
	if standalone.IsUsage(err) {
		return &exitError{status: contract.ExitUsage, err: err}
	}
	return err
}

func sendUnderWay(ctx context.Context, r *standalone.Ready) error {
	r.World.Discord.Script(simulator.HoldAfter("answer").On(discord.OpCreateMessage))
	gate := r.World.Discord.Gate("answer")
	_, err := holdfast.New(r.Client).Send(ctx, "drained", contract.SendInput{
		Channel: "discord", Account: standalone.SimAccount, To: channelID, Text: "under way",
	})
	if err != nil {
		return err
	}
	if _, err := gate.WaitHeld(ctx); err != nil {
		return err
	}
	fmt.Fprintln(r.Out, "held")
	// The answer comes well after the interrupt.
	context.AfterFunc(ctx, func() { time.AfterFunc(2*time.Second, gate.Release) })
	return nil
}

// I1: Ctrl-C drains: what is under way is finished and recorded before the
// server ends, and the next start continues from there.
func TestStandaloneDrains(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startRole(t, "standalone", "E2E_LISTEN=127.0.0.1:0", "E2E_DATA="+dir)
	p.line("ready in ")
	p.line("held")
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := p.wait(); status != contract.ExitOK {
		t.Errorf("exit status %d, want %d; errors:\n%s", status, contract.ExitOK, p.stderr.String())
	}
	server, err := temporalserver.Start(t.Context(), temporalserver.Options{DataDir: dir, Listen: "127.0.0.1:0", NoUI: true, Version: "e2e"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	c := dial(t, server.Address())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	recorded := false
	it := c.GetWorkflowHistory(ctx, "send/drained", "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		recorded = recorded || e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
	}
	if !recorded {
		t.Error("the receipt of what was under way is not recorded")
	}
}

// I1: --simulate: the block names every simulator, and a send works at once.
func TestStandaloneSimulates(t *testing.T) {
	t.Parallel()
	p := startRole(t, "standalone", "E2E_LISTEN=127.0.0.1:0")
	address := strings.Fields(p.line("  temporal"))[0]
	for _, name := range []string{"discord", "telegram", "openai", "backup", "git"} {
		p.line("  simulated " + name)
	}
	p.line("ready in ")
	a := starterAt(t.Context(), address, "send", "--channel", "telegram", "--account", standalone.SimAccount, "--to", chat, "--text", "hello", "--json")
	if object := oneObject(t, a); a.status != contract.ExitOK || object["outcome"] != "delivered" {
		t.Errorf("exit status %d, answer %v, want 0 and delivered; errors: %s", a.status, object, a.errors)
	}
	a = starterAt(t.Context(), address, "run", "--prompt", "hello", "--json")
	if object := oneObject(t, a); a.status != contract.ExitOK || object["outcome"] != "completed" {
		t.Errorf("exit status %d, answer %v, want 0 and completed; errors: %s", a.status, object, a.errors)
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
