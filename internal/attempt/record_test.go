package attempt

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

func TestFrom(t *testing.T) {
	t.Parallel()
	r := New()
	if From(t.Context()) != nil || From(With(t.Context(), r)) != r {
		t.Error("From does not give what With put in")
	}
}

// Without a record the transport just sends.
func TestTransportWithoutRecord(t *testing.T) {
	t.Parallel()
	s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	if err := post(t.Context(), client(t, Options{}), "http://"+s.addr); err != nil {
		t.Error(err)
	}
}

// replayServer answers its first request, resets on its second, and answers
// every later one; net/http repeats the second when it may.
func replayServer(t *testing.T, keys *atomic.Int32) *server {
	return serve(t, func(s *server, c net.Conn) {
		r := bufio.NewReader(c)
		for {
			req := s.readRequest(r)
			if req == nil {
				return
			}
			if req.Header.Get("Idempotency-Key") != "" {
				keys.Add(1)
			}
			if s.requests.Load() == 2 {
				reset(c)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		}
	})
}

// C2: a request that must not be doubled reaches the server once. The controls
// show that net/http would repeat it, and that the record would tell.
func TestFreshIsNotReplayed(t *testing.T) {
	t.Parallel()
	plain := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(plain.CloseIdleConnections)
	for _, c := range []struct {
		name    string
		client  *http.Client
		arrived int32
		counted int // by the record of the second request
		fails   bool
		keys    int32
	}{
		{"net/http alone", plain, 3, 0, false, 3},
		{"pooled", client(t, Options{}), 3, 2, false, 3},
		{"fresh", client(t, Options{Fresh: true}), 2, 1, true, 0},
	} {
		var keys atomic.Int32
		s := replayServer(t, &keys)
		if err := post(t.Context(), c.client, "http://"+s.addr); err != nil {
			t.Fatal(err)
		}
		record := New()
		err := post(With(t.Context(), record), c.client, "http://"+s.addr)
		if (err != nil) != c.fails || s.requests.Load() != c.arrived || record.Requests() != c.counted || keys.Load() != c.keys {
			t.Errorf("%s: %v; %d requests arrived, %d counted, %d keys", c.name, err, s.requests.Load(), record.Requests(), keys.Load())
		}
		if c.fails && s.conns.Load() != 2 {
			t.Errorf("%s: 2 requests over %d connections", c.name, s.conns.Load())
		}
		if c.fails && (record.NotStarted() || !record.Started()) {
			t.Errorf("%s: a lost answer is taken for not sent", c.name)
		}
	}
}

// Stripping a header must not change the caller's request.
func TestFreshLeavesTheRequestAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.addr, strings.NewReader("x"))
	req.Header.Set("X-Idempotency-Key", "k")
	resp, err := client(t, Options{Fresh: true}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if req.Header.Get("X-Idempotency-Key") != "k" || req.GetBody == nil {
		t.Error("the caller's request was changed")
	}
}

// HTTP/2 repeats requests by itself, so Fresh does not speak it.
func TestProtocols(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for fresh, want := range map[bool]string{true: "HTTP/1.1", false: "HTTP/2.0"} {
		c := client(t, Options{Fresh: fresh, RootCAs: roots})
		for range 2 {
			record := New()
			req, _ := http.NewRequestWithContext(With(t.Context(), record), http.MethodGet, s.URL, nil)
			resp, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || string(got) != want || record.Requests() != 1 || !record.Started() || record.NotStarted() {
				t.Errorf("fresh %v: %q, %v; %d requests, started %v", fresh, got, err, record.Requests(), record.Started())
			}
		}
	}
}

