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

// stage is a part of the conversation with a mail server.
type stage struct {
	doing         string // for messages
	beforeSecrets bool   // the server has seen no secret
	permanent     bool   // a refusal here is about this mail, and for good
	afterSecret   bool   // the server has just been given a secret
}

var (
	dialing         = stage{doing: "connecting", beforeSecrets: true}
	greeting        = stage{doing: "greeting", beforeSecrets: true}
	securing        = stage{doing: "beginning TLS", beforeSecrets: true}
	authenticating  = stage{doing: "logging in", afterSecret: true}
	namingSender    = stage{doing: "naming the sender", permanent: true}
	namingRecipient = stage{doing: "naming the recipient", permanent: true}
	offering        = stage{doing: "offering the content", permanent: true}
	sending         = stage{doing: "sending the content", permanent: true, afterSecret: true}
	ending          = stage{doing: "ending the content", permanent: true, afterSecret: true}
)

// failed tells what went wrong at a stage.
func (s *server) failed(at stage, err error) error {
	if own, ok := errOf[*errs.Error](err); ok {
		return errs.New(own.Kind, "mail server %s: %s failed: %s", s.addr, at.doing, own.Message)
	}
	if reply, ok := errOf[*textproto.Error](err); ok {
		return errs.New(kindOf(at, reply.Code), "mail server %s: %s was refused: %s%s", s.addr, at.doing, s.quote(at, reply), advice(reply.Code))
	}
	if bad, ok := errOf[*tls.CertificateVerificationError](err); ok {
		return errs.Wrap(bad, errs.Unavailable, "mail server %s: its certificate does not fit: see that host is the name it has there, and that this machine trusts who signed it", s.addr)
	}
	hint := ""
	if _, ok := errOf[tls.RecordHeaderError](err); ok {
		hint = ": the server speaks no TLS on this port; where it offers STARTTLS, set tls to starttls"
	}
	return errs.Wrap(loggable(at, err), errs.Unavailable, "mail server %s: %s failed%s", s.addr, at.doing, hint)
}

// kindOf tells a lasting refusal from a passing one. One that is about the
// login passes when an administrator mends that, whenever it is told.
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
		return ": see user and password of the mail server"
	}
	return ""
}

var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

// quote is a reply as far as it can be told: a filter may name the link it
// dislikes, and some servers repeat what they were given.
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

// harmless is the cause as far as a log may have it. Once the server has seen a
// secret that is the network's part alone.
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
	return errors.New("the server does not keep to SMTP")
}
