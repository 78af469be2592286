package mailbox

import (
	"bytes"
	"crypto/subtle"
	"errors"
	"io"
	"strings"
	"unicode"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// ErrHangup closes the connection instead of replying.
var ErrHangup = errors.New("hang up")

// session is the SMTP session of one client.
type session struct {
	server *Server
	conn   *smtp.Conn
	known  bool // who logged in
	from   string
	to     []string
	utf8   bool // the client said that addresses may be beyond ASCII
}

var _ smtp.AuthSession = (*session)(nil)

func (s *session) Reset() { s.from, s.to, s.utf8 = "", nil, false }

func (s *session) Logout() error { return nil }

// ask calls the function of Refuse.
func (s *session) ask(stage, address string) error {
	err := s.server.asked(stage, address)
	if errors.Is(err, ErrHangup) {
		_ = s.conn.Conn().Close()
	}
	return err
}

func (s *session) AuthMechanisms() []string { return s.server.opts.mechanisms }

func (s *session) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, password string) error {
		if err := s.ask("AUTH", user); err != nil {
			return err
		}
		o := s.server.opts
		if user != o.user || subtle.ConstantTimeCompare([]byte(password), []byte(o.password)) == 0 {
			return smtp.ErrAuthFailed
		}
		s.known = true
		s.server.mu.Lock()
		s.server.logins = append(s.server.logins, mechanism)
		s.server.mu.Unlock()
		return nil
	}
	switch mechanism {
	case "PLAIN":
		return sasl.NewPlainServer(func(_, user, password string) error { return check(user, password) }), nil
	case "LOGIN":
		return &login{check: check}, nil
	default:
		return nil, smtp.ErrAuthUnknownMechanism
	}
}

// login is the server's side of LOGIN: it requests the user, then the password.
type login struct {
	check func(user, password string) error
	asked int
	user  string
}

func (l *login) Next(response []byte) (challenge []byte, done bool, err error) {
	l.asked++
	switch l.asked {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.user, string(response))
	}
}

func (s *session) Mail(from string, opts *smtp.MailOptions) error {
	if _, secure := s.conn.TLSConnectionState(); !secure && s.server.opts.tls != "" {
		return Reply(530, "5.7.0 begin TLS first")
	}
	if !s.known && s.server.opts.user != "" {
		return Reply(530, "5.7.0 log in first")
	}
	s.from, s.utf8 = from, opts.UTF8
	if err := s.readable(from); err != nil {
		return err
	}
	return s.ask("MAIL", from)
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := s.readable(to); err != nil {
		return err
	}
	if err := s.ask("RCPT", to); err != nil {
		return err
	}
	s.to = append(s.to, to)
	return nil
}

// readable rejects a non-ASCII address that was not announced.
func (s *session) readable(address string) error {
	beyond := func(r rune) bool { return r > unicode.MaxASCII }
	if !s.utf8 && strings.ContainsFunc(address, beyond) {
		return Reply(553, "5.6.7 say SMTPUTF8 first")
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	for _, to := range s.to {
		if err := s.ask("DATA", to); err != nil {
			return err
		}
	}
	var raw bytes.Buffer
	if _, err := raw.ReadFrom(r); err != nil {
		return err
	}
	for _, to := range s.to {
		m, err := Parse(raw.Bytes())
		if err != nil {
			return Reply(554, "5.6.0 "+err.Error())
		}
		m.From, m.To, m.UTF8, m.Hello = s.from, to, s.utf8, s.conn.Hostname()
		s.server.keep(m)
	}
	return nil
}
