package githttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/holdfast-dev/holdfast/simulator"
)

// What goes wrong in any HTTP exchange is a step of package simulator, with On
// for the phase: Status before anything else, CutBytes, Reset, CloseUnread,
// Stall, HalfOpen, Slow, Torn and so on. Here are those that speak Git.

// ContentType is what a Git server calls its answer to an operation.
func ContentType(op string) string {
	switch op {
	case OpFetchRefs, OpPushRefs:
		return "application/x-" + op[len("info/refs?service="):] + "-advertisement"
	case OpReceivePack:
		return "application/x-git-receive-pack-result"
	}
	return "application/x-git-upload-pack-result"
}

// Empty is a 200 answer to an operation with an empty body, as some proxies give;
// nothing is done.
func Empty(op string) simulator.Step { return Says(op, "").As("200 with an empty body") }

// Says is a 200 answer to an operation with a body of the right kind; nothing is
// done.
func Says(op, body string) simulator.Step {
	return simulator.Status(http.StatusOK, body).WithHeader("Content-Type", ContentType(op)).On(op)
}

// Ref is a line of a list of refs.
type Ref struct{ ID, Name string }

// Advertise answers an operation that lists refs with these ones, whatever they
// are called, in protocol version 0.
func Advertise(op string, refs ...Ref) simulator.Step {
	var b strings.Builder
	line := func(text string) { fmt.Fprintf(&b, "%04x%s", len(text)+4, text) }
	service := OpUploadPack
	if op == OpPushRefs {
		service = OpReceivePack
	}
	line("# service=" + service + "\n")
	b.WriteString("0000")
	for i, ref := range refs {
		capabilities := ""
		if i == 0 {
			capabilities = "\x00ofs-delta side-band-64k report-status agent=simulator"
		}
		line(ref.ID + " " + ref.Name + capabilities + "\n")
	}
	b.WriteString("0000")
	return Says(op, b.String()).As("list of refs of our own")
}

// EmptyPack is a 200 answer to a fetch with an empty body.
func EmptyPack() simulator.Step { return Empty(OpUploadPack) }

// Unavailable is a 503.
func Unavailable() simulator.Step {
	return simulator.Status(http.StatusServiceUnavailable, "Service Unavailable\n")
}

// CutPack closes the connection after n bytes of a pack.
func CutPack(n int) simulator.Step { return simulator.CutBytes(n).On(OpUploadPack) }

// Redirect sends an operation on to the same operation of the repository at
// another address, which is of this server for hosts that add ".git", or of
// another one.
func Redirect(status int, op, repository string) simulator.Step {
	path := op
	if op == OpListRefs {
		path = OpUploadPack
	}
	return simulator.Status(status, "").WithHeader("Location", repository+"/"+path).On(op).
		As(fmt.Sprintf("redirect %d", status))
}

// LandThenReset lets a push land and resets the connection without an answer.
func LandThenReset() simulator.Step {
	return simulator.EffectThenReset().On(OpReceivePack).As("push landed, answer lost")
}

// LosePush resets the connection of a push before the push is read.
func LosePush() simulator.Step {
	return simulator.ResetUnread().On(OpReceivePack).As("push lost before it arrived")
}

// ResetReusedPush resets, without an answer, a push that comes on a connection
// which has served another request. HTTP clients take that for a connection that
// was closed while it was idle, and some send the push again unasked: the ledger
// has each of them.
func ResetReusedPush() simulator.Step {
	return simulator.Reset().On(OpReceivePack).OnReused().As("push on a reused connection reset")
}

// Faults is a mix of faults for random scripts in which about rate of the
// requests fail, each kind as often as the others.
func Faults(rate float64) []simulator.RandomFault {
	steps := []simulator.Step{
		Unavailable(), simulator.Reset(), simulator.Close(), EmptyPack(), CutPack(300), LandThenReset(),
	}
	var faults []simulator.RandomFault
	for _, step := range steps {
		faults = append(faults, simulator.RandomFault{Rate: rate / float64(len(steps)), Step: step})
	}
	return faults
}
