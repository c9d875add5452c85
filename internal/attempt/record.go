package attempt

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// BodyEnd says how the body of an answer ended.
type BodyEnd string

// Ends of a body.
const (
	BodyOpen   BodyEnd = ""       // no answer, or not read to an end so far
	BodyEOF    BodyEnd = "eof"    // read to its proper end
	BodyError  BodyEnd = "error"  // broke while it was read
	BodyClosed BodyEnd = "closed" // closed by us before its end
)

// Times are the moments of one request. A zero time has not come.
type Times struct {
	Started   time.Time // the request was handed to the transport
	GotConn   time.Time // it had a connection
	Headers   time.Time // status and headers of the answer were in
	FirstByte time.Time // first byte of the body, after decoding
	LastByte  time.Time // latest byte of the body, after decoding
}

// Record holds what happened to one request. Make one per attempt with New.
// All methods may be called at any time from any goroutine.
//
// Should a library send a second request through the same Record, the answer,
// the phase and the times are those of the latest request; Requests and
// Started look at all of them.
type Record struct {
	mu       sync.Mutex
	getConns int
	gotConns int
	last     *exchange
}

// exchange holds the facts of one RoundTrip. Record.mu guards it.
type exchange struct {
	times     Times
	status    int
	header    http.Header
	err       error // what RoundTrip returned
	bytes     int64
	end       BodyEnd
	endErr    error
	errorBody []byte
}

// New returns an empty Record.
func New() *Record { return &Record{last: &exchange{}} }

type recordKey struct{}

// With returns a context whose requests are recorded in r when they go through
// a Transport.
func With(ctx context.Context, r *Record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// From returns the Record of ctx, or nil when there is none.
func From(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	return r
}

// begin starts a new exchange.
func (r *Record) begin(now time.Time) *exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = &exchange{times: Times{Started: now}}
	return r.last
}

func (r *Record) getConn() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.getConns++
}

func (r *Record) gotConn(x *exchange, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gotConns++
	x.times.GotConn = now
}

func (r *Record) failed(x *exchange, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.err = err
}

func (r *Record) answered(x *exchange, resp *http.Response, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	x.times.Headers = now
	x.status = resp.StatusCode
	x.header = resp.Header.Clone()
	if resp.Body == nil || resp.Body == http.NoBody {
		x.end = BodyEOF
	}
}

// read notes what one Read of the body gave.
func (r *Record) read(x *exchange, p []byte, end BodyEnd, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) > 0 {
		if x.bytes == 0 {
			x.times.FirstByte = now
		}
		x.times.LastByte = now
		x.bytes += int64(len(p))
		if room := policies.MaxBody - len(x.errorBody); x.status >= 400 && room > 0 {
			x.errorBody = append(x.errorBody, p[:min(len(p), room)]...)
		}
	}
	if end != BodyOpen && x.end == BodyOpen {
		x.end, x.endErr = end, err
	}
}

// Requests returns how many times a request asked for a connection: 1 for one
// attempt, more when a library or net/http itself repeated it, 0 when the
// context was done before.
func (r *Record) Requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.getConns
}

// NotStarted reports the proof that no byte of the request can have left: a
// connection was asked for and never had (C2). It is meaningful once the
// request has failed.
func (r *Record) NotStarted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.notStarted()
}

func (r *Record) notStarted() bool { return r.getConns > 0 && r.gotConns == 0 }

// Started reports that a request had a connection, so that it may have left.
func (r *Record) Started() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gotConns > 0
}

// Status returns the HTTP status of the answer, 0 when none came.
func (r *Record) Status() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.status
}

// Header returns the headers of the answer, nil when none came. The caller
// must not change them.
func (r *Record) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.header
}

// Phase returns how far the request has come (P4.11): PhaseFirstEvent from the
// headers to the first byte of the body, PhaseBody from then on. A reader of
// frames that has seen bytes but no event yet knows better.
func (r *Record) Phase() policies.Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.phase()
}

func (x *exchange) phase() policies.Phase {
	switch {
	case x.bytes > 0:
		return policies.PhaseBody
	case x.status != 0:
		return policies.PhaseFirstEvent
	case !x.times.GotConn.IsZero():
		return policies.PhaseHeaders
	}
	return policies.PhaseConnect
}

// Times returns the moments of the request.
func (r *Record) Times() Times {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.times
}

// LastByteAt returns when the latest byte of the body came, the zero time
// before the first.
func (r *Record) LastByteAt() time.Time { return r.Times().LastByte }

// BodyBytes returns how many bytes of the body were read, after decoding.
func (r *Record) BodyBytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.bytes
}

// BodyEnd returns how the body ended, and the error for BodyError.
func (r *Record) BodyEnd() (BodyEnd, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.end, r.last.endErr
}

// ErrorBody returns a copy of what was read of the body of an answer of status
// 400 or above, at most policies.MaxBody bytes, also when the body broke off.
// It is nil when nothing could be read, and for every other status.
func (r *Record) ErrorBody() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.body()
}

func (x *exchange) body() []byte {
	if x.status >= 400 && x.end == BodyEOF && x.errorBody == nil {
		return []byte{}
	}
	return bytes.Clone(x.errorBody)
}

// Err returns the transport's own error: what RoundTrip returned, or what broke
// the body. It is nil when the answer was whole, is still being read, or was
// closed by us. Its text may hold secrets; show it through Redacted.
func (r *Record) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.failure()
}

func (x *exchange) failure() error {
	if x.err != nil {
		return x.err
	}
	return x.endErr
}
