package sse

import (
	"bytes"
	"fmt"
	"io"
	"time"
)

// Defaults and sizes.
const (
	DefaultMaxLine  = 32 << 20 // M2.4
	DefaultMaxFrame = 64 << 20

	startSize = 4 << 10  // buffer of a quiet stream
	keepSize  = 64 << 10 // a larger buffer is given up after its frame
	maxNames  = 64       // event names remembered
	maxEmpty  = 100      // reads in a row that may give nothing
)

// Options configure a Reader.
type Options struct {
	// MaxLine is the longest line, in bytes without its end. Defaults to
	// DefaultMaxLine.
	MaxLine int

	// MaxFrame is the most data that the lines of one frame may hold together,
	// in bytes. Defaults to DefaultMaxFrame.
	MaxFrame int
}

// Frame is one event, or one comment.
type Frame struct {
	Event string // the event field; "" when there was none, which means "message"
	Data  []byte // data lines joined by LF, or the comment; nil when there was no data field. Valid until the next call of Next
	ID    string // the id field of this frame
	Retry time.Duration

	// Comment marks a line that began with a colon. Such lines are delivered
	// when they come, also between the lines of an event. Data may be empty.
	Comment bool
}

// LineTooLongError says that a line was longer than the limit. The stream
// cannot be read further.
type LineTooLongError struct {
	Limit int // bytes
}

func (e *LineTooLongError) Error() string {
	return fmt.Sprintf("the event stream has a line of more than %d bytes", e.Limit)
}

// FrameTooLongError says that the data of one event was longer than the limit.
// The stream cannot be read further.
type FrameTooLongError struct {
	Limit int // bytes
}

func (e *FrameTooLongError) Error() string {
	return fmt.Sprintf("the event stream has an event of more than %d bytes", e.Limit)
}

// TruncatedFrameError says that the stream ended inside a frame: the blank line
// that ends it never came, so it does not count (M2.1, M2.5).
type TruncatedFrameError struct {
	Event string // the event field of the lost frame, if it had come
}

func (e *TruncatedFrameError) Error() string {
	return "the event stream ended inside an event"
}

// Unwrap returns io.ErrUnexpectedEOF.
func (e *TruncatedFrameError) Unwrap() error { return io.ErrUnexpectedEOF }

// Reader reads frames from a stream. Use it from one goroutine; closing what it
// reads from, which ends a waiting Next, is up to the caller.
//
// The data of a frame is put together in place, in the one buffer that is read
// into, so a frame costs no copy unless it has several data lines.
type Reader struct {
	src      io.Reader
	maxLine  int
	maxFrame int

	buf     []byte
	line    int // start of the current line
	scan    int // no line end between line and scan
	end     int // end of what was read
	first   bool
	afterCR bool // an LF that comes next belongs to the line end before it

	event              string
	id                 string
	retry              time.Duration
	dataFrom, dataTo   int  // data of the current frame in buf
	hasData, hasFields bool // hasFields: a field that is worth a frame
	open               bool // inside a frame

	names  map[string]string
	srcErr error // came with the bytes last read
	err    error // sticky
}

// NewReader returns a Reader of r.
func NewReader(r io.Reader, o Options) *Reader {
	reader := &Reader{src: r, maxLine: o.MaxLine, maxFrame: o.MaxFrame, first: true, names: map[string]string{}}
	if reader.maxLine <= 0 {
		reader.maxLine = DefaultMaxLine
	}
	if reader.maxFrame <= 0 {
		reader.maxFrame = DefaultMaxFrame
	}
	return reader
}

// Next returns the next frame or comment. The Data of the frame before is
// overwritten.
//
// At the end of the stream the error is io.EOF, or *TruncatedFrameError when it
// ended inside a frame. *LineTooLongError and *FrameTooLongError are limits of
// Options. An error of the underlying reader comes wrapped. Every error is
// final: later calls return it again.
func (r *Reader) Next() (Frame, error) {
	for r.err == nil {
		line, ok, err := r.nextLine()
		if err != nil {
			r.err = err
			break
		}
		if !ok {
			r.err = r.fill()
			continue
		}
		frame, done, err := r.take(line)
		if err != nil {
			r.err = err
			break
		}
		if done {
			return frame, nil
		}
	}
	return Frame{}, r.err
}

// nextLine returns the next whole line in the buffer, without its end.
func (r *Reader) nextLine() (line []byte, ok bool, err error) {
	if r.afterCR && r.line < r.end {
		if r.buf[r.line] == '\n' {
			r.line++
			r.scan = r.line
		}
		r.afterCR = false
	}
	rest := r.buf[r.scan:r.end]
	if lf := bytes.IndexByte(rest, '\n'); lf >= 0 {
		rest = rest[:lf+1]
	}
	at := bytes.IndexByte(rest, '\r')
	if at < 0 && len(rest) > 0 && rest[len(rest)-1] == '\n' {
		at = len(rest) - 1
	}
	length := r.end - r.line
	if at >= 0 {
		length = r.scan + at - r.line
	}
	if length > r.maxLine {
		return nil, false, &LineTooLongError{Limit: r.maxLine}
	}
	if at < 0 {
		r.scan = r.end
		return nil, false, nil
	}
	line = r.buf[r.line : r.line+length]
	r.afterCR = rest[at] == '\r'
	r.line += length + 1
	r.scan = r.line
	return line, true, nil
}

