package model_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
)

// M2.7: the answer is there with its terminal event, whatever the server still
// has to say or how long it keeps the body open; that adds nothing.
func TestDeliveredAtTheTerminalEvent(t *testing.T) {
	t.Parallel()
	for name, trailing := range map[string]string{
		"open body":  "",
		"more text":  chunk(deltaOne) + chunk(": ping\n\n"),
		"an error":   chunk("data: {\"error\":{\"message\":\"late\"}}\n\n"),
		"other end":  chunk(strings.Replace(completed, "one two", "three", 1)),
		"no chunk":   "garbage\r\n",
		"very much":  chunk(strings.Repeat(": ping\n\n", 1<<16)),
		"DONE":       chunk("data: [DONE]\n\n"),
		"cut chunk":  "ff",
		"white room": chunk("\n\n\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, gone := hang(t, chunkedHead+chunk(answered)+trailing)
			// The server never ends the body: only the terminal event ends the attempt.
			r := attempt(t, activities(t, provider(s)), request())
			if r.err != nil || r.Text != "one two" {
				t.Errorf("%q, %v", r.Text, r.err)
			}
			await(t, gone, "the end of the drain")
		})
	}
}

// M2.7: Close ends the drain and waits for it.
func TestCloseEndsTheDrain(t *testing.T) {
	t.Parallel()
	s, gone := hang(t, chunkedHead+chunk(answered))
	a := activities(t, provider(s))
	if r := attempt(t, a, request()); r.err != nil {
		t.Fatal(r.err)
	}
	a.Close()
	await(t, gone, "the end of the connection")
}

// M3.13: an attempt that was cancelled while its terminal event came leaves no
// connection behind.
func TestCancelledAtTheEnd(t *testing.T) {
	t.Parallel()
	s, gone := hang(t, chunkedHead+chunk(answered))
	ctx, cancel := context.WithCancel(t.Context())
	p := provider(s)
	p.Dialect = ending{p.Dialect, cancel}
	_ = attemptIn(t, ctx, activities(t, p), request())
	await(t, gone, "the end of the connection")
}

// M2.7: a body that ends within the drain leaves its connection for the next
// request. How soon depends on the machine, so it is tried until it happens.
func TestConnectionIsReused(t *testing.T) {
	t.Parallel()
	over := make(chan struct{}, 200) // the body ends once the answer has been delivered
	s := serve(t, func(s *server, c net.Conn) {
		r := bufio.NewReader(c)
		for s.read(r) != nil {
			_, _ = io.WriteString(c, chunkedHead+chunk(answered))
			<-over
			_, _ = io.WriteString(c, chunk(": bye\n\n")+"0\r\n\r\n")
		}
	})
	a := activities(t, provider(s))
	for range 200 {
		if r := attempt(t, a, request()); r.err != nil || r.Text != "one two" {
			t.Fatalf("%q, %v", r.Text, r.err)
		}
		over <- struct{}{}
		if s.conns.Load() < s.requests.Load() {
			return
		}
	}
	t.Error("200 requests made 200 connections")
}

// An error answer that was read to its end leaves its connection too.
func TestConnectionIsReusedAfterErrors(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *server, c net.Conn) {
		r := bufio.NewReader(c)
		for s.read(r) != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 429 Slow\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	a := activities(t, provider(s))
	for range 200 {
		attempt(t, a, request()).fails(t, "rate_limit", "body")
		if s.conns.Load() < s.requests.Load() {
			return
		}
	}
	t.Error("200 requests made 200 connections")
}
