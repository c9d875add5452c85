package temporalserver

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// startUI serves the web UI on the reserved address. The frontend must serve
// already: the UI connects at once, and a connection that fails makes it answer
// 503 for a while. The UI server binds the address itself and ends the process if
// it cannot, so the reservation is held until then.
func startUI(ctx context.Context, r reservation, frontend netip.AddrPort, o Options) (*uiserver.Server, error) {
	ui := uiserver.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		TemporalGRPCAddress: frontend.String(),
		Host:                uiHost(r.addr.Addr()),
		Port:                int(r.addr.Port()),
		EnableUI:            true,
		DefaultNamespace:    o.Namespace,
		DisableNewsFetch:    true,
		HideLogs:            true,
		// Served over plain HTTP on loopback.
		CORS:  uiconfig.CORS{CookieInsecure: true},
		Codec: uiconfig.Codec{Endpoint: o.CodecEndpoint},
	}))
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("hand over %s to the UI: %w", r.addr, err)
	}
	go ui.Start()
	if err := waitListening(ctx, dialable(r.addr).String()); err != nil {
		ui.Stop()
		return nil, err
	}
	return ui, nil
}

// uiHost writes an address as the UI server wants it before ":port".
func uiHost(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	return "[" + ip.String() + "]"
}

func waitListening(ctx context.Context, address string) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the UI on %s: %w", address, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
