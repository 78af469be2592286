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

// Client is a connection for a command: it creates and changes no streams, and
// a bus that is unavailable is an error at once.
type Client struct {
	conn    *nats.Conn
	js      jetstream.JetStream
	syncer  Syncer // may be nil
	denials denials
}

// dialTimeout is for one server of a cluster.
const dialTimeout = 5 * time.Second

// Dial connects to the bus at Options.URL.
func Dial(o Options) (*Client, error) {
	auth, err := o.Auth.options(func() Auth { return o.Auth })
	if err != nil {
		return nil, err
	}
	name := o.Name
	if name == "" {
		name = "belfry"
	}
	c := &Client{syncer: o.Syncer}
	dialer := newDialer(dialTimeout)
	options := append([]nats.Option{
		nats.Name(name), nats.Timeout(dialTimeout), nats.SetCustomDialer(dialer),
		nats.CustomInboxPrefix(o.inboxPrefix()),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.denials.notify(err) }),
	}, auth...)
	c.conn, err = nats.Connect(o.URL, append(options, o.TLS.options()...)...)
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return nil, errs.Wrap(err, errs.Unavailable,
			"can't connect to the bus at %s: it rejects the user; check name and password", redactUser(o.URL))
	case err != nil:
		return nil, errs.Wrap(dialer.reason(err), errs.Unavailable, "can't connect to the bus at %s", redactUser(o.URL))
	}
	if c.js, err = jetstream.New(c.conn); err != nil {
		c.conn.Close()
		return nil, errs.Wrap(err, errs.Internal, "use the bus's streams")
	}
	return c, nil
}

// Conn is the connection, for subscriptions and requests.
func (c *Client) Conn() *nats.Conn { return c.conn }

// Unmanaged is false: a Client is for administrators of the streams.
func (c *Client) Unmanaged() bool { return false }

// JetStream is for consumers and for reading streams.
func (c *Client) JetStream() jetstream.JetStream { return c.js }

// Sync returns once everything that the bus has accepted before would survive a
// power failure, see Bus.Sync.
func (c *Client) Sync(ctx context.Context) error {
	if c.syncer == nil {
		return nil
	}
	return c.syncer.Sync(ctx)
}

// Close ends the connection.
func (c *Client) Close() { c.conn.Close() }

// redactUser removes users and passwords from URLs.
func redactUser(urls string) string {
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

// ImportedReply begins the reply subject of a request that comes from another account, by
// an import. The server sends the reply to the inbox that the request named there. It lets
// no client name such a subject.
const ImportedReply = "_R_."

// IsInbox reports whether a subject is an inbox. Requests name the subject of their
// reply, and the replying client may publish where the requester may not: to the event log,
// for instance.
func IsInbox(subject string) bool {
	// A request from another cluster: _GR_.<cluster>.<server>.<subject>.
	if parts := strings.SplitN(subject, ".", 4); len(parts) == 4 && parts[0] == "_GR_" {
		subject = parts[3]
	}
	return strings.HasPrefix(subject, "_INBOX") || strings.HasPrefix(subject, ImportedReply)
}
