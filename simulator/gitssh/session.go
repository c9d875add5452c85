package gitssh

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/simulator"
	"github.com/holdfast-dev/holdfast/simulator/internal/repositories"
)

// session is one program on its way through the stations of the package comment.
type session struct {
	*connection
	channel ssh.Channel
	n       int
	op, key string
	step    Step
	// client ends with the connection, ctx also when the step ends the session.
	client, ctx context.Context
	cancel      context.CancelFunc

	mu      sync.Mutex
	list    listEnd // of what the program has said
	sent    int
	ended   bool // by the step
	settled bool
	before  map[string]string // the refs when the client's request began
	unlock  func()
}

func (c *connection) exec(client context.Context, channel ssh.Channel, line, protocol string) {
	s := c.server
	op, name, ok := parse(line)
	n := s.ledger.Enter(simulator.Request{
		At: s.now(), Method: "SSH", Op: op, Key: name, Path: name, Conn: c.n, ConnRequest: int(c.execs.Add(1)),
	}, c.user)
	step, found := s.script.take(op, name)
	s.ledger.Change(n, func(r *simulator.Request) {
		if found {
			r.Step = step.Note
		}
	})
	ctx, cancel := context.WithCancel(client)
	defer cancel()
	x := &session{connection: c, channel: channel, n: n, op: op, key: name, step: step, client: client, ctx: ctx, cancel: cancel}
	switch {
	case !ok:
		x.fail(128, "fatal: only git-upload-pack and git-receive-pack are served here\n")
	case step.Where == AtStart:
		x.endBy(simulator.NoAnswer)
	case step.Exit != 0 || step.Stderr != "":
		x.fail(step.Exit, step.Stderr)
	default:
		x.run(protocol)
	}
}

// fail is the end of a program that did nothing.
func (x *session) fail(exit int, stderr string) {
	io.WriteString(x.channel.Stderr(), stderr)
	x.finish(x.n, simulator.Answered)
	x.exit(exit)
}

func (x *session) exit(status int) {
	x.channel.CloseWrite()
	x.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
	x.channel.Close()
}

// run runs the program between the client and the repository.
func (x *session) run(protocol string) {
	cmd := exec.CommandContext(x.ctx, x.server.dir.Git, strings.TrimPrefix(x.op, "git-"), x.server.dir.Path(x.key))
	cmd.Env = append(repositories.Environment(), "GIT_PROTOCOL="+protocol)
	ownGroup(cmd)
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		x.fail(128, "fatal: no pipe\n")
		return
	}
	errs := &renamed{x: x}
	cmd.Stdout, cmd.Stderr = x, errs
	if err := cmd.Start(); err != nil {
		x.fail(128, "fatal: the program could not be started\n")
		return
	}
	// It ends with the program, whose session closes the channel.
	x.server.work.Go(func() {
		defer stdin.Close()
		x.feed(stdin)
	})
	x.settle(cmd.Wait())
}

// renamed shows a client the repository's name and not its place on this disk.
type renamed struct{ x *session }

func (w *renamed) Write(p []byte) (int, error) {
	text := strings.ReplaceAll(string(p), w.x.server.dir.Root, "")
	if _, err := io.WriteString(w.x.channel.Stderr(), text); err != nil {
		w.x.cancel()
		return 0, err
	}
	return len(p), nil
}

// feed gives the program what the client sends. The refs are noted and locked
// when a push begins: what changes until the program ends is its doing.
func (x *session) feed(stdin io.Writer) {
	buf := make([]byte, 32<<10)
	for first := true; ; first = false {
		n, err := x.channel.Read(buf)
		if n > 0 {
			if first && x.begin() {
				return
			}
			x.server.ledger.Change(x.n, func(r *simulator.Request) { r.BodyBytes += int64(n) })
			if _, err := stdin.Write(buf[:n]); err != nil {
				return
			}
		}
		if errors.Is(err, io.EOF) {
			x.server.ledger.Change(x.n, func(r *simulator.Request) { r.BodyRead = true })
		}
		if err != nil {
			return
		}
	}
}

