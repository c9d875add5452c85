package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// result is a whole stream as text: one line per frame, then the error.
func result(r io.Reader, o Options) []string {
	var lines []string
	reader := NewReader(r, o)
	for {
		f, err := reader.Next()
		if err != nil {
			again, errAgain := reader.Next()
			if errAgain != err || again.Data != nil {
				return append(lines, "the error is not final")
			}
			return append(lines, errorText(err))
		}
		lines = append(lines, frameText(f))
	}
}

func frameText(f Frame) string {
	if f.Comment {
		return fmt.Sprintf("comment %q", f.Data)
	}
	text := "event=" + f.Event
	if f.Data != nil {
		text += fmt.Sprintf(" data=%q", f.Data)
	}
	if f.ID != "" {
		text += fmt.Sprintf(" id=%q", f.ID)
	}
	if f.Retry != 0 {
		text += fmt.Sprintf(" retry=%v", f.Retry)
	}
	return text
}

func errorText(err error) string {
	var truncated *TruncatedFrameError
	var line *LineTooLongError
	var frame *FrameTooLongError
	switch {
	case err == io.EOF:
		return "EOF"
	case errors.As(err, &truncated):
		return "truncated " + truncated.Event
	case errors.As(err, &line):
		return fmt.Sprint("line over ", line.Limit)
	case errors.As(err, &frame):
		return fmt.Sprint("frame over ", frame.Limit)
	}
	return "error: " + err.Error()
}

// M2.4: CR, LF, CRLF, comments, multi-line data, BOM.
var streams = []struct {
	name, in string
	want     []string
}{
	{"empty", "", []string{"EOF"}},
	{"LF", "event: a\ndata: 1\n\ndata: 2\n\n", []string{`event=a data="1"`, `event= data="2"`, "EOF"}},
	{"CRLF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", []string{`event=a data="1"`, `event= data="2"`, "EOF"}},
	{"CR", "event: a\rdata: 1\r\rdata: 2\r\r", []string{`event=a data="1"`, `event= data="2"`, "EOF"}},
	{"mixed ends", "data: 1\r\n\ndata: 2\n\rdata: 3\r\r\n", []string{`event= data="1"`, `event= data="2"`, `event= data="3"`, "EOF"}},
	{"CR ends the last frame", "data: 1\n\r", []string{`event= data="1"`, "EOF"}},
	{"blank lines alone", "\n\n\r\n\r\r\n", []string{"EOF"}},
	{"comment", ": ping\n\n:\n:x\n", []string{`comment "ping"`, `comment ""`, `comment "x"`, "EOF"}},
	{"comment inside a frame", "data: 1\n: ping\ndata: 2\n\n", []string{`comment "ping"`, `event= data="1\n2"`, "EOF"}},
	{"comment cut off", "data: 1\n\n: pi", []string{`event= data="1"`, "EOF"}},
	{"many data lines", "data: a\ndata\ndata:\ndata:  b\ndata:c\n\n", []string{`event= data="a\n\n\n b\nc"`, "EOF"}},
	{"empty data", "data:\n\n", []string{`event= data=""`, "EOF"}},
	{"data without colon", "data\n\n", []string{`event= data=""`, "EOF"}},
	{"fields without data", "event: ping\n\nid: 7\n\nretry: 3000\n\n", []string{"event=ping", `event= id="7"`, "event= retry=3s", "EOF"}},
	{"unknown fields alone", "foo: 1\nbar\n\n", []string{"EOF"}},
	{"unknown field beside data", "foo: 1\ndata: 1\n\n", []string{`event= data="1"`, "EOF"}},
	{"field names are exact", "Data: 1\n data: 2\ndata : 3\ndata: 4\n\n", []string{`event= data="4"`, "EOF"}},
	{"id and retry are not carried on", "id: 1\nretry: 5\ndata: a\n\ndata: b\n\n", []string{`event= data="a" id="1" retry=5ms`, `event= data="b"`, "EOF"}},
	{"bad id and retry", "id: a\x00b\nretry: 1s\nretry: -1\nretry:\nretry: 9999999999999\ndata: a\n\n", []string{`event= data="a"`, "EOF"}},
	{"last event field wins", "event: a\nevent: b\ndata: 1\n\n", []string{`event=b data="1"`, "EOF"}},
	{"BOM", "\xEF\xBB\xBFdata: 1\n\n\xEF\xBB\xBFdata: 2\n\n", []string{`event= data="1"`, "EOF"}},
	{"BOM alone", "\xEF\xBB\xBF", []string{"EOF"}},
	{"BOM and comment", "\xEF\xBB\xBF: ping\n", []string{`comment "ping"`, "EOF"}},
	{"one space is taken", "data:  x \n\n", []string{`event= data=" x "`, "EOF"}},
	{"JSON with colons", `data: {"a":"b: c"}` + "\n\n", []string{`event= data="{\"a\":\"b: c\"}"`, "EOF"}},
	{"done", "data: [DONE]\n\n", []string{`event= data="[DONE]"`, "EOF"}},
	// M2.1, M2.5: an end inside a frame is not a frame.
	{"cut in data", "event: a\ndata: {\"x\":", []string{"truncated a"}},
	{"cut before the blank line", "data: 1\n\ndata: 2\n", []string{`event= data="1"`, "truncated "}},
	{"cut in a field name", "data: 1\n\nda", []string{`event= data="1"`, "truncated "}},
	{"cut after a comment in a frame", "event: a\n: ping\n", []string{`comment "ping"`, "truncated a"}},
	// A line over the limit (here 40 bytes) is a named error.
	{"longest line", "data: " + strings.Repeat("x", 34) + "\n\n", []string{`event= data="` + strings.Repeat("x", 34) + `"`, "EOF"}},
	{"longest line, CRLF", "data: " + strings.Repeat("x", 34) + "\r\n\r\n", []string{`event= data="` + strings.Repeat("x", 34) + `"`, "EOF"}},
	{"line too long", "data: 1\n\ndata: " + strings.Repeat("x", 35) + "\n\n", []string{`event= data="1"`, "line over 40"}},
	{"line too long without end", ":" + strings.Repeat("x", 100), []string{"line over 40"}},
	{"frame too long", strings.Repeat("data: 0123456789\n", 20) + "\n", []string{"frame over 200"}},
	{"longest frame", strings.Repeat("data: 0123456789\n", 18) + "\n", []string{"event= data=" + fmt.Sprintf("%q", strings.Repeat("0123456789\n", 17)+"0123456789"), "EOF"}},
}

