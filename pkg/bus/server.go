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
	Folder string // where JetStream keeps its data; with Config, when that says nothing else
	Listen string // host:port for other processes; port 0 takes a free one; "" for none, or what Config says

	// Config is a file as nats-server takes it, by which the server then runs.
	// Auth is which of its users we are.
	Config string
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
	last    atomic.Pointer[running] // the current one, or the one before
}

type running struct {
	server  *server.Server
	account atomic.Pointer[server.Account] // ours; nil while it is unknown
	joined  bool                           // to other servers
	synced  bool                           // what it acknowledges is on disk
	folder  string                         // of its accounts' streams
	listens bool
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
		if e.opts.Config != "" {
			return errs.Wrap(err, errs.Invalid, "bus.config: %s can't be used", e.opts.Config)
		}
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
	r := &running{
		server: s, joined: joined(opts), synced: opts.SyncAlways,
		folder: storeFolder(opts), listens: !opts.DontListen,
	}
	if r.listens {
		e.address = s.Addr().String()
	}
	if e.opts.Config == "" {
		r.account.Store(s.GlobalAccount())
	}
	e.last.Store(r)
	e.current.Store(r)
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
	opts, warned, err := e.opts.options()
	if err != nil {
		return nil, err
	}
	for _, w := range warned {
		e.log.Warn("the bus's configuration is doubtful", "file", e.opts.Config, "warning", w)
	}
	address := e.address
	switch {
	case e.opts.Config == "":
		opts.Username, opts.Password, opts.Authorization = e.auth.User, e.auth.Password, e.auth.Token
		opts.DontListen = address == ""
	case asksNobody(opts) && e.auth != Auth{}:
		return nil, errs.New(errs.Invalid, "bus.config: %s has no users, so bus.user and the like would protect nothing: remove them, or give it users", e.opts.Config)
	case address == "":
		address = net.JoinHostPort(opts.Host, strconv.Itoa(max(opts.Port, 0)))
	}
	if opts.DontListen {
		return opts, nil
	}
	opts.Host, opts.Port, err = listenAddress(ctx, address)
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
		host = defaultHost
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, errs.New(errs.Invalid, "bus: listen %q has no port from 0 to 65535", address)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	probe, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(host, text))
	if err != nil {
		return "", 0, errs.Wrap(err, errs.Unavailable, "bus: can't listen on %s: free the port, or choose another with bus.listen", address)
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

// interest reports whether anyone may listen to a subject.
func (e *embedded) interest(subject string) bool {
	r := e.current.Load()
	if r == nil {
		return false
	}
	account := r.account.Load()
	return account == nil || r.joined || account.Interest(subject) > 0
}

// identify finds out which account a connection of ours belongs to, and reports
// one that can hold no streams.
func (e *embedded) identify(connection uint64) error {
	r := e.current.Load()
	if r == nil || r.account.Load() != nil {
		return nil
	}
	found, err := r.server.Connz(&server.ConnzOptions{CID: connection, Username: true})
	if err != nil || len(found.Conns) == 0 {
		return nil //nolint:nilerr // it has gone again
	}
	account := r.server.GlobalAccount()
	if name := found.Conns[0].Account; name != "" {
		if account, err = r.server.LookupAccount(name); err != nil {
			return errs.Wrap(err, errs.Internal, "find account %s of the embedded bus", name)
		}
	}
	if !account.JetStreamEnabled() {
		return errs.New(errs.Invalid, "bus.config: %s: the account %s of belfry's user has no streams; give it jetstream: enabled, or belfry another user", e.opts.Config, account.Name)
	}
	r.account.Store(account)
	return nil
}

func (e *embedded) clientURL() string {
	if r := e.current.Load(); r != nil && r.listens {
		return r.server.ClientURL()
	}
	return ""
}
