package simulator_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/holdfast-dev/holdfast/simulator"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board is a platform with one operation: each POST pins its body to a board.
type board struct {
	mu    sync.Mutex
	notes []string
}

func (b *board) Identify(r *http.Request, body []byte) simulator.Identity {
	id := simulator.Identity{Op: "pin", Path: r.URL.Path, Credential: r.Header.Get("Authorization")}
	if r.Method == http.MethodGet {
		id.Op = "stream"
	}
	id.Key, _, _ = strings.Cut(string(body), " ")
	return id
}

func (b *board) Serve(c *simulator.Call) simulator.Answer {
	if c.Op == "stream" {
		a := simulator.Answer{Status: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Vars: map[string]string{"id": "s1"}}
		for i := range 10 {
			a.Frames = append(a.Frames, fmt.Appendf(nil, "data: %d\n\n", i))
		}
		return a
	}
	b.mu.Lock()
	b.notes = append(b.notes, string(c.Body))
	id := fmt.Sprint(len(b.notes))
	b.mu.Unlock()
	c.Effect("note", id, string(c.Body))
	return simulator.Answer{Status: 201, Body: []byte("pinned as number " + id)}
}

func start(t *testing.T) *simulator.Server {
	t.Helper()
	s, err := simulator.Start(&board{}, simulator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// deadline bounds a wait that a fault in the code under test would make endless.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// result is what a client sees of a request.
type result struct {
	Status int
	Body   string
	Err    string
}

func post(t *testing.T, c *http.Client, s *simulator.Server, body string) result {
	t.Helper()
	req, err := http.NewRequest("POST", s.URL()+"/pins", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil // net/http would repeat the request by itself
	return do(c, req)
}

func do(c *http.Client, req *http.Request) result {
	resp, err := c.Do(req)
	if err != nil {
		return result{Err: kindOf(err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return result{Status: resp.StatusCode, Body: string(body), Err: kindOf(err)}
}

func kindOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "reset"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "unexpected EOF"
	case errors.Is(err, io.EOF):
		return "EOF"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return err.Error()
}

// Q1: each fault is what the client sees on the wire, and the ledger says whether
// the effect happened and what was sent.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		step    simulator.Step
		want    result
		effects int
		outcome simulator.Outcome
		unread  bool
	}{
		{"pass", simulator.Pass(), result{Status: 201, Body: "pinned as number 1"}, 1, simulator.Answered, false},
		{"status", simulator.Status(503, "no"), result{Status: 503, Body: "no"}, 0, simulator.Answered, false},
		{"page", simulator.HTML(502, "<h1>Bad</h1>"), result{Status: 502, Body: "<h1>Bad</h1>"}, 0, simulator.Answered, false},
		{"effect, then an error", simulator.Status(500, "oops").WithEffect(simulator.EffectOnce), result{Status: 500, Body: "oops"}, 1, simulator.Answered, false},
		{"effect, then reset", simulator.EffectThenReset(), result{Err: "reset"}, 1, simulator.NoAnswer, false},
		{"effect, then close", simulator.EffectThenClose(), result{Err: "EOF"}, 1, simulator.NoAnswer, false},
		{"reset", simulator.Reset(), result{Err: "reset"}, 0, simulator.NoAnswer, false},
		{"close", simulator.Close(), result{Err: "EOF"}, 0, simulator.NoAnswer, false},
		{"reset unread", simulator.ResetUnread(), result{Err: "reset"}, 0, simulator.NoAnswer, true},
		{"close unread", simulator.CloseUnread(), result{Err: "EOF"}, 0, simulator.NoAnswer, true},
		{"cut", simulator.CutBytes(6), result{Status: 201, Body: "pinned", Err: "unexpected EOF"}, 1, simulator.CutShort, false},
		{"cut at half", simulator.CutFraction(0.5), result{Status: 201, Body: "pinned as", Err: "unexpected EOF"}, 1, simulator.CutShort, false},
		{"cut, chunked", func() simulator.Step { s := simulator.CutBytes(6); s.Chunked = true; return s }(), result{Status: 201, Body: "pinned", Err: "unexpected EOF"}, 1, simulator.CutShort, false},
		{"twice", simulator.Twice(), result{Status: 201, Body: "pinned as number 2"}, 2, simulator.Answered, false},
		{"delays", simulator.DelayBefore(time.Millisecond), result{Status: 201, Body: "pinned as number 1"}, 1, simulator.Answered, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Script(tt.step)
			if diff := cmp.Diff(tt.want, post(t, client(t), s, "a b")); diff != "" {
				t.Errorf("the client saw (-want +got):\n%s", diff)
			}
			if err := s.Ledger().WaitIdle(deadline(t)); err != nil {
				t.Fatal(err)
			}
			if got := len(s.Ledger().Effects("note")); got != tt.effects {
				t.Errorf("%d effects, want %d", got, tt.effects)
			}
			r := s.Ledger().Requests("pin")[0]
			if r.Outcome != tt.outcome || r.Status != tt.want.Status || r.BodyRead == tt.unread || r.Step != tt.step.Note {
				t.Errorf("ledger: %+v", r)
			}
			if left := s.Remaining(); len(left) != 0 {
				t.Errorf("steps not taken: %v", left)
			}
		})
	}
}

// Q1: steps are taken in order by the requests they match.
func TestScriptOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Script(
		simulator.Pass().On("pin"),
		simulator.Status(429, "").On("pin").Times(2),
		simulator.Status(500, "").On("POST /p*").ForKey("b"),
		simulator.Status(404, "").On("other"),
	)
	c := client(t)
	var got []int
	for _, body := range []string{"a", "a", "b", "a", "b", "b"} {
		got = append(got, post(t, c, s, body).Status)
	}
	if diff := cmp.Diff([]int{201, 429, 429, 201, 500, 201}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	if left := s.Remaining(); len(left) != 1 || left[0].Match != "other" {
		t.Errorf("remaining %v, want the step for the other operation", left)
	}
}

// Q1: a stream is cut, stalled and spliced by events.
func TestStreams(t *testing.T) {
	t.Parallel()
	frames := func(n int) (s string) {
		for i := range n {
			s += fmt.Sprintf("data: %d\n\n", i)
		}
		return s
	}
	tests := []struct {
		name string
		step simulator.Step
		want result
	}{
		{"whole", simulator.Pass(), result{200, frames(10), ""}},
		{"events", simulator.CutEvents(3), result{200, frames(3), "unexpected EOF"}},
		{"fraction", simulator.CutFraction(0.4), result{200, frames(4), "unexpected EOF"}},
		{"inside a frame", simulator.CutBytes(12), result{200, "data: 0\n\ndat", "unexpected EOF"}},
		{"more than there is", simulator.CutEvents(99), result{200, frames(10), "unexpected EOF"}},
		{"spliced", simulator.SpliceFrame(1, ": {{id}} {{seq}}\n\n"), result{200, "data: 0\n\n: s1 1\n\n" + frames(10)[len("data: 0\n\n"):], ""}},
		{"spliced, last", simulator.Step{Splice: &simulator.Splice{After: 2, Frame: "x\n\n", Last: true}}, result{200, frames(2) + "x\n\n", ""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Script(tt.step)
			req, _ := http.NewRequest("GET", s.URL()+"/stream", nil)
			if diff := cmp.Diff(tt.want, do(client(t), req)); diff != "" {
				t.Errorf("the client saw (-want +got):\n%s", diff)
			}
		})
	}
}

// Q1: in a stall the connection stays open in silence, and the ledger sees the
// client leave.
func TestStall(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		step   simulator.Step
		status int
		body   string
	}{
		{"nothing", simulator.Stall(), 0, ""},
		{"headers", simulator.StallHeaders(), 200, ""},
		{"events", simulator.StallEvents(2), 200, "data: 0\n\ndata: 1\n\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Script(tt.step)
			c, err := net.Dial("tcp", s.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
			if err := s.Ledger().WaitIdle(deadline(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Ledger().WaitRequests(deadline(t), "stream", 1); err != nil {
				t.Fatal(err)
			}
			if tt.status != 0 {
				resp, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]byte, len(tt.body))
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != tt.body {
					t.Errorf("body %q, %v", got, err)
				}
			}
			c.Close()
			if _, err := s.Ledger().WaitGone(deadline(t), 1); err != nil {
				t.Errorf("the ledger did not see the client leave: %v", err)
			}
		})
	}
}

// Q1: a bounded stall ends with FIN; a half-open connection ends with the server.
func TestStallEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	bounded := simulator.Stall()
	bounded.StallFor = simulator.Duration(time.Millisecond)
	s.Script(bounded, simulator.HalfOpen())
	if got := post(t, client(t), s, "a"); got.Err != "EOF" {
		t.Errorf("a bounded stall ended with %+v", got)
	}
	done := make(chan result, 1)
	go func() { done <- post(t, client(t), s, "b") }()
	if _, err := s.Ledger().WaitRequests(deadline(t), "pin", 2); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-done:
		t.Fatalf("a half-open connection gave %+v", got)
	default:
	}
	s.Close()
	if got := <-done; got.Err == "" {
		t.Errorf("a half-open connection gave %+v at the end", got)
	}
	if effects := s.Ledger().Effects(""); len(effects) != 1 {
		t.Errorf("effects %v, want the stalled one alone", effects)
	}
}

