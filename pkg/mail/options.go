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
	StartTLS    = "starttls" // it begins plain and goes no further without TLS
	ImplicitTLS = "tls"      // it is TLS from its first byte
	NoTLS       = "none"     // it is plain; with a password to this machine alone
)

// SMTPOptions say where a mail server is and how to log in there. Zero fields
// take the defaults given here.
type SMTPOptions struct {
	Host     string // required; a name or an IP address, which its certificate must name
	Port     int    // 587 with StartTLS, 465 with ImplicitTLS, 25 with NoTLS
	User     string // "" does not log in
	Password string
	TLS      string // StartTLS

	Timeout   time.Duration  // of one mail from dialing to the server's word; 30 s
	LocalName string         // what belfry calls itself; this machine's name
	RootCAs   *x509.CertPool // who vouches for certificates; nil: whom the system trusts
}

// Check reports errs.Invalid for options with which no mail can be sent.
func (o SMTPOptions) Check() error {
	o = o.withDefaults()
	switch {
	case o.Host == "" || strings.ContainsAny(o.Host, " \t\r\n/@"):
		return errs.New(errs.Invalid, "the mail server's host %q: expected a name such as mail.example.com, or an IP address", o.Host)
	case o.TLS != StartTLS && o.TLS != ImplicitTLS && o.TLS != NoTLS:
		return errs.New(errs.Invalid, "the mail server's tls %q: expected starttls, tls or none", o.TLS)
	case o.Port < 1 || o.Port > 65535:
		return errs.New(errs.Invalid, "the mail server's port %d: expected 1 to 65535", o.Port)
	case (o.User == "") != (o.Password == ""):
		return errs.New(errs.Invalid, "the mail server's user and password: expected both or neither")
	case strings.Contains(o.User+o.Password, "\x00"):
		return errs.New(errs.Invalid, "the mail server's user and password: expected no NUL")
	case strings.ContainsAny(o.LocalName, " \t\r\n"):
		return errs.New(errs.Invalid, "the name %q that belfry gives itself to the mail server: expected no spaces", o.LocalName)
	case o.TLS == NoTLS && o.User != "" && !loopback(o.Host):
		return errs.New(errs.Invalid, "the mail server %s would get the password over a plain connection, where others can read it: set tls to starttls or tls, or leave out user and password", o.Host)
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

// loopback reports whether a host is this machine by its name.
func loopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
