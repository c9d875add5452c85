package demo

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator"
)

// width is how wide the output may be, in characters.
const width = 100

// printer writes the demo. Once a write has failed it does nothing more.
type printer struct {
	out  io.Writer
	bold bool
	err  error
}

func newPrinter(w io.Writer) *printer { return &printer{out: w, bold: styled(w, os.Getenv)} }

// styled says whether w is a terminal that may show bold text.
func styled(w io.Writer, env func(string) string) bool {
	f, ok := w.(*os.File)
	if !ok || env("NO_COLOR") != "" || env("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (p *printer) strong(s string) string {
	if p.bold {
		return "\x1b[1m" + s + "\x1b[0m"
	}
	return s
}

func (p *printer) legend() {
	p.printf("\nFour pieces of work meet scripted faults. Each line is one request: when, what, what the outside\n" +
		"answered, what that changed there. After > is what Holdfast decided, by which rule, and why.\n")
}

func (p *printer) title(n int, title string) {
	p.printf("\n%s\n", p.strong(fmt.Sprintf("%d. %s", n, title)))
}

func (p *printer) story(t told) {
	for _, l := range t.lines {
		p.printf("  %6s  %-42s %-31s %s\n", fmt.Sprintf("+%.2fs", l.at.Seconds()), l.request, l.answer, effectOf(l.effects))
		p.decision(l.decision)
	}
	p.printf("  = %s: %s\n", p.strong(string(t.outcome)), t.summary)
	for _, n := range t.notes {
		p.printf("    %s\n", shorten(n.label+" "+quoted(n.text), width-4))
	}
	for _, b := range t.broken {
		p.printf("    %s %s\n", p.strong("BROKEN PROMISE:"), b)
	}
}

func (p *printer) decision(d *decision) {
	if d == nil {
		return
	}
	p.printf("          > %s, rule %s", d.failure.Reason, d.failure.Rule)
	if w := d.wait(); w != "" {
		p.printf("; %s", w)
	}
	p.printf("\n            %s\n", shorten(d.why(), width-12))
}

// effectOf says what a request changed outside, by the ledger.
func effectOf(effects []simulator.Effect) string {
	if len(effects) == 0 {
		return "no change"
	}
	var said []string
	for _, e := range effects {
		said = append(said, "+1 "+e.Kind)
	}
	return strings.Join(said, ", ")
}

func (p *printer) closing(s *stage, all []told) {
	p.printf("\n%s\n", p.strong("What the outside counted"))
	for _, l := range together(all) {
		p.printf("  %-9s %s\n", l.Name, sums(l))
	}
	if s.ready.UIURL != "" {
		p.printf("\n%s\n", p.strong("Look at it in the web UI"))
		for _, t := range all {
			p.printf("  %s\n", workflowURL(s.ready.UIURL, s.ready.Namespace, t.id))
		}
	}
	p.printf("\n%s\n", p.strong("Try next, from another terminal"))
	for _, c := range s.next() {
		p.printf("  %s\n", c)
	}
}
