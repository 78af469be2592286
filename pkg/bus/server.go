package bus

import (
	"context"
	"net"

	"belfry/pkg/errs"
)

// Server is a NATS server inside this process, started and stopped by the Bus
// that it is given to. Package bus/embedded has the implementation; it is an
// interface so that a program that only connects does not contain a server.
type Server interface {
	// Start starts the server and returns once it accepts connections; it does
	// nothing when the server runs. auth is how the Bus logs in.
	Start(ctx context.Context, auth Auth) error

	// Stop stops the server and returns once it has ended. Start may follow.
	Stop()

	// InProcessConn connects to the server that runs now.
	InProcessConn() (net.Conn, error)

	// Connected is called with the id of each new connection of the Bus. It
	// reports errs.Invalid when the user of that connection can have no streams.
	Connected(clientID uint64) error

	// Supervise runs until ctx ends. It calls restart when the server can no longer write
	// its streams and only a restart helps.
	Supervise(ctx context.Context, restart func(ctx context.Context) error)

	// WriteError is errs.Unavailable while the server can't write its streams.
	WriteError() error

	// Subjects is how many subjects the server keeps an index of in memory; 0 when it does not run.
	Subjects() int

	// HasInterest reports whether anyone may be subscribed to a subject.
	HasInterest(subject string) bool

	// ClientURL is where other processes reach the server; "" without a listener.
	ClientURL() string

	// ConfigFile is the file by which the server runs, "" without one. A server
	// with a file of its own may grant the Bus fewer rights than it wants.
	ConfigFile() string

	Syncer
}

// Syncer makes acknowledged events survive a power failure.
type Syncer interface {
	// Sync returns once everything acknowledged before is on disk.
	Sync(ctx context.Context) error
}

// Sync returns once everything that Publish has accepted before would survive a
// power failure. A cluster's acknowledgment is as durable as the cluster is
// configured to make it (see nats.conf), so there Sync has nothing to wait for.
func (b *Bus) Sync(ctx context.Context) error {
	if b.opts.Server == nil {
		return nil
	}
	return b.opts.Server.Sync(ctx)
}

// Subjects is how many subjects of streams this process keeps an index of in memory: none unless the server is
// embedded.
func (b *Bus) Subjects() int {
	if b.opts.Server == nil {
		return 0
	}
	return b.opts.Server.Subjects()
}

// StopServer stops the server of Options.Server and returns once the connection
// has noticed; the data and the port stay for StartServer.
func (b *Bus) StopServer() error {
	if b.opts.Server == nil {
		return errs.New(errs.Invalid, "bus: only an embedded server can be stopped")
	}
	session := b.state.current()
	b.opts.Server.Stop()
	select {
	case <-session.Done():
	case <-b.state.closed:
	}
	return nil
}

// StartServer starts the server of Options.Server again and returns once the
// connection and the streams are there.
func (b *Bus) StartServer(ctx context.Context) error {
	if b.opts.Server == nil {
		return errs.New(errs.Invalid, "bus: only an embedded server can be started")
	}
	if err := b.opts.Server.Start(ctx, b.opts.Auth); err != nil {
		return err
	}
	return b.awaitServer(ctx)
}

func (b *Bus) restartServer(ctx context.Context) error {
	if err := b.StopServer(); err != nil {
		return err
	}
	return b.StartServer(ctx)
}

// awaitServer waits until the connection to the embedded server is up, and
// creates the streams. With a configuration file of its own the server may deny
// that to belfry's user: then the streams are waited for.
func (b *Bus) awaitServer(ctx context.Context) error {
	if err := b.state.awaitUp(ctx); err != nil {
		return err
	}
	id, err := b.conn.GetClientID()
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "the embedded bus does not know its connection")
	}
	if err := b.opts.Server.Connected(id); err != nil {
		return err
	}
	err = b.Setup(ctx)
	if err != nil && b.opts.Server.ConfigFile() != "" {
		b.log.Warn("the bus's streams are not ready; retrying", "error", err)
		return nil
	}
	return err
}
