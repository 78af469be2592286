package mail

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"regexp"
	"strings"
	"unicode"

	"belfry/pkg/errs"
)

// stage is a part of an SMTP session.
type stage struct {
	doing         string // for messages
	beforeSecrets bool   // the server has seen no secret
	permanent     bool   // a 5xx reply is about this mail, and permanent
	afterSecret   bool   // the server has seen a secret
}

var (
	dialing         = stage{doing: "connecting", beforeSecrets: true}
	greeting        = stage{doing: "greeting", beforeSecrets: true}
	securing        = stage{doing: "starting TLS", beforeSecrets: true}
	authenticating  = stage{doing: "logging in", afterSecret: true}
	namingSender    = stage{doing: "naming the sender", permanent: true}
	namingRecipient = stage{doing: "naming the recipient", permanent: true}
	offering        = stage{doing: "offering the content", permanent: true}
	sending         = stage{doing: "sending the content", permanent: true, afterSecret: true}
	ending          = stage{doing: "ending the content", permanent: true, afterSecret: true}
)

// failed returns the error of a stage.
func (s *server) failed(at stage, err error) error {
	if own, ok := errOf[*errs.Error](err); ok {
		return errs.New(own.Kind, "mail server %s: %s failed: %s", s.addr, at.doing, own.Message)
	}
	if reply, ok := errOf[*textproto.Error](err); ok {
		return errs.New(kindOf(at, reply.Code), "mail server %s: %s was refused: %s%s", s.addr, at.doing, s.quote(at, reply), advice(reply.Code))
	}
	if bad, ok := errOf[*tls.CertificateVerificationError](err); ok {
		return errs.Wrap(bad, errs.Unavailable, "mail server %s: its certificate is not valid: check that host is a name in the certificate and that this machine trusts its issuer", s.addr)
	}
	hint := ""
	if _, ok := errOf[tls.RecordHeaderError](err); ok {
		hint = ": the server does not use TLS on this port; if it offers STARTTLS, set tls to starttls"
	}
	return errs.Wrap(loggable(at, err), errs.Unavailable, "mail server %s: %s failed%s", s.addr, at.doing, hint)
}

// kindOf distinguishes permanent from transient errors. One about the login is
// transient at every stage: an administrator can correct the password.
func kindOf(at stage, code int) errs.Kind {
	if at.permanent && code/100 == 5 && !aboutLogin(code) {
		return errs.Invalid
	}
	return errs.Unavailable
}

func aboutLogin(code int) bool {
	return code == 530 || code == 534 || code == 535 || code == 538
}

func advice(code int) string {
	if aboutLogin(code) {
		return ": check user and password of the mail server"
	}
	return ""
}

var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// quote returns the part of a reply that may be logged: a spam filter may quote the
// link that it rejects, and some servers echo their input.
func (s *server) quote(at stage, reply *textproto.Error) string {
	text := strings.Join(strings.Fields(strings.Map(printable, reply.Msg)), " ")
	if at.afterSecret || s.opts.Password != "" && strings.Contains(text, s.opts.Password) {
		text = enhanced.FindString(text)
	}
	return strings.TrimSpace(fmt.Sprintf("%03d %.300s", reply.Code, text))
}

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
