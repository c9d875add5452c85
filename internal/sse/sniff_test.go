package sse

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// M2.4: an event stream labelled JSON and a JSON body that answers a stream
// request are known by what they are.
func TestSniff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want Kind
	}{
		{"", KindOther},
		{"   \n", KindOther},
		{`{"a":1}`, KindJSON},
		{" \r\n\t[1]", KindJSON},
		{"\xEF\xBB\xBF{}", KindJSON},
		{"data: x\n\n", KindSSE},
		{"data\n\n", KindSSE},
		{"event:x", KindSSE},
		{"id: 1\r\n", KindSSE},
		{"retry: 1\n", KindSSE},
		{"\r\n\ndata:x", KindSSE},
		{"\xEF\xBB\xBFdata:x", KindSSE},
		{": ping\n", KindSSE},
		{":", KindSSE},
		{" data: x", KindOther},
		{"database is locked", KindOther},
		{"data", KindOther},
		{"eve", KindOther},
		{"<html>", KindOther},
		{"Internal Server Error", KindOther},
		{"\xEF\xBB", KindOther},
		{"\xEFdata: x", KindOther},
		{strings.Repeat("\n", 5000) + "{}", KindOther},
	} {
		for _, f := range fragmented {
			kind, r, err := Sniff(f.cut(strings.NewReader(c.in)))
			if kind != c.want || err != nil {
				t.Errorf("%.20q in %s: %v, %v; want %v", c.in, f.name, kind, err, c.want)
			}
			if whole, err := io.ReadAll(r); string(whole) != c.in || err != nil {
				t.Errorf("%.20q in %s: then read %.20q, %v", c.in, f.name, whole, err)
			}
		}
	}
}

func TestSniffBroken(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	kind, r, err := Sniff(io.MultiReader(strings.NewReader("\nda"), iotest.ErrReader(broken)))
	if kind != KindOther || !errors.Is(err, broken) {
		t.Errorf("%v, %v", kind, err)
	}
	if got, err := io.ReadAll(r); string(got) != "\nda" || !errors.Is(err, broken) {
		t.Errorf("then read %q, %v", got, err)
	}
}

// A stream must not wait for its second event to be known.
func TestSniffDoesNotWaitForMore(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Kind{"{": KindJSON, ":": KindSSE, "data:": KindSSE, "<": KindOther} {
		pr, pw := io.Pipe()
		go func() { _, _ = pw.Write([]byte(in)) }()
		if kind, _, err := Sniff(pr); kind != want || err != nil {
			t.Errorf("%q: %v, %v", in, kind, err)
		}
		_ = pr.Close()
	}
}
