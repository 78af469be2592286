package mail

import (
	"bytes"
	"fmt"
	netmail "net/mail"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/net/idna"

	"belfry/pkg/errs"
)

// Limits of what goes into headers. Lines of a mail have at most 998 bytes and
// fold at spaces only, and a path of SMTP has at most 254.
const (
	maxID      = 200 // also what fits into the name of a file
	maxSubject = 900
	maxAddress = 254
	maxName    = 200
)

// composed is a mail as it goes over the wire, and its envelope.
type composed struct {
	id       string // as it is in the Message-ID; also safe in the name of a file
	date     time.Time
	from, to string // bare addresses
	content  []byte
}

// compose writes a mail. It reports errs.Invalid for one that can't be.
func compose(m Message) (composed, error) {
	from, err := address("sender", m.From)
	if err != nil {
		return composed{}, err
	}
	to, err := address("recipient", m.To)
	if err != nil {
		return composed{}, err
	}
	switch {
	case to.Name != "":
		return composed{}, errs.New(errs.Invalid, "the address of the mail's recipient %q: expected an address without a name", m.To)
	case m.ID == "" || len(safe(m.ID)) > maxID:
		return composed{}, errs.New(errs.Invalid, "the mail's id has %d bytes: expected 1 to %d, where all but letters, digits and -_~ count three", len(m.ID), maxID)
	case m.Text == "" && m.HTML == "":
		return composed{}, errs.New(errs.Invalid, "the mail has neither a text nor an html: give it one")
	}
	if err := checkSubject(m.Subject); err != nil {
		return composed{}, err
	}
	if m.Date.IsZero() {
		m.Date = time.Now()
	}
	c := composed{id: safe(m.ID), date: m.Date.UTC(), from: from.Address, to: to.Address}
	if c.content, err = c.write(m, from, to); err != nil {
		// The cause is left out: it may quote what it could not write.
		return composed{}, errs.New(errs.Invalid, "the mail can't be written")
	}
	return c, nil
}

func (c composed) write(m Message, from, to *netmail.Address) ([]byte, error) {
	w := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	w.FromMailAddress(from)
	w.ToMailAddress(to)
	w.Subject(m.Subject)
	w.SetDateWithValue(c.date)
	w.SetMessageIDWithValue(c.id + from.Address[strings.LastIndexByte(from.Address, '@'):])
	// Keeps programs that answer mails by themselves from answering this one.
	w.SetGenHeader("Auto-Submitted", "auto-generated")
	switch {
	case m.HTML == "":
		w.SetBodyString(gomail.TypeTextPlain, m.Text)
	case m.Text == "":
		w.SetBodyString(gomail.TypeTextHTML, m.HTML)
	default:
		w.SetBodyString(gomail.TypeTextPlain, m.Text)
		w.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	var b bytes.Buffer
	_, err := w.WriteTo(&b)
	return b.Bytes(), err
}

// checkSubject refuses what would end the header, and with it begin another.
func checkSubject(s string) error {
	var problem string
	switch {
	case strings.ContainsFunc(s, unicode.IsControl):
		problem = "has a line break or another control character: expected one line"
	case !utf8.ValidString(s):
		problem = "is not UTF-8"
	case len(s) > maxSubject:
		problem = fmt.Sprintf("has %d bytes: expected at most %d", len(s), maxSubject)
	case strings.Contains(s, "=?"):
		problem = "has =? in it, which begins an encoded word: take it out"
	default:
		return nil
	}
	return errs.New(errs.Invalid, "the mail's subject %s", problem)
}

// address reads an address of somebody, whose domain it writes in ASCII.
func address(whose, s string) (*netmail.Address, error) {
	wrong := func() error {
		return errs.New(errs.Invalid, "the address of the mail's %s %.300q: expected one such as name@example.com", whose, s)
	}
	if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
		return nil, wrong()
	}
	a, err := netmail.ParseAddress(s)
	if err != nil || strings.ContainsFunc(a.Name, unicode.IsControl) || len(a.Name) > maxName {
		return nil, wrong()
	}
	at := strings.LastIndexByte(a.Address, '@')
	if domain := a.Address[at+1:]; !ascii(domain) {
		if domain, err = idna.Lookup.ToASCII(domain); err != nil {
			return nil, wrong()
		}
		a.Address = a.Address[:at+1] + domain
	}
	if len(path(a.Address)) > maxAddress+len("<>") {
		return nil, wrong()
	}
	return a, nil
}

// path is a bare address as commands of SMTP have it.
func path(bare string) string { return (&netmail.Address{Address: bare}).String() }

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// safe writes an id in letters, digits and -_~+% alone, different ids differently.
func safe(id string) string {
	return strings.ReplaceAll(url.QueryEscape(id), ".", "%2E")
}
