package measure

import (
	"bytes"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"
)

// Memory is what a process and its descendants had, in bytes of RAM.
type Memory struct {
	// Start is what the process had at first.
	Start int64
	// Largest is the most that one of them had.
	Largest int64
	// Together is the most that all of them had at once, pages that they share
	// counted for each.
	Together int64
}

// sampleEvery is often enough for a program that runs for 10 ms.
const sampleEvery = time.Millisecond

// Watch looks at a process and its descendants until the returned function is
// called. The kernel's own account (ru_maxrss) will not do: a process begins it
// with what its parent had. Watching takes time of a processor, so what is
// watched is not to be timed.
func Watch(pid int) (stop func() Memory) {
	quit, done := make(chan struct{}), make(chan Memory, 1)
	w := watch{pid: pid}
	w.sample()
	w.Start = w.Together
	go func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-quit:
				done <- w.Memory
				return
			case <-tick.C:
				w.sample()
			}
		}
	}()
	return func() Memory {
		close(quit)
		return <-done
	}
}

type watch struct {
	Memory
	pid int
}

func (w *watch) sample() {
	var together int64
	for pid := range tree(w.pid, "") {
		now, peak := resident(pid)
		together += now
		w.Largest = max(w.Largest, peak)
	}
	w.Together = max(w.Together, together, w.Largest)
}

// tree are a process and its descendants, but for those that are still copies of
// their parent: what they have is the parent's.
func tree(pid int, parent string) map[int]bool {
	dir := "/proc/" + strconv.Itoa(pid)
	command, err := os.ReadFile(dir + "/cmdline")
	if err != nil || string(command) == parent {
		return nil
	}
	all := map[int]bool{pid: true}
	threads, err := os.ReadDir(dir + "/task")
	if err != nil {
		return all
	}
	for _, thread := range threads {
		children, err := os.ReadFile(dir + "/task/" + thread.Name() + "/children")
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				maps.Copy(all, tree(child, string(command)))
			}
		}
	}
	return all
}

// resident is the memory that a process has and the most that it had; nothing
// if it is gone.
func resident(pid int) (now, peak int64) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0
	}
	for line := range bytes.Lines(status) {
		name, value, _ := strings.Cut(string(line), ":")
		kilobytes, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
		switch name {
		case "VmRSS":
			now = kilobytes << 10
		case "VmHWM":
			peak = kilobytes << 10
		}
	}
	return now, peak
}
