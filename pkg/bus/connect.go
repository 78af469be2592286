package bus

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"belfry/pkg/errs"
)

const (
	reconnectMin = 20 * time.Millisecond
	reconnectMax = 5 * time.Second
	drainTimeout = 30 * time.Second
)

func (b *Bus) connect() error {
	options, err := b.connectOptions()
	if err != nil {
		return err
	}
	b.conn, err = nats.Connect(b.opts.URL, options...)
	switch {
	case err != nil && b.embedded != nil && b.opts.Embedded.Config != "":
		// The refusal itself gets lost when the server closes the pipe.
		return errs.Wrap(err, errs.Invalid, "the server of %s refuses belfry: set bus.user and bus.password (or credentials, nkey, token) to one of its users", b.opts.Embedded.Config)
	case err != nil:
		return errs.Wrap(err, errs.Unavailable, "connect to the bus")
	}
	// Without the timeout, what a stream never answers would be waited for until
	// no more can be published.
	if b.js, err = jetstream.New(b.conn, jetstream.WithPublishAsyncTimeout(publishTimeout)); err != nil {
		return errs.Wrap(err, errs.Internal, "use the bus's streams")
	}
	return nil
}

func (b *Bus) connectOptions() ([]nats.Option, error) {
	name := b.opts.Name
	if name == "" {
		name = "belfry"
	}
	options := []nats.Option{
		nats.Name(name),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // a password may be changed on the server later than here
		nats.CustomReconnectDelay(reconnectDelay),
		nats.DrainTimeout(drainTimeout),
		nats.CustomInboxPrefix(b.opts.inboxPrefix()),
		nats.ConnectHandler(func(*nats.Conn) { b.link.up() }),
		nats.ReconnectHandler(func(c *nats.Conn) {
			b.link.up()
			b.log.Info("the bus is back", "server", c.ConnectedServerName())
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if b.link.down(err) && !b.closed.Load() {
				b.log.Warn("the bus is away; trying again", "error", b.link.reason())
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.link.down(err) }),
		nats.ClosedHandler(func(*nats.Conn) { close(b.link.ended) }),
		nats.ErrorHandler(func(c *nats.Conn, sub *nats.Subscription, err error) {
			if !b.refusals.hear(err) {
				b.complaints.hear(c, sub, err)
			}
		}),
	}
	if b.embedded != nil {
		// It needs no TLS; and nobody tries the first connection again.
		options = append(options, nats.InProcessServer(b.embedded), nats.Timeout(startLimit))
	} else {
		options = append(options, nats.RetryOnFailedConnect(true))
		options = append(options, b.opts.TLS.options()...)
	}
	auth, err := b.opts.Auth.options()
	return append(options, auth...), err
}

func (a Auth) options() ([]nats.Option, error) {
	switch {
	case a.Credentials != "":
		return []nats.Option{nats.UserCredentials(a.Credentials)}, nil
	case a.NKeySeed != "":
		pair, err := nkeys.FromSeed([]byte(a.NKeySeed))
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "bus: the nkey seed can't be read; it begins with SU")
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "bus: the nkey seed has no public key")
		}
		return []nats.Option{nats.Nkey(public, pair.Sign)}, nil
	case a.User != "":
		return []nats.Option{nats.UserInfo(a.User, a.Password)}, nil
	case a.Token != "":
		return []nats.Option{nats.Token(a.Token)}, nil
	default:
		return nil, nil
	}
}

func (t TLS) options() []nats.Option {
	var options []nats.Option
	if t.CA != "" {
		options = append(options, nats.RootCAs(t.CA))
	}
	if t.Cert != "" {
		options = append(options, nats.ClientCert(t.Cert, t.Key))
	}
	return options
}

func (o Options) inboxPrefix() string {
	switch {
	case o.InboxPrefix != "":
		return o.InboxPrefix
	case o.Auth.User != "" && !strings.ContainsAny(o.Auth.User, " \t*>."):
		return "_INBOX_" + o.Auth.User
	default:
		return "_INBOX"
	}
}

// reconnectDelay grows with the attempts; the jitter keeps many processes from
// coming back in one moment.
func reconnectDelay(attempts int) time.Duration {
	d := reconnectMax
	if attempts < 8 {
		d = min(reconnectMin<<attempts, reconnectMax)
	}
	return d/2 + rand.N(d/2+1)
}
