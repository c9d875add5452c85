package e2e

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/temporalserver"
)

const roleVariable = "HOLDFAST_E2E_ROLE"

// roles are what a process of the test binary can be instead of the tests.
var roles = map[string]func(context.Context) error{}

func registerRole(name string, run func(context.Context) error) {
	if _, taken := roles[name]; taken {
		panic("e2e: role " + name + " is registered twice")
	}
	roles[name] = run
}

// exitError lets a role choose its exit status.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }

func TestMain(m *testing.M) {
	if name := os.Getenv(roleVariable); name != "" {
		os.Exit(playRole(name))
	}
	flag.Parse()
	if err := manyAtOnce(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	status := m.Run()
	if sharedServer.server != nil {
		sharedServer.server.Stop()
	}
	os.Exit(status)
}

// manyAtOnce lets more tests run at once than there are processors, for most of
// the time of most tests is waiting; -parallel is stronger.
func manyAtOnce() error {
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "test.parallel" })
	if chosen {
		return nil
	}
	return flag.Set("test.parallel", "4")
}

func playRole(name string) int {
	run, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "e2e: no role %q\n", name)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	if exit := new(exitError); errors.As(err, &exit) {
		return exit.status
	}
	return 1
}

// roleProcess is a role that runs in a process of its own.
type roleProcess struct {
	t      *testing.T
	role   string
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr strings.Builder
	reap   func() error
}

// startRole runs a role with these variables ("NAME=value") added to the
// environment. The process is killed at the end of the test.
func startRole(t *testing.T, role string, env ...string) *roleProcess {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &roleProcess{t: t, role: role, cmd: exec.Command(exe)}
	p.cmd.Env = append(append(os.Environ(), roleVariable+"="+role), env...)
	p.cmd.Stderr = &p.stderr
	p.cmd.SysProcAttr = processAttributes()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	p.reap = sync.OnceValue(p.cmd.Wait)
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.reap()
	})
	return p
}

// pid is the process's id.
func (p *roleProcess) pid() int { return p.cmd.Process.Pid }

// line reads standard output until a line begins with prefix and returns what
// follows it. It fails the test if the process ends first.
func (p *roleProcess) line(prefix string) string {
	p.t.Helper()
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), prefix); ok {
			return strings.TrimSpace(rest)
		}
	}
	p.reap()
	p.t.Fatalf("role %s ended (%v) before it printed %q; its errors:\n%s", p.role, p.cmd.ProcessState, prefix, p.stderr.String())
	return ""
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *roleProcess) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
	p.reap()
}

// terminate asks the process to end and returns its exit status.
func (p *roleProcess) terminate() int {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	return p.wait()
}

// wait waits for the end of the process and returns its exit status.
func (p *roleProcess) wait() int {
	for p.lines.Scan() {
	}
	p.reap()
	return p.cmd.ProcessState.ExitCode()
}

var sharedServer struct {
	once   sync.Once
	server *temporalserver.Server
	err    error
}

// shared is the server in memory that all tests of the binary have in common.
func shared(t testing.TB) *temporalserver.Server {
	t.Helper()
	sharedServer.once.Do(func() {
		sharedServer.server, sharedServer.err = temporalserver.Start(context.Background(), temporalserver.Options{
			Ephemeral:        true,
			Listen:           "127.0.0.1:0",
			UIListen:         "127.0.0.1:0",
			SearchAttributes: contract.SearchAttributes(),
			Version:          "e2e",
		})
	})
	if sharedServer.err != nil {
		t.Fatal(sharedServer.err)
	}
	return sharedServer.server
}

// dial connects a client that says nothing and is closed at the end of the test.
func dial(t testing.TB, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{
		HostPort: address,
		Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// unique is an id that no other test has.
func unique(t testing.TB) string {
	return strings.ReplaceAll(t.Name(), "/", ".") + "-" + uuid.NewString()
}
