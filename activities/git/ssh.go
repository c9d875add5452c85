package git

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/proxy"
)

// go-git dials SSH without the caller's context, and its handshake has no limit.
// The way in is its proxy option: the URL of a "proxy" of our own scheme names
// the operation, whose context then bounds the dialling and the connection.
const dialScheme = "holdfast-ssh"

var (
	dialers    sync.Map // string → *contextDialer
	lastDialer atomic.Int64
)

func registerDialer() {
	proxy.RegisterDialerType(dialScheme, func(u *url.URL, _ proxy.Dialer) (proxy.Dialer, error) {
		d, ok := dialers.Load(u.Host)
		if !ok {
			return nil, errors.New("git: no operation waits for this connection")
		}
		return d.(*contextDialer), nil
	})
}

// dialWithin returns the proxy URL under which SSH connections live no longer
// than ctx. release forgets it.
func dialWithin(ctx context.Context, connect time.Duration) (proxyURL string, release func()) {
	id := strconv.FormatInt(lastDialer.Add(1), 10)
	dialers.Store(id, &contextDialer{ctx: ctx, dialer: net.Dialer{Timeout: connect}})
	return dialScheme + "://" + id, func() { dialers.Delete(id) }
}

type contextDialer struct {
	ctx    context.Context
	dialer net.Dialer
}

func (d *contextDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(d.ctx, network, address)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(d.ctx, func() { conn.Close() })
	return conn, nil
}

func (d *contextDialer) DialContext(_ context.Context, network, address string) (net.Conn, error) {
	return d.Dial(network, address)
}
