// Package embedded runs a NATS server inside this process, for a bus that needs
// no other program. Its connection, its streams and publishing are those of
// package bus: bus.Options.Server takes it.
//
// The server acknowledges an event when the operating system has it, which
// survives a crash of this process. Sync makes acknowledged events survive a
// power failure as well.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// Options configure a Server. Folder is required.
type Options struct {
	Folder string // where JetStream keeps its data, unless Config names another folder
	Listen string // host:port for other processes; port 0 takes a free one; "" for no listener, or for that of Config

	// Config is a configuration file of nats-server. It may define users; then
	// bus.Options.Auth says which one belfry is.
	Config string

	Logger *slog.Logger // nil: nothing is logged
}

const (
	// unreserved keeps the server from reserving the maximum size of the streams:
	// belfry starts on a disk that could not hold a full log.
	unreserved = 1 << 50
	startLimit = 10 * time.Second
)

// Server is a NATS server inside this process. It can be stopped and started
// again on the same data and port; its methods are safe for concurrent use.
type Server struct {
	opts   Options
	log    *slog.Logger
	syncer syncer

	mu       sync.Mutex // held by Start and Stop
	address  string     // of the listener, once it is known
	current  atomic.Pointer[instance]
	last     atomic.Pointer[instance] // current, or the one before it when stopped
	writeErr atomic.Pointer[error]
}

// instance is one start of the server.
type instance struct {
	server  *server.Server
	account atomic.Pointer[server.Account] // of belfry's user; nil while it is unknown
	joined  bool                           // to other servers
	synced  bool                           // an acknowledged event is on disk
	folder  string                         // of its accounts' streams
	listens bool
}

var _ bus.Server = (*Server)(nil)

// New returns a server that is not started; bus.Open starts it.
func New(opts Options) *Server {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{opts: opts, log: opts.Logger, address: opts.Listen}
}

// Start implements bus.Server.
func (s *Server) Start(ctx context.Context, auth bus.Auth) error {
	switch {
	case s.opts.Folder == "":
		return errs.New(errs.Invalid, "bus: the embedded server needs a folder")
	case s.opts.Config == "" && (auth.Credentials != "" || auth.NKeySeed != ""):
		return errs.New(errs.Invalid,
			"bus: the embedded server accepts user and password or a token, not credentials or nkeys")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Load() != nil {
		return nil
	}
	opts, err := s.serverOptions(ctx, auth)
	if err != nil {
		return err
	}
	started, err := server.NewServer(opts)
	if err != nil {
		if s.opts.Config != "" {
			return errs.Wrap(err, errs.Invalid, "bus.config: %s can't be used", s.opts.Config)
		}
		return errs.Wrap(err, errs.Internal, "create the embedded bus")
	}
	folders, err := consumerFolders(storeFolder(opts))
	if err != nil {
		return errs.Wrap(err, errs.Invalid, "bus: the folder %s", opts.StoreDir)
	}
	fatal := make(chan string, 1)
	started.SetLoggerV2(&serverLog{log: s.log, fatal: fatal}, false, false, false)
	started.Start()
	if err := awaitReady(ctx, started, fatal); err != nil {
		started.Shutdown()
		started.WaitForShutdown()
		return err
	}
	i := &instance{
		server: started, joined: joined(opts), synced: opts.SyncAlways,
		folder: storeFolder(opts), listens: !opts.DontListen,
	}
	if err := s.removeDamaged(i, folders); err != nil {
		started.Shutdown()
		started.WaitForShutdown()
		return err
	}
	if i.listens {
		s.address = started.Addr().String()
	}
	if s.opts.Config == "" {
		i.account.Store(started.GlobalAccount())
	}
	s.last.Store(i)
	s.current.Store(i)
	return nil
}

func awaitReady(ctx context.Context, s *server.Server, fatal <-chan string) error {
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

func (s *Server) serverOptions(ctx context.Context, auth bus.Auth) (*server.Options, error) {
	opts, warnings, err := s.opts.serverOptions()
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		s.log.Warn("the bus's configuration has a warning", "file", s.opts.Config, "warning", w)
	}
	address := s.address
	switch {
	case s.opts.Config == "":
		opts.Username, opts.Password, opts.Authorization = auth.User, auth.Password, auth.Token
		opts.DontListen = address == ""
	case admitsEveryone(opts) && auth != bus.Auth{}:
		return nil, errs.New(errs.Invalid,
			"bus.config: %s has no users, so bus.user and the like would protect nothing: remove them, or "+
				"give it users", s.opts.Config)
	case address == "":
		address = net.JoinHostPort(opts.Host, strconv.Itoa(max(opts.Port, 0)))
	}
	if opts.DontListen {
		return opts, nil
	}
	opts.Host, opts.Port, err = listenAddress(ctx, address)
	return opts, err
}

// listenAddress verifies that the address can be listened on, because the
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
		return "", 0, errs.Wrap(err, errs.Unavailable,
			"bus: can't listen on %s: free the port, or choose another with bus.listen", address)
	}
	return host, port, probe.Close()
}

