package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/gitbench"
	"github.com/holdfast-dev/holdfast/internal/measure"
	"github.com/holdfast-dev/holdfast/policies"
)

// BenchmarkStarterGit compares "starter git", from shell to shell and with each
// engine, with the plain git program (Q4), on a repository of 20,000 commits. A
// standalone server with its worker runs beside; what it takes meanwhile counts,
// to 10 ms of processor time. Run it with -benchtime 15x.
func BenchmarkStarterGit(b *testing.B) {
	f := gitbench.Start(b)
	operations := f.Commits(b)
	programs := build(b)
	for _, engine := range gitbench.Engines {
		b.Run(engine, func(b *testing.B) {
			s := startStandalone(b, programs, engine, f.Root)
			for _, o := range operations {
				b.Run(o.Name, func(b *testing.B) {
					f.Compare(b, o, func(b *testing.B, dir string, watched bool) (measure.Cost, measure.Memory) {
						return s.starter(b, o, f.URL(), dir, watched)
					})
				})
			}
		})
	}
}

// build makes the programs as they are shipped and returns their directory.
func build(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, "./cmd/standalone", "./cmd/starter")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return dir
}

// standaloneProgram is cmd/standalone, with a file for its store.
type standaloneProgram struct {
	programs, address string
	pid               int
}

const benchHost = "bench"

func startStandalone(b *testing.B, programs, engine, root string) *standaloneProgram {
	b.Helper()
	dir := b.TempDir()
	file := filepath.Join(dir, "holdfast.yaml")
	text := fmt.Sprintf("git: {engine: %s, host: %s, roots: [%q]}\n", engine, benchHost, root)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs, "standalone"), "--config", file, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--no-ui")
	var log logBuffer
	cmd.Stderr = &log
	cmd.SysProcAttr = processAttributes()
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			b.Errorf("standalone: %v\n%s", err, log.String())
		}
	})
	s := &standaloneProgram{programs: programs, pid: cmd.Process.Pid}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "  temporal"); ok {
			s.address = strings.Fields(rest)[0]
		}
		if strings.HasPrefix(lines.Text(), "ready in ") {
			go io.Copy(io.Discard, out)
			return s
		}
	}
	b.Fatalf("standalone is not ready: %s", log.String())
	return nil
}

// starter does an operation by the starter.
func (s *standaloneProgram) starter(b *testing.B, o gitbench.Operation, url, dir string, watched bool) (cost measure.Cost, memory measure.Memory) {
	args := map[policies.Operation][]string{
		policies.OpClone:    {"clone", url, dir, "--host", benchHost},
		policies.OpFetch:    {"fetch", "--dir", dir, "--host", benchHost},
		policies.OpLsRemote: {"ls-remote", url},
	}[o.Kind]
	cmd := exec.Command(filepath.Join(s.programs, "starter"), append([]string{"--address", s.address, "git"}, args...)...)
	var err error
	if watched {
		stop := measure.Watch(s.pid)
		memory, err = measure.ProgramMemory(cmd)
		server := stop()
		memory.Start, memory.Largest, memory.Together = server.Start, max(memory.Largest, server.Largest), memory.Together+server.Together
	} else {
		before := s.spent(b)
		cost, err = measure.Program(cmd)
		cost.CPU += s.spent(b) - before
	}
	if err != nil {
		b.Fatal(err)
	}
	return cost, memory
}

func (s *standaloneProgram) spent(b *testing.B) time.Duration {
	b.Helper()
	spent, err := measure.Spent(s.pid)
	if err != nil {
		b.Fatal(err)
	}
	return spent
}
