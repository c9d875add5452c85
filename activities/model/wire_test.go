package model_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/contract"
)

// M2.1, M2.9, M2.10: a stream without its terminal event is interrupted, however
// it ends; what was seen of it is kept.
func TestStreamWithoutItsEnd(t *testing.T) {
	t.Parallel()
	begun := created + deltaOne
	for name, tc := range map[string]struct {
		body, phase, text string
		chunked           bool
	}{
		"closed in order":             {begun, "body", "one ", false},
		"ended chunks":                {begun, "body", "one ", true},
		"inside a frame":              {begun + deltaTwo[:20], "body", "one ", false},
		"inside the terminal event":   {begun + deltaTwo + completed[:len(completed)-40], "body", "one two", false},
		"terminal event without end":  {begun + deltaTwo + strings.TrimRight(completed, "\n"), "body", "one two", false},
		"DONE only":                   {begun + "data: [DONE]\n\n", "body", "one ", false},
		"pings only":                  {": ping\n\n: ping\n\n", "first_event", "", false},
		"inside the first field name": {"dat", "first_event", "", false},
		"inside the first frame":      {created[:30], "first_event", "", false},
		"nothing":                     {"", "first_event", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := streamHead + tc.body
			if tc.chunked {
				text = chunkedHead + chunk(tc.body) + "0\r\n\r\n"
			}
			s := say(t, text)
			r := attempt(t, activities(t, provider(s)), request())
			f := r.fails(t, "stream_interrupted", tc.phase)
			if r.Text != tc.text || f.Status != 200 || s.requests.Load() != 1 {
				t.Errorf("text %q, status %d, %d requests, want %q, 200 and 1", r.Text, f.Status, s.requests.Load(), tc.text)
			}
			if tc.text != "" && (r.ResponseID != "resp_1" || r.Served != "gpt-x-1") {
				t.Errorf("response %q of %q, want resp_1 of gpt-x-1", r.ResponseID, r.Served)
			}
		})
	}
}

// M2.1: a reset is an interruption too.
func TestStreamReset(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	s := serve(t, func(s *server, c net.Conn) {
		if s.read(bufio.NewReader(c)) == nil {
			return
		}
		_, _ = io.WriteString(c, streamHead+created+deltaOne)
		<-read
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	p := provider(s)
	p.Dialect = told{p.Dialect, func(e model.Event) {
		if e.Text != "" {
			close(read)
		}
	}}
	r := attempt(t, activities(t, p), request())
	r.fails(t, "stream_interrupted", "body")
	if r.Text != "one " || r.ResponseID != "resp_1" {
		t.Errorf("kept %q of %q, want what had come", r.Text, r.ResponseID)
	}
}

// M2.4: what a body is decides, not what it is called; lines may end as they
// like.
func TestFraming(t *testing.T) {
	t.Parallel()
	multi := strings.Replace(answered, `"delta":"two"}`, "\ndata: \"delta\":\ndata: \"two\"}", 1)
	for name, text := range map[string]string{
		"LF":                         streamHead + answered,
		"CRLF":                       streamHead + strings.ReplaceAll(answered, "\n", "\r\n"),
		"CR":                         streamHead + strings.ReplaceAll(answered, "\n", "\r"),
		"comments":                   streamHead + ": a\n\n" + strings.ReplaceAll(answered, "\n\n", "\n: inside\n\n: between\n\n"),
		"byte order mark":            streamHead + "\xEF\xBB\xBF" + answered,
		"data of several lines":      streamHead + multi,
		"event names, ids and retry": streamHead + "retry: 5\nid: 1\n\n" + strings.ReplaceAll(answered, "data: ", "id: 7\nevent: message\ndata:"),
		"pings by event":             streamHead + "event: ping\n\n" + "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n" + answered,
		"unknown events":             streamHead + "data: {\"type\":\"response.new_thing\",\"code\":7,\"message\":{}}\n\n" + answered,
		"error member of null":       streamHead + strings.ReplaceAll(answered, "{\"type\"", "{\"error\":null,\"type\""),
		"chunked, split anywhere":    chunkedHead + chunks(answered, 7) + "0\r\n\r\n",
		"stream called JSON":         jsonHead + answered,
		"JSON called a stream":       streamHead + document,
		"JSON":                       jsonHead + document,
		"JSON with a mark and space": jsonHead + "\xEF\xBB\xBF\n  " + document + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, streaming := range []bool{true, false} {
				s := say(t, text)
				req := request()
				req.Streaming = streaming
				r := attempt(t, activities(t, provider(s)), req)
				if r.err != nil {
					t.Fatalf("streaming %v: %v", streaming, r.err)
				}
				want := contract.Usage{InputTokens: 3, OutputTokens: 2, CachedTokens: 1, ReasoningTokens: 1}
				if r.Text != "one two" || r.Served != "gpt-x-1" || r.ResponseID != "resp_1" || r.Usage != want || r.Finish != "completed" {
					t.Errorf("streaming %v: %+v", streaming, r.Answer)
				}
			}
		})
	}
}

func chunks(s string, size int) string {
	var b strings.Builder
	for from := 0; from < len(s); from += size {
		b.WriteString(chunk(s[from:min(from+size, len(s))]))
	}
	return b.String()
}

