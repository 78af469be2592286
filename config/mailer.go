package config

import (
	"net/url"

	"belfry/config/decode"
	"belfry/config/value"
)

// Mailer configures how mails are sent. Only the field that Type names is set.
type Mailer struct {
	Type string      `key:"type" of:"a mailer" is:"one file smtp" default:"file"`
	File *FileMailer `variant:"file"`
	SMTP *SMTPMailer `variant:"smtp"`
}

// FileMailer writes .eml files into a folder.
type FileMailer struct {
	Folder string `key:"folder" is:"folder" default:"{data}/mail"`
}

// SMTPMailer sends mails to a server. TLS is "starttls" (required, not opportunistic),
// "tls" (implicit TLS) or "none".
type SMTPMailer struct {
	Host     string `key:"host" is:"host" required:"the mail server, such as smtp.example.com"`
	Port     int64  `key:"port" is:"number 1 65535" default:"587"`
	User     string `key:"user"`
	Password Secret `key:"password"`
	TLS      string `key:"tls" is:"one starttls tls none" default:"starttls"`

	LocalName string `key:"localName" is:"localName"` // by which belfry introduces itself; "": the name of the machine
}

// Validate refuses a password without a user.
func (m *SMTPMailer) Validate(s *decode.Section) {
	if s.Has("password") && !s.Has("user") {
		s.Problem("password", "needs user")
	}
}

// localNameOf returns the name of belfry at a URL; "" if that is on this machine, which is a name that mail servers
// refuse.
func localNameOf(base string) string {
	u, err := url.Parse(base)
	if err != nil || isLocal(base) {
		return ""
	}
	name, err := value.LocalName(u.Hostname())
	if err != nil {
		return ""
	}
	return name
}
