package mail

import (
	"crypto/x509"
	"net"
	"os"
	"strings"
	"time"

	"belfry/pkg/errs"
)

// How a connection to a mail server is protected.
const (
	StartTLS    = "starttls" // STARTTLS is required
	ImplicitTLS = "tls"      // TLS from the first byte
	NoTLS       = "none"     // plain; a password is sent to this machine only
)

// SMTPOptions configure a mail server. Zero fields have the defaults given here.
type SMTPOptions struct {
	Host     string // required; a name or an IP address, for which its certificate must be valid
	Port     int    // 587 with StartTLS, 465 with ImplicitTLS, 25 with NoTLS
	User     string // "": no login
	Password string
	TLS      string // StartTLS

	Timeout   time.Duration  // of one mail from dialing to the server's last reply; 30 s
	LocalName string         // in EHLO; this machine's name
	RootCAs   *x509.CertPool // nil: those of the system
}

// Check reports errs.Invalid for options with which no mail can be sent.
func (o SMTPOptions) Check() error {
	o = o.withDefaults()
	switch {
	case o.Host == "" || strings.ContainsAny(o.Host, " \t\r\n/@"):
		return errs.New(errs.Invalid,
			"the mail server's host %q: expected a name such as mail.example.com, or an IP address", o.Host)
	case o.TLS != StartTLS && o.TLS != ImplicitTLS && o.TLS != NoTLS:
		return errs.New(errs.Invalid, "the mail server's tls %q: expected starttls, tls or none", o.TLS)
	case o.Port < 1 || o.Port > 65535:
		return errs.New(errs.Invalid, "the mail server's port %d: expected 1 to 65535", o.Port)
	case (o.User == "") != (o.Password == ""):
		return errs.New(errs.Invalid, "the mail server's user and password: expected both or neither")
	case strings.Contains(o.User+o.Password, "\x00"):
		return errs.New(errs.Invalid, "the mail server's user and password: expected no NUL")
	case strings.ContainsAny(o.LocalName, " \t\r\n"):
		return errs.New(errs.Invalid, "the local name %q for the mail server: expected no spaces", o.LocalName)
	case o.TLS == NoTLS && o.User != "" && !loopback(o.Host):
		return errs.New(errs.Invalid, "the mail server %s would receive the password over a plain connection: set tls "+
			"to starttls or tls, or leave out user and password", o.Host)
	}
	return nil
}

func (o SMTPOptions) withDefaults() SMTPOptions {
	if o.TLS == "" {
		o.TLS = StartTLS
	}
	if o.Port == 0 {
		o.Port = map[string]int{StartTLS: 587, ImplicitTLS: 465, NoTLS: 25}[o.TLS]
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.LocalName == "" {
		o.LocalName = localName()
	}
	return o
}

func localName() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "localhost"
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