// Stop implements bus.Server.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.current.Swap(nil)
	if i == nil {
		return
	}
	i.server.Shutdown()
	i.server.WaitForShutdown()
}

// InProcessConn implements nats.InProcessConnProvider: it connects to the
// current instance.
func (s *Server) InProcessConn() (net.Conn, error) {
	i := s.current.Load()
	if i == nil {
		return nil, errors.New("the embedded bus is stopped")
	}
	return i.server.InProcessConn()
}

// HasInterest implements bus.Server.
func (s *Server) HasInterest(subject string) bool {
	i := s.current.Load()
	if i == nil {
		return false
	}
	account := i.account.Load()
	return account == nil || i.joined || account.Interest(subject) > 0
}

// Subjects implements bus.Server.
func (s *Server) Subjects() (n int) {
	i := s.current.Load()
	if i == nil {
		return 0
	}
	state, err := i.server.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return 0
	}
	for _, account := range state.AccountDetails {
		for _, stream := range account.Streams {
			n += stream.State.NumSubjects
		}
	}
	return n
}

// Connected implements bus.Server: it finds the account of belfry's user.
func (s *Server) Connected(clientID uint64) error {
	i := s.current.Load()
	if i == nil || i.account.Load() != nil {
		return nil
	}
	found, err := i.server.Connz(&server.ConnzOptions{CID: clientID, Username: true})
	if err != nil || len(found.Conns) == 0 {
		return nil //nolint:nilerr // the connection is closed again
	}
	account := i.server.GlobalAccount()
	if name := found.Conns[0].Account; name != "" {
		if account, err = i.server.LookupAccount(name); err != nil {
			return errs.Wrap(err, errs.Internal, "find account %s of the embedded bus", name)
		}
	}
	if !account.JetStreamEnabled() {
		return errs.New(errs.Invalid, "bus.config: %s: the account %s of belfry's user has no streams; give it "+
			"jetstream: enabled, or belfry another user", s.opts.Config, account.Name)
	}
	i.account.Store(account)
	return nil
}

// ClientURL implements bus.Server.
func (s *Server) ClientURL() string {
	if i := s.current.Load(); i != nil && i.listens {
		return i.server.ClientURL()
	}
	return ""
}

// ConfigFile implements bus.Server.
func (s *Server) ConfigFile() string { return s.opts.Config }

// serverLog logs the server's messages with slog. Notices become debug messages:
// they are useless to an operator of belfry.
type serverLog struct {
	log   *slog.Logger
	fatal chan<- string // receives the first fatal message
}

func (l *serverLog) write(level slog.Level, format string, args []any) {
	if l.log.Enabled(context.Background(), level) {
		l.log.Log(context.Background(), level, fmt.Sprintf(format, args...), "from", "nats-server")
	}
}

func (l *serverLog) Noticef(format string, args ...any) { l.write(slog.LevelDebug, format, args) }
func (l *serverLog) Warnf(format string, args ...any)   { l.write(slog.LevelWarn, format, args) }
func (l *serverLog) Errorf(format string, args ...any)  { l.write(slog.LevelError, format, args) }
func (l *serverLog) Debugf(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }
func (l *serverLog) Tracef(format string, args ...any)  { l.write(slog.LevelDebug, format, args) }

// Fatalf must not end the process: the caller of Start decides.
func (l *serverLog) Fatalf(format string, args ...any) {
	l.write(slog.LevelError, format, args)
	select {
	case l.fatal <- fmt.Sprintf(format, args...):
	default:
	}
}
