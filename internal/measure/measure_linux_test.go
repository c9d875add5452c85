package measure

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// A program's own child is in its account, and what the program that started it
// has is not.
func TestProgram(t *testing.T) {
	t.Parallel()
	ours := make([]byte, 64<<20)
	for i := range ours {
		ours[i] = 1 // so that it is in RAM
	}
	const block = 32 << 20
	command := func() *exec.Cmd {
		return exec.Command("sh", "-c", "dd if=/dev/zero of=/dev/null bs=33554432 count=4 2>/dev/null; true")
	}
	cost, err := Program(command())
	if err != nil || cost.CPU <= 0 || cost.Wall <= 0 {
		t.Errorf("cost %+v, error %v", cost, err)
	}
	m, err := ProgramMemory(command())
	if err != nil || m.Largest < block || m.Largest > 2*block || m.Together < m.Largest || m.Together > 2*block {
		t.Errorf("memory %+v, error %v; want a little more than %d", m, err, block)
	}
	if ours[len(ours)/2] != 1 {
		t.Error("out of memory")
	}
	if _, err := Program(exec.Command("sh", "-c", "exit 3")); err == nil {
		t.Error("a program that fails is no error")
	}
}

// Another process's account grows with what it does.
func TestSpent(t *testing.T) {
	t.Parallel()
	stop := Self()
	before, err := Spent(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for {
		after, err := Spent(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if took := stop().CPU; after-before >= 50*time.Millisecond {
			if took < 10*time.Millisecond {
				t.Errorf("%s by one account, %s by the other", after-before, took)
			}
			return
		}
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	if got := median([]float64{9, 1, 2}); got != 2 {
		t.Errorf("median %v, want 2", got)
	}
	pairs := []Cost{{Wall: 2}, {Wall: 30}, {Wall: 4}}
	plain := []Cost{{Wall: 1}, {Wall: 1}, {Wall: 1}}
	if got := medianRatio(pairs, plain, func(c Cost) float64 { return float64(c.Wall) }); got != 4 {
		t.Errorf("median of ratios %v, want 4", got)
	}
}
