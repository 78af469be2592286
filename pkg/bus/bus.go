// Package bus is belfry's connection to NATS: an embedded server or a remote
// cluster, the streams that keep events, and publishing into them.
//
// An event that Publish has accepted outlives this process; after Sync it
// outlives a power cut as well. What Live sends is heard by whoever listens at
// that moment and kept by nobody.
package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
)

// Options say which bus to open: Embedded, or the one at URL.
type Options struct {
	Embedded *Embedded // a server inside this process
	URL      string    // of a cluster: nats://a:4222,nats://b:4222

	Name string // of the connection, for who looks at the server; "belfry" when empty
	Auth Auth
	TLS  TLS

	// InboxPrefix begins the subjects on which answers come in, so that a
	// server can allow each user its own alone. Empty: "_INBOX_<user>" when
	// Auth.User is set, else "_INBOX".
	InboxPrefix string

	Events   Limits // what stream EVENTS keeps
	Replicas int    // of streams that are made; 0 leaves it to the server (1)

	// Guest says that the streams are somebody else's: they are neither made nor
	// changed, and waited for while they are not there. Events and Replicas are
	// of no account then.
	Guest bool

	Logger *slog.Logger // nil: slog.Default()
}

// Auth is how the connection says who it is. At most one way is used. The
// embedded server asks everyone for User and Password, or Token, when given.
type Auth struct {
	Credentials    string // file with a user's JWT and seed
	User, Password string
	Token          string
	NKeySeed       string // the seed itself, SU...
}

// TLS is what a connection to a cluster is secured with; files in PEM.
type TLS struct {
	CA        string // whom to trust instead of the system's authorities
	Cert, Key string // who we are
}

// Limits bound a stream; the oldest events go first. A field that is 0 takes
// its default (see DefaultLimits), a negative one is without limit.
type Limits struct {
	MaxAge      time.Duration
	MaxBytes    int64
	MaxMessages int64
}

// DefaultLimits keep a week of events and bound what they cost: disk by
// MaxBytes, the server's memory (an index entry per distinct subject) by
// MaxMessages.
func DefaultLimits() Limits {
	return Limits{MaxAge: 7 * 24 * time.Hour, MaxBytes: 4 << 30, MaxMessages: 1_000_000}
}

const readyTimeout = 2 * time.Second

// Bus is an open connection. Its methods are safe for concurrent use.
type Bus struct {
	log      *slog.Logger
	opts     Options
	embedded *embedded // nil for a cluster
	conn     *nats.Conn
	js       jetstream.JetStream

	link       *link
	streams    *streamsState
	complaints *complaints
	refusals   refusals

	answers    answers
	batchesOff atomic.Bool // the server or the stream does not take batches
	syncer     syncer
	harm       atomic.Pointer[error] // why the embedded server can't write

	background sync.WaitGroup
	stop       context.CancelFunc // ends background
	closed     atomic.Bool
}

// Open opens the bus. An embedded server is ready when Open returns, its
// streams included. A cluster may be away: Open returns at once, the
// connection is tried for ever, and the streams are made when it comes.
// It reports errs.Invalid for options that can't work.
func Open(ctx context.Context, opts Options) (*Bus, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	life, stop := context.WithCancel(context.Background())
	b := &Bus{log: opts.Logger, opts: opts, link: newLink(), streams: newStreamsState(), stop: stop}
	b.complaints = &complaints{log: b.log}
	if err := b.open(ctx, life); err != nil {
		_ = b.Close(ctx)
		return nil, err
	}
	return b, nil
}

func (b *Bus) open(ctx, life context.Context) error {
	if b.opts.Embedded != nil {
		b.embedded = newEmbedded(*b.opts.Embedded, b.opts.Auth, b.log)
		if err := b.embedded.start(ctx); err != nil {
			return err
		}
	}
	if err := b.connect(); err != nil {
		return err
	}
	if err := b.listenForAnswers(); err != nil {
		return errs.Wrap(err, errs.Internal, "listen for the streams' answers")
	}
	if b.embedded != nil {
		if err := b.settle(ctx); err != nil {
			return err
		}
	}
	b.background.Go(func() { b.keepStreams(life) })
	if b.embedded != nil {
		b.background.Go(func() { b.heal(life) })
	}
	return nil
}

