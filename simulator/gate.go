package simulator

import (
	"context"
	"sync"
)

// Gate is a place where requests wait; see [HoldBefore] and [HoldAfter]. A gate
// is shut until it is released and stays open from then on.
type Gate struct {
	name string
	open chan struct{}
	once sync.Once

	mu      sync.Mutex
	held    []int
	changed chan struct{}
}

func newGate(name string) *Gate {
	return &Gate{name: name, open: make(chan struct{}), changed: make(chan struct{})}
}

// Name is the gate's name.
func (g *Gate) Name() string { return g.name }

// Release lets the held requests go on and later ones pass.
func (g *Gate) Release() { g.once.Do(func() { close(g.open) }) }

// Held returns the ordinals of the requests that wait now.
func (g *Gate) Held() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.held...)
}

// WaitHeld waits until a request is held and returns its ordinal in the ledger.
// It returns the context's error if that ends first.
func (g *Gate) WaitHeld(ctx context.Context) (int, error) {
	for {
		g.mu.Lock()
		held, changed := append([]int(nil), g.held...), g.changed
		g.mu.Unlock()
		if len(held) > 0 {
			return held[0], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// wait holds request n; it is false when the client leaves or the server closes first.
func (g *Gate) wait(n int, gone, closing <-chan struct{}) bool {
	g.update(func() { g.held = append(g.held, n) })
	defer g.update(func() {
		for i, m := range g.held {
			if m == n {
				g.held = append(g.held[:i:i], g.held[i+1:]...)
				return
			}
		}
	})
	select {
	case <-g.open:
		return true
	case <-gone:
	case <-closing:
	}
	return false
}

func (g *Gate) update(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	close(g.changed)
	g.changed = make(chan struct{})
}