// M2.4: a line of more than 32 MiB is a named error, not an empty success; one
// that is not longer is read.
func TestLongLines(t *testing.T) {
	for _, tc := range []struct {
		name, text, want string
	}{
		{"stream", streamHead + "data: " + strings.Repeat("x", 32<<20) + "\n\n" + completed, "line of more than 33554432 bytes"},
		{"document", jsonHead + `{"x":"` + strings.Repeat("x", 32<<20) + `"}`, "larger than 32 MiB"},
	} {
		f := attempt(t, activities(t, provider(say(t, tc.text))), request()).fails(t, "malformed_stream", phaseOf(tc.name))
		if !strings.Contains(f.Message, tc.want) {
			t.Errorf("%s: %q, want it to say %q", tc.name, f.Message, tc.want)
		}
	}
	long := strings.Repeat("x", 1<<20)
	r := attempt(t, activities(t, provider(say(t, streamHead+strings.ReplaceAll(answered, "one two", long)))), request())
	if r.err != nil || r.Text != long {
		t.Errorf("a line of 1 MiB: %v, %d bytes of text", r.err, len(r.Text))
	}
}

func phaseOf(kind string) string {
	if kind == "stream" {
		return "first_event"
	}
	return "body"
}

// M2.5: a malformed frame is malformed_stream, faults elsewhere are format.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, reason, phase string }{
		"frame":                 {streamHead + created + deltaOne + "data: {\"type\":\n\n" + completed, "malformed_stream", "body"},
		"frame of another kind": {streamHead + created + "data: 17\n\n", "malformed_stream", "body"},
		"first frame":           {streamHead + "data: {{\n\n" + completed, "malformed_stream", "first_event"},
		"no response in it":     {streamHead + created + "data: {\"type\":\"response.completed\"}\n\n", "malformed_stream", "body"},
		"page":                  {streamHead + "<html>welcome to the hotel</html>", "malformed_stream", "first_event"},
		"document":              {jsonHead + `{"id":"resp_1",]}`, "format", "body"},
		"another document":      {jsonHead + `{"id":"c","choices":[]}`, "format", "body"},
		"empty document":        {jsonHead + `{}`, "format", "body"},
		"array":                 {jsonHead + `[1]`, "format", "body"},
		"two documents":         {jsonHead + document + document, "format", "body"},
		"truncated document":    {jsonHead + document[:200], "stream_interrupted", "body"},
		"document not finished": {jsonHead + `{"id":"resp_1","status":"in_progress","output":[]}`, "stream_interrupted", "body"},
		"cancelled document":    {jsonHead + `{"id":"resp_1","status":"cancelled","output":[]}`, "stream_interrupted", "body"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := attempt(t, activities(t, provider(say(t, tc.text))), request()).fails(t, tc.reason, tc.phase)
			if strings.Contains(f.Message, "hotel") || strings.Contains(f.Message, "{") {
				t.Errorf("the message holds the raw answer: %q", f.Message)
			}
		})
	}
}

// M2.2, M2.3: each limit is found within itself and one look, is named with its
// phase, and closes the socket.
func TestLimits(t *testing.T) {
	t.Parallel()
	const limit = 300 * time.Millisecond
	for name, tc := range map[string]struct {
		limits       model.Limits
		text         string
		phase, waits string
		whole        bool
	}{
		"headers":                   {model.Limits{Headers: limit}, "", "headers", "response headers", false},
		"headers, half of them":     {model.Limits{Headers: limit}, streamHead[:30], "headers", "response headers", false},
		"headers, not streaming":    {model.Limits{HeadersNoStream: limit}, "", "headers", "response headers", true},
		"first event":               {model.Limits{FirstEvent: limit}, streamHead, "first_event", "first event", false},
		"first event, pinged":       {model.Limits{FirstEvent: limit}, streamHead + ": ping\n\n", "first_event", "first event", false},
		"first event, ping event":   {model.Limits{FirstEvent: limit}, streamHead + "event: ping\n\n", "first_event", "first event", false},
		"first event, half a frame": {model.Limits{FirstEvent: limit}, streamHead + created[:20], "first_event", "first event", false},
		"silence":                   {model.Limits{Silence: limit}, streamHead + created + deltaOne, "body", "byte", false},
		"silence, pings never came": {model.Limits{Silence: limit, SilenceWithPings: time.Millisecond}, streamHead + created, "body", "byte", false},
		"silence after a ping":      {model.Limits{SilenceWithPings: limit}, streamHead + ": ping\n\n" + created, "body", "byte", false},
		"silence after ping, early": {model.Limits{SilenceWithPings: limit}, streamHead + ": ping\n\n", "first_event", "byte", false},
		"silence, not streaming":    {model.Limits{Silence: limit}, jsonHead + document[:100], "body", "byte", true},
		"progress":                  {model.Limits{Progress: limit}, streamHead + created + deltaOne, "body", "content", false},
		"progress, none at all":     {model.Limits{Progress: limit}, streamHead + created, "body", "content", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, gone := hang(t, tc.text)
			p := provider(s)
			p.Limits = tc.limits
			req := request()
			req.Streaming = !tc.whole
			f := attempt(t, activities(t, p), req).fails(t, "timeout", tc.phase)
			if f.Rule != "M2.3/"+model.WatchdogLabel || !strings.Contains(f.Message, "no "+tc.waits+" within 300ms") || !f.RetrySame {
				t.Errorf("rule %q, message %q, repeat %v", f.Rule, f.Message, f.RetrySame)
			}
			await(t, gone, "the end of the connection")
		})
	}
}