func (o Options) check() error {
	switch {
	case o.Embedded == nil && o.URL == "":
		return errs.New(errs.Invalid, "bus: neither an embedded server nor a url is given")
	case o.Embedded != nil && o.URL != "":
		return errs.New(errs.Invalid, "bus: both an embedded server and a url are given; choose one")
	case o.Embedded != nil && o.Embedded.Folder == "":
		return errs.New(errs.Invalid, "bus: the embedded server needs a folder")
	case o.Embedded != nil && o.Embedded.Config == "" && (o.Auth.Credentials != "" || o.Auth.NKeySeed != ""):
		return errs.New(errs.Invalid, "bus: the embedded server knows user and password or a token, not credentials or nkeys")
	case o.Embedded != nil && o.Guest:
		return errs.New(errs.Invalid, "bus: an embedded server's streams are its own; a guest needs a url")
	default:
		return nil
	}
}

// Conn is the connection, for subscriptions and requests.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// JetStream is for consumers and for looking into streams.
func (b *Bus) JetStream() jetstream.JetStream { return b.js }

// ClientURL is where other processes reach the bus; empty when the embedded
// server has no listener.
func (b *Bus) ClientURL() string {
	if b.embedded == nil {
		return b.opts.URL
	}
	return b.embedded.clientURL()
}

// Ready returns nil when events can be published, else errs.Unavailable that
// names what is missing.
func (b *Bus) Ready(ctx context.Context) error {
	if !b.conn.IsConnected() {
		return errs.New(errs.Unavailable, "the bus is away: %s", b.link.reason())
	}
	if err := b.streams.err(); err != nil {
		return Lack(err, "the bus has no streams")
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable, "the bus does not answer")
	}
	return b.unharmed()
}

// StopServer takes the embedded server away as an outage would, and returns once
// the connection knows; the data and the port stay for StartServer.
func (b *Bus) StopServer() error {
	if b.embedded == nil {
		return errs.New(errs.Invalid, "bus: only an embedded server can be stopped")
	}
	session := b.link.current()
	b.embedded.stop()
	select {
	case <-session.Done():
	case <-b.link.ended:
	}
	return nil
}

// StartServer brings the embedded server back and waits until the connection
// is back as well.
func (b *Bus) StartServer(ctx context.Context) error {
	if b.embedded == nil {
		return errs.New(errs.Invalid, "bus: only an embedded server can be started")
	}
	if err := b.embedded.start(ctx); err != nil {
		return err
	}
	return b.settle(ctx)
}

// settle waits until the connection to the embedded server is up, and makes the
// streams. A user of the server's own configuration may lack the right to: then
// they are waited for.
func (b *Bus) settle(ctx context.Context) error {
	if err := b.link.awaitUp(ctx); err != nil {
		return err
	}
	id, err := b.conn.GetClientID()
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the embedded bus does not know its connection")
	}
	if err := b.embedded.identify(id); err != nil {
		return err
	}
	err = b.Setup(ctx)
	if err != nil && b.opts.Embedded.Config != "" {
		b.log.Warn("the bus's streams are not ready; trying again", "error", err)
		return nil
	}
	return err
}

// Close drains the connection (handlers that run finish, what was published
// is sent), bounded by ctx, and stops the embedded server.
func (b *Bus) Close(ctx context.Context) error {
	if b.closed.Swap(true) {
		return nil
	}
	b.stop()
	err := b.drain(ctx)
	b.background.Wait()
	if b.embedded != nil {
		b.embedded.stop()
	}
	return err
}

func (b *Bus) drain(ctx context.Context) error {
	if b.conn == nil {
		return nil
	}
	defer b.conn.Close()
	if !b.conn.IsConnected() {
		return nil
	}
	if err := b.conn.Drain(); err != nil {
		return fmt.Errorf("drain the bus: %w", err)
	}
	select {
	case <-b.link.ended:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the bus did not drain in time")
	}
}