var testLimits = Options{MaxLine: 40, MaxFrame: 200}

// fragmented are the ways a stream may come in pieces.
var fragmented = []struct {
	name string
	cut  func(io.Reader) io.Reader
}{
	{"whole", func(r io.Reader) io.Reader { return r }},
	{"bytes", iotest.OneByteReader},
	{"halves", iotest.HalfReader},
	{"error with data", iotest.DataErrReader},
	{"bytes, error with data", func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) }},
}

// M2.4
func TestReader(t *testing.T) {
	t.Parallel()
	for _, s := range streams {
		for _, f := range fragmented {
			got := result(f.cut(strings.NewReader(s.in)), testLimits)
			if diff := cmp.Diff(s.want, got); diff != "" {
				t.Errorf("%s, in %s (-want +got):\n%s", s.name, f.name, diff)
			}
		}
	}
}

// M2.4: lines up to 32 MiB work; the next byte is a named error.
func TestReaderDefaultLimit(t *testing.T) {
	t.Parallel()
	const most = 32<<20 - len("data: ")
	body := bytes.Repeat([]byte("x"), most+1)
	r := NewReader(io.MultiReader(strings.NewReader("data: "), bytes.NewReader(body[:most]), strings.NewReader("\n\n")), Options{})
	f, err := r.Next()
	if err != nil || len(f.Data) != most {
		t.Fatalf("longest line: %d bytes, %v", len(f.Data), err)
	}
	r = NewReader(io.MultiReader(strings.NewReader("data: "), bytes.NewReader(body), strings.NewReader("\n\n")), Options{})
	var long *LineTooLongError
	if _, err := r.Next(); !errors.As(err, &long) || long.Limit != 32<<20 {
		t.Fatalf("one byte more: %v", err)
	}
}

