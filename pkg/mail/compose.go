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

// Limits of header values. Lines of a mail have at most 998 bytes and fold only at
// spaces; an SMTP path has at most 254.
const (
	maxID      = 200 // also fits into a file name
	maxSubject = 900
	maxAddress = 254
	maxName    = 240 // 60 characters, as the name of an application may have
)

// composed is a mail in wire format, with its envelope.
type composed struct {
	id       string // as in the Message-ID; safe in a file name
	date     time.Time
	from, to string // bare addresses
	content  []byte
}

// compose renders a mail. It reports errs.Invalid for one that can't be rendered.
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
		return composed{}, errs.New(errs.Invalid,
			"the address of the mail's recipient %q: expected an address without a name", m.To)
	case m.ID == "" || len(safe(m.ID)) > maxID:
		return composed{}, errs.New(errs.Invalid,
			"the mail's id has %d bytes: expected 1 to %d, where all but letters, digits and -_~ count three",
			len(m.ID), maxID)
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
		// The cause is omitted: it may quote the content.
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
	// Prevents automatic replies.
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

// checkSubject rejects text that could end the header and start another.
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
		problem = "contains =?, which starts an encoded word: remove it"
	default:
		return nil
	}
	return errs.New(errs.Invalid, "the mail's subject %s", problem)
}

// address parses an address and converts its domain to ASCII.
func address(whose, s string) (*netmail.Address, error) {
	wrong := func() error {
		return errs.New(errs.Invalid, "the address of the mail's %s %.300q: expected one such as name@example.com",
			whose, s)
	}
	if strings.ContainsFunc(s, unicode.IsControl) || !utf8.ValidString(s) {
		return nil, wrong()
	}
	a, err := parseAddress(s)
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

// parseAddress parses an address. One whose dots are where they must be in quotes, such as a..b@example.com, is taken
// without: there are mailboxes of that name, and path has the quotes.
func parseAddress(s string) (*netmail.Address, error) {
	a, err := netmail.ParseAddress(s)
	if err == nil {
		return a, nil
	}
	at := strings.LastIndexByte(s, '@')
	if at < 1 || s[0] == '.' {
		return nil, err
	}
	usual := strings.ReplaceAll(s[:at], ".", "") + s[at:]
	if parsed, wrong := netmail.ParseAddress(usual); wrong != nil || parsed.Address != usual {
		return nil, err
	}
	return &netmail.Address{Address: s}, nil
}

// path is a bare address as in SMTP commands.
func path(bare string) string { return (&netmail.Address{Address: bare}).String() }

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// safe encodes an id with letters, digits and -_~+% only; the encoding is unique.
func safe(id string) string {
	return strings.ReplaceAll(url.QueryEscape(id), ".", "%2E")
}
