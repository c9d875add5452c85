package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Nothing listens beyond loopback by default: of the sockets of this process
// that listen, all are on 127.0.0.1.
func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	shared(t)
	listening := map[string]string{}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		table, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(table), "\n")[1:] {
			// sl local remote state … inode; state 0A listens.
			if f := strings.Fields(line); len(f) > 9 && f[3] == "0A" {
				listening[fmt.Sprintf("socket:[%s]", f[9])] = f[1]
			}
		}
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, fd := range fds {
		target, _ := os.Readlink(fd)
		local, ok := listening[target]
		if !ok {
			continue
		}
		seen++
		if !strings.HasPrefix(local, "0100007F:") {
			t.Errorf("a socket listens on %s, want 0100007F (127.0.0.1)", local)
		}
	}
	// Four services and the UI.
	if seen < 5 {
		t.Errorf("%d sockets listen, want at least 5", seen)
	}
}