// M2.1: a broken read is passed through, and is not the end of the stream.
func TestReaderReadError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, in := range []string{"", "data: 1\n\n", "data: 1\n\ndata: 2"} {
		r := NewReader(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken)), Options{})
		var err error
		for err == nil {
			_, err = r.Next()
		}
		var truncated *TruncatedFrameError
		if !errors.Is(err, broken) || errors.As(err, &truncated) {
			t.Errorf("after %q: %v", in, err)
		}
	}
}

// withError gives its bytes and its error in one read, once.
type withError struct {
	data string
	err  error
}

func (r *withError) Read(p []byte) (int, error) {
	n, err := copy(p, r.data), r.err
	r.data, r.err = "", io.EOF
	return n, err
}

func TestReaderErrorBesideData(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	got := result(&withError{"data: 1\n\n", broken}, Options{})
	if diff := cmp.Diff([]string{`event= data="1"`, "error: read event stream: broken"}, got); diff != "" {
		t.Error(diff)
	}
}

type emptyReads struct{}

func (emptyReads) Read([]byte) (int, error) { return 0, nil }

func TestReaderNoProgress(t *testing.T) {
	t.Parallel()
	if _, err := NewReader(emptyReads{}, Options{}).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Fatal(err)
	}
}

func TestTruncatedIsUnexpectedEOF(t *testing.T) {
	t.Parallel()
	_, err := NewReader(strings.NewReader("data: x"), Options{}).Next()
	if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}

// A frame must be delivered when its end is there, not when more comes: the
// writer blocks until its byte is taken, and never writes past the frame.
func TestReaderDoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"data: 1\n\n", "data: 1\r\r", "data: 1\r\n\r\n", ": ping\r"} {
		pr, pw := io.Pipe()
		go func() { _, _ = pw.Write([]byte(in)) }()
		if _, err := NewReader(pr, Options{}).Next(); err != nil {
			t.Errorf("%q: %v", in, err)
		}
		_ = pr.Close()
	}
}

// A large frame must not leave a large buffer with a quiet stream.
func TestReaderGivesUpLargeBuffer(t *testing.T) {
	t.Parallel()
	big := "data: " + strings.Repeat("x", 1<<20) + "\n\n"
	r := NewReader(io.MultiReader(strings.NewReader(big), iotest.OneByteReader(strings.NewReader(": ping\n"))), Options{})
	if f, err := r.Next(); err != nil || len(f.Data) != 1<<20 {
		t.Fatalf("%d bytes, %v", len(f.Data), err)
	}
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if cap(r.buf) > keepSize {
		t.Fatalf("buffer of %d bytes kept", cap(r.buf))
	}
}

func TestReaderRetry(t *testing.T) {
	t.Parallel()
	f, err := NewReader(strings.NewReader("retry: 1500\n\n"), Options{}).Next()
	if err != nil || f.Retry != 1500*time.Millisecond {
		t.Fatalf("%v, %v", f.Retry, err)
	}
}

// FuzzReader: no input panics or loops, and the result does not depend on how
// the stream comes in pieces.
func FuzzReader(f *testing.F) {
	for _, s := range streams {
		f.Add([]byte(s.in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want := result(bytes.NewReader(in), testLimits)
		if len(want) > len(in)+1 {
			t.Fatalf("%d frames from %d bytes", len(want)-1, len(in))
		}
		for _, f := range fragmented {
			if diff := cmp.Diff(want, result(f.cut(bytes.NewReader(in)), testLimits)); diff != "" {
				t.Errorf("in %s (-whole +pieces):\n%s", f.name, diff)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	delta := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_0123456789\",\"output_index\":0,\"content_index\":0,\"delta\":\" token\",\"sequence_number\":17}\n\n"
	for _, c := range []struct{ name, frame string }{
		{"delta", delta},
		{"lines", "event: a\n" + strings.Repeat("data: 0123456789012345678901234567890123456789\n", 8) + "\n"},
		{"64KiB", "data: " + strings.Repeat("x", 64<<10) + "\n\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.frame)))
			b.ReportAllocs()
			r := NewReader(&repeated{frame: c.frame}, Options{})
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// repeated is an endless stream of one frame.
type repeated struct {
	frame string
	at    int
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		c := copy(p[n:], r.frame[r.at:])
		n += c
		r.at = (r.at + c) % len(r.frame)
	}
	return n, nil
}
