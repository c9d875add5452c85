package starter

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/contract"
)

// maxSinkLine bounds one line of live text.
const maxSinkLine = 4 << 20

// view is the live text of a run: a sink on a loopback address that the worker
// posts to (M6), and what has been shown of it.
type view struct {
	session *session
	url     string
	path    string

	mu      sync.Mutex
	attempt string
	shown   strings.Builder
	dirty   bool // the cursor is not at the start of a line
	closed  bool
	notice  *notice // the wait that the live line counts down
}

// notice is what a run says while it waits.
type notice struct {
	Candidate string `json:"candidate"`
	Reason    string `json:"reason"`
	Attempt   int    `json:"attempt"`
	Of        int    `json:"of"`
	WaitMS    int64  `json:"wait_ms"`

	until time.Time
	drawn bool
}

func (n *notice) line(now time.Time) string {
	return fmt.Sprintf("retrying %s… %d of %d, %s, next in %.1f s",
		n.Candidate, n.Attempt, n.Of, n.Reason, max(n.until.Sub(now), 0).Seconds())
}

// line is one line of the sink.
type line struct {
	RunID     string  `json:"run_id"`
	AttemptID string  `json:"attempt_id,omitempty"`
	Seq       int     `json:"seq"`
	Type      string  `json:"type"`
	Text      string  `json:"text,omitempty"`
	Notice    *notice `json:"notice,omitempty"`
}

// listen opens the sink. Its address holds a random path, so that only who was
// told of it can post.
func (s *session) listen() (*view, func(), error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("open the sink for live text: %w", err)
	}
	v := &view{session: s, path: "/" + rand.Text()}
	v.url = "http://" + l.Addr().String() + v.path
	server := &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	done := make(chan struct{})
	go v.countDown(done)
	return v, func() { close(done); _ = server.Close() }, nil
}

// countDown keeps the line about a wait up to date on a terminal.
func (v *view) countDown(done <-chan struct{}) {
	if !v.session.Terminal || v.session.globals.JSON {
		return
	}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			v.mu.Lock()
			if v.notice != nil && !v.closed {
				fmt.Fprint(v.session.Err, clearLine, clean(v.notice.line(now)))
				v.notice.drawn = true
			}
			v.mu.Unlock()
		}
	}
}

// forget takes the notice away: what it waited for has come (M3.12).
func (v *view) forget() {
	if v.notice != nil && v.notice.drawn {
		fmt.Fprint(v.session.Err, clearLine)
	}
	v.notice = nil
}

func (v *view) sink() *contract.Sink { return &contract.Sink{Kind: "http", URL: v.url} }

// ServeHTTP takes one attempt's lines, or one notice.
func (v *view) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != v.path {
		http.NotFound(w, r)
		return
	}
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, maxSinkLine)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			v.take(l)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func (v *view) take(l line) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || l.Type == "heartbeat" || l.Type == "end" {
		return
	}
	if v.session.globals.JSON {
		data, _ := json.Marshal(l)
		fmt.Fprintln(v.session.Out, string(data))
		return
	}
	switch l.Type {
	case "start":
		v.forget()
		// A new attempt tells the reader to begin anew.
		if v.attempt != l.AttemptID {
			v.attempt = l.AttemptID
			v.breakLine()
			if v.shown.Len() > 0 {
				fmt.Fprintln(v.session.Err, "-- the answer broke off; a new attempt starts over --")
			}
			v.shown.Reset()
		}
	case "notice":
		v.breakLine()
		v.note(l)
	case "text":
		text := clean(l.Text)
		fmt.Fprint(v.session.Out, text)
		v.shown.WriteString(l.Text)
		if text != "" {
			v.dirty = !strings.HasSuffix(text, "\n")
		}
	}
}

// note shows that the run waits: on a terminal as a line that counts down and
// goes away, elsewhere as a line that stays.
func (v *view) note(l line) {
	if !v.session.Terminal || l.Notice == nil {
		printf(v.session.Err, "%s\n", l.Text)
		return
	}
	v.notice = l.Notice
	v.notice.until = time.Now().Add(time.Duration(l.Notice.WaitMS) * time.Millisecond)
}

func (v *view) breakLine() {
	if v.dirty {
		fmt.Fprintln(v.session.Out)
		v.dirty = false
	}
}

// close stops the view; what comes later is not shown.
func (v *view) close() {
	if v == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.forget()
	v.closed = true
}

func (v *view) newline() {
	if v != nil {
		v.breakLine()
	}
}

// rest is what of the final text has not been shown. The result is the truth:
// where the live text differs from it, all of it is shown again.
func (v *view) rest(text string) string {
	if v == nil {
		return text
	}
	if rest, ok := strings.CutPrefix(text, v.shown.String()); ok {
		return rest
	}
	v.breakLine()
	return text
}
