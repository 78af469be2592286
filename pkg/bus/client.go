package bus

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/errs"
)

// Client is a connection for a command: it makes no stream and changes none,
// and a bus that is away is an error at once.
type Client struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	folder string // of the accounts of an embedded server that does not sync by itself
	syncer syncer

	refusals refusals
}

// dialTimeout is for one server of a cluster.
const dialTimeout = 5 * time.Second

// Dial connects to the bus at Options.URL. Options.Embedded, when given beside
// it, says that the server is the embedded one of another process on this
// machine, which keeps its data in that folder.
func Dial(o Options) (*Client, error) {
	auth, err := o.Auth.options()
	if err != nil {
		return nil, err
	}
	name := o.Name
	if name == "" {
		name = "belfry"
	}
	c := &Client{}
	options := append([]nats.Option{
		nats.Name(name), nats.Timeout(dialTimeout), nats.CustomInboxPrefix(o.inboxPrefix()),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.refusals.hear(err) }),
	}, auth...)
	if o.Embedded != nil {
		server, _, err := o.Embedded.options()
		if err != nil {
			return nil, err
		}
		if !server.SyncAlways {
			c.folder = storeFolder(server)
		}
	}
	c.conn, err = nats.Connect(o.URL, append(options, o.TLS.options()...)...)
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return nil, errs.Wrap(err, errs.Unavailable, "can't connect to the bus at %s: it refuses the user; look at name and password", withoutUser(o.URL))
	case err != nil:
		return nil, errs.Wrap(err, errs.Unavailable, "can't connect to the bus at %s", withoutUser(o.URL))
	}
	if c.js, err = jetstream.New(c.conn); err != nil {
		c.conn.Close()
		return nil, errs.Wrap(err, errs.Internal, "use the bus's streams")
	}
	return c, nil
}

// Conn is the connection, for subscriptions and requests.
func (c *Client) Conn() *nats.Conn { return c.conn }

// JetStream is for consumers and for looking into streams.
func (c *Client) JetStream() jetstream.JetStream { return c.js }

// Sync returns once what the bus has accepted would outlive a power cut. See
// Bus.Sync: the embedded server's files are synced from here, whoever wrote them.
func (c *Client) Sync(context.Context) error {
	if c.folder == "" {
		return nil
	}
	return c.syncer.syncServer(c.folder)
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// withoutUser are URLs without what they say of users and passwords.
func withoutUser(urls string) string {
	all := strings.Split(urls, ",")
	for i, u := range all {
		scheme, rest, found := strings.Cut(u, "://")
		if !found {
			scheme, rest = "nats", u
		}
		all[i] = scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(all, ",")
}
