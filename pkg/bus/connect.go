package bus

import (
	"crypto/tls"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const (
	reconnectMin = 20 * time.Millisecond
	reconnectMax = 5 * time.Second
	drainTimeout = 30 * time.Second

	inProcessTimeout = 10 * time.Second
)

func (b *Bus) connect() error {
	options, err := b.connectOptions()
	if err != nil {
		return err
	}
	b.conn, err = nats.Connect(b.opts.URL, options...)
	switch {
	case err != nil && b.opts.Server != nil && b.opts.Server.ConfigFile() != "":
		// The server closes the pipe before its error is read.
		return errs.Wrap(err,
			errs.Invalid, "the server of %s rejects belfry: set bus.user and bus.password (or credentials, nkey, "+
				"token) to one of its users", b.opts.Server.ConfigFile())
	case err != nil:
		return errs.Wrap(err, errs.Unavailable, "connect to the bus")
	}
	// Without the timeout, messages that a stream never acknowledges would stay
	// pending until no more can be published.
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
		nats.ConnectHandler(func(c *nats.Conn) {
			b.state.up()
			b.checkPayload(c)
		}),
		nats.ReconnectHandler(func(c *nats.Conn) {
			b.state.up()
			b.log.Info("the bus is connected again", "server", c.ConnectedServerName())
			b.checkPayload(c)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if b.state.down(err) && !b.closed.Load() {
				b.log.Warn("the bus is unavailable; reconnecting", "error", b.state.reason())
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if b.state.attemptFailed(err) && !b.closed.Load() {
				b.log.Warn("can't connect to the bus; retrying", "error", b.state.reason())
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { close(b.state.closed) }),
		nats.ErrorHandler(func(c *nats.Conn, sub *nats.Subscription, err error) {
			b.state.record(err)
			if !b.denials.notify(err) {
				b.asyncLog.report(c, sub, err)
			}
		}),
	}
	if b.opts.Server != nil {
		// In process there is no TLS, and a first connection that fails is final.
		options = append(options, nats.InProcessServer(b.opts.Server), nats.Timeout(inProcessTimeout))
	} else {
		options = append(options, nats.RetryOnFailedConnect(true), nats.SetCustomDialer(newDialer(nats.DefaultTimeout)))
		options = append(options, b.opts.TLS.options()...)
	}
	b.SetAuth(b.opts.Auth)
	auth, err := b.opts.Auth.options(func() Auth { return *b.secret.Load() })
	return append(options, auth...), err
}

// SetAuth has later connections use another password of the same user, or another token. The connection that is up
// stays.
func (b *Bus) SetAuth(a Auth) { b.secret.Store(&a) }

// checkPayload warns of a server that accepts no messages of the size of the largest event: such an event is never
// published.
func (b *Bus) checkPayload(c *nats.Conn) {
	if limit := c.MaxPayload(); limit > 0 && limit < event.MaxSize+headerSize {
		b.log.Warn("the server of the bus accepts no messages as large as an event may be: set its max_payload to at "+
			"least 1MB", "max_payload", limit, "event", event.MaxSize)
	}
}

// options returns how a connection authenticates. current returns its password, or its token, when it is made.
func (a Auth) options(current func() Auth) ([]nats.Option, error) {
	switch {
	case a.Credentials != "":
		return []nats.Option{nats.UserCredentials(a.Credentials)}, nil
	case a.NKeySeed != "":
		pair, err := nkeys.FromSeed([]byte(a.NKeySeed))
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "bus: the nkey seed is invalid; it begins with SU")
		}
		public, err := pair.PublicKey()
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "bus: the nkey seed has no public key")
		}
		return []nats.Option{nats.Nkey(public, pair.Sign)}, nil
	case a.User != "":
		return []nats.Option{nats.UserInfoHandler(func() (string, string) { return a.User, current().Password })}, nil
	case a.Token != "":
		return []nats.Option{nats.TokenHandler(func() string { return current().Token })}, nil
	default:
		return nil, nil
	}
}

func (t TLS) options() []nats.Option {
	var options []nats.Option
	switch {
	case t.CA != "":
		options = append(options, nats.RootCAs(t.CA))
	case t.RootCAs != nil:
		// nats.Secure would ask for TLS.
		options = append(options, func(o *nats.Options) error {
			if o.TLSConfig == nil {
				o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
			}
			o.TLSConfig.RootCAs = t.RootCAs
			return nil
		})
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

// reconnectDelay has jitter, so that many processes do not reconnect in the same
// moment. NATS counts attempts from 1.
func reconnectDelay(attempts int) time.Duration {
	return backoff.Delay(attempts, reconnectMin, reconnectMax)
}
