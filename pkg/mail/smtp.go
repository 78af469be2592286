package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"belfry/pkg/errs"
)

// quitTimeout is how long a server may take to reply to QUIT.
const quitTimeout = 2 * time.Second

// server sends mails to a mail server, each over a connection of its own.
type server struct {
	opts SMTPOptions
	addr string // host:port
}

var _ Sender = (*server)(nil)

// NewSMTP makes a sender for a mail server. With options that Check rejects each
// mail fails with errs.Unavailable: mails wait until the options are corrected.
func NewSMTP(opts SMTPOptions) Sender {
	opts = opts.withDefaults()
	return &server{opts: opts, addr: net.JoinHostPort(opts.Host, strconv.Itoa(opts.Port))}
}

// Send implements Sender.
func (s *server) Send(ctx context.Context, m Message) error {
	c, err := compose(m)
	if err != nil {
		return err
	}
	if err := s.opts.Check(); err != nil {
		return &serverError{errs.Wrap(err, errs.Unavailable, "the mail was not sent"),
			"its configuration can't be used"}
	}
	attempt, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	at, err := s.attempt(attempt, c)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errs.Wrap(ctx.Err(), errs.Canceled, "mail server %s: %s was interrupted", s.addr, at.doing)
	case attempt.Err() != nil:
		return &serverError{errs.New(errs.Unavailable, "mail server %s: %s did not end within %s", s.addr, at.doing,
			s.opts.Timeout), at.doing + " took too long"}
	default:
		return s.failed(at, m, err)
	}
}

// attempt sends a mail, and returns the stage at which it failed. The end of ctx
// closes the connection, which unblocks every read and write.
func (s *server) attempt(ctx context.Context, m composed) (stage, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.addr)
	if err != nil {
		return dialing, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	defer conn.Close()
	c, at, err := s.greet(ctx, conn)
	if err != nil {
		return at, err
	}
	if at, err = s.login(c, conn); err == nil {
		at, err = transfer(c, m)
	}
	if at != sending {
		// Not while sending: there QUIT would be part of the content, and the server
		// would accept the incomplete mail.
		_ = conn.SetDeadline(time.Now().Add(quitTimeout))
		_ = c.Quit()
	}
	return at, err
}

// greet opens the SMTP session and secures it as the options require.
func (s *server) greet(ctx context.Context, conn net.Conn) (*smtp.Client, stage, error) {
	config := &tls.Config{ServerName: s.opts.Host, RootCAs: s.opts.RootCAs, MinVersion: tls.VersionTLS12}
	if s.opts.TLS == ImplicitTLS {
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			return nil, securing, err
		}
		conn = secure
	}
	// The client's debug log stays off: it would contain the mail.
	c, err := smtp.NewClient(conn, s.opts.Host)
	if err != nil {
		return nil, greeting, err
	}
	if err := c.Hello(s.opts.LocalName); err != nil {
		return nil, greeting, err
	}
	if s.opts.TLS != StartTLS {
		return c, greeting, nil
	}
	if offered, _ := c.Extension("STARTTLS"); !offered {
		return nil, securing, errs.New(errs.Unavailable,
			"it does not offer STARTTLS; if it uses TLS from the first byte, usually on port 465, set tls to tls")
	}
	return c, securing, c.StartTLS(config)
}

// login authenticates with user and password, if there are any.
func (s *server) login(c *smtp.Client, conn net.Conn) (stage, error) {
	if s.opts.User == "" {
		return authenticating, nil
	}
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); s.opts.TLS == NoTLS && (!ok || !remote.IP.IsLoopback()) {
		return authenticating, errs.New(errs.Unavailable,
			"it is not on this machine, and the connection is plain: set tls to starttls or tls")
	}
	_, offered := c.Extension("AUTH")
	for _, mechanism := range strings.Fields(offered) {
		// A plain connection to another machine was rejected above.
		switch strings.ToUpper(mechanism) {
		case "PLAIN":
			return authenticating, c.Auth(smtp.PlainAuth("", s.opts.User, s.opts.Password, s.opts.Host, true))
		case "LOGIN":
			return authenticating, c.Auth(smtp.LoginAuth(s.opts.User, s.opts.Password, s.opts.Host, true))
		}
	}
	return authenticating, errs.New(errs.Unavailable,
		"it offers no login by PLAIN or LOGIN: leave out user and password, or choose another port or tls")
}

// transfer sends envelope and content.
func transfer(c *smtp.Client, m composed) (stage, error) {
	wide := !ascii(m.from) || !ascii(m.to)
	if offered, _ := c.Extension("SMTPUTF8"); wide && !offered {
		return namingRecipient, errs.New(errs.Invalid, "it accepts no addresses with non-ASCII letters before the @")
	}
	// Requested without need, it would make relays without SMTPUTF8 reject the mail.
	c.SkipSMTPUTF8(!wide)
	if err := c.Mail(path(m.from)); err != nil {
		return namingSender, err
	}
	if err := c.Rcpt(path(m.to)); err != nil {
		return namingRecipient, err
	}
	w, err := c.Data()
	if err != nil {
		return offering, err
	}
	if _, err = w.Write(m.content); err != nil {
		return sending, err
	}
	return ending, w.Close()
}

// errOf finds an error of a type in a chain.
func errOf[E error](err error) (E, bool) {
	var e E
	ok := errors.As(err, &e)
	return e, ok
}
