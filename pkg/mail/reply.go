package mail

import (
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"belfry/pkg/errs"
)

// stage is a part of an SMTP session.
type stage struct {
	doing         string // for messages
	beforeSecrets bool   // the server has seen no secret
	permanent     bool   // a 5xx reply can be about this mail, and is then permanent
	afterContent  bool   // the server has seen the mail, or a part of it
}

var (
	dialing         = stage{doing: "connecting", beforeSecrets: true}
	greeting        = stage{doing: "greeting", beforeSecrets: true}
	securing        = stage{doing: "starting TLS", beforeSecrets: true}
	authenticating  = stage{doing: "logging in"}
	namingSender    = stage{doing: "naming the sender"}
	namingRecipient = stage{doing: "naming the recipient", permanent: true}
	offering        = stage{doing: "offering the content", permanent: true}
	sending         = stage{doing: "sending the content", permanent: true, afterContent: true}
	ending          = stage{doing: "ending the content", permanent: true, afterContent: true}
)

// failed returns the error of a stage.
func (s *server) failed(at stage, m Message, err error) error {
	if own, ok := errOf[*errs.Error](err); ok {
		e := errs.New(own.Kind, "mail server %s: %s failed: %s", s.addr, at.doing, own.Message)
		if own.Kind == errs.Invalid {
			return e
		}
		return &serverError{e, at.doing + " failed"}
	}
	if reply, ok := errOf[*textproto.Error](err); ok {
		return s.refused(at, m, reply)
	}
	if bad, ok := errOf[*tls.CertificateVerificationError](err); ok {
		return &serverError{errs.Wrap(bad,
			errs.Unavailable, "mail server %s: its certificate is not valid: check that host is a name in the "+
				"certificate and that this machine trusts its issuer; the key ca of the configuration names a file "+
				"of further authorities", s.addr), "its certificate is not valid"}
	}
	hint := ""
	if _, ok := errOf[tls.RecordHeaderError](err); ok {
		hint = ": the server does not use TLS on this port; if it offers STARTTLS, set tls to starttls"
	}
	return &serverError{errs.Wrap(loggable(at, err), errs.Unavailable, "mail server %s: %s failed%s", s.addr, at.doing,
		hint), at.doing + " failed"}
}

// refused returns the error of a reply.
func (s *server) refused(at stage, m Message, reply *textproto.Error) error {
	code, words := s.quote(at, m, reply)
	sender := aboutSender(at, reply)
	kind := errs.Unavailable
	if at.permanent && reply.Code/100 == 5 && !sender {
		kind = errs.Invalid
	}
	text := strings.TrimSpace(code + " " + words)
	if aboutLogin(reply.Code) {
		const advice = ": check user and password of the mail server"
		text += advice
		if at == authenticating {
			if text = code + advice; words != "" {
				text += " (" + words + ")"
			}
		}
	}
	e := errs.New(kind, "mail server %s: %s was refused: %s", s.addr, at.doing, text)
	if !sender {
		return e
	}
	return &serverError{e, at.doing + " was refused: " + code}
}

// quote returns the code of a reply and those of its words that may be logged: a spam filter may quote the link that it
// rejects, and some servers echo their input. A text that has a link, after the server has seen the mail, or a part of
// a secret is not quoted at all.
func (s *server) quote(at stage, m Message, reply *textproto.Error) (code, words string) {
	status := enhanced.FindString(reply.Msg)
	text := reply.Msg
	if status != "" {
		text = strings.ReplaceAll(text, "\n"+status, "\n") // each line has it
	}
	text = strings.Join(strings.Fields(strings.Map(printable, text)), " ")
	code = fmt.Sprintf("%03d", reply.Code)
	if status != "" {
		code += " " + status
	}
	words = strings.TrimSpace(fmt.Sprintf("%.300s", text[len(status):]))
	for _, secret := range s.opts.secrets() {
		if quotesPart(text, secret) {
			return code, ""
		}
	}
	if !at.afterContent {
		return code, words
	}
	for _, secret := range m.secrets() {
		if quotesPart(text, secret) {
			return code, ""
		}
	}
	if link.MatchString(text) {
		return code, ""
	}
	return code, words
}

// link is the beginning of a text that mail programs show as a link, or a part of one.
var link = regexp.MustCompile(`(?i)://|www\.|token|%[0-9a-f]{2}|[?&][a-z_]+=`)

// secrets are the forms in which a server has seen the password.
func (o SMTPOptions) secrets() []string {
	if o.Password == "" {
		return nil
	}
	encode := base64.StdEncoding.EncodeToString
	return []string{o.Password, encode([]byte(o.Password)), encode([]byte("\x00" + o.User + "\x00" + o.Password))}
}

// secrets are those of the texts.
func (m Message) secrets() []string {
	all := []string{m.Token}
	if u, err := url.Parse(m.Link); err == nil {
		all = append(all, u.Query().Get("token"))
	}
	return all
}

// quotesPart reports whether a text has six consecutive characters of a secret, ignoring case and spaces; of a short
// secret, all of it.
func quotesPart(text, secret string) bool {
	const part = 6
	text, secret = squeeze(text), squeeze(secret)
	if secret == "" {
		return false
	}
	for i := 0; i == 0 || i+part <= len(secret); i++ {
		if strings.Contains(text, secret[i:min(i+part, len(secret))]) {
			return true
		}
	}
	return false
}

func squeeze(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), "")) }

func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return ' '
}

// loggable returns the part of an error that may be logged. After the server has
// seen a secret these are network errors only.
func loggable(at stage, err error) error {
	if at.beforeSecrets {
		return err
	}
	if network, ok := errOf[net.Error](err); ok {
		return network
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the server closed the connection")
	}
	return errors.New("the server violates the SMTP protocol")
}
