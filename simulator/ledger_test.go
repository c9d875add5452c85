package simulator_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/simulator"
)

// clock is a time that the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// P2: a floor is never undercut; the ledger finds who did.
func TestEarly(t *testing.T) {
	t.Parallel()
	bucket := simulator.JSON(429, map[string]any{"retry_after": 0.7})
	cut := simulator.JSON(429, map[string]any{"retry_after": 9}).WithHeader("Retry-After", "1")
	cut.Cut = &simulator.Cut{Bytes: 5}
	tests := []struct {
		name string
		step simulator.Step
		key  string
		wait time.Duration
		by   time.Duration
	}{
		{"just in time", bucket, "a", 700 * time.Millisecond, 0},
		{"early", bucket, "a", 650 * time.Millisecond, 50 * time.Millisecond},
		{"another key", bucket, "b", 100 * time.Millisecond, 0},
		{"global", simulator.JSON(429, map[string]any{"retry_after": 0.7, "global": true}), "b", 100 * time.Millisecond, 600 * time.Millisecond},
		{"header alone", simulator.Status(429, "").WithHeader("Retry-After", "2"), "a", time.Second, time.Second},
		{"the greater header counts", simulator.Status(429, "").WithHeader("Retry-After", "1").WithHeader("Retry-After-Ms", "2000"), "a", time.Second, time.Second},
		{"the body is exact", bucket.WithHeader("Retry-After", "1"), "a", 700 * time.Millisecond, 0},
		{"early for the body", bucket.WithHeader("Retry-After", "1"), "a", 650 * time.Millisecond, 50 * time.Millisecond},
		{"the body was cut", cut, "a", time.Second, 0},
		{"nothing left", bucket.WithEnd(simulator.EndFIN), "a", 0, 0},
		{"Telegram", simulator.JSON(429, map[string]any{"parameters": map[string]any{"retry_after": 3}}), "a", time.Second, 2 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now := &clock{now: time.Unix(1_800_000_000, 0)}
			s, err := simulator.Start(&board{}, simulator.Options{Now: now.Now})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.Script(tt.step)
			c := client(t)
			post(t, c, s, "a")
			now.Add(tt.wait)
			post(t, c, s, tt.key)
			early := s.Ledger().Early(0)
			if tt.by == 0 {
				if len(early) != 0 {
					t.Errorf("early: %+v", early)
				}
				return
			}
			if len(early) != 1 || early[0].Request.N != 2 || early[0].Throttled != 1 || time.Duration(early[0].By) != tt.by {
				t.Errorf("early: %+v, want request 2 by %s", early, tt.by)
			}
			if late := s.Ledger().Early(tt.wait); len(late) != 0 {
				t.Errorf("within the grace: %+v", late)
			}
		})
	}
}

// Q1: the same seed gives the same faults, whatever happens on other keys.
func TestRandomIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		faults := []simulator.RandomFault{
			{Rate: rapid.Float64Range(0, 0.5).Draw(t, "a"), Step: simulator.Reset()},
			{Rate: rapid.Float64Range(0, 0.5).Draw(t, "b"), Step: simulator.Twice().On("pin")},
		}
		seed := rapid.Uint64().Draw(t, "seed")
		limit := rapid.IntRange(1, 4).Draw(t, "max in row")
		one, two := simulator.RandomScript(seed, faults...), simulator.RandomScript(seed, faults...)
		one.MaxInRow, two.MaxInRow = limit, limit
		inRow := 0
		for n := 1; n <= 50; n++ {
			a, okA := one.Choose("pin", "k", n)
			b, okB := two.Choose("pin", "k", n)
			if okA != okB || okA && a.Note != b.Note {
				t.Fatalf("request %d: %v and %v", n, a.Note, b.Note)
			}
			if inRow++; !okA {
				inRow = 0
			}
			if inRow > limit {
				t.Fatalf("request %d is fault %d in a row", n, inRow)
			}
			if c, ok := one.Choose("other", "k", n); ok && c.Match == "pin" {
				t.Fatal("a fault struck an operation that it does not match")
			}
		}
	})
}

