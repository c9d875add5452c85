package temporalserver

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/google/uuid"
	uiserver "github.com/temporalio/ui-server/v2/server"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/temporal"
)

// What Options means where it says nothing.
const (
	DefaultListen    = "127.0.0.1:7233"
	DefaultUIListen  = "127.0.0.1:8233"
	DefaultNamespace = "default"

	// DefaultRetention is how long closed executions are kept. A repeated start
	// is recognised for as long.
	DefaultRetention = 30 * 24 * time.Hour
)

// Names of the flags that set the addresses, for messages.
const (
	flagListen   = "--listen"
	flagUIListen = "--ui-listen"
)

// Options says what to run. The zero value needs only DataDir or Ephemeral.
type Options struct {
	// CodecEndpoint is the URL that the UI asks to decode payloads; none if empty.
	CodecEndpoint string

	// DataDir holds the store and its lock; it is made if it does not exist.
	DataDir string

	// Ephemeral keeps everything in memory. DataDir is then not used.
	Ephemeral bool

	// Listen is the IP:PORT of the frontend; port 0 takes a free one.
	//
	// Defaults to DefaultListen.
	Listen string

	// Logger takes the server's warnings and errors.
	//
	// Defaults to none.
	Logger *slog.Logger

	// Namespace is made if it does not exist.
	//
	// Defaults to DefaultNamespace.
	Namespace string

	// NoUI leaves the web UI out.
	NoUI bool

	// Retention is how long a new namespace keeps closed executions.
	//
	// Defaults to DefaultRetention.
	Retention time.Duration

	// SearchAttributes are the Keyword attributes that the namespace must have.
	// Those it lacks are added.
	SearchAttributes []string

	// UIListen is the IP:PORT of the web UI; port 0 takes a free one.
	//
	// Defaults to DefaultUIListen.
	UIListen string

	// Version of the build. It is set as the SDK's binary checksum, which saves
	// the hashing of the executable (0.4 s) at the start of the first worker.
	Version string
}

func (o Options) withDefaults() Options {
	o.Listen = cmp.Or(o.Listen, DefaultListen)
	o.UIListen = cmp.Or(o.UIListen, DefaultUIListen)
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Retention = cmp.Or(o.Retention, DefaultRetention)
	o.Version = cmp.Or(o.Version, "dev")
	return o
}

// Server is a running Temporal server and its web UI.
type Server struct {
	namespace string
	address   string
	uiURL     string

	log    logger
	lock   *os.File
	memory *sql.DB // keeps a store in memory
	ui     *uiserver.Server
	server temporal.Server
	stop   sync.Once
}

// Address is the IP:PORT at which clients on this machine reach the frontend.
func (s *Server) Address() string { return s.address }

// Namespace is the namespace that was made or found.
func (s *Server) Namespace() string { return s.namespace }

// UIURL is the address of the web UI, empty without one.
func (s *Server) UIURL() string { return s.uiURL }

// Stop ends the UI and the server and frees the data directory. It takes about
// one second, which is the shortest drain that the frontend knows. Work that is
// cut short continues when the store is next opened. Workers and clients should
// be stopped before.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.log.gate.open(levelSilent)
		if s.ui != nil {
			s.ui.Stop()
		}
		if s.server != nil {
			s.server.Stop()
		}
		if s.memory != nil {
			s.memory.Close()
		}
		if s.lock != nil {
			s.lock.Close()
		}
	})
}

