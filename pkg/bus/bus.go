// Package bus is belfry's connection to NATS: the streams that keep events, and
// publishing into them. The server is a cluster, or one inside this process
// (package bus/embedded).
//
// An event that Publish has accepted survives a crash of this process; after
// Sync it survives a power failure as well. Live publishes to the subscribers of
// that moment, and nothing is stored.
package bus

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
)

// Options configure a Bus. Exactly one of Server and URL is required.
type Options struct {
	Server Server // a server inside this process, see package bus/embedded
	URL    string // of a cluster: nats://a:4222,nats://b:4222

	Name string // of the connection, shown by the server; "belfry" when empty
	Auth Auth
	TLS  TLS

	// InboxPrefix is the prefix of the subjects of replies, so that a server can
	// give each user an inbox of its own. Empty: "_INBOX_<user>" when Auth.User
	// is set, else "_INBOX".
	InboxPrefix string

	Events   Limits // of stream EVENTS
	Replicas int    // of streams that are created; 0 leaves it to the server (1)

	// Unmanaged leaves the streams as they are: they are neither read nor created
	// nor changed, and the bus is ready without them. Events and Replicas have no
	// effect.
	Unmanaged bool

	// Syncer is for Dial: it syncs the files of the embedded server that another
	// process of this machine runs. Nil: the server at URL needs no Sync.
	Syncer Syncer

	Logger *slog.Logger // nil: nothing is logged
}

// Auth is how the connection authenticates, in at most one way. An embedded
// server without a configuration file requires User and Password, or Token, of
// every client when they are set.
type Auth struct {
	Credentials    string // file with a user's JWT and seed
	User, Password string
	Token          string
	NKeySeed       string // the seed itself, SU...
}

// TLS secures a connection to a cluster; files in PEM.
type TLS struct {
	CA        string // trusted instead of the system's authorities
	Cert, Key string // client certificate

	RootCAs *x509.CertPool // without CA; nil: the system's
}

// Limits bound a stream; the oldest events are removed first. A field that is 0
// takes its default (see DefaultLimits), a negative one is unlimited.
type Limits struct {
	MaxAge      time.Duration
	MaxBytes    int64
	MaxMessages int64
}

// DefaultLimits keep a week of events and bound their cost: disk by
// MaxBytes, the server's memory (an index entry per distinct subject) by
// MaxMessages.
func DefaultLimits() Limits {
	return Limits{MaxAge: 7 * 24 * time.Hour, MaxBytes: 4 << 30, MaxMessages: 1_000_000}
}

const readyTimeout = 2 * time.Second

// Bus is an open connection. Its methods are safe for concurrent use.
type Bus struct {
	log  *slog.Logger
	opts Options
	conn *nats.Conn
	js   jetstream.JetStream

	state    *connState
	streams  *streamsState
	asyncLog *asyncErrors
	denials  denials

	secret     atomic.Pointer[Auth] // with the password or the token of later connections
	replies    batchReplies
	batchesOff atomic.Bool // the server or the stream does not accept batches, or has replicas

	background sync.WaitGroup
	stop       context.CancelFunc // ends background
	closed     atomic.Bool
}

// Open opens the bus. With an embedded server, Open starts it and returns once
// the streams are there. A cluster may be unavailable: Open returns soon,
// connects in the background for as long as it takes, and then creates the
// streams. It reports errs.Invalid for options that can't work.
func Open(ctx context.Context, opts Options) (*Bus, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	background, stop := context.WithCancel(context.Background())
	b := &Bus{log: opts.Logger, opts: opts, state: newConnState(), streams: newStreamsState(), stop: stop}
	b.asyncLog = &asyncErrors{log: b.log}
	if err := b.open(ctx, background); err != nil {
		_ = b.Close(ctx)
		return nil, err
	}
	return b, nil
}

func (b *Bus) open(ctx, background context.Context) error {
	if b.opts.Server != nil {
		if err := b.opts.Server.Start(ctx, b.opts.Auth); err != nil {
			return err
		}
	}
	if err := b.connect(); err != nil {
		return err
	}
	if err := b.subscribeBatchReplies(); err != nil {
		return errs.Wrap(err, errs.Internal, "subscribe to the replies to batches")
	}
	if b.opts.Server != nil {
		if err := b.awaitServer(ctx); err != nil {
			return err
		}
	}
	if b.opts.Server == nil && b.conn.IsConnected() {
		b.firstSetup(ctx)
	}
	b.background.Go(func() { b.keepStreams(background) })
	if b.opts.Server != nil {
		b.background.Go(func() { b.opts.Server.Supervise(background, b.restartServer) })
	}
	return nil
}

// firstSetup creates the streams of a connected cluster, so that they exist before the bus is used. It takes at most as
// long as one request may; keepStreams does the rest.
func (b *Bus) firstSetup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	if b.state.awaitUp(ctx) == nil {
		_ = b.Setup(ctx)
	}
}

func (o Options) validate() error {
	switch {
	case o.Server == nil && o.URL == "":
		return errs.New(errs.Invalid, "bus: neither an embedded server nor a url is given")
	case o.Server != nil && o.URL != "":
		return errs.New(errs.Invalid, "bus: both an embedded server and a url are given; choose one")
	case o.Server != nil && o.Unmanaged:
		return errs.New(errs.Invalid, "bus: the streams of an embedded server can't be unmanaged; give a url")
	default:
		return nil
	}
}

// Conn is the connection, for subscriptions and requests.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// Unmanaged is Options.Unmanaged.
func (b *Bus) Unmanaged() bool { return b.opts.Unmanaged }

// JetStream is for consumers and for reading streams.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// ClientURL is where other processes reach the bus; empty when the embedded
// server has no listener.
func (b *Bus) ClientURL() string {
	if b.opts.Server == nil {
		return b.opts.URL
	}
	return b.opts.Server.ClientURL()
}

// Connected returns nil while there is a connection, else errs.Unavailable with the reason. It asks nobody, so it takes
// no time: a request that is sent meanwhile waits for its timeout.
func (b *Bus) Connected() error {
	if b.conn.IsConnected() {
		return nil
	}
	return errs.New(errs.Unavailable, "the bus is unavailable: %s", b.state.reason())
}

// WhileConnected returns a context for requests. It ends with the current connection, because the replies to earlier
// requests are lost with it. Without a connection it has already ended. The returned function must be called.
func (b *Bus) WhileConnected(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.state.current(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// Ready returns nil when events can be published, else errs.Unavailable that
// names the missing part.
func (b *Bus) Ready(ctx context.Context) error {
	if err := b.Connected(); err != nil {
		return err
	}
	if err := b.streams.err(); err != nil {
		return Unavailable(err, "the bus has no streams")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus does not respond")
	}
	if b.opts.Server == nil {
		return nil
	}
	return b.opts.Server.WriteError()
}

// Close drains the connection (running handlers finish, published messages are
// sent), bounded by ctx, and stops the embedded server.
func (b *Bus) Close(ctx context.Context) error {
	if b.closed.Swap(true) {
		return nil
	}
	b.stop()
	err := b.drain(ctx)
	b.background.Wait()
	if b.opts.Server != nil {
		b.opts.Server.Stop()
	}
	return err
}

func (b *Bus) drain(ctx context.Context) error {
	if b.conn == nil {
		return nil
	}
	defer b.conn.Close()
	switch err := b.conn.Drain(); {
	case errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrConnectionClosed):
		return nil // nothing can be sent
	case err != nil:
		return fmt.Errorf("drain the bus: %w", err)
	}
	select {
	case <-b.state.closed:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the bus did not drain in time")
	}
}