// begin is the beginning of the client's request; it reports whether the step
// ends the session there.
func (x *session) begin() (over bool) {
	if x.step.Where == AtRequest {
		x.stop()
		return true
	}
	if x.op != OpReceivePack {
		return false
	}
	unlock := x.server.dir.Lock(x.key)
	before := x.server.dir.Refs(x.key)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.settled {
		unlock()
		return true
	}
	x.unlock, x.before = unlock, before
	return false
}

// stop ends the program because the step says so; settle does the rest.
func (x *session) stop() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.cancel()
}

// Write is what the program says, as far as the step lets it through.
func (x *session) Write(p []byte) (int, error) {
	allowed := p
	x.mu.Lock()
	switch x.step.Where {
	case AtBytes:
		allowed = p[:min(len(p), x.step.Bytes-x.sent)]
	case AtAnswer:
		allowed = p[:x.list.within(p)]
	}
	x.sent += len(allowed)
	x.mu.Unlock()
	if err := x.send(allowed); err != nil {
		x.cancel()
		return 0, err
	}
	if x.step.Where == AtBytes && x.sent == x.step.Bytes { // sent is changed here only
		x.stop()
	}
	return len(p), nil
}

// send sends p, at the step's rate if it has one.
func (x *session) send(p []byte) error {
	if x.step.Rate <= 0 {
		_, err := x.channel.Write(p)
		return err
	}
	const tick = 20 * time.Millisecond
	portion := max(1, x.step.Rate/int(time.Second/tick))
	for len(p) > 0 {
		t := time.NewTimer(time.Duration(portion) * time.Second / time.Duration(x.step.Rate))
		select {
		case <-t.C:
		case <-x.ctx.Done():
			t.Stop()
			return x.ctx.Err()
		}
		n, err := x.channel.Write(p[:min(len(p), portion)])
		if err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// settle enters the effects and ends the session, once the program has ended.
func (x *session) settle(err error) {
	x.mu.Lock()
	x.settled = true
	unlock, before, ended, sent := x.unlock, x.before, x.ended, x.sent
	x.mu.Unlock()
	if unlock != nil {
		for _, change := range repositories.Changes(before, x.server.dir.Refs(x.key)) {
			x.server.ledger.Enact(simulator.Effect{
				Kind: EffectRef, ID: change.New, Key: x.key, Content: change.String(), Request: x.n, At: x.server.now(),
			})
		}
		unlock()
	}
	var exit *exec.ExitError
	switch {
	case ended || x.step.Where == AtAnswer:
		outcome := simulator.CutShort
		if sent == 0 {
			outcome = simulator.NoAnswer
		}
		x.endBy(outcome)
	case x.ctx.Err() != nil:
		x.left(x.n)
		x.finish(x.n, simulator.Left)
	case errors.As(err, &exit):
		x.finish(x.n, simulator.Answered)
		x.exit(exit.ExitCode())
	case err != nil:
		x.finish(x.n, simulator.Answered)
		x.exit(128)
	default:
		x.finish(x.n, simulator.Answered)
		x.exit(0)
	}
}

// endBy ends the session as the step says.
func (x *session) endBy(outcome simulator.Outcome) {
	x.finish(x.n, outcome)
	if x.step.How != Stall {
		x.end(x.n, x.step.How)
		return
	}
	<-x.client.Done()
	x.left(x.n)
}

// listEnd follows pkt-lines up to the flush that ends the list of refs.
type listEnd struct {
	over bool
	left int    // of the line under way
	head []byte // of a line whose length is not known yet
}

// within is how many bytes of p belong to the list.
func (l *listEnd) within(p []byte) int {
	for i := range p {
		if l.over {
			return i
		}
		if l.left > 0 {
			l.left--
			continue
		}
		if l.head = append(l.head, p[i]); len(l.head) < 4 {
			continue
		}
		size, err := strconv.ParseUint(string(l.head), 16, 16)
		l.head = l.head[:0]
		if err != nil || size == 0 {
			l.over = true
			continue
		}
		l.left = max(int(size)-4, 0)
	}
	return len(p)
}
