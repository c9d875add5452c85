package model

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/attempt"
	"github.com/holdfast-dev/holdfast/policies"
)

// M2.3: every 5 s, or a tenth of the least limit.
func TestLookEvery(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		limits Limits
		want   time.Duration
	}{
		{Limits{}, 3 * time.Second},
		{Limits{SilenceWithPings: time.Hour, Headers: time.Hour}, 5 * time.Second},
		{Limits{Progress: 20 * time.Millisecond}, 2 * time.Millisecond},
		{Limits{Progress: 1}, time.Millisecond},
	} {
		if got := tc.limits.WithDefaults().LookEvery(); got != tc.want {
			t.Errorf("%+v: %v, want %v", tc.limits, got, tc.want)
		}
	}
}

// M2.2: the limits of an attempt that sets none, and of a negative one.
func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	want := Limits{
		Connect: 10 * time.Second, Headers: time.Minute, HeadersNoStream: 10 * time.Minute, FirstEvent: 2 * time.Minute,
		Silence: 2 * time.Minute, SilenceWithPings: 30 * time.Second, Progress: 5 * time.Minute,
	}
	if got := (Limits{Silence: -1}).WithDefaults(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// stream is a watched stream at which a test turns the clock.
type stream struct {
	now  time.Time
	dog  *watchdog
	body io.ReadCloser
	send func(string)
	get  func() error
}

func newStream(t *testing.T, streaming bool) *stream {
	t.Helper()
	pieces := make(chan string)
	started := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-started
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for p := range pieces {
			_, _ = io.WriteString(w, p)
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(server.Close)
	s := &stream{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	record := attempt.New()
	client := attempt.NewClient(attempt.Options{Now: func() time.Time { return s.now }})
	t.Cleanup(client.CloseIdleConnections)
	t.Cleanup(func() { close(pieces) })
	s.dog = &watchdog{limits: Limits{}.WithDefaults(), streaming: streaming, record: record}
	s.get = func() error {
		close(started)
		req, _ := http.NewRequestWithContext(attempt.With(t.Context(), record), http.MethodGet, server.URL, nil)
		resp, err := client.Do(req)
		if err == nil {
			s.body = resp.Body
			t.Cleanup(func() { _ = resp.Body.Close() })
		}
		return err
	}
	s.send = func(p string) {
		t.Helper()
		pieces <- p
		if _, err := io.ReadFull(s.body, make([]byte, len(p))); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// after turns the clock on and wants a limit broken, or none where waits is
// empty.
func (s *stream) after(t *testing.T, d time.Duration, phase policies.Phase, waits string) {
	t.Helper()
	stall := s.dog.check(s.now.Add(d))
	switch {
	case waits == "" && stall != nil:
		t.Errorf("after %v: %v, want nothing", d, stall)
	case waits != "" && (stall == nil || stall.Waits != waits || stall.Phase != phase):
		t.Errorf("after %v: %+v, want no %s in %s", d, stall, waits, phase)
	}
}

// M2.2: any byte resets the silence, only content the progress, and nothing
// limits the total.
func TestLimitsByTheClock(t *testing.T) {
	t.Parallel()
	s := newStream(t, true)
	// Without a connection the transport's own limit holds.
	s.after(t, time.Hour, "", "")
	if err := s.get(); err != nil {
		t.Fatal(err)
	}
	s.after(t, 120*time.Second, "", "")
	s.after(t, 121*time.Second, policies.PhaseFirstEvent, "first event")

	s.send("x")
	s.dog.observe(Event{Kind: EventFrame}, s.now)
	s.after(t, 120*time.Second, "", "")
	s.after(t, 121*time.Second, policies.PhaseBody, "byte")

	// Two hours with content every four minutes and bytes every minute.
	for minute := range 120 {
		s.now = s.now.Add(time.Minute)
		s.send("x")
		if minute%4 == 0 {
			s.dog.observe(Event{Kind: EventContent}, s.now)
		}
		s.after(t, time.Minute, "", "")
	}
	for range 5 {
		s.now = s.now.Add(time.Minute)
		s.send("x")
		s.dog.observe(Event{Kind: EventFrame}, s.now)
	}
	s.after(t, time.Second, policies.PhaseBody, "content")

	s.dog.observe(Event{Kind: EventText}, s.now)
	s.dog.observe(Event{Kind: EventPing}, s.now)
	s.after(t, 30*time.Second, "", "")
	s.after(t, 31*time.Second, policies.PhaseBody, "byte")
}

// M2.2: a whole answer has no first event and no progress.
func TestWholeAnswersByTheClock(t *testing.T) {
	t.Parallel()
	s := newStream(t, false)
	if err := s.get(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		s.now = s.now.Add(119 * time.Second)
		s.send("x")
	}
	s.after(t, 120*time.Second, "", "")
	s.after(t, 121*time.Second, policies.PhaseBody, "byte")
}
