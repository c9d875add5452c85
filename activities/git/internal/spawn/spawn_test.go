//go:build unix

package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVariable makes the test binary play a part other than running tests.
const roleVariable = "SPAWN_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "parent":
		os.Exit(parentRole())
	case "child":
		os.Exit(childRole())
	}
	goleak.VerifyTestMain(m)
}

// sh is a script run by the shell. $0 is a directory for what it tells.
func sh(dir, script string) Command {
	return Command{Path: "/bin/sh", Args: []string{"-c", script, dir}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// stubborn is a tree of processes that ignore being asked to end. Each writes its
// number into a file of the directory.
const stubborn = `
trap '' TERM HUP INT
ps -o pgid= -p $$ > "$0/group"
sh -c 'trap "" TERM; echo $$ > "$0/child"; sleep 1000 & echo $! > "$0/grandchild"; wait; wait; sleep 1000' "$0" &
echo started
wait
sleep 1000
`

func pid(t *testing.T, dir, name string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// runs reports whether a process exists and has not ended.
func runs(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

// members are the processes of a group that have not ended.
func members(t *testing.T, pgid int) (found []string) {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-o", "pgid=,pid=,stat=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 2 && f[0] == strconv.Itoa(pgid) && !strings.HasPrefix(f[2], "Z") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// eventually polls for a condition that must come true within 5 s.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func exists(dir string, names ...string) bool {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			return false
		}
	}
	return true
}

// What a program wrote, read and was given arrives, and how it ended is told.
func TestRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, watch := range []Watch{WatchNone, WatchShell, WatchPipe} {
		for _, limit := range []int64{0, 64 << 20} {
			t.Run(fmt.Sprintf("watch %d limit %d", watch, limit), func(t *testing.T) {
				t.Parallel()
				file, err := os.CreateTemp(dir, "file")
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				var out, diag bytes.Buffer
				c := sh(dir, `read line; echo "out $line $V"; echo diag >&2; echo file >&3; pwd; exit 7`)
				c.Env = append(c.Env, "V=value")
				c.Dir, c.Watch, c.DataLimit = dir, watch, limit
				c.Stdin, c.Stdout, c.Stderr, c.Files = strings.NewReader("in\n"), &out, &diag, []*os.File{file}
				r, err := Run(t.Context(), c)
				if err != nil || r.End != Exited || r.ExitCode != 7 || r.Signal != 0 || r.MaxRSS < 100<<10 {
					t.Errorf("result %+v, error %v", r, err)
				}
				if got := out.String(); got != "out in value\n"+dir+"\n" || diag.String() != "diag\n" {
					t.Errorf("output %q, errors %q", got, diag.String())
				}
				if content, err := os.ReadFile(file.Name()); err != nil || string(content) != "file\n" {
					t.Errorf("the file holds %q (%v)", content, err)
				}
			})
		}
	}
}

// A program that cannot be started, and one that somebody else ends.
func TestOtherEnds(t *testing.T) {
	t.Parallel()
	for _, watch := range []Watch{WatchNone, WatchShell} {
		if _, err := Run(t.Context(), Command{Path: "/no/such/group", Watch: watch}); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a missing program: %v", err)
		}
		c := sh("", "kill -SEGV $$")
		c.Watch = watch
		if r, err := Run(t.Context(), c); err != nil || r.End != Signalled || r.Signal != syscall.SIGSEGV || r.ExitCode != -1 {
			t.Errorf("a crash: %+v, %v", r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, sh("", "true")); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
}

// G11: what a program leaves running when it ends is gone when Run returns.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for _, watch := range []Watch{WatchNone, WatchShell} {
		dir := t.TempDir()
		c := sh(dir, `trap '' TERM; sleep 1000 & echo $! > "$0/left"; ps -o pgid= -p $$ > "$0/group"`)
		c.Watch, c.Stdout = watch, io.Discard
		if r, err := Run(t.Context(), c); err != nil || r.End != Exited || r.ExitCode != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if runs(pid(t, dir, "left")) {
			t.Error("the process that was left runs")
		}
		if left := members(t, pid(t, dir, "group")); len(left) != 0 {
			t.Errorf("left: %q", left)
		}
	}
}

// G11: a cancelled tree of processes that ignore TERM is gone within 5 s.
func TestCancelKillsTheTree(t *testing.T) {
	t.Parallel()
	for _, watch := range []Watch{WatchNone, WatchShell, WatchPipe} {
		t.Run(fmt.Sprint(watch), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			why := errors.New("why")
			c := sh(dir, stubborn)
			c.Watch, c.Grace = watch, 200*time.Millisecond
			c.Stdout = writerFunc(func(b []byte) (int, error) { return len(b), nil })
			type ended struct {
				Result
				error
			}
			done := make(chan ended, 1)
			go func() {
				r, err := Run(ctx, c)
				done <- ended{r, err}
			}()
			eventually(t, "the tree stands", func() bool { return exists(dir, "group", "child", "grandchild") })
			began := time.Now()
			cancel(why)
			end := <-done
			if took := time.Since(began); took < c.Grace || took > 5*time.Second {
				t.Errorf("it took %v", took)
			}
			if end.error != why || end.End != Killed || end.Signal != syscall.SIGKILL {
				t.Errorf("%+v", end)
			}
			if left := members(t, pid(t, dir, "group")); len(left) != 0 {
				t.Errorf("left: %q", left)
			}
			for _, name := range []string{"group", "child", "grandchild"} {
				if runs(pid(t, dir, name)) {
					t.Errorf("the %s runs", name)
				}
			}
		})
	}
}

