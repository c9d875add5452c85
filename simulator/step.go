package simulator

import (
	"encoding/json"
	"fmt"
	"time"
)

// EffectMode says how often the effect of a request happens.
type EffectMode string

const (
	// EffectDefault is once, or never where the step replaces the answer or
	// leaves the body unread.
	EffectDefault EffectMode = ""
	EffectNone    EffectMode = "none"
	EffectOnce    EffectMode = "once"
	// EffectTwice hands the request to the platform twice, as a middlebox that
	// repeats it would; the client gets the second answer. A platform that
	// deduplicates (a Discord nonce) still has one effect.
	EffectTwice EffectMode = "twice"
)

// End says how the connection ends once the part of the answer that the step
// lets through has been sent.
type End string

const (
	// EndNormal completes the answer, or closes with FIN after a cut.
	EndNormal End = ""
	// EndFIN closes in order: the client reads what was sent, then EOF.
	EndFIN End = "fin"
	// EndRST resets the connection (SO_LINGER 0). As on a real network, the
	// client may lose bytes that it had received but not read.
	EndRST End = "rst"
	// EndTorn closes with FIN, but without the alert that ends a TLS connection
	// in order. Without TLS it is EndFIN.
	EndTorn End = "torn"
	// EndStall keeps the connection open in silence.
	EndStall End = "stall"
)

// Cut is how much of an answer leaves before the step's End. At most one field
// is set; with none, only the status line and the headers leave. An answer that
// is shorter than the cut leaves whole, but for the end mark of a chunked body.
type Cut struct {
	// Bytes of the body.
	Bytes int `json:"bytes,omitempty"`
	// Events are whole server-sent events.
	Events int `json:"events,omitempty"`
	// Fraction, above 0 and below 1, of the events of an event stream, else of
	// the bytes of the body.
	Fraction float64 `json:"fraction,omitempty"`
}

// Splice puts a raw frame into an event stream.
type Splice struct {
	// After is the number of events before it.
	After int `json:"after"`
	// Frame is written as it is, so it carries its own blank line. {{id}},
	// {{model}} and {{seq}} stand for the response's id, its model and the
	// frame's sequence number, where the platform has them.
	Frame string `json:"frame"`
	// Every, where above 0, repeats the frame after every so many events.
	Every int `json:"every,omitempty"`
	// Last ends the stream in order after the frame.
	Last bool `json:"last,omitempty"`
}

// Step is one entry of a fault script. The zero Step serves the request as the
// platform would. Steps are values: the functions of this package make them, the
// methods below refine a copy, and the JSON form is that of the fields.
type Step struct {
	// Match is an operation name of the platform, or "METHOD /path"; * stands
	// for any characters, slashes included. Empty matches every request.
	Match string `json:"match,omitempty"`
	// Key matches what the platform limits by (Discord: channel, Telegram: chat,
	// models: model, Git: repository), with * as above. Empty matches all.
	Key string `json:"key,omitempty"`
	// Reused matches only requests on a connection that has served another:
	// those that an HTTP client may repeat unasked if no answer comes.
	Reused bool `json:"reused,omitempty"`
	// Count is how many requests take the step: 0 is one, -1 is all.
	Count int `json:"count,omitempty"`
	// Note names the step in the ledger.
	Note string `json:"note,omitempty"`

	// Unread leaves the body of the request unread.
	Unread bool `json:"unread,omitempty"`
	// HoldBefore and HoldAfter name the gate at which the request waits before
	// or after its effect; DelayBefore and DelayAfter are waits in the same
	// places. If the connection dies in the wait before, the effect never happens.
	HoldBefore  string   `json:"hold_before,omitempty"`
	DelayBefore Duration `json:"delay_before,omitempty"`
	HoldAfter   string   `json:"hold_after,omitempty"`
	DelayAfter  Duration `json:"delay_after,omitempty"`

	Effect EffectMode `json:"effect,omitempty"`

	// Status, where set, replaces the platform's answer by Body, or by JSON
	// where that is set. Header is added to whatever answer leaves; an empty
	// value removes the platform's header.
	Status int               `json:"status,omitempty"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body,omitempty"`
	JSON   json.RawMessage   `json:"json,omitempty"`
	// Chunked sends a body without Content-Length.
	Chunked bool `json:"chunked,omitempty"`

	// Pace, where set, is the wait between the events of a stream.
	Pace Duration `json:"pace,omitempty"`
	// Rate, where above 0, is how many bytes of the body leave in a second.
	Rate   int     `json:"rate,omitempty"`
	Splice *Splice `json:"splice,omitempty"`

	// Cut is how much leaves before End. With an End and no Cut nothing leaves,
	// not even the status line.
	Cut *Cut `json:"cut,omitempty"`
	End End  `json:"end,omitempty"`
	// StallFor bounds the silence of EndStall; 0 lasts until the client leaves
	// or the server closes.
	StallFor Duration `json:"stall_for,omitempty"`
	// RefuseFor makes the server refuse connections for so long once the request
	// is over.
	RefuseFor Duration `json:"refuse_for,omitempty"`
}

