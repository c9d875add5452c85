package simulator

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

var (
	errCut  = errors.New("simulator: the answer is cut here")
	errLeft = errors.New("simulator: the client left, or the server closes")
)

// deliver sends an answer as far as the step lets it through, then ends.
func (x *exchange) deliver(a Answer) {
	if x.step.End != EndNormal && x.step.Cut == nil {
		x.end()
		return
	}
	if a.Stream != nil && x.step.Cut != nil && x.step.Cut.Fraction > 0 {
		a = record(a)
	}
	x.splice(&a)
	out := &wire{x: x, header: http.Header{}, left: limit(x.step.Cut, a)}
	switch {
	case a.Stream != nil:
		a.Stream(out)
	case a.Frames != nil:
		x.frames(out, a)
	default:
		x.plain(out, a)
	}
	switch {
	case x.over:
	case x.step.Cut != nil:
		x.end()
	case out.failed:
		x.gone()
	default:
		x.finish(Answered)
	}
}

// limit is where a cut falls, in bytes and in events; -1 is nowhere.
func limit(c *Cut, a Answer) budget {
	switch {
	case c == nil:
		return budget{bytes: -1, events: -1}
	case c.Fraction > 0 && a.Frames != nil:
		return budget{bytes: -1, events: part(c.Fraction, len(a.Frames))}
	case c.Fraction > 0:
		return budget{bytes: part(c.Fraction, len(a.Body)), events: -1}
	case c.Events > 0:
		return budget{bytes: -1, events: c.Events}
	}
	return budget{bytes: c.Bytes, events: -1}
}

func part(f float64, n int) int { return int(math.Floor(f * float64(n))) }

type budget struct{ bytes, events int }

// spent says whether nothing more may leave.
func (b budget) spent() bool { return b.bytes == 0 || b.events == 0 }

// take returns how much of p may leave, and lowers the budget by it.
func (b *budget) take(p []byte) []byte {
	if b.bytes >= 0 {
		p = p[:min(len(p), b.bytes)]
		b.bytes -= len(p)
	}
	if b.events < 0 {
		return p
	}
	for i := 0; ; {
		if b.events == 0 {
			return p[:i]
		}
		end := bytes.Index(p[i:], []byte("\n\n"))
		if end < 0 {
			return p
		}
		i += end + 2
		b.events--
	}
}

// plain sends a body of known size.
func (x *exchange) plain(out *wire, a Answer) {
	merge(out.header, a.Header)
	if !x.step.Chunked && a.Status != http.StatusNoContent {
		out.header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	out.body = a.Body
	out.WriteHeader(a.Status)
	if x.step.Chunked {
		out.Flush()
	}
	if len(a.Body) > 0 {
		out.Write(a.Body)
	}
}

// frames sends an event stream, frame by frame.
func (x *exchange) frames(out *wire, a Answer) {
	merge(out.header, a.Header)
	out.WriteHeader(a.Status)
	out.Flush()
	pace := a.Pace
	if x.step.Pace > 0 {
		pace = time.Duration(x.step.Pace)
	}
	for i, frame := range a.Frames {
		if i > 0 && !out.left.spent() && !x.sleep(pace) {
			x.gone()
			return
		}
		if _, err := out.Write(frame); err != nil {
			return
		}
		out.Flush()
	}
}

// splice puts the step's frame into the answer's.
func (x *exchange) splice(a *Answer) {
	sp := x.step.Splice
	if sp == nil || a.Frames == nil {
		return
	}
	var out [][]byte
	for i := 0; i <= len(a.Frames); i++ {
		if i == sp.After || sp.Every > 0 && i > sp.After && (i-sp.After)%sp.Every == 0 && i < len(a.Frames) {
			out = append(out, []byte(fill(sp.Frame, a.Vars, len(out))))
			if sp.Last {
				break
			}
		}
		if i < len(a.Frames) {
			out = append(out, a.Frames[i])
		}
	}
	a.Frames = out
}

func fill(frame string, vars map[string]string, seq int) string {
	pairs := []string{"{{seq}}", strconv.Itoa(seq)}
	for name, value := range vars {
		pairs = append(pairs, "{{"+name+"}}", value)
	}
	return strings.NewReplacer(pairs...).Replace(frame)
}

// wire is the way out: it notes the status, counts what leaves and stops at the cut.
type wire struct {
	x      *exchange
	header http.Header
	body   []byte // the whole body, where it is known
	left   budget
	wrote  bool
	failed bool
}

func (o *wire) Header() http.Header { return o.header }

// WriteHeader sends the status line and the headers.
func (o *wire) WriteHeader(status int) {
	if o.wrote {
		return
	}
	o.wrote = true
	for name, value := range o.x.step.Header {
		if value == "" {
			o.header.Del(name)
		} else {
			o.header.Set(name, value)
		}
	}
	merge(o.x.w.Header(), o.header)
	o.answered(status)
	o.x.sent = true
	o.x.w.WriteHeader(status)
}

// answered enters status and floor in the ledger before a byte of them leaves,
// so that a client that has its answer finds them there.
func (o *wire) answered(status int) {
	now := o.x.server.now()
	var body []byte
	if o.x.step.Cut == nil {
		body = o.body
	}
	wait, global := time.Duration(0), false
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		wait, global = floorOf(o.header, body, now)
	}
	o.x.note(func(r *Request) {
		r.Status, r.AnsweredAt = status, now
		if wait > 0 {
			r.Floor, r.Global = now.Add(wait), global
		}
		if o.x.step.Cut == nil && o.body != nil {
			r.Outcome = Answered
		}
	})
}

func (o *wire) Write(p []byte) (int, error) {
	if !o.wrote {
		o.WriteHeader(http.StatusOK)
	}
	allowed := o.left.take(p)
	if n, err := o.send(allowed); err != nil {
		o.failed = true
		return n, err
	}
	if len(allowed) < len(p) || o.left.spent() {
		return len(allowed), errCut
	}
	return len(p), nil
}

// send writes p, at the step's rate if it has one.
func (o *wire) send(p []byte) (n int, err error) {
	const tick = 20 * time.Millisecond
	portion := len(p)
	if rate := o.x.step.Rate; rate > 0 {
		portion = max(1, rate/int(time.Second/tick))
	}
	for n < len(p) && err == nil {
		if o.x.step.Rate > 0 && !o.x.sleep(time.Duration(portion)*time.Second/time.Duration(o.x.step.Rate)) {
			return n, errLeft
		}
		var m int
		m, err = o.x.w.Write(p[n:min(len(p), n+portion)])
		n += m
		if o.x.step.Rate > 0 && err == nil {
			o.Flush()
		}
	}
	return n, err
}

// Flush sends what is buffered.
func (o *wire) Flush() {
	if !o.wrote {
		o.WriteHeader(http.StatusOK)
	}
	if err := http.NewResponseController(o.x.w).Flush(); err != nil {
		o.failed = true
	}
}

func merge(into, from http.Header) {
	for name, values := range from {
		into[name] = values
	}
}

// record runs a stream into memory, for a cut that must know its size.
func record(a Answer) Answer {
	m := &memory{Answer: Answer{Header: http.Header{}}}
	a.Stream(m)
	if m.Status == 0 {
		m.Status = http.StatusOK
	}
	return m.Answer
}

type memory struct{ Answer }

func (m *memory) Header() http.Header { return m.Answer.Header }

func (m *memory) WriteHeader(status int) {
	if m.Status == 0 {
		m.Status = status
	}
}

func (m *memory) Write(p []byte) (int, error) {
	m.Body = append(m.Body, p...)
	return len(p), nil
}
