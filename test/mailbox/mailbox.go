// Package mailbox is an SMTP server for tests: it listens on this machine,
// stores the mails it receives, and can be made to reject them.
package mailbox

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-smtp"

	"belfry/test/kit"
)

// Host is the name of the server, also in its certificate.
const Host = "localhost"

// Server is a mail server. Its methods are safe for concurrent use.
type Server struct {
	Host string
	Port int

	// RootCAs contains the issuer of the server's certificate; nil without TLS.
	RootCAs *x509.CertPool

	opts options
	cert *tls.Config

	mu     sync.Mutex
	stop   func() error // nil when it is stopped
	refuse func(stage, address string) error
	mails  []Mail
	logins []string
}

type options struct {
	tls            string
	user, password string
	mechanisms     []string
	utf8           bool
}

// Option configures a server; without options it requires neither TLS nor
// login.
type Option func(*options)

// StartTLS makes the server offer STARTTLS, and accept nothing before it.
func StartTLS() Option { return func(o *options) { o.tls = "starttls" } }

// TLS makes the server use TLS from the first byte.
func TLS() Option { return func(o *options) { o.tls = "tls" } }

// Login makes the server require a user and a password, by the given mechanisms
// (PLAIN and LOGIN are supported). No mechanism means both.
func Login(user, password string, mechanisms ...string) Option {
	if len(mechanisms) == 0 {
		mechanisms = []string{"PLAIN", "LOGIN"}
	}
	return func(o *options) { o.user, o.password, o.mechanisms = user, password, mechanisms }
}

// UTF8 makes the server accept non-ASCII addresses.
func UTF8() Option { return func(o *options) { o.utf8 = true } }

// Start runs a server on a free port until the test ends.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := &Server{Host: Host, Port: kit.FreePort(t)} // nobody else's while it is stopped
	for _, opt := range opts {
		opt(&s.opts)
	}
	if s.opts.tls != "" {
		s.cert, s.RootCAs = certificate(t)
	}
	s.Restart(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// Certificate is that of a server with TLS, which signs itself, as DER.
func (s *Server) Certificate() [][]byte { return s.cert.Certificates[0].Certificate }

// Stop stops the server and closes its connections. The mails are kept.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	stop := s.stop
	s.stop = nil
	s.mu.Unlock()
	if stop == nil {
		return
	}
	if err := stop(); err != nil {
		t.Errorf("mailbox: %v", err)
	}
}

// Restart starts the server again on the same port after a Stop.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(s.Port)))
	if err != nil {
		t.Fatalf("mailbox: %v", err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, conn: c}, nil
	}))
	server.Domain = Host
	server.ErrorLog = log.New(io.Discard, "", 0) // tests break connections on purpose
	server.AllowInsecureAuth = s.opts.tls == ""
	server.EnableSMTPUTF8 = s.opts.utf8
	switch s.opts.tls {
	case "starttls":
		server.TLSConfig = s.cert
	case "tls":
		l = tls.NewListener(l, s.cert)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = func() error {
		err := server.Close()
		_ = l.Close() // which the server does not know before it serves
		return errors.Join(err, <-served)
	}
}

// Refuse makes the server call f before it accepts something: "AUTH" with the
// user, "MAIL" with the sender, "RCPT" with the recipient, and "DATA" with the
// recipient before it reads the content. The error of f is the reply; see Reply
// and ErrHangup. A nil f accepts everything.
func (s *Server) Refuse(f func(stage, address string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

// Reply is a rejection, such as 451 with "4.7.1 come back later".
func Reply(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.NoEnhancedCode, Message: text}
}

func (s *Server) asked(stage, address string) error {
	s.mu.Lock()
	f := s.refuse
	s.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(stage, address)
}

func (s *Server) keep(m Mail) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mails = append(s.mails, m)
}

// Logins are the mechanisms of the successful logins, in order.
func (s *Server) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.logins)
}

// All are the mails in the order of their arrival.
func (s *Server) All() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

// Mails are the mails to an address, in the order of their arrival.
func (s *Server) Mails(to string) []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Mail
	for _, m := range s.mails {
		if strings.EqualFold(m.To, to) {
			found = append(found, m)
		}
	}
	return found
}

// Await returns the mails to an address once there are at least n.
func (s *Server) Await(t testing.TB, to string, n int) []Mail {
	t.Helper()
	var found []Mail
	kit.WaitUntil(t, func() error {
		if found = s.Mails(to); len(found) < n {
			return fmt.Errorf("mailbox: %d mails to %s, want %d", len(found), to, n)
		}
		return nil
	})
	return found
}