// The first 64 KiB of an error body are kept, as decoded.
func TestErrorBodyIsBounded(t *testing.T) {
	t.Parallel()
	whole := strings.Repeat("0123456789", policies.MaxBody/10+100)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, whole)
	_ = z.Close()
	text := fmt.Sprintf("HTTP/1.1 400 Bad Request\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String())
	s := serve(t, answer(text))
	record := New()
	resp, err := get(With(t.Context(), record), client(t, Options{Fresh: true}), "http://"+s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// One byte first, so that no piece ends at the limit.
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if body := record.ErrorBody(); string(body) != whole[:policies.MaxBody] || record.BodyBytes() != int64(len(whole)) {
		t.Errorf("kept %d bytes of %d read", len(body), record.BodyBytes())
	}
}

// A piece that crosses the limit is cut at it.
func TestErrorBodyIsCutInsideAPiece(t *testing.T) {
	t.Parallel()
	record := New()
	record.last.status = 500
	for range 2 {
		record.read(record.last, make([]byte, policies.MaxBody-1), BodyOpen, nil, time.Now())
	}
	if got := len(record.ErrorBody()); got != policies.MaxBody {
		t.Errorf("kept %d bytes", got)
	}
}

// P3: a later answer inherits nothing from an earlier one; that one was started
// stays true.
func TestSecondRequestStartsAfresh(t *testing.T) {
	t.Parallel()
	s := serve(t, answer("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"))
	record, c := New(), client(t, Options{Fresh: true})
	if err := post(With(t.Context(), record), c, "http://"+s.addr); err != nil {
		t.Fatal(err)
	}
	err := post(With(t.Context(), record), c, "http://"+deadAddress(t))
	f := record.Fault(policies.SurfaceModel, err, time.Now())
	if f.Status != 0 || f.Header != nil || f.Body != nil || f.Code != "ECONNREFUSED" || f.Phase != policies.PhaseConnect {
		t.Errorf("inherited: %+v", f)
	}
	if record.Requests() != 2 || f.NotStarted || !f.Started {
		t.Errorf("%d requests, not started %v", record.Requests(), f.NotStarted)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	var ticks atomic.Int64
	clock := func() time.Time { return time.Unix(ticks.Add(1), 0) }
	s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	record := New()
	if err := post(With(t.Context(), record), client(t, Options{Fresh: true, Now: clock}), "http://"+s.addr); err != nil {
		t.Fatal(err)
	}
	x := record.Times()
	if x.Started.IsZero() || !x.Started.Before(x.GotConn) || !x.GotConn.Before(x.Headers) || !x.Headers.Before(x.FirstByte) || x.LastByte.Before(x.FirstByte) {
		t.Errorf("out of order: %+v", x)
	}
}

// An answer that came whole has no transport code, whatever its reader says.
func TestFaultOfAWholeAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{"))
	record := New()
	if err := post(With(t.Context(), record), client(t, Options{Fresh: true}), "http://"+s.addr); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(9, 0)
	f := record.Fault(policies.SurfaceModel, fmt.Errorf("decode: %w", io.ErrUnexpectedEOF), now)
	if f.Code != "" || f.Message != "decode: unexpected EOF" || f.Surface != policies.SurfaceModel || !f.Now.Equal(now) {
		t.Errorf("%+v", f)
	}
}

// The library's error may hide the transport's; the record knows it.
func TestFaultPrefersItsOwnError(t *testing.T) {
	t.Parallel()
	s := serve(t, resetAfterRequest)
	record := New()
	if post(With(t.Context(), record), client(t, Options{Fresh: true}), "http://"+s.addr) == nil {
		t.Fatal("no error")
	}
	f := record.Fault(policies.SurfaceModel, errors.New("connection error"), time.Now())
	if f.Code != "ECONNRESET" || f.Message != "connection error" {
		t.Errorf("%+v", f)
	}
}

// P4.11: HTTP/2 GOAWAY and a stream that the server resets.
func TestHTTP2Faults(t *testing.T) {
	t.Parallel()
	ca := issueCA(t)
	config := issue(t, &ca, nil).config()
	config.NextProtos = []string{"h2"}
	for _, c := range []struct{ name, frame, code string }{
		{"GOAWAY", "\x00\x00\x0e\x07\x00\x00\x00\x00\x00" + "\x00\x00\x00\x01\x00\x00\x00\x0b" + "secret", "ERR_HTTP2_GOAWAY_SESSION"},
		{"INTERNAL_ERROR", "\x00\x00\x04\x03\x00\x00\x00\x00\x01" + "\x00\x00\x00\x02", "ERR_HTTP2_STREAM_ERROR"},
		{"a frame against the rules", "\x00\x00\x01\x03\x00\x00\x00\x00\x01" + "\x00", "ERR_HTTP2_SESSION_ERROR"},
	} {
		s := serve(t, overTLS(config, func(s *server, conn net.Conn) { answerHTTP2(s, conn, c.frame) }))
		record := New()
		err := post(With(t.Context(), record), client(t, Options{RootCAs: ca.pool()}), "https://"+s.addr)
		f := record.Fault(policies.SurfaceModel, err, time.Now())
		if f.Code != c.code || !f.Started || f.NotStarted || f.Phase != policies.PhaseHeaders || s.requests.Load() != 1 || record.Requests() != 1 {
			t.Errorf("%s: %v; %+v; %d requests, %d arrived", c.name, err, f, record.Requests(), s.requests.Load())
		}
		if strings.Contains(f.Message, "secret") {
			t.Errorf("%s: the server's bytes in %q", c.name, f.Message)
		}
	}
}

// answerHTTP2 greets, waits for the headers of a request, writes frame and
// closes.
func answerHTTP2(s *server, c net.Conn, frame string) {
	const headers = 1
	preface := make([]byte, 24)
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	_, _ = io.WriteString(c, "\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return
		}
		if head[3] == headers {
			break
		}
	}
	s.requests.Add(1)
	_, _ = io.WriteString(c, frame)
	_ = c.(*tls.Conn).CloseWrite()
	_, _ = io.Copy(io.Discard, c)
}

func TestRedactedInFault(t *testing.T) {
	t.Parallel()
	const token = "123456789:AAExampleExampleExampleExampleExamp"
	record := New()
	ctx, cancel := context.WithCancel(With(t.Context(), record))
	defer cancel()
	err := post(ctx, client(t, Options{Fresh: true}), "http://"+deadAddress(t)+"/bot"+token+"/sendMessage?chat=1")
	f := record.Fault(policies.SurfaceTelegram, err, time.Now())
	if strings.Contains(f.Message, token[:12]) || strings.Contains(f.Message, "sendMessage") || !strings.Contains(f.Message, "connection refused") {
		t.Errorf("message %q", f.Message)
	}
}
