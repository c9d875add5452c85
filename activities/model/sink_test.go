package model_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/contract"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// reader takes the lines of sinks.
type reader struct {
	*httptest.Server
	mu    sync.Mutex
	lines []model.SinkLine
	posts int
	ended chan struct{} // one for each post that ended
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{ended: make(chan struct{}, 64)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *reader) take(_ http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.posts++
	r.mu.Unlock()
	d := json.NewDecoder(req.Body)
	for {
		var line model.SinkLine
		if d.Decode(&line) != nil {
			r.ended <- struct{}{}
			return
		}
		r.mu.Lock()
		r.lines = append(r.lines, line)
		r.mu.Unlock()
	}
}

func allow(c *model.Config) { c.SinkAllowed = func(string) bool { return true } }

func withSink(kind, url string) transcript.Request {
	req := request()
	req.Sink = &contract.Sink{Kind: kind, URL: url}
	return req
}

// M2.12, M6: one post per attempt, its lines numbered in order and marked with
// run and attempt, failed attempts too.
func TestSinkLines(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	cut := strings.TrimSuffix(answered, completed)
	for i, text := range []string{answered, cut} {
		a := activities(t, provider(say(t, streamHead+text)), allow)
		req := withSink("http", r.URL)
		req.AttemptID = fmt.Sprintf("run/r/%d", i+1)
		attempt(t, a, req)
		<-r.ended
	}
	var got []string
	for _, l := range r.lines {
		got = append(got, fmt.Sprintf("%s %s %d %s %q", l.RunID, l.AttemptID, l.Seq, l.Type, l.Text))
	}
	want := `run/r run/r/1 1 start "", run/r run/r/1 2 text "one ", run/r run/r/1 3 text "two", run/r run/r/1 4 end "", ` +
		`run/r run/r/2 1 start "", run/r run/r/2 2 text "one ", run/r run/r/2 3 text "two", run/r run/r/2 4 end ""`
	if strings.Join(got, ", ") != want || r.posts != 2 {
		t.Errorf("%d posts:\n%s\nwant\n%s", r.posts, strings.Join(got, ", "), want)
	}
}

// M2.12: a reader that is slow, gone or broken neither fails nor delays the
// attempt: these are let go on only after it has ended.
func TestBadSinkReaders(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("<", 1<<18) // six times as much in a line
	text := created + strings.Repeat(strings.Replace(deltaOne, "one ", big, 1), 4) + completed
	for name, handle := range map[string]func(over <-chan struct{}, w http.ResponseWriter, r *http.Request){
		"never reads": func(over <-chan struct{}, _ http.ResponseWriter, _ *http.Request) { <-over },
		"reads late": func(over <-chan struct{}, _ http.ResponseWriter, r *http.Request) {
			<-over
			_, _ = io.Copy(io.Discard, r.Body)
		},
		"answers early": func(over <-chan struct{}, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"hangs up":      func(<-chan struct{}, http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirects": func(over <-chan struct{}, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("a redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handle(over, w, r) }))
			t.Cleanup(s.Close)
			a := activities(t, provider(say(t, streamHead+text)), allow)
			r := attempt(t, a, withSink("http", s.URL))
			close(over)
			if r.err != nil || r.Text != "one two" {
				t.Errorf("%q, %v", r.Text, r.err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		s := httptest.NewServer(http.NotFoundHandler())
		s.Close()
		a := activities(t, provider(say(t, streamHead+text)), allow)
		if r := attempt(t, a, withSink("http", s.URL)); r.err != nil || r.Text != "one two" {
			t.Errorf("%q, %v", r.Text, r.err)
		}
	})
}

// M6: only what the operator allows is posted to, and by default nothing.
func TestSinkMustBeAllowed(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	for _, set := range []func(*model.Config){
		func(*model.Config) {},
		func(c *model.Config) { c.SinkAllowed = func(url string) bool { return url == r.URL+"/allowed" } },
	} {
		a := activities(t, provider(say(t, streamHead+answered)), set)
		if got := attempt(t, a, withSink("http", r.URL+"/other")); got.err != nil {
			t.Errorf("a refused sink fails the attempt: %v", got.err)
		}
		if err := a.Notice(t.Context(), transcript.Notice{RunID: "run/r", Sink: &contract.Sink{Kind: "http", URL: r.URL + "/other"}}); err != nil {
			t.Error(err)
		}
		a.Close()
	}
	if r.posts != 0 {
		t.Errorf("%d posts, want none", r.posts)
	}
}

// M3.12: a wait is told of in one line, best effort.
func TestNotice(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	a := activities(t, provider(say(t, "")), allow)
	n := transcript.Notice{
		RunID: "run/r", Candidate: "acme/gpt-x", Reason: "rate_limit", Attempt: 2, Of: 16, WaitMS: 8000,
		Text: "retrying acme/gpt-x… 2 of 16, next in 8 s", Sink: &contract.Sink{Kind: "http", URL: r.URL},
	}
	if err := a.Notice(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	<-r.ended
	if len(r.lines) != 1 || r.lines[0].Type != "notice" || r.lines[0].Text != n.Text || r.lines[0].Notice == nil || r.lines[0].Notice.WaitMS != 8000 || r.lines[0].Notice.Sink != nil {
		t.Errorf("%+v", r.lines)
	}
	// A redirect could lead where the operator allows nothing.
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			t.Error("a redirect was followed")
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(moved.Close)
	n.Sink = &contract.Sink{Kind: "http", URL: moved.URL}
	if err := a.Notice(t.Context(), n); err != nil {
		t.Error(err)
	}
	// A reader that does not answer holds it for a second at most.
	over := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	t.Cleanup(hangs.Close)
	defer close(over)
	for _, sink := range []*contract.Sink{nil, {Kind: "none"}, {Kind: "log"}, {Kind: "http", URL: hangs.URL}} {
		n.Sink = sink
		if err := a.Notice(context.Background(), n); err != nil {
			t.Error(err)
		}
	}
}

// M6: the log sink writes the same, numbered likewise.
func TestLogSink(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := activities(t, provider(say(t, streamHead+answered)), func(c *model.Config) {
		c.Logger = slog.New(slog.NewTextHandler(&out, nil))
	})
	if r := attempt(t, a, withSink("log", "")); r.err != nil {
		t.Fatal(r.err)
	}
	for _, want := range []string{`run=run/r attempt=run/r/1 seq=2 type=text text="one "`, "seq=3 type=text text=two", "seq=4 type=end"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
