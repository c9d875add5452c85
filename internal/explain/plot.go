package explain

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// The measures of a plot, in pixels.
const (
	plotWidth  = 1000.0
	plotLeft   = 230.0
	plotRight  = 30.0
	plotTop    = 92.0
	laneHeight = 64.0
	axisHeight = 58.0
	labelGap   = 22.0 // least distance between two labelled dots
	maxLabel   = 30   // characters of a candidate's name
)

// The colours of a plot; the meaning of each is in the legend.
const (
	colourText   = "#1f2933"
	colourFaint  = "#7b8794"
	colourGrid   = "#e4e7eb"
	colourWait   = "#bcccdc"
	colourFloor  = "#b44d12"
	colourFailed = "#ba2525"
	colourDone   = "#207227"
)

// plot draws one schedule.
type plot struct {
	Schedule
	w     *bufio.Writer
	lanes []string
	end   float64 // milliseconds at the right edge
}

// SVG draws the schedule: one lane per candidate, attempts as dots, waits as
// bars with a mark where the floor ended, and a time axis.
func (s Schedule) SVG(out io.Writer) error {
	p := &plot{Schedule: s, w: bufio.NewWriter(out), end: float64(max(s.TotalMS, 1000))}
	for _, a := range s.Attempts {
		if !slices.Contains(p.lanes, a.Candidate) {
			p.lanes = append(p.lanes, a.Candidate)
		}
	}
	if d := s.DeadlineMS; d != nil && float64(*d) <= 1.5*p.end {
		p.end = max(p.end, float64(*d))
	}
	height := plotTop + laneHeight*float64(len(p.lanes)) + axisHeight
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">`+"\n",
		plotWidth, height, plotWidth, height)
	p.printf(`<title>%s</title>`+"\n", escape("Schedule of policy profile "+s.Policy))
	p.printf(`<rect width="%g" height="%g" fill="#ffffff"/>`+"\n", plotWidth, height)
	p.heading()
	p.axis()
	p.laneNames()
	p.moves()
	p.waits()
	p.dots()
	p.printf("</svg>\n")
	return p.w.Flush()
}

func (p *plot) printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

func (p *plot) x(ms int64) float64 {
	return plotLeft + (plotWidth-plotLeft-plotRight)*float64(ms)/p.end
}

func (p *plot) y(candidate string) float64 {
	return plotTop + laneHeight*(float64(slices.Index(p.lanes, candidate))+0.5)
}

func (p *plot) bottom() float64 { return plotTop + laneHeight*float64(len(p.lanes)) }

func (p *plot) text(x, y float64, anchor, colour, weight, s string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" font-weight="%s">%s</text>`+"\n", x, y, anchor, colour, weight, escape(s))
}

func (p *plot) heading() {
	p.text(20, 28, "start", colourText, "600", fmt.Sprintf("Policy profile %s: %s after %s", p.Policy, p.Outcome, clock(p.TotalMS)))
	detail := fmt.Sprintf("%d attempts, seed %d", len(p.Attempts), p.Seed)
	if p.Outcome == "failed" {
		detail += fmt.Sprintf(", ended by %s (%s)", p.Reason, p.Rule)
	}
	p.text(20, 48, "start", colourFaint, "400", detail)
	x := 20.0
	legend := func(width float64, draw func(x float64), name string) {
		draw(x)
		p.text(x+22, 74, "start", colourFaint, "400", name)
		x += width
	}
	legend(95, func(x float64) { p.dot(x+8, 70, colourFailed) }, "failed")
	legend(120, func(x float64) { p.dot(x+8, 70, colourDone) }, "completed")
	legend(80, func(x float64) { p.bar(x, 16, 70) }, "wait")
	legend(160, func(x float64) { p.floorMark(x+8, 70) }, "end of the floor")
	legend(120, func(x float64) {
		p.printf(`<line x1="%.1f" y1="70" x2="%.1f" y2="70" stroke="%s" stroke-dasharray="3 3"/>`+"\n", x, x+16, colourFaint)
	}, "failover")
}

func (p *plot) axis() {
	bottom := p.bottom()
	step := tick(time.Duration(p.end) * time.Millisecond)
	for t := time.Duration(0); float64(t.Milliseconds()) <= p.end; t += step {
		x := p.x(t.Milliseconds())
		p.printf(`<line x1="%.1f" y1="%g" x2="%.1f" y2="%.1f" stroke="%s"/>`+"\n", x, plotTop, x, bottom, colourGrid)
		p.text(x, bottom+20, "middle", colourFaint, "400", shortClock(t))
	}
	p.text((plotLeft+plotWidth-plotRight)/2, bottom+44, "middle", colourFaint, "400", "time since the start of the model call")
	if d := p.DeadlineMS; d != nil && float64(*d) <= p.end {
		x := p.x(*d)
		p.printf(`<line x1="%.1f" y1="%g" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/>`+"\n", x, plotTop-8, x, bottom, colourText)
		p.text(x, plotTop-12, "end", colourText, "400", "deadline")
	}
}