// A program that ends when asked to is not waited for longer, and its own way
// out is told.
func TestGrace(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := sh("", `trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	c.Grace = time.Minute
	c.Watch = WatchShell
	var out bytes.Buffer
	c.Stdout = writerFunc(func(b []byte) (int, error) {
		out.Write(b)
		if strings.Contains(out.String(), "ready") {
			cancel()
		}
		return len(b), nil
	})
	r, err := Run(ctx, c)
	if !errors.Is(err, context.Canceled) || r.End != Killed || r.ExitCode != 3 || out.String() != "ready\nbye\n" {
		t.Errorf("%+v, %v, %q", r, err, out.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// G11: the watch holds nothing that the program was given, so a lock is free as
// soon as the program lets go of it.
func TestTheWatchHoldsNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	held, given, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	c := sh("", `echo ready; exec >&- 2>&- 3>&-; sleep 1000 & wait`)
	c.Watch, c.Files, c.Grace = WatchShell, []*os.File{given}, 10*time.Millisecond
	ready := make(chan struct{})
	c.Stdout = writerFunc(func(b []byte) (int, error) { close(ready); return len(b), nil })
	done := make(chan error, 1)
	go func() {
		_, err := Run(ctx, c)
		done <- err
	}()
	<-ready
	given.Close()
	held.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := held.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the file is still held: %v", err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// G3: a writer that takes no more ends the program, with the writer's error.
func TestWriterEndsTheProgram(t *testing.T) {
	t.Parallel()
	full := errors.New("enough")
	for _, watch := range []Watch{WatchNone, WatchShell} {
		n := 0
		c := sh("", `while :; do echo 0123456789; done`)
		c.Watch = watch
		c.Stderr = io.Discard
		c.Stdout = writerFunc(func(b []byte) (int, error) {
			if n += len(b); n > 1<<20 {
				return 0, full
			}
			return len(b), nil
		})
		if r, err := Run(t.Context(), c); err != full || r.End != Killed {
			t.Errorf("%+v, %v", r, err)
		}
		if n > 2<<20 {
			t.Errorf("%d bytes were read", n)
		}
	}
}

// G12: no process of the group may have more memory than the limit.
func TestDataLimit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte("0123456789abcdef"), 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		limit int64
		fits  bool
	}{{32 << 20, false}, {256 << 20, true}} {
		var diag bytes.Buffer
		// What comes by a pipe is read into memory. That git is a grandchild shows
		// that the limit is inherited.
		c := sh(big, `cat "$0" | git hash-object --stdin; exit $?`)
		c.Stderr, c.Stdout, c.DataLimit, c.Watch = &diag, io.Discard, tc.limit, WatchShell
		r, err := Run(t.Context(), c)
		if err != nil || (r.ExitCode == 0) != tc.fits {
			t.Errorf("limit %d: %+v, %v\n%s", tc.limit, r, err, diag.String())
		}
		if !tc.fits && !strings.Contains(diag.String(), "emory") {
			t.Errorf("limit %d: git says %s", tc.limit, diag.String())
		}
	}
}

// parentRole runs the stubborn tree until it is killed itself.
func parentRole() int {
	dir := os.Getenv("SPAWN_TEST_DIR")
	c := sh(dir, stubborn)
	c.Watch, c.Stdout = WatchShell, io.Discard
	if os.Getenv("SPAWN_TEST_CHILD") != "" {
		c = Command{Path: os.Args[0], Env: append(os.Environ(), roleVariable+"=child"), Watch: WatchPipe}
	}
	file, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return 1
	}
	c.Files = []*os.File{file}
	Run(context.Background(), c)
	return 0
}

// childRole is a child of our own binary: it starts a process, waits for the end
// of its parent, and ends its group.
func childRole() int {
	dir := os.Getenv("SPAWN_TEST_DIR")
	c := exec.Command("sleep", "1000")
	if c.Start() != nil {
		return 1
	}
	for name, n := range map[string]int{"group": os.Getpid(), "child": c.Process.Pid, "grandchild": c.Process.Pid} {
		if os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(n)), 0o600) != nil {
			return 1
		}
	}
	os.NewFile(4, "watch").Read(make([]byte, 1))
	syscall.Kill(0, syscall.SIGKILL)
	return 0
}

// G11: a process that is killed leaves nothing of what it started, within 5 s.
func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, child := range []string{"", "ours"} {
		t.Run("child "+child, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), roleVariable+"=parent", "SPAWN_TEST_DIR="+dir, "SPAWN_TEST_CHILD="+child)
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			defer parent.Wait()
			defer parent.Process.Kill()
			eventually(t, "the tree stands", func() bool { return exists(dir, "group", "child", "grandchild") })
			group := pid(t, dir, "group")
			if len(members(t, group)) == 0 {
				t.Fatal("the group has no members")
			}
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "all are gone", func() bool {
				return len(members(t, group)) == 0 && !runs(pid(t, dir, "child")) && !runs(pid(t, dir, "grandchild"))
			})
		})
	}
}

func BenchmarkRun(b *testing.B) {
	for _, watch := range []Watch{WatchNone, WatchShell} {
		b.Run(fmt.Sprint(watch), func(b *testing.B) {
			for b.Loop() {
				if _, err := Run(b.Context(), Command{Path: "/bin/true", Watch: watch, DataLimit: int64(watch) << 28}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
