package pathlock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// The test binary runs again as another process, in the role that this variable
// names, for the directory named by its first argument.
const roleVariable = "HOLDFAST_PATHLOCK_ROLE"

// play is what such a process does. It ends at the end of its standard input.
func play(role string) int {
	dir := os.Args[1]
	if role == "often" {
		if err := holdOften(context.Background(), dir, 25); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("done")
		return 0
	}
	if role == "sit" { // a program that was given the lock's file
		fmt.Println("sitting")
		io.Copy(io.Discard, os.Stdin)
		return 0
	}
	l, err := Acquire(context.Background(), dir, lockName, Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if role == "parent" {
		child := command("sit", dir)
		child.Stdin, child.Stdout, child.ExtraFiles = os.Stdin, os.Stdout, []*os.File{l.File()}
		if err := child.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		child.Wait()
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

func command(role, dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	return cmd
}

// process is another process and what it says.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   *os.File
	out  *bufio.Reader
	kill func()
}

// start starts a process, which is gone when the test ends, with all that have
// its standard input.
func start(t *testing.T, role, dir string) *process {
	t.Helper()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: command(role, dir), in: in, out: bufio.NewReader(out)}
	p.cmd.Stdin, p.cmd.Stdout = stdin, stdout
	err = p.cmd.Start()
	stdin.Close()
	stdout.Close()
	if err != nil {
		t.Fatal(err)
	}
	p.kill = sync.OnceFunc(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	t.Cleanup(func() {
		in.Close()
		p.kill()
		io.Copy(io.Discard, p.out) // until whoever else has it has ended
		out.Close()
	})
	return p
}

// says reads one line.
func (p *process) says(want string) {
	p.t.Helper()
	if line, err := p.out.ReadString('\n'); strings.TrimSpace(line) != want {
		p.t.Fatalf("the process said %q, %v; want %q", line, err, want)
	}
}

// rest is all that the process says to its end.
func (p *process) rest() string {
	said, err := io.ReadAll(p.out)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(said))
}

// G11: a holder that is killed leaves a lock that is taken over at once on the
// same kernel, whatever its lease says, and found unclean.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "hold", dir)
	p.says("held")
	w := wait(t.Context(), dir, Options{Now: newClock().Now}) // in its clock no lease ever ends
	w.refused(t)
	p.kill()
	l := w.lock(t)
	defer l.Release()
	if !l.Unclean() {
		t.Error("the lock of a killed holder is clean")
	}
}

// G11: the lock of a killed holder is held by the program that it started, until
// that ends.
func TestKilledHoldersProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, "parent", dir)
	p.says("sitting")
	p.kill()
	w := wait(t.Context(), dir, Options{})
	w.refused(t)
	p.in.Close() // the program ends
	l := w.lock(t)
	defer l.Release()
	if !l.Unclean() {
		t.Error("the lock of a killed holder is clean")
	}
}