func (p *plot) laneNames() {
	for i, name := range p.lanes {
		y := p.y(name)
		if i > 0 {
			top := plotTop + laneHeight*float64(i)
			p.printf(`<line x1="20" y1="%g" x2="%g" y2="%g" stroke="%s"/>`+"\n", top, plotWidth-plotRight, top, colourGrid)
		}
		p.text(plotLeft-18, y+4, "end", colourText, "500", shorten(name))
	}
	p.printf(`<line x1="20" y1="%g" x2="%g" y2="%g" stroke="%s"/>`+"\n", p.bottom(), plotWidth-plotRight, p.bottom(), colourFaint)
}

// moves draws the failovers from lane to lane.
func (p *plot) moves() {
	for i := 1; i < len(p.Attempts); i++ {
		from, to := p.Attempts[i-1], p.Attempts[i]
		if from.Candidate == to.Candidate {
			continue
		}
		p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-dasharray="3 3"/>`+"\n",
			p.x(from.EndedMS), p.y(from.Candidate), p.x(to.StartedMS), p.y(to.Candidate), colourFaint)
	}
}

func (p *plot) waits() {
	for i, a := range p.Attempts {
		if a.WaitMS == 0 {
			continue
		}
		from := a.StartedMS - a.WaitMS
		p.bar(p.x(from), p.x(a.StartedMS)-p.x(from), p.y(a.Candidate))
		if i == 0 {
			continue
		}
		if before := p.Attempts[i-1]; before.Candidate == a.Candidate && before.FloorMS != nil {
			p.floorMark(p.x(before.EndedMS+*before.FloorMS), p.y(a.Candidate))
		}
	}
}

func (p *plot) dots() {
	labelled := map[string]float64{}
	for _, a := range p.Attempts {
		x, y := p.x(a.StartedMS), p.y(a.Candidate)
		colour := colourDone
		if a.Reason != "" {
			colour = colourFailed
		}
		if end := p.x(a.EndedMS); end-x > 1 {
			p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="3"/>`+"\n", x, y, end, y, colour)
		}
		p.printf("<g><title>%s</title>\n", escape(a.tip()))
		p.dot(x, y, colour)
		p.printf("</g>\n")
		if last, ok := labelled[a.Candidate]; ok && x-last < labelGap {
			continue
		}
		labelled[a.Candidate] = x
		p.printf(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s" stroke="#ffffff" stroke-width="4" paint-order="stroke">%d</text>`+"\n",
			x, y-16, colourText, a.Attempt)
	}
}

// tip is what a pointer over a dot shows.
func (a ScheduledAttempt) tip() string {
	result := string(a.Reason)
	if result == "" {
		result = "completed"
	}
	return fmt.Sprintf("%s, attempt %d of %d at %s: %s (%s)", a.Candidate, a.Attempt, a.Of, clock(a.StartedMS), result, a.Rule)
}

func (p *plot) dot(x, y float64, colour string) {
	p.printf(`<circle cx="%.1f" cy="%.1f" r="5" fill="%s" stroke="#ffffff" stroke-width="1.5"/>`+"\n", x, y, colour)
}

func (p *plot) bar(x, width, y float64) {
	p.printf(`<rect x="%.1f" y="%.1f" width="%.1f" height="10" rx="2" fill="%s"/>`+"\n", x, y-5, width, colourWait)
}

func (p *plot) floorMark(x, y float64) {
	p.printf(`<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="2"/>`+"\n", x, y-10, x, y+10, colourFloor)
}

// ticks are the steps a time axis may have.
var ticks = []time.Duration{
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// tick is the least step that gives at most ten of them.
func tick(total time.Duration) time.Duration {
	for _, t := range ticks {
		if total/t <= 10 {
			return t
		}
	}
	day := 24 * time.Hour
	return (total/10/day + 1) * day
}

// shortClock drops the zero units of a duration: "1h" for "1h0m0s".
func shortClock(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= maxLabel {
		return s
	}
	return string(runes[:maxLabel-1]) + "…"
}

func escape(s string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		return ""
	}
	return b.String()
}
