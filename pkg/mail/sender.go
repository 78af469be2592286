package mail

import (
	"errors"
	"net/textproto"
	"regexp"
	"strings"
)

// serverError is an error that affects all mails: the next one fails as well, until somebody fixes the cause.
type serverError struct {
	error
	says string
}

func (e *serverError) Unwrap() error { return e.error }

// AboutServer reports whether an error of a Sender affects all mails. The server can't be reached, refuses the login or
// the sender, or has reached a limit; or the folder can't be written. The text says describes the error in a few words.
// It leaves out the server's text, which may contain an address and is in the error.
func AboutServer(err error) (says string, is bool) {
	var e *serverError
	if !errors.As(err, &e) {
		return "", false
	}
	return e.says, true
}

// enhanced is an enhanced status code (RFC 3463).
var enhanced = regexp.MustCompile(`^[245]\.\d{1,3}\.\d{1,3}\b`)

func aboutLogin(code int) bool {
	return code == 530 || code == 534 || code == 535 || code == 538
}

// aboutSender reports whether a reply is about the sender, not about the mail or its recipient. An administrator can
// correct such an error, or it is transient, so the mail is retried. Servers check the client's name, its address and
// its login at any stage, mostly when they know the recipient.
func aboutSender(at stage, reply *textproto.Error) bool {
	if !at.permanent || aboutLogin(reply.Code) {
		return true
	}
	text := strings.Join(strings.Fields(reply.Msg), " ")
	status := enhanced.FindString(text)
	subject := ""
	if status != "" {
		subject = status[1:]
	}
	switch {
	case senderStatus.MatchString(subject):
		return true
	case recipientStatus.MatchString(subject), recipientWords.MatchString(text) && !clientWords.MatchString(text):
		return false
	case accountWords.MatchString(text):
		return true
	case subject == ".7.1" && reply.Code/100 == 5 && at == namingRecipient:
		return true // no right to relay, or a block list; of a transient one, greylisting
	case subject == "" &&
		(reply.Code == 500 || reply.Code == 502 || reply.Code == 503 || reply.Code == 504 || reply.Code == 521):
		return true
	}
	return senderWords.MatchString(text) && !mailWords.MatchString(text)
}

var (
	// Subjects of enhanced status codes that are about the sender: its address or domain, the system, limits, the
	// protocol (with the name in EHLO), the login, and encryption. Further ones are the checks of SPF, DKIM and DMARC
	// and, from .50 on, those of Exchange about the client and its tenant.
	senderStatus = regexp.MustCompile(`^\.(1\.[78]|2\.252|3\.[235]|4\.5|5\.\d+|7\.([3-9]|1[0-3]|2\d|[5-9]\d|\d{3}))$`)

	// Those about the recipient's address or mailbox, the size or the content.
	recipientStatus = regexp.MustCompile(`^\.(1\.[1-9]\d?|2\.\d+|3\.4|4\.[1478]|6\.\d+)$`)

	// Words decide if the reply lacks such a code, or has an ambiguous one. Postfix begins every refusal at this stage
	// with the first words.
	recipientWords = regexp.MustCompile(
		`(?i)\b((recipient|address)( address)? (is )?(rejected|inactive|suppressed|blacklisted)|(user|recipient|mailbox)( is)? (unknown|not found|unavailable|inactive)|suppression list|no such (user|recipient|mailbox))\b`)
	clientWords = regexp.MustCompile(
		`(?i)\b(sender|helo|ehlo|client|relay(ing)?|ip|(mail|your) from|from address|spf|dkim|dmarc|spamhaus|rbl|dnsbl|sandbox)\b`)

	// Words of providers about the account. They decide regardless of the rest of the reply.
	accountWords = regexp.MustCompile(
		`(?i)\b(sandbox|(not|un|isn't) ?verified|verify (a|your) domain|sending (is |has been )?(suspended|paused|disabled)|unusual sending activity|not authori[sz]ed to perform|too many (e?-?mails|messages)|(pending|awaiting) approval|` +
			`demo domains?|from address|testing emails|unauthenticated senders?)\b`)

	senderWords = regexp.MustCompile(
		`(?i)\b(sandbox|(not|un|isn't) ?verified|(daily|hourly|sending|send|messages?|mails?|emails?|rate)[^.:;]{0,25} (limit|quota)|(limit|quota)[^.:;]{0,25} (per|a) (day|hour|minute)|throttl\w+|` +
			`relay(ing)?|sender|helo|ehlo|client host|spamhaus|rbl|dnsbl|(block|black|deny) ?list(ed)?|blocked using|reverse dns|ptr|spf|dkim|dmarc|authenticat\w+|log ?in|` +
			`(not|isn't) (authori[sz]ed|allowed|permitted) to send|send ?as|account (is )?(suspended|disabled|locked|restricted)|authori[sz]ed recipients)\b`)
	mailWords = regexp.MustCompile(`(?i)\b(size|too (large|big)|mailbox|inbox|content)\b`)
)
