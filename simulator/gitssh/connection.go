package gitssh

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-dev/holdfast/simulator"
)

// connection is one client.
type connection struct {
	server *Server
	tcp    *net.TCPConn
	n      int
	host   ssh.Signer
	user   string // the fingerprint of the key that logged in
	execs  atomic.Int32
}

func (c *connection) serve() {
	s := c.server
	// What is left of the client ends with the connection, the programs too.
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.tcp.Close() })()
	defer c.tcp.Close()

	n := s.ledger.Enter(simulator.Request{At: s.now(), Method: "SSH", Op: OpConnect, Conn: c.n}, "")
	step, found := s.script.take(OpConnect, "")
	s.ledger.Change(n, func(r *simulator.Request) {
		if found {
			r.Step = step.Note
		}
	})
	if step.Where == AtStart {
		c.finish(n, simulator.NoAnswer)
		c.end(n, step.How)
		return
	}
	client, channels, requests, err := ssh.NewServerConn(c.tcp, c.config(step))
	if err != nil {
		c.finish(n, simulator.NoAnswer)
		return
	}
	defer client.Close()
	c.finish(n, simulator.Answered)
	s.work.Go(func() { ssh.DiscardRequests(requests) })
	for open := range channels {
		if open.ChannelType() != "session" {
			open.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, requests, err := open.Accept()
		if err != nil {
			return
		}
		s.work.Go(func() { c.session(ctx, channel, requests) })
	}
}

// config lets in the keys that are allowed.
func (c *connection) config(step Step) *ssh.ServerConfig {
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if step.RefuseAuth || !c.server.allows(key) {
				return nil, errors.New("this key is not allowed")
			}
			c.user = ssh.FingerprintSHA256(key)
			return nil, nil
		},
	}
	config.AddHostKey(c.host)
	return config
}

func (c *connection) finish(n int, o simulator.Outcome) {
	c.server.ledger.Change(n, func(r *simulator.Request) { r.Outcome = o })
}

// end ends the connection of an entry.
func (c *connection) end(n int, how End) {
	switch how {
	case Reset:
		c.tcp.SetLinger(0)
		c.tcp.Close()
	case Stall:
		// The handshake is not answered, or the channel not read, so the
		// client's leaving is seen by reading here.
		io.Copy(io.Discard, c.tcp)
		c.left(n)
	default:
		// What has arrived and is not read would make a RST of the end.
		const patience = 2 * time.Second
		c.tcp.CloseWrite()
		c.tcp.SetReadDeadline(time.Now().Add(patience))
		io.Copy(io.Discard, c.tcp)
		c.tcp.Close()
	}
}

// left notes that the client of an entry has gone, unless we have.
func (c *connection) left(n int) {
	if c.server.ctx.Err() != nil {
		return
	}
	c.server.ledger.Change(n, func(r *simulator.Request) { r.GoneAt = c.server.now() })
}

// session waits for the one program that a client asks for in a channel.
func (c *connection) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	protocol := ""
	for req := range requests {
		switch req.Type {
		case "env":
			var env struct{ Name, Value string }
			ok := ssh.Unmarshal(req.Payload, &env) == nil && env.Name == "GIT_PROTOCOL"
			if ok {
				protocol = env.Value
			}
			req.Reply(ok, nil)
		case "exec":
			var command struct{ Line string }
			if ssh.Unmarshal(req.Payload, &command) != nil {
				req.Reply(false, nil)
				return
			}
			req.Reply(true, nil)
			c.server.work.Go(func() { ssh.DiscardRequests(requests) })
			c.exec(ctx, channel, command.Line, protocol)
			return
		default:
			req.Reply(false, nil)
		}
	}
}

// parse reads "git-upload-pack '/a/p.git'"; the repository is named from the root
// of all repositories, and one that would lie outside is none.
func parse(line string) (op, name string, ok bool) {
	op, arg, _ := strings.Cut(line, " ")
	if op != OpUploadPack && op != OpReceivePack {
		return op, "", false
	}
	arg = strings.ReplaceAll(strings.Trim(strings.TrimSpace(arg), "'"), `'\''`, "'")
	name = strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(arg, "~/")), "/")
	return op, name, name != ""
}
