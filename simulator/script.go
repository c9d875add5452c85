package simulator

import (
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
)

// Identity is what a platform knows of a request before it acts on it.
type Identity struct {
	// Op is the operation's name, such as "create_message".
	Op string
	// Undecided says that the operation may turn out to be another once the body
	// has been read.
	Undecided bool
	// Key is what the platform limits by. It may be empty while the body has not
	// been read.
	Key string
	// Path is the request's path, and its query where that is worth keeping,
	// without any secret.
	Path string
	// Credential tells accounts apart. The server keeps a label for it, never
	// the value.
	Credential string
}

// RandomFault is one fault of a random script and how often it strikes.
type RandomFault struct {
	// Rate is the share of the matching requests, from 0 to 1.
	Rate float64 `json:"rate"`
	Step Step    `json:"step"`
}

// Random is a seeded fault script without end. Which fault strikes a request
// depends only on the seed, the operation, the key and how many requests of that
// operation and key came before it, so concurrency on other keys changes nothing.
// The body is read before the choice, for the key may be in it: an Unread step
// closes after reading here. Faults match by operation and key, not by path.
type Random struct {
	Seed   uint64        `json:"seed"`
	Faults []RandomFault `json:"faults"`
	// MaxInRow, where above 0, lets a request pass after so many faults in a row
	// on its operation and key.
	MaxInRow int `json:"max_in_row,omitempty"`
}

// RandomScript makes a random script of faults with their rates.
func RandomScript(seed uint64, faults ...RandomFault) *Random {
	return &Random{Seed: seed, Faults: faults}
}

// Choose returns the step for the n-th request (from 1) of an operation and a
// key; ok is false where it passes.
func (r *Random) Choose(op, key string, n int) (step Step, ok bool) {
	inRow := 0
	for i := max(1, n-r.lookBack(op, key, n)); i <= n; i++ {
		if step, ok = r.draw(op, key, i); !ok {
			inRow = 0
			continue
		}
		if inRow++; r.MaxInRow > 0 && inRow > r.MaxInRow {
			inRow, ok = 0, false
		}
	}
	return step, ok
}

// lookBack is how far back the run of drawn faults that ends at n began.
func (r *Random) lookBack(op, key string, n int) int {
	if r.MaxInRow <= 0 {
		return 0
	}
	back := 0
	for n-back > 1 {
		if _, ok := r.draw(op, key, n-back); !ok {
			break
		}
		back++
	}
	return back
}

func (r *Random) draw(op, key string, n int) (Step, bool) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d\x00%s\x00%s\x00%d", r.Seed, op, key, n)
	x := float64(scramble(h.Sum64())>>11) / (1 << 53)
	for _, f := range r.Faults {
		if f.Step.Match != "" && !glob(f.Step.Match, op) || f.Step.Key != "" && !glob(f.Step.Key, key) {
			continue
		}
		if x < f.Rate {
			return f.Step, true
		}
		x -= f.Rate
	}
	return Step{}, false
}

// scramble is the finalizer of SplitMix64; FNV alone leaves the high bits of
// short inputs correlated.
func scramble(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

type script struct {
	mu     sync.Mutex
	steps  []Step
	used   []int
	random *Random
	seen   map[string]int
}

func (s *script) add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, steps...)
	s.used = append(s.used, make([]int, len(steps))...)
}

func (s *script) setRandom(r *Random) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random, s.seen = r, map[string]int{}
}

func (s *script) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.used, s.random, s.seen = nil, nil, nil, nil
}

func (s *script) remaining() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []Step
	for i, step := range s.steps {
		if n := step.left(s.used[i]); n != 0 {
			step.Count = n
			left = append(left, step)
		}
	}
	return left
}

// take picks the step of a request. With needBody it picked none, because the
// choice depends on an operation or a key that only the body can tell.
func (s *script) take(method string, id Identity, reused, bodyRead bool) (step Step, found, needBody bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.Undecided && !bodyRead {
		return Step{}, false, true
	}
	for i, step := range s.steps {
		if step.left(s.used[i]) == 0 || step.Reused && !reused || !step.matches(method, id) {
			continue
		}
		if step.Key != "" {
			if id.Key == "" && !bodyRead {
				return Step{}, false, true
			}
			if !glob(step.Key, id.Key) {
				continue
			}
		}
		s.used[i]++
		return step, true, false
	}
	if s.random == nil {
		return Step{}, false, false
	}
	if !bodyRead {
		return Step{}, false, true
	}
	at := id.Op + "\x00" + id.Key
	s.seen[at]++
	step, found = s.random.Choose(id.Op, id.Key, s.seen[at])
	return step, found, false
}

func (s Step) left(used int) int {
	switch {
	case s.Count < 0:
		return -1
	case s.Count == 0:
		return 1 - used
	}
	return s.Count - used
}

func (s Step) matches(method string, id Identity) bool {
	if s.Match == "" {
		return true
	}
	// Names of operations may hold a slash, as those of Git do.
	if strings.Contains(s.Match, "/") && glob(s.Match, method+" "+id.Path) {
		return true
	}
	return glob(s.Match, id.Op)
}

// glob matches with * for any characters.
func glob(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	if !strings.HasPrefix(name, first) {
		return false
	}
	for name = name[len(first):]; ; name = name[1:] {
		if glob(rest, name) {
			return true
		}
		if name == "" {
			return false
		}
	}
}
