package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
)

// Kind is what a body really is.
type Kind int

// Kinds of bodies.
const (
	KindOther Kind = iota // neither, or empty
	KindSSE               // an event stream
	KindJSON              // one or more JSON objects or arrays
)

func (k Kind) String() string {
	switch k {
	case KindSSE:
		return "event stream"
	case KindJSON:
		return "JSON"
	}
	return "other"
}

// maxSniff is how much white space may come before the first word.
const maxSniff = 4 << 10

// Sniff tells what a body is by its beginning, whatever its Content-Type says
// (M2.4). The returned reader gives the whole body, what was looked at
// included. Sniff waits for no more bytes than it needs: one for JSON, a field
// name for an event stream. When the body breaks before it is clear, the error
// is that of r, wrapped; the reader still gives what had come, then the error.
func Sniff(r io.Reader) (Kind, io.Reader, error) {
	b := bufio.NewReaderSize(r, maxSniff)
	for n := 1; n <= maxSniff; n++ {
		head, err := b.Peek(n)
		if kind, sure := kindOf(head, err == io.EOF); sure {
			return kind, b, nil
		}
		if err == io.EOF {
			return KindOther, b, nil
		}
		if err != nil {
			return KindOther, b, fmt.Errorf("read body: %w", err)
		}
	}
	return KindOther, b, nil
}

// fieldNames are the fields by which an event stream is known.
var fieldNames = [][]byte{[]byte("data"), []byte("event"), []byte("id"), []byte("retry")}

// kindOf looks at a beginning; sure is false when more must be seen. complete
// says that no more will come.
func kindOf(head []byte, complete bool) (kind Kind, sure bool) {
	if len(head) < len(byteOrderMark) && bytes.HasPrefix(byteOrderMark, head) && !complete {
		return KindOther, false
	}
	head = bytes.TrimPrefix(head, byteOrderMark)
	text := bytes.TrimLeft(head, " \t\r\n")
	if len(text) == 0 {
		return KindOther, false
	}
	if text[0] == '{' || text[0] == '[' {
		return KindJSON, true
	}
	// A field or comment begins its line.
	if before := head[:len(head)-len(text)]; len(before) > 0 && before[len(before)-1] != '\n' && before[len(before)-1] != '\r' {
		return KindOther, true
	}
	if text[0] == ':' {
		return KindSSE, true
	}
	for _, name := range fieldNames {
		switch {
		case bytes.HasPrefix(name, text) && !complete:
			return KindOther, false
		case bytes.HasPrefix(text, name) && len(text) > len(name):
			if next := text[len(name)]; next == ':' || next == '\n' || next == '\r' {
				return KindSSE, true
			}
			return KindOther, true
		}
	}
	return KindOther, true
}
