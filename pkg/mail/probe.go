package mail

import (
	"context"
	"net"
	"time"

	"belfry/pkg/errs"
)

// Probe connects to a mail server as Send does, up to the login, and sends no mail. Its errors are those of Send at
// these stages: errs.Unavailable, or errs.Invalid for options with which no mail can be sent.
func Probe(ctx context.Context, opts SMTPOptions) error {
	if err := opts.Check(); err != nil {
		return err
	}
	s := NewSMTP(opts).(*server)
	attempt, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	at, err := s.probe(attempt)
	switch {
	case err == nil:
		return nil
	case attempt.Err() != nil:
		return errs.New(errs.Unavailable, "mail server %s: %s did not end in time", s.addr, at.doing)
	default:
		return s.failed(at, Message{}, err)
	}
}

// probe is attempt without a mail.
func (s *server) probe(ctx context.Context) (stage, error) {
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
	at, err = s.login(c, conn)
	_ = conn.SetDeadline(time.Now().Add(quitTimeout))
	_ = c.Quit()
	return at, err
}
