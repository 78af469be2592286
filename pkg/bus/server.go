package bus

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/errs"
)

// Embedded says how the server inside this process runs.
type Embedded struct {
	Folder string // where JetStream keeps its data
	Listen string // host:port for other processes; port 0 takes a free one; "" for none
}

const (
	maxPayload = 1 << 20

	// unreserved keeps the server from setting aside the bounds of the streams:
	// belfry starts on a disk that could not hold a full log.
	unreserved = 1 << 50
	startLimit = 10 * time.Second
)

// embedded is the server inside this process. It can be stopped and started
// again; a connection always goes to the current one.
type embedded struct {
	opts Embedded
	auth Auth
	log  *slog.Logger

	mu      sync.Mutex // start and stop, one at a time
	address string     // the listener's, once it is known
	current atomic.Pointer[running]
}

type running struct {
	server  *server.Server
	account *server.Account
}

func newEmbedded(opts Embedded, auth Auth, log *slog.Logger) *embedded {
	return &embedded{opts: opts, auth: auth, log: log, address: opts.Listen}
}

func (e *embedded) start(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current.Load() != nil {
		return nil
	}
	opts, err := e.serverOptions(ctx)
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return errs.Wrap(err, errs.Internal, "make the embedded bus")
	}
	fatal := make(chan string, 1)
	s.SetLoggerV2(&serverLog{log: e.log, fatal: fatal}, false, false, false)
	s.Start()
	if err := awaitServer(ctx, s, fatal); err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return err
	}
	if e.opts.Listen != "" {
		e.address = s.Addr().String()
	}
	e.current.Store(&running{server: s, account: s.GlobalAccount()})
	return nil
}

func awaitServer(ctx context.Context, s *server.Server, fatal <-chan string) error {
	limit := startLimit
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	ready := s.ReadyForConnections(limit)
	select {
	case message := <-fatal:
		return errs.New(errs.Unavailable, "the embedded bus can't start: %s", message)
	default:
	}
	if !ready {
		return errs.New(errs.Unavailable, "the embedded bus was not ready in %s", limit)
	}
	return nil
}

func (e *embedded) serverOptions(ctx context.Context) (*server.Options, error) {
	opts := &server.Options{
		ServerName:             "belfry",
		NoSigs:                 true,
		MaxPayload:             maxPayload,
		JetStream:              true,
		StoreDir:               e.opts.Folder,
		JetStreamMaxMemory:     64 << 20,
		JetStreamMaxStore:      unreserved,
		DisableJetStreamBanner: true,
		Username:               e.auth.User,
		Password:               e.auth.Password,
		Authorization:          e.auth.Token,
		DontListen:             e.opts.Listen == "",
	}
	if opts.DontListen {
		return opts, nil
	}
	host, port, err := listenAddress(ctx, e.address)
	opts.Host, opts.Port = host, port
	return opts, err
}

// listenAddress makes sure that the address can be listened on, because the
// server itself would only log that it can't.
func listenAddress(ctx context.Context, address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, errs.Wrap(err, errs.Invalid, "bus: listen %q is not host:port", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, errs.New(errs.Invalid, "bus: listen %q has no port from 0 to 65535", address)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	probe, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, text))
	if err != nil {
		return "", 0, errs.Wrap(err, errs.Unavailable, "bus: can't listen on %s", address)
	}
	return host, port, probe.Close()
}

func (e *embedded) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.current.Swap(nil)
	if r == nil {
		return
	}
	r.server.Shutdown()
	r.server.WaitForShutdown()
}

// InProcessConn gives the client a connection to whichever server runs now.
func (e *embedded) InProcessConn() (net.Conn, error) {
	r := e.current.Load()
	if r == nil {
		return nil, errors.New("the embedded bus is stopped")
	}
	return r.server.InProcessConn()
}

func (e *embedded) interest(subject string) bool {
	r := e.current.Load()
	return r != nil && r.account.Interest(subject) > 0
}

func (e *embedded) clientURL() string {
	if r := e.current.Load(); r != nil && e.opts.Listen != "" {
		return r.server.ClientURL()
	}
	return ""
}