// Q1: a gate holds a request before or after its effect.
func TestGate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		step    simulator.Step
		effects int
	}{
		{"before", simulator.HoldBefore("g"), 0},
		{"after", simulator.HoldAfter("g"), 1},
	} {
		t.Run(tt.name+", released", func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Script(tt.step)
			done := make(chan result, 1)
			go func() { done <- post(t, client(t), s, "a") }()
			n, err := s.Gate("g").WaitHeld(deadline(t))
			if err != nil || n != 1 {
				t.Fatalf("held request %d, %v", n, err)
			}
			if got := len(s.Ledger().Effects("note")); got != tt.effects {
				t.Errorf("%d effects while held, want %d", got, tt.effects)
			}
			s.Gate("g").Release()
			if got := <-done; got.Status != 201 {
				t.Errorf("after the release: %+v", got)
			}
			if held := s.Gate("g").Held(); len(held) != 0 {
				t.Errorf("still held: %v", held)
			}
		})
		t.Run(tt.name+", client killed", func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Script(tt.step)
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan result, 1)
			go func() {
				req, _ := http.NewRequestWithContext(ctx, "POST", s.URL()+"/pins", strings.NewReader("a"))
				done <- do(client(t), req)
			}()
			if _, err := s.Gate("g").WaitHeld(deadline(t)); err != nil {
				t.Fatal(err)
			}
			cancel()
			<-done
			if _, err := s.Ledger().WaitGone(deadline(t), 1); err != nil {
				t.Fatal(err)
			}
			if err := s.Ledger().WaitIdle(deadline(t)); err != nil {
				t.Fatal(err)
			}
			if got := len(s.Ledger().Effects("note")); got != tt.effects {
				t.Errorf("%d effects, want %d", got, tt.effects)
			}
			if r, _ := s.Ledger().Request(1); r.Outcome != simulator.Left {
				t.Errorf("outcome %q", r.Outcome)
			}
		})
	}
}