// take puts a line into the current frame, and returns the frame that it ends
// or the comment that it is.
func (r *Reader) take(line []byte) (frame Frame, done bool, err error) {
	if r.first {
		r.first = false
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	if len(line) == 0 {
		frame, done = r.dispatch()
		return frame, done, nil
	}
	if line[0] == ':' {
		return Frame{Comment: true, Data: trimSpace(line[1:])}, true, nil
	}
	r.open = true
	name, value := line, line[len(line):]
	if colon := bytes.IndexByte(line, ':'); colon >= 0 {
		name, value = line[:colon], trimSpace(line[colon+1:])
	}
	switch string(name) {
	case "data":
		return Frame{}, false, r.addData(value)
	case "event":
		r.event, r.hasFields = r.intern(value), true
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			r.id, r.hasFields = string(value), true
		}
	case "retry":
		if wait, ok := milliseconds(value); ok {
			r.retry, r.hasFields = wait, true
		}
	}
	return Frame{}, false, nil
}

var byteOrderMark = []byte("\xEF\xBB\xBF")

// trimSpace takes off the one space that may follow a colon.
func trimSpace(value []byte) []byte {
	if len(value) > 0 && value[0] == ' ' {
		return value[1:]
	}
	return value
}

// milliseconds reads a retry field, which counts only when it is all digits.
func milliseconds(value []byte) (time.Duration, bool) {
	if len(value) == 0 || len(value) > 12 {
		return 0, false
	}
	var n int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return time.Duration(n) * time.Millisecond, true
}

// addData appends a data line, which lies in buf behind the data so far.
func (r *Reader) addData(value []byte) error {
	if !r.hasData {
		r.hasData, r.hasFields = true, true
		r.dataFrom = cap(r.buf) - cap(value) // value is a part of buf
		r.dataTo = r.dataFrom + len(value)
		return r.checkFrame()
	}
	r.buf[r.dataTo] = '\n'
	r.dataTo += 1 + copy(r.buf[r.dataTo+1:], value)
	return r.checkFrame()
}

func (r *Reader) checkFrame() error {
	if r.dataTo-r.dataFrom > r.maxFrame {
		return &FrameTooLongError{Limit: r.maxFrame}
	}
	return nil
}

// dispatch ends the current frame and returns it, if it had any field.
func (r *Reader) dispatch() (Frame, bool) {
	frame := Frame{Event: r.event, ID: r.id, Retry: r.retry}
	if r.hasData {
		frame.Data = r.buf[r.dataFrom:r.dataTo:r.dataTo]
	}
	found := r.hasFields
	r.event, r.id, r.retry = "", "", 0
	r.hasData, r.hasFields, r.open = false, false, false
	r.dataFrom, r.dataTo = 0, 0
	return frame, found
}

// intern returns name as a string that is made once per stream.
func (r *Reader) intern(name []byte) string {
	if s, ok := r.names[string(name)]; ok {
		return s
	}
	s := string(name)
	if len(r.names) < maxNames && len(s) <= 128 {
		r.names[s] = s
	}
	return s
}

// fill reads more. At the end of the source it says how the stream ended.
func (r *Reader) fill() error {
	if r.srcErr != nil {
		return r.ended(r.srcErr)
	}
	r.makeRoom()
	for range maxEmpty {
		n, err := r.src.Read(r.buf[r.end:cap(r.buf)])
		r.end += n
		r.buf = r.buf[:r.end]
		switch {
		case n > 0:
			r.srcErr = err
			return nil
		case err != nil:
			return r.ended(err)
		}
	}
	return fmt.Errorf("read event stream: %w", io.ErrNoProgress)
}

// ended says what it means that the source gave err. A clean end differs from
// one inside a frame; a comment is no frame.
func (r *Reader) ended(err error) error {
	if err != io.EOF {
		return fmt.Errorf("read event stream: %w", err)
	}
	rest := r.buf[r.line:r.end]
	if r.first {
		rest = bytes.TrimPrefix(rest, byteOrderMark)
	}
	if r.open || (len(rest) > 0 && rest[0] != ':') {
		return &TruncatedFrameError{Event: r.event}
	}
	return io.EOF
}

// makeRoom makes space behind what was read. It moves the data of the current
// frame and the current line to the front once three quarters of the buffer are
// passed, grows it when more than half is in use, and gives up a large one that
// is nearly empty.
func (r *Reader) makeRoom() {
	data, line := r.buf[r.dataFrom:r.dataTo], r.buf[r.line:r.end]
	used := len(data) + len(line)
	size := cap(r.buf)
	switch {
	case size == 0:
		size = startSize
	case size > keepSize && used < startSize/2:
		size = startSize
	case size-r.end >= size/4:
		return
	case used > size/2:
		size *= 2
	}
	to := r.buf[:0]
	if size != cap(r.buf) {
		to = make([]byte, 0, size)
	}
	to = append(append(to, data...), line...)
	r.scan += len(data) - r.line
	r.line = len(data)
	r.dataFrom, r.dataTo = 0, len(data)
	r.buf, r.end = to, len(to)
}
