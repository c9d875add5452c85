package pathlock

import (
	"os"
	"strings"
	"sync"
)

// BootID names the running kernel: that of Linux changes with every boot and is
// the same in all containers of a host. Elsewhere it is the host's name, which is
// enough to tell hosts apart.
var BootID = sync.OnceValue(func() string {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		return strings.TrimSpace(string(id))
	}
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return "host " + name
})