// Q1: refused means refused: no connection is made, and the port comes back on the
// same address.
func TestRefuse(t *testing.T) {
	t.Parallel()
	s := start(t)
	pooled := client(t)
	if got := post(t, pooled, s, "a"); got.Status != 201 {
		t.Fatalf("before: %+v", got)
	}
	release, err := s.Refuse()
	if err != nil {
		t.Fatal(err)
	}
	again, err := s.Refuse()
	if err != nil {
		t.Fatal(err)
	}
	gotConn := false
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { gotConn = true }})
	req, _ := http.NewRequestWithContext(ctx, "POST", s.URL()+"/pins", strings.NewReader("b"))
	if got := do(client(t), req); got.Err != "refused" || gotConn {
		t.Errorf("while refusing: %+v, connection %v", got, gotConn)
	}
	release()
	release() // a second call does nothing
	if got := post(t, client(t), s, "c"); got.Err != "refused" {
		t.Errorf("one of two releases: %+v", got)
	}
	again()
	if got := post(t, client(t), s, "d"); got.Status != 201 {
		t.Errorf("after: %+v", got)
	}
	if got := len(s.Ledger().Requests("")); got != 2 {
		t.Errorf("%d requests arrived, want 2", got)
	}
}

// Q1: the next n dials are refused, counted where they are made.
func TestRefuseDials(t *testing.T) {
	t.Parallel()
	s := start(t)
	dial, err := s.RefuseDials(2)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: dial}
	t.Cleanup(tr.CloseIdleConnections)
	c := &http.Client{Transport: tr}
	var got []string
	for range 3 {
		r := post(t, c, s, "a")
		got = append(got, fmt.Sprint(r.Status, r.Err))
	}
	if diff := cmp.Diff([]string{"0refused", "0refused", "201"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Q1: a step can make the port refuse for a time after its request.
func TestThenRefuse(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Script(simulator.EffectThenReset().ThenRefuse(time.Hour))
	if got := post(t, client(t), s, "a"); got.Err != "reset" {
		t.Fatalf("first: %+v", got)
	}
	ctx := deadline(t)
	for { // the port closes just after the reset
		if got := post(t, client(t), s, "b"); got.Err == "refused" {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the port never refused")
		}
	}
}

// Q1: connections are numbered, and their reuse is in the ledger.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := start(t)
	pooled := client(t)
	post(t, pooled, s, "a")
	post(t, pooled, s, "b")
	post(t, client(t), s, "c")
	var got [][2]int
	for _, r := range s.Ledger().Requests("pin") {
		got = append(got, [2]int{r.Conn, r.ConnRequest})
	}
	if diff := cmp.Diff([][2]int{{1, 1}, {1, 2}, {2, 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Q1: many requests at once; every one is in the ledger once.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Random(simulator.RandomScript(1,
		simulator.RandomFault{Rate: 0.2, Step: simulator.EffectThenReset()},
		simulator.RandomFault{Rate: 0.2, Step: simulator.Reset()},
		simulator.RandomFault{Rate: 0.1, Step: simulator.CutBytes(3)}))
	c := client(t)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() { post(t, c, s, fmt.Sprintf("k%d text", i)) })
	}
	wg.Wait()
	if err := s.Ledger().WaitIdle(deadline(t)); err != nil {
		t.Fatal(err)
	}
	effects := map[int]int{}
	for _, e := range s.Ledger().Effects("note") {
		effects[e.Request]++
	}
	requests := s.Ledger().Requests("pin")
	if len(requests) != 200 {
		t.Errorf("%d requests, want 200", len(requests))
	}
	for _, r := range requests {
		want := 1
		if r.Step == simulator.Reset().Note {
			want = 0
		}
		if effects[r.N] != want {
			t.Errorf("request %d (%s) had %d effects, want %d", r.N, r.Step, effects[r.N], want)
		}
	}
}
