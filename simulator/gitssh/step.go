package gitssh

import (
	"fmt"
	"sync"
)

// Place is where a step ends a session.
type Place int

const (
	// Nowhere lets the session end by itself.
	Nowhere Place = iota
	// AtStart is before anything: for a connection before the handshake, for a
	// program before it runs.
	AtStart
	// AtBytes is once so many bytes of the program's output have left.
	AtBytes
	// AtRequest is once the first byte has arrived that the client sends after
	// the list of refs; the program does not get it.
	AtRequest
	// AtAnswer is once the program has done its work; nothing that it says after
	// the list of refs leaves.
	AtAnswer
)

// End is how a step ends a session.
type End int

const (
	// Close closes the connection in order.
	Close End = iota
	// Reset resets it.
	Reset
	// Stall keeps it open in silence, until the client leaves or the server closes.
	Stall
)

// Step is one entry of a fault script: a connection or a program takes the first
// step that matches it and is not used up. The zero Step serves anything as it
// would be.
type Step struct {
	// Match is an operation: OpConnect, OpUploadPack or OpReceivePack. Empty
	// matches every program.
	Match string
	// Key is a repository. Empty matches all.
	Key string
	// Count is how many take the step: 0 is one, -1 is all.
	Count int
	// Note names the step in the ledger.
	Note string

	// RefuseAuth refuses every key of a connection.
	RefuseAuth bool
	// Stderr and Exit, where either is set, are what a program says and how it
	// ends, without being run.
	Stderr string
	Exit   int
	// Rate, where above 0, is how many bytes of a program's output leave in a
	// second.
	Rate int
	// Where, Bytes and How end the session.
	Where Place
	Bytes int
	How   End
}

// RefuseAuth refuses every key of a connection.
func RefuseAuth() Step { return Step{Match: OpConnect, Note: "key refused", RefuseAuth: true} }

// RefuseConnection ends a connection before the handshake.
func RefuseConnection(how End) Step {
	return Step{Match: OpConnect, Note: "connection ended", Where: AtStart, How: how}
}

// Fail has a program say something and end with a status.
func Fail(exit int, stderr string) Step {
	return Step{Note: fmt.Sprintf("exit %d", exit), Exit: exit, Stderr: stderr}
}

// NotFound is how large hosts say that a repository is not there.
func NotFound() Step {
	return Fail(128, "ERROR: Repository not found.\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n")
}

// EndAtStart ends a session before the program runs.
func EndAtStart(how End) Step { return Step{Note: "ended at its start", Where: AtStart, How: how} }

// CutBytes closes a session after n bytes of the program's output.
func CutBytes(n int) Step {
	return Step{Note: fmt.Sprintf("cut after %d bytes", n), Where: AtBytes, Bytes: n}
}

// StallBytes falls silent after n bytes of the program's output.
func StallBytes(n int) Step {
	return Step{Note: fmt.Sprintf("stall after %d bytes", n), Where: AtBytes, Bytes: n, How: Stall}
}

// LosePush resets the connection of a push before the push is read.
func LosePush() Step {
	return Step{Match: OpReceivePack, Note: "push lost before it arrived", Where: AtRequest, How: Reset}
}

// LandThenReset lets a push land and resets the connection without an answer.
func LandThenReset() Step {
	return Step{Match: OpReceivePack, Note: "push landed, answer lost", Where: AtAnswer, How: Reset}
}

// Slow sends a program's output at so many bytes per second.
func Slow(rate int) Step { return Step{Note: fmt.Sprintf("%d bytes per second", rate), Rate: rate} }

// On restricts the step to an operation.
func (s Step) On(op string) Step { s.Match = op; return s }

// ForKey restricts the step to a repository.
func (s Step) ForKey(name string) Step { s.Key = name; return s }

// Times makes n take the step.
func (s Step) Times(n int) Step { s.Count = n; return s }

// Always makes all take the step.
func (s Step) Always() Step { s.Count = -1; return s }

func (s Step) matches(op, key string) bool {
	if s.Match == "" && op == OpConnect {
		return false
	}
	return (s.Match == "" || s.Match == op) && (s.Key == "" || s.Key == key)
}

type script struct {
	mu    sync.Mutex
	steps []Step
}

func (s *script) add(steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range steps {
		if step.Count == 0 {
			step.Count = 1
		}
		s.steps = append(s.steps, step)
	}
}

// take picks the step of a connection or a program.
func (s *script) take(op, key string) (Step, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.steps {
		if step := &s.steps[i]; step.Count != 0 && step.matches(op, key) {
			if step.Count > 0 {
				step.Count--
			}
			return *step, true
		}
	}
	return Step{}, false
}

func (s *script) remaining() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []Step
	for _, step := range s.steps {
		if step.Count != 0 {
			left = append(left, step)
		}
	}
	return left
}

func (s *script) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = nil
}
