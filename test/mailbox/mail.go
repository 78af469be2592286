package mailbox

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/url"
	"regexp"
	"strings"
)

// Mail is a received mail.
type Mail struct {
	From, To  string // bare addresses: those of the envelope, or of the header for Parse
	Subject   string
	Text      string
	HTML      string
	MessageID string // without its < and >
	Header    mail.Header
	Raw       string // all of it
	Hello     string // the name by which the client introduced itself
	UTF8      bool   // it is only for servers that take addresses beyond ASCII
}

var link = regexp.MustCompile(`https?://[^\s<>"]+`)

// Link is the first link of the text, or "".
func (m Mail) Link() string { return link.FindString(m.Text) }

// Token is the query parameter token of Link, or "".
func (m Mail) Token() string {
	u, err := url.Parse(m.Link())
	if err != nil {
		return ""
	}
	return u.Query().Get("token")
}

// Parse parses a mail, such as one in a folder.
func Parse(raw []byte) (Mail, error) {
	message, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return Mail{}, err
	}
	m := Mail{Header: message.Header, Raw: string(raw)}
	m.MessageID = strings.Trim(message.Header.Get("Message-ID"), "<>")
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(message.Header.Get("Subject")); err != nil {
		return Mail{}, fmt.Errorf("subject: %w", err)
	}
	for name, address := range map[string]*string{"From": &m.From, "To": &m.To} {
		a, err := mail.ParseAddress(message.Header.Get(name))
		if err != nil {
			return Mail{}, fmt.Errorf("%s: %w", name, err)
		}
		*address = a.Address
	}
	return m, m.read(message.Header.Get("Content-Type"), message.Header.Get("Content-Transfer-Encoding"), message.Body)
}

// read reads the text, the html, or both from a part.
func (m *Mail) read(kind, encoding string, body io.Reader) error {
	kind, params, err := mime.ParseMediaType(kind)
	if err != nil {
		return err
	}
	if kind == "multipart/alternative" {
		return m.readParts(multipart.NewReader(body, params["boundary"]))
	}
	if !strings.EqualFold(params["charset"], "utf-8") || encoding != "quoted-printable" {
		return fmt.Errorf("%s is in %q as %q", kind, params["charset"], encoding)
	}
	content, err := io.ReadAll(quotedprintable.NewReader(body))
	if err != nil {
		return err
	}
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	switch kind {
	case "text/plain":
		m.Text = text
	case "text/html":
		m.HTML = text
	default:
		return fmt.Errorf("a part is %s", kind)
	}
	return nil
}

func (m *Mail) readParts(r *multipart.Reader) error {
	for {
		part, err := r.NextRawPart()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := m.read(part.Header.Get("Content-Type"), part.Header.Get("Content-Transfer-Encoding"),
			part); err != nil {
			return err
		}
	}
}
