package attempt

import (
	"time"

	"github.com/holdfast-dev/holdfast/policies"
)

// Fault returns the facts of a request that failed with err, for policies to
// judge. Provider, Operation and what only the caller knows are left for it to
// fill in.
//
// Status, headers and what was read of an error body are in force even when
// the body broke off (C2). The transport code is that of the transport's own
// error; err speaks only where the transport saw none, and not at all about
// transport when the answer came whole.
func (r *Record) Fault(surface policies.Surface, err error, now time.Time) policies.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.last
	f := policies.Fault{
		Surface:    surface,
		Status:     x.status,
		Header:     x.header.Clone(),
		Body:       x.body(),
		Phase:      x.phase(),
		NotStarted: r.notStarted(),
		Started:    r.gotConns > 0,
		Now:        now,
	}
	own := x.failure()
	if err == nil {
		err = own
	}
	f.Message = Redacted(err)
	f.Code, f.Syscall = Code(own)
	if f.Code == "" && x.end != BodyEOF {
		f.Code, f.Syscall = Code(err)
	}
	if r.getConns > 0 {
		f.Code, f.Syscall = timeoutOf(f.Code, f.Syscall, f.Phase)
	} else if isTimeout(f.Code) {
		f.Code, f.Syscall = codeAborted, ""
	}
	return f
}

func isTimeout(code string) bool { return code == codeTimeout || code == codeConnectTimeout }

// timeoutOf names a timeout after the phase in which it struck. One that the
// kernel reported (it has a system call) keeps its name.
func timeoutOf(code, call string, phase policies.Phase) (string, string) {
	if !isTimeout(code) || (code == codeTimeout && call != "") {
		return code, call
	}
	switch phase {
	case policies.PhaseConnect:
		return codeConnectTimeout, "connect"
	case policies.PhaseHeaders:
		return codeHeadersTimeout, ""
	}
	return codeBodyTimeout, ""
}