// Pass serves the request as the platform would.
func Pass() Step { return Step{Note: "pass"} }

// Status answers with a status and a raw body; there is no effect.
func Status(code int, body string) Step {
	return Step{Note: fmt.Sprintf("status %d", code), Status: code, Body: body}
}

// HTML answers with a status and a page, as proxies and CDNs in front of an API do.
func HTML(code int, page string) Step {
	return Status(code, page).WithHeader("Content-Type", "text/html; charset=utf-8")
}

// JSON answers with a status and v as JSON. It panics if v has no JSON form.
func JSON(code int, v any) Step {
	data, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("simulator.JSON: %v", err))
	}
	return Step{Note: fmt.Sprintf("status %d", code), Status: code, JSON: data}
}

// EffectThenReset lets the effect happen and resets the connection without an answer.
func EffectThenReset() Step {
	return Step{Note: "effect, then reset", Effect: EffectOnce, End: EndRST}
}

// EffectThenClose lets the effect happen and closes the connection without an answer.
func EffectThenClose() Step {
	return Step{Note: "effect, then close", Effect: EffectOnce, End: EndFIN}
}

// Reset reads the request, does nothing and resets the connection.
func Reset() Step { return Step{Note: "reset, no effect", Effect: EffectNone, End: EndRST} }

// Close reads the request, does nothing and closes the connection.
func Close() Step { return Step{Note: "close, no effect", Effect: EffectNone, End: EndFIN} }

// ResetUnread resets the connection without reading the body.
func ResetUnread() Step { return Step{Note: "reset, body unread", Unread: true, End: EndRST} }

// CloseUnread closes the connection without reading the body.
func CloseUnread() Step { return Step{Note: "close, body unread", Unread: true, End: EndFIN} }

// CutBytes lets the effect happen and closes after n bytes of the answer's body,
// whose Content-Length promised all of them.
func CutBytes(n int) Step {
	return Step{Note: fmt.Sprintf("cut after %d bytes", n), Cut: &Cut{Bytes: n}, End: EndFIN}
}

// CutEvents closes an event stream after n events, without its end mark.
func CutEvents(n int) Step {
	return Step{Note: fmt.Sprintf("cut after %d events", n), Cut: &Cut{Events: n}, End: EndFIN}
}

// CutFraction closes after a part of the answer (0.4: 40 %), counted in events
// for an event stream and in bytes for any other body.
func CutFraction(f float64) Step {
	return Step{Note: fmt.Sprintf("cut after %g %%", f*100), Cut: &Cut{Fraction: f}, End: EndFIN}
}

// Torn lets the effect happen and, after n bytes of the answer's body, ends the
// connection without TLS's own end.
func Torn(n int) Step {
	return Step{Note: fmt.Sprintf("torn after %d bytes", n), Cut: &Cut{Bytes: n}, End: EndTorn}
}

// Slow sends the body of the answer at so many bytes per second.
func Slow(rate int) Step {
	return Step{Note: fmt.Sprintf("%d bytes per second", rate), Rate: rate}
}

// Stall lets the effect happen and then says nothing at all.
func Stall() Step { return Step{Note: "stall, no answer", Effect: EffectOnce, End: EndStall} }

// StallHeaders lets the effect happen, sends status and headers, then nothing.
func StallHeaders() Step {
	return Step{Note: "stall after headers", Effect: EffectOnce, Cut: &Cut{}, End: EndStall}
}

// StallEvents falls silent after n events of a stream.
func StallEvents(n int) Step {
	return Step{Note: fmt.Sprintf("stall after %d events", n), Cut: &Cut{Events: n}, End: EndStall}
}

// HalfOpen is a peer that is gone without a word: the connection stays open,
// nothing is read and nothing is sent until the server closes. The client's
// leaving is not noticed.
func HalfOpen() Step { return Step{Note: "half-open", Unread: true, End: EndStall} }

