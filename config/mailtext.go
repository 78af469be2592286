package config

import "regexp"

// Fields of the templates of mails. Texts in an action may have braces, as in {{printf "{%s}" .Token}}.
var (
	mailLink  = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Link\b`)
	mailToken = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Token\b`)
)

// checkMailTexts refuses texts of mails by which nobody could do what they are for: they lack the link and the token. A program that
// shows one of two bodies shows either, so both need them.
func (c *Config) checkMailTexts(e *Email) {
	const path = "authentication.providers.email"
	for _, m := range []struct {
		key    string // below path
		text   MailText
		sent   bool
		noLink bool // the link is that of the start page
		what   string
	}{
		{"", e.MailText, !e.PostValidation, false, "nobody could register"},
		{".recovery", e.Recovery, true, false, "nobody could set a new password"},
		{".change", e.Change, true, false, "nobody could confirm a new address"},
		{".undo", e.Undo, true, false, "nobody could undo a change of their address"},
		{".login.codeMail", e.Login.CodeMail, e.Login.Code, true, "nobody could log in by it"},
		{".login.linkMail", e.Login.LinkMail, e.Login.Link, false, "nobody could log in by it"},
	} {
		for _, of := range [][2]string{{".html", m.text.HTML}, {".text", m.text.Text}} {
			key, body := of[0], of[1]
			switch {
			case !m.sent || body == "" || mailToken.MatchString(body) || !m.noLink && mailLink.MatchString(body):
			case m.noLink:
				c.doc.problem(path+m.key+key, "lacks {{.Token}}, the code: %s", m.what)
			default:
				c.doc.problem(path+m.key+key, "has neither {{.Link}} nor {{.Token}}: %s", m.what)
			}
		}
	}
}
