package simulator

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Outcome says what a client got for a request.
type Outcome string

const (
	// InProgress is a request whose answer has not begun.
	InProgress Outcome = "in progress"
	// Answered is a request whose answer was sent as a whole.
	Answered Outcome = "answered"
	// CutShort is an answer that broke off.
	CutShort Outcome = "cut"
	// NoAnswer is a request that got no byte of an answer.
	NoAnswer Outcome = "no answer"
	// Left is a request whose client went away before the answer was whole.
	Left Outcome = "client left"
)

// Request is what the ledger holds of one request.
type Request struct {
	// N counts the requests of the server from 1.
	N int `json:"n"`
	// At is when the headers had arrived; AnsweredAt is just before the status
	// line left; GoneAt is when the client was seen to leave before the end.
	At         time.Time `json:"at"`
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	GoneAt     time.Time `json:"gone_at,omitzero"`

	Method string `json:"method"`
	// Path has no secrets in it.
	Path string `json:"path"`
	Op   string `json:"op"`
	// Key is what the platform limits by, such as a channel or a chat.
	Key string `json:"key,omitempty"`
	// Account is a label given in order of appearance: "account-1".
	Account string `json:"account,omitempty"`

	// Step is the note of the step that the request took, empty for none.
	Step string `json:"step,omitempty"`
	// Conn counts connections from 1; ConnRequest is 1 for the first request of
	// a connection and more where it was reused.
	Conn        int `json:"conn"`
	ConnRequest int `json:"conn_request"`

	BodyRead  bool  `json:"body_read"`
	BodyBytes int64 `json:"body_bytes"`

	// Status is 0 where no status line was sent.
	Status  int     `json:"status,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Floor is the earliest time for the next request of the same operation and
	// key, or of the same account where Global is set, as the answer asked.
	Floor  time.Time `json:"floor,omitzero"`
	Global bool      `json:"global,omitempty"`
}

// Reused says whether the request came on a connection that had served another.
func (r Request) Reused() bool { return r.ConnRequest > 1 }

// Effect is something that happened on the platform.
type Effect struct {
	// Kind is the platform's word, such as "message".
	Kind string `json:"kind"`
	// ID is the platform's id of the thing that the effect made or changed.
	ID string `json:"id"`
	// Key is the channel, chat, model or repository.
	Key     string `json:"key,omitempty"`
	Content string `json:"content,omitempty"`
	// Request is the ordinal of the request that caused it.
	Request int       `json:"request"`
	At      time.Time `json:"at"`
}

// EarlyRequest is a request that came before a floor allowed it.
type EarlyRequest struct {
	Request Request `json:"request"`
	// Throttled is the ordinal of the request whose answer set the floor.
	Throttled int `json:"throttled"`
	// By is how much too early it came.
	By Duration `json:"by"`
}

// Ledger holds every request and every effect of a server. Its methods may be
// called at any time; what they return are copies.
type Ledger struct {
	mu       sync.Mutex
	requests []Request
	effects  []Effect
	accounts map[[sha256.Size]byte]string
	changed  chan struct{}
	first    int
}

// NewLedger makes an empty ledger, for a simulator that speaks something else
// than HTTP and so keeps its own; see [Ledger.Enter], [Ledger.Change] and
// [Ledger.Enact]. A [Server] brings one along.
func NewLedger() *Ledger {
	return &Ledger{accounts: map[[sha256.Size]byte]string{}, changed: make(chan struct{}), first: 1}
}

// Requests returns the requests of an operation in order of arrival. op may hold
// *; empty means all.
func (l *Ledger) Requests(op string) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(op)
}

func (l *Ledger) find(op string) []Request {
	var found []Request
	for _, r := range l.requests {
		if op == "" || glob(op, r.Op) {
			found = append(found, r)
		}
	}
	return found
}

// Request returns the request with an ordinal.
func (l *Ledger) Request(n int) (Request, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.at(n); r != nil {
		return *r, true
	}
	return Request{}, false
}

// Effects returns the effects of a kind in the order they happened; empty means all.
func (l *Ledger) Effects(kind string) []Effect {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Effect
	for _, e := range l.effects {
		if kind == "" || glob(kind, e.Kind) {
			found = append(found, e)
		}
	}
	return found
}

// WaitRequests waits until n requests of an operation have arrived and returns
// them. It returns the context's error if that ends first.
func (l *Ledger) WaitRequests(ctx context.Context, op string, n int) ([]Request, error) {
	var found []Request
	err := l.wait(ctx, func() bool { found = l.find(op); return len(found) >= n })
	if err != nil {
		return found, fmt.Errorf("%d of %d requests of %q arrived: %w", len(found), n, op, err)
	}
	return found, nil
}

// WaitMet waits until a request has met a step of this note and returns it.
func (l *Ledger) WaitMet(ctx context.Context, note string) (Request, error) {
	var found Request
	err := l.wait(ctx, func() bool {
		i := slices.IndexFunc(l.requests, func(r Request) bool { return r.Step == note })
		if i >= 0 {
			found = l.requests[i]
		}
		return i >= 0
	})
	if err != nil {
		return found, fmt.Errorf("no request met %q: %w", note, err)
	}
	return found, nil
}

// WaitEffects waits until n effects of a kind have happened and returns them.
func (l *Ledger) WaitEffects(ctx context.Context, kind string, n int) ([]Effect, error) {
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		found := l.Effects(kind)
		if len(found) >= n {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return found, fmt.Errorf("%d of %d effects of %q happened: %w", len(found), n, kind, ctx.Err())
		}
	}
}

// WaitGone waits until the client of request n has left before its end, and
// returns the request. Requests in a stall whose body was read notice that.
func (l *Ledger) WaitGone(ctx context.Context, n int) (Request, error) {
	var found Request
	err := l.wait(ctx, func() bool {
		r := l.at(n)
		if r == nil || r.GoneAt.IsZero() {
			return false
		}
		found = *r
		return true
	})
	return found, err
}

// WaitIdle waits until no request is in progress. A request that stalls counts
// as over, one that is held at a gate does not.
func (l *Ledger) WaitIdle(ctx context.Context) error {
	return l.wait(ctx, func() bool {
		for _, r := range l.requests {
			if r.Outcome == InProgress {
				return false
			}
		}
		return true
	})
}

// Early returns the requests that came before the floor set by an earlier answer
// of the same account to the same operation and key, or to any request of the
// account for a global limit. A request that
// arrives within grace after that answer was sent was on its way already and is
// left out; with one sender per key, 0 is right.
func (l *Ledger) Early(grace time.Duration) []EarlyRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	var early []EarlyRequest
	for i, r := range l.requests {
		if r.Op == "" {
			continue
		}
		worst := EarlyRequest{}
		for _, t := range l.requests[:i] {
			if t.Floor.IsZero() || !r.At.After(t.AnsweredAt.Add(grace)) || t.Account != r.Account {
				continue
			}
			if !t.Global && (t.Key != r.Key || t.Op != r.Op) {
				continue
			}
			if by := Duration(t.Floor.Sub(r.At)); by > worst.By {
				worst = EarlyRequest{Request: r, Throttled: t.N, By: by}
			}
		}
		if worst.By > 0 {
			early = append(early, worst)
		}
	}
	return early
}

func (l *Ledger) wait(ctx context.Context, met func() bool) error {
	for {
		l.mu.Lock()
		ok, changed := met(), l.changed
		l.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// at finds request n; the caller holds the lock.
func (l *Ledger) at(n int) *Request {
	if i := n - l.first; i >= 0 && i < len(l.requests) {
		return &l.requests[i]
	}
	return nil
}

func (l *Ledger) notify() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Enter adds a request that has arrived and returns its ordinal. Of the
// credential only a label is kept.
func (l *Ledger) Enter(r Request, credential string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.N = l.first + len(l.requests)
	r.Account = l.account(credential)
	r.Outcome = InProgress
	l.requests = append(l.requests, r)
	l.notify()
	return r.N
}

func (l *Ledger) account(credential string) string {
	if credential == "" {
		return ""
	}
	hash := sha256.Sum256([]byte(credential))
	if l.accounts[hash] == "" {
		l.accounts[hash] = fmt.Sprintf("account-%d", len(l.accounts)+1)
	}
	return l.accounts[hash]
}

// Change changes request n, which is over once its outcome is another than
// [InProgress]. It does nothing once a reset has forgotten the request.
func (l *Ledger) Change(n int, change func(*Request)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.at(n); r != nil {
		change(r)
		l.notify()
	}
}

// Enact adds an effect.
func (l *Ledger) Enact(e Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects = append(l.effects, e)
	l.notify()
}

// Reset forgets everything; ordinals go on, so that a request in flight cannot
// be mistaken for a new one.
func (l *Ledger) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first += len(l.requests)
	l.requests, l.effects = nil, nil
	l.notify()
}