// Q1: the rates of a random script are kept.
func TestRandomRates(t *testing.T) {
	t.Parallel()
	r := simulator.RandomScript(7, simulator.RandomFault{Rate: 0.25, Step: simulator.Reset()})
	struck := 0
	for n := 1; n <= 10_000; n++ {
		if _, ok := r.Choose("op", "k", n); ok {
			struck++
		}
	}
	if struck < 2300 || struck > 2700 {
		t.Errorf("%d of 10000 requests were struck, want about 2500", struck)
	}
}

// Q1: the script can be written, and the ledger read, over HTTP.
func TestAdmin(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := client(t)
	call := func(method, path, body string) result {
		req, err := http.NewRequest(method, s.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return do(c, req)
	}
	steps := []simulator.Step{
		simulator.JSON(429, map[string]any{"retry_after": 0.7}).On("pin").Times(2),
		simulator.HoldAfter("g"),
	}
	body, err := json.Marshal(simulator.ScriptRequest{Steps: steps})
	if err != nil {
		t.Fatal(err)
	}
	if got := call("POST", simulator.AdminScript, string(body)); got.Status != 200 {
		t.Fatalf("script: %+v", got)
	}
	for _, bad := range []string{`{"steps":[{"end":"bang"}]}`, `{"steps":[{"unknown":1}]}`, `{"steps":[{"unread":true}]}`, `{"steps":[{"delay_before":"soon"}]}`, `{`} {
		if got := call("POST", simulator.AdminScript, bad); got.Status != 400 || !strings.Contains(got.Body, "error") {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	var left simulator.ScriptRequest
	if err := json.Unmarshal([]byte(call("GET", simulator.AdminScript, "").Body), &left); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(steps[0], left.Steps[0]); diff != "" {
		t.Errorf("the step that came back (-want +got):\n%s", diff)
	}
	if got := post(t, c, s, "a"); got.Status != 429 {
		t.Errorf("first: %+v", got)
	}
	post(t, c, s, "a")
	done := make(chan result, 1)
	go func() { done <- post(t, client(t), s, "a") }()
	if got := call("GET", simulator.AdminHeld+"?gate=g&wait=30s", ""); got.Body != "{\"held\":[3]}\n" {
		t.Errorf("held: %+v", got)
	}
	if got := call("POST", simulator.AdminRelease+"?gate=g", ""); got.Status != 200 {
		t.Errorf("release: %+v", got)
	}
	if got := <-done; got.Status != 201 {
		t.Errorf("third: %+v", got)
	}
	var ledger simulator.LedgerResponse
	if err := json.Unmarshal([]byte(call("GET", simulator.AdminLedger+"?op=pin&n=3&wait=30s", "").Body), &ledger); err != nil {
		t.Fatal(err)
	}
	if len(ledger.Requests) != 3 || len(ledger.Effects) != 1 || ledger.Requests[0].Floor.IsZero() {
		t.Errorf("ledger: %+v", ledger)
	}
	if got := call("GET", simulator.AdminLedger+"?n=9&wait=1ms", ""); got.Status != 408 {
		t.Errorf("a wait in vain: %+v", got)
	}
	call("POST", simulator.AdminReset, "")
	if got := s.Ledger().Requests(""); len(got) != 0 {
		t.Errorf("after the reset: %+v", got)
	}
	if got := call("POST", simulator.AdminRefuse, `{"for":"0s"}`); got.Status != 400 {
		t.Errorf("refuse without end: %+v", got)
	}
	if got := call("POST", simulator.AdminRefuse, `{"for":"1h"}`); got.Status != 200 {
		t.Errorf("refuse: %+v", got)
	}
	if got := post(t, client(t), s, "a"); got.Err != "refused" {
		t.Errorf("while refusing: %+v", got)
	}
}

// G9, Q1: the ledger holds no credential, but tells accounts apart.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, secret := range []string{"Bearer s3cret", "Bearer other", "Bearer s3cret"} {
		req, _ := http.NewRequest("POST", s.URL()+"/pins", strings.NewReader("a"))
		req.Header.Set("Authorization", secret)
		do(client(t), req)
	}
	var accounts []string
	for _, r := range s.Ledger().Requests("") {
		accounts = append(accounts, r.Account)
	}
	if diff := cmp.Diff([]string{"account-1", "account-2", "account-1"}, accounts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(s.Ledger().Requests(""))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "s3cret") {
		t.Errorf("a credential in the ledger: %s", text)
	}
}
