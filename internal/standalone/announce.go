package standalone

import (
	"bytes"
	"cmp"
	"fmt"
	"time"
)

// announce prints the addresses in one short block, and what is missing for
// which kind of work.
func (p *running) announce() error {
	o := p.o
	var b bytes.Buffer
	store := o.Data
	if o.Ephemeral {
		store = "in memory, nothing is kept"
	}
	fmt.Fprintf(&b, "holdfast %s\n", o.Version)
	fmt.Fprintf(&b, "  temporal  %s  (namespace %s)\n", p.server.Address(), p.server.Namespace())
	fmt.Fprintf(&b, "  web UI    %s\n", cmp.Or(p.server.UIURL(), "off"))
	fmt.Fprintf(&b, "  data      %s\n", store)
	fmt.Fprintf(&b, "  config    %s\n", p.configName())
	if p.worker != nil && p.worker.Git() != "" {
		fmt.Fprintf(&b, "  git       %s\n", p.worker.Git())
	}
	if p.world != nil {
		for _, s := range p.world.addresses() {
			fmt.Fprintf(&b, "  simulated %-9s %s\n", s.name, s.url)
		}
	}
	for _, gap := range p.config.Missing() {
		fmt.Fprintf(&b, "  missing   %s\n", gap)
	}
	fmt.Fprintf(&b, "ready in %s; Ctrl-C stops\n", time.Since(o.Started).Round(time.Millisecond))
	_, err := o.Out.Write(b.Bytes())
	return err
}

func (p *running) configName() string {
	switch {
	case p.o.NoWorker:
		return "not used: no worker in this process"
	case p.world != nil:
		return "points at the simulators"
	}
	return cmp.Or(p.config.File(), "none (holdfast.yaml, --config or HOLDFAST_CONFIG; see holdfast.example.yaml)")
}