// Start runs a server and returns when its frontend serves. Nothing is left
// running when it fails. Errors that the user can mend are [*AddressError],
// [*PortInUseError], [*InUseError], [*SchemaError] and [*AttributeLimitError].
func Start(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	if o.DataDir == "" && !o.Ephemeral {
		return nil, errors.New("no place for the store: set DataDir or Ephemeral")
	}
	s := &Server{namespace: o.Namespace, log: newLogger(o.Logger)}
	if err := s.start(ctx, o); err != nil {
		s.log.gate.flush()
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context, o Options) error {
	frontend, err := reserve(o.Listen, flagListen)
	if err != nil {
		return err
	}
	defer func() { frontend.Close() }()
	s.address = dialable(frontend.addr).String()
	var ui reservation
	if !o.NoUI {
		if ui, err = reserve(o.UIListen, flagUIListen); err != nil {
			return err
		}
		defer ui.Close()
	}

	store, err := s.openStore(ctx, o)
	if err != nil {
		return err
	}
	worker.SetBinaryChecksum(o.Version)
	if s.server, err = s.assemble(store, &frontend); err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return fmt.Errorf("start the temporal server: %w", err)
	}
	if !o.NoUI {
		if s.ui, err = startUI(ctx, ui, dialable(frontend.addr), o); err != nil {
			return err
		}
		s.uiURL = "http://" + dialable(ui.addr).String()
	}
	s.log.gate.open(slog.LevelWarn)
	return nil
}

// openStore makes the store ready, with its namespace, and holds its lock.
func (s *Server) openStore(ctx context.Context, o Options) (*config.SQL, error) {
	if o.Ephemeral {
		store := memoryStore("holdfast-" + uuid.NewString())
		var err error
		if s.memory, err = openMemory(store); err != nil {
			return nil, err
		}
		return store, ensureNamespace(ctx, store, o)
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	var err error
	if s.lock, err = lockDir(o.DataDir); err != nil {
		return nil, err
	}
	if err := openFile(o.DataDir); err != nil {
		return nil, err
	}
	store := fileStore(o.DataDir)
	return store, ensureNamespace(ctx, store, o)
}

// assembleAttempts bounds how often ports are chosen anew.
const assembleAttempts = 5

// assemble builds the server, which binds its four ports on the way. The ports
// are free until the moment before; if another process takes an inner one in
// between, the next attempt has others. The frontend's stays as given.
func (s *Server) assemble(store *config.SQL, frontend *reservation) (temporal.Server, error) {
	var failed *fatal
	for range assembleAttempts {
		server, err := s.assembleOnce(store, frontend)
		if err == nil {
			return server, nil
		}
		if !errors.As(err, &failed) {
			return nil, err
		}
		if failed.address() == frontend.addr.String() {
			return nil, &PortInUseError{Address: frontend.addr.String(), Flag: flagListen}
		}
		// The failed attempt may hold the frontend's port in a listener that only
		// the collector can close; if it does not, the first failure is what counts.
		runtime.GC()
		again, err := reserve(frontend.addr.String(), flagListen)
		if err != nil {
			return nil, failed
		}
		*frontend = again
	}
	return nil, failed
}

func (s *Server) assembleOnce(store *config.SQL, frontend *reservation) (server temporal.Server, err error) {
	addrs, err := takePorts(frontend)
	if err != nil {
		return nil, err
	}
	cfg := serverConfig(store, addrs)
	authorizer, err := authorization.GetAuthorizerFromConfig(&cfg.Global.Authorization)
	if err != nil {
		return nil, fmt.Errorf("assemble the temporal server: %w", err)
	}
	claims, err := authorization.GetClaimMapperFromConfig(&cfg.Global.Authorization, s.log)
	if err != nil {
		return nil, fmt.Errorf("assemble the temporal server: %w", err)
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *fatal:
			err = r
		default:
			panic(r)
		}
	}()
	server, err = temporal.NewServer(
		temporal.WithConfig(cfg),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(addrs)),
		temporal.WithLogger(s.log),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return claims }),
		temporal.WithDynamicConfigClient(dynamicConfig()),
	)
	if err != nil {
		return nil, fmt.Errorf("assemble the temporal server: %w", err)
	}
	return server, nil
}

// takePorts chooses free loopback ports for the inner services and gives up the
// reservations of all four.
func takePorts(frontend *reservation) ([]netip.AddrPort, error) {
	addrs := []netip.AddrPort{frontend.addr}
	held := []*reservation{frontend}
	defer func() {
		for _, r := range held {
			r.Close()
		}
	}()
	for range services[1:] {
		r, err := reserve("127.0.0.1:0", flagListen)
		if err != nil {
			return nil, err
		}
		held = append(held, &r)
		addrs = append(addrs, r.addr)
	}
	return addrs, nil
}
