package model_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/activities/model"
	"github.com/holdfast-dev/holdfast/internal/transcript"
)

// benchServer streams a hundred deltas over kept connections.
func benchServer(b *testing.B) *server {
	text := strings.Repeat("word ", 100)
	final := strings.Replace(completed, "one two", text, 1)
	first := chunk(created) + chunk(strings.Replace(deltaOne, "one ", "word ", 1))
	rest := strings.Repeat(chunk(strings.Replace(deltaOne, "one ", "word ", 1)), 99) + chunk(final) + "0\r\n\r\n"
	return serve(b, func(s *server, c net.Conn) {
		r := bufio.NewReader(c)
		for s.read(r) != nil {
			_, _ = io.WriteString(c, chunkedHead+first)
			_, _ = io.WriteString(c, rest)
		}
	})
}

// timing is when the first text came and when the answer was whole.
type timing struct{ first, whole time.Duration }

// direct asks as the plainest client would: net/http, lines, JSON.
func direct(b *testing.B, client *http.Client, url string) (t timing) {
	body, _ := json.Marshal(map[string]any{"model": "gpt-x", "stream": true, "input": "hello"})
	started := time.Now()
	resp, err := client.Post(url+"/responses", "application/json", bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	var text strings.Builder
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			b.Fatal(err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var frame struct{ Type, Delta string }
		if err := json.Unmarshal(data, &frame); err != nil {
			b.Fatal(err)
		}
		switch frame.Type {
		case "response.output_text.delta":
			if t.first == 0 {
				t.first = time.Since(started)
			}
			text.WriteString(frame.Delta)
		case "response.completed":
			t.whole = time.Since(started)
			_, _ = io.Copy(io.Discard, lines)
			return t
		}
	}
}

// asker makes attempts and times them.
type asker struct {
	*model.Activities
	started time.Time
	t       timing
}

func newAsker(b *testing.B, s *server, set ...func(*model.Config)) *asker {
	k := &asker{}
	p := provider(s)
	p.Dialect = told{p.Dialect, func(e model.Event) {
		if e.Kind == model.EventText && k.t.first == 0 {
			k.t.first = time.Since(k.started)
		}
	}}
	k.Activities = activities(b, p, set...)
	return k
}

func (k *asker) ask(b *testing.B, req transcript.Request) timing {
	k.started, k.t = time.Now(), timing{}
	if _, err := k.Attempt(b.Context(), req); err != nil {
		b.Fatal(err)
	}
	k.t.whole = time.Since(k.started)
	return k.t
}

func quantile(d []time.Duration, q float64) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[min(int(float64(len(d))*q), len(d)-1)]
}

// compare reports by how much ours is later than the plain one, and the ratio of
// the medians. At p99 both hold what the machine does beside.
func compare(b *testing.B, what string, plain, ours []time.Duration) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, q := range []float64{0.5, 0.99} {
		b.ReportMetric(ms(quantile(ours, q)-quantile(plain, q)), fmt.Sprintf("%s+ms/p%d", what, int(q*100)))
	}
	for _, q := range []float64{0.5, 0.99} {
		b.ReportMetric(ms(quantile(plain, q)), fmt.Sprintf("%s-direct-ms/p%d", what, int(q*100)))
	}
	b.ReportMetric(float64(quantile(ours, 0.5))/float64(quantile(plain, 0.5)), what+"-ratio/p50")
}

// BenchmarkAttempt compares a streamed attempt with the plainest client (Q4).
// They take turns in one run, so that the figures mean something on a noisy
// machine. Run it with -benchtime 3000x.
func BenchmarkAttempt(b *testing.B) {
	s := benchServer(b)
	k := newAsker(b, s)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	var plainFirst, plainWhole, ourFirst, ourWhole []time.Duration
	for i := 0; b.Loop(); i++ {
		var plain, ours timing
		if i%2 == 0 {
			plain, ours = direct(b, client, s.url), k.ask(b, request())
		} else {
			ours, plain = k.ask(b, request()), direct(b, client, s.url)
		}
		plainFirst, plainWhole = append(plainFirst, plain.first), append(plainWhole, plain.whole)
		ourFirst, ourWhole = append(ourFirst, ours.first), append(ourWhole, ours.whole)
	}
	compare(b, "whole", plainWhole, ourWhole)
	compare(b, "first", plainFirst, ourFirst)
}

// BenchmarkDirect is the plainest client alone.
func BenchmarkDirect(b *testing.B) {
	s := benchServer(b)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		direct(b, client, s.url)
	}
}

// BenchmarkSink compares when the reader of an http sink has the first text
// with when the plainest client has it (M6: under 5 ms at the median).
func BenchmarkSink(b *testing.B) {
	s := benchServer(b)
	arrived := make(chan time.Time, 1)
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		d := json.NewDecoder(r.Body)
		told := false
		for {
			var line model.SinkLine
			if d.Decode(&line) != nil {
				return
			}
			if line.Type == "text" && !told {
				told = true
				arrived <- time.Now()
			}
		}
	}))
	b.Cleanup(sink.Close)
	k := newAsker(b, s, allow)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	req := withSink("http", sink.URL)
	var plain, ours []time.Duration
	for b.Loop() {
		plain = append(plain, direct(b, client, s.url).first)
		k.ask(b, req)
		ours = append(ours, (<-arrived).Sub(k.started))
	}
	compare(b, "first", plain, ours)
}

// BenchmarkOpenStreams reports the memory of 1,000 open streams, each: heap and
// stacks, with the server's side of the loopback in them, and beside it the same
// for the plainest client (Q4: 64 KiB).
func BenchmarkOpenStreams(b *testing.B) {
	const streams = 1000
	for b.Loop() {
		ours := openStreams(b, streams, func(s *server) func() {
			k := newAsker(b, s)
			return func() { _, _ = k.Attempt(b.Context(), request()) }
		})
		bare := openStreams(b, streams, func(s *server) func() {
			client := &http.Client{Transport: &http.Transport{}}
			return func() {
				resp, err := client.Post(s.url, "application/json", strings.NewReader("{}"))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		})
		b.ReportMetric(ours/1024, "KiB/stream")
		b.ReportMetric(bare/1024, "direct-KiB/stream")
		b.ReportMetric((ours-bare)/1024, "+KiB/stream")
	}
}

func openStreams(b *testing.B, n int, start func(s *server) func()) float64 {
	release := make(chan struct{})
	var open sync.WaitGroup
	open.Add(n)
	s := serve(b, func(s *server, c net.Conn) {
		if s.read(bufio.NewReader(c)) == nil {
			return
		}
		_, _ = io.WriteString(c, streamHead+created+deltaOne)
		open.Done()
		<-release
		_, _ = io.WriteString(c, deltaTwo+completed)
	})
	ask := start(s)
	before := inUse()
	var asking sync.WaitGroup
	for range n {
		asking.Go(ask)
	}
	open.Wait()
	after := inUse()
	close(release)
	asking.Wait()
	return float64(after-before) / float64(n)
}

func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
