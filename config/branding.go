package config

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"belfry/config/decode"
)

// Branding is what pages for people and mails show of the application that they belong to.
type Branding struct {
	Name  string `key:"name" is:"line"`   // "": the host of BaseURL
	Logo  string `key:"logo" is:"file"`   // a picture; "": none
	Color string `key:"color" is:"color"` // of buttons and links; "": belfry's
}

// maxBrandingName is how many characters of a name fit into the header of a page and the sender of a mail.
const maxBrandingName = 60

// Validate refuses a name that pages and mails can't show.
func (b *Branding) Validate(s *decode.Section) {
	b.Name = strings.TrimSpace(b.Name)
	switch {
	case utf8.RuneCountInString(b.Name) > maxBrandingName:
		s.Problem("name", "expected at most %d characters", maxBrandingName)
	case strings.ContainsFunc(b.Name, unicode.IsControl):
		s.Problem("name", "has a control character, which the subject of a mail can't have: remove it")
	case strings.Contains(b.Name, "=?"):
		s.Problem("name", "contains =?, which starts an encoded word in the subject of a mail: remove it")
	}
}

// named returns the address of a sender with the name of the application, unless it has a name of its own.
func (b *Branding) named(sender string) string {
	a, err := mail.ParseAddress(sender)
	if b.Name == "" || err != nil || a.Name != "" {
		return sender
	}
	// Not encoded: people read it as well, in the console.
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(b.Name)
	return `"` + quoted + `" ` + a.String()
}
