package config

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// Mailer configures how mails are sent. Only the field that Type names is set.
type Mailer struct {
	Type string // file or smtp
	File *FileMailer
	SMTP *SMTPMailer
}

// FileMailer writes .eml files into a folder.
type FileMailer struct{ Folder string }

// SMTPMailer sends mails to a server. TLS is "starttls" (required, not opportunistic),
// "tls" (implicit TLS) or "none".
type SMTPMailer struct {
	Host     string
	Port     int64
	User     string
	Password Secret
	TLS      string

	LocalName string // by which belfry introduces itself; "": the name of the machine
}

// readMailers adds a mailer called default, of type file, if none is configured.
func (c *Config) readMailers(s *section) {
	c.Mailers = map[string]Mailer{}
	s.named("mailers", func(name string, s *section) { c.Mailers[name] = c.readMailer(s) })
	if _, configured := c.Mailers["default"]; !configured {
		c.Mailers["default"] = c.readMailer(newSection(c.doc, "mailers.default", nil))
	}
}

// HasMailer reports whether the file has a mailer of a name. The mailer default exists without that.
func (c *Config) HasMailer(name string) bool { return c.doc.isSet(join("mailers", name)) }

func (c *Config) readMailer(s *section) Mailer {
	m := Mailer{Type: "file"}
	if !decode(s, "type", &m.Type, oneOf("file", "smtp")) {
		return m
	}
	s.suffix = "of a mailer of type " + m.Type
	switch m.Type {
	case "file":
		m.File = &FileMailer{}
		c.folder(s, &m.File.Folder, "mail")
	case "smtp":
		m.SMTP = c.readSMTP(s)
	}
	s.rejectUnknown()
	return m
}

func (c *Config) readSMTP(s *section) *SMTPMailer {
	m := SMTPMailer{Port: 587, TLS: "starttls"}
	s.require("host", "the mail server, such as smtp.example.com")
	decode(s, "host", &m.Host, parseHost)
	decode(s, "port", &m.Port, numberIn(1, 65535))
	decode(s, "user", &m.User, parseText)
	decode(s, "password", &m.Password, parseSecret)
	decode(s, "tls", &m.TLS, oneOf("starttls", "tls", "none"))
	decode(s, "localName", &m.LocalName, parseLocalName)
	if !s.has("localName") {
		c.derived = append(c.derived, func() { m.LocalName = localNameOf(c.BaseURL) })
	}
	if s.has("password") && !s.has("user") {
		s.problem("password", "needs user")
	}
	return &m
}

// parseLocalName accepts the name of a host for EHLO, or an address, which is in brackets there (RFC 5321).
func parseLocalName(text string) (string, error) {
	address := strings.TrimPrefix(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), "IPv6:")
	if ip, err := netip.ParseAddr(address); err == nil && ip.Zone() == "" {
		return addressLiteral(ip), nil
	}
	if !hostSyntax.MatchString(text) || len(text) > maxHostName {
		return "", errors.New("expected a name such as app.example.com, or an address")
	}
	return text, nil
}

func addressLiteral(ip netip.Addr) string {
	if ip = ip.Unmap(); ip.Is6() {
		return "[IPv6:" + ip.String() + "]"
	}
	return "[" + ip.String() + "]"
}

// localNameOf returns the name of belfry at a URL; "" if that is on this machine, which is a name that mail servers refuse.
func localNameOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || isLocal(base) {
		return ""
	}
	name, err := parseLocalName(u.Hostname())
	if err != nil {
		return ""
	}
	return name
}