// Twice lets the effect happen twice; see [EffectTwice].
func Twice() Step { return Step{Note: "effect twice", Effect: EffectTwice} }

// HoldBefore holds the request at a gate before its effect.
func HoldBefore(gate string) Step {
	return Step{Note: "hold before effect at " + gate, HoldBefore: gate}
}

// HoldAfter holds the request at a gate between its effect and its answer.
func HoldAfter(gate string) Step {
	return Step{Note: "hold after effect at " + gate, HoldAfter: gate}
}

// DelayBefore waits before the effect.
func DelayBefore(d time.Duration) Step {
	return Step{Note: "delay before effect", DelayBefore: Duration(d)}
}

// DelayAfter waits between the effect and the answer.
func DelayAfter(d time.Duration) Step {
	return Step{Note: "delay after effect", DelayAfter: Duration(d)}
}

// SpliceFrame puts a raw frame into an event stream after n events.
func SpliceFrame(n int, frame string) Step {
	return Step{Note: fmt.Sprintf("frame spliced after %d events", n), Splice: &Splice{After: n, Frame: frame}}
}

// On restricts the step to an operation or a "METHOD /path"; see Match.
func (s Step) On(match string) Step { s.Match = match; return s }

// ForKey restricts the step to one channel, chat, model or repository; see Key.
func (s Step) ForKey(key string) Step { s.Key = key; return s }

// OnReused restricts the step to requests on a connection that has served another.
func (s Step) OnReused() Step { s.Reused = true; return s }

// Times makes n requests take the step.
func (s Step) Times(n int) Step { s.Count = n; return s }

// Always makes every matching request take the step.
func (s Step) Always() Step { s.Count = -1; return s }

// As names the step in the ledger.
func (s Step) As(note string) Step { s.Note = note; return s }

// WithEffect overrides how often the effect happens.
func (s Step) WithEffect(m EffectMode) Step { s.Effect = m; return s }

// WithEnd overrides how the connection ends.
func (s Step) WithEnd(e End) Step { s.End = e; return s }

// WithHeader adds a header to the answer.
func (s Step) WithHeader(name, value string) Step {
	header := make(map[string]string, len(s.Header)+1)
	for k, v := range s.Header {
		header[k] = v
	}
	header[name] = value
	s.Header = header
	return s
}

// ThenRefuse makes the server refuse connections for d once the request is over.
func (s Step) ThenRefuse(d time.Duration) Step { s.RefuseFor = Duration(d); return s }

func (s Step) effects() int {
	switch s.Effect {
	case EffectNone:
		return 0
	case EffectOnce:
		return 1
	case EffectTwice:
		return 2
	}
	if s.Unread || s.Status != 0 {
		return 0
	}
	return 1
}

// check says what is wrong with a step that came as JSON.
func (s Step) check() error {
	switch s.Effect {
	case EffectDefault, EffectNone, EffectOnce, EffectTwice:
	default:
		return fmt.Errorf("effect %q: use none, once or twice", s.Effect)
	}
	switch s.End {
	case EndNormal, EndFIN, EndRST, EndTorn, EndStall:
	default:
		return fmt.Errorf("end %q: use fin, rst, torn or stall", s.End)
	}
	if s.Rate < 0 {
		return fmt.Errorf("rate %d: use the bytes per second, 0 for no limit", s.Rate)
	}
	if s.Count < -1 {
		return fmt.Errorf("count %d: use -1 for all, else 1 or more", s.Count)
	}
	if s.Status != 0 && (s.Status < 200 || s.Status > 599) {
		return fmt.Errorf("status %d: use 200 to 599", s.Status)
	}
	if s.Unread && s.End == EndNormal {
		return fmt.Errorf("unread needs an end: use fin, rst, torn or stall")
	}
	if s.Unread && s.effects() > 0 {
		return fmt.Errorf("unread leaves no effect: a body that was not read cannot be acted on")
	}
	if c := s.Cut; c != nil && (c.Bytes < 0 || c.Events < 0 || c.Fraction < 0 || c.Fraction >= 1) {
		return fmt.Errorf("cut: bytes and events are 0 or more, fraction is at least 0 and below 1")
	}
	return nil
}

// Duration is a time.Duration whose JSON form is a string such as "1.5s".
type Duration time.Duration

// MarshalText gives the form of time.Duration's String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("duration %q: write it as 300ms or 1.5s", text)
	}
	*d = Duration(v)
	return nil
}
