package config

import (
	"regexp"
	"strings"

	"belfry/config/decode"
	"belfry/pkg/texts"
)

// Fields of the templates of mails. Texts in an action may have braces, as in {{printf "{%s}" .Token}}.
var (
	mailLink  = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Link\b`)
	mailToken = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Token\b`)
)

// checkMailTexts refuses texts of mails that lack what their readers need.
func (c *Config) checkMailTexts(e *Email) {
	e.Lacking(func(key, problem string) {
		c.doc.Problem("authentication.providers.email"+key, "%s", problem)
	})
}

// Lacking reports the texts of mails that lack both the link and the token, which the reader needs, by their keys below
// that of login by e-mail. A program that shows one of two bodies shows either, so both need them.
func (e *Email) Lacking(report func(key, problem string)) {
	for _, m := range []struct {
		key    string
		text   MailText
		sent   bool
		noLink bool // the link is that of the start page
		what   string
	}{
		{"", e.MailText, !e.PostValidation, false, "nobody could register"},
		{".recovery", e.Recovery, true, false, "nobody could set a new password"},
		{".invitation", e.Invitation, true, false, "nobody could accept an invitation"},
		{".change", e.Change, true, false, "nobody could confirm a new address"},
		{".undo", e.Undo, true, false, "nobody could undo a change of their address"},
		// Second factors by mail have it, too.
		{".login.codeMail", e.Login.CodeMail, true, true, "nobody could log in by it"},
		{".login.linkMail", e.Login.LinkMail, e.Login.Link, false, "nobody could log in by it"},
	} {
		for _, of := range [][2]string{{".html", m.text.HTML}, {".text", m.text.Text}} {
			key, body := of[0], of[1]
			switch {
			case !m.sent || body == "" || mailToken.MatchString(body) || !m.noLink && mailLink.MatchString(body):
			case m.noLink:
				report(m.key+key, "lacks {{.Token}}, the code: "+m.what)
			default:
				report(m.key+key, "has neither {{.Link}} nor {{.Token}}: "+m.what)
			}
		}
	}
}

// SetDefaults sets the texts of mails.
func (e *Email) SetDefaults() { e.setTexts(texts.English()) }

// setTexts sets the texts of mails in a language.
func (e *Email) setTexts(l *texts.Language) {
	for _, m := range e.Mails() {
		*m.Text = MailText{Subject: l.Raw(m.ID + ".subject"), HTML: l.Raw(m.ID + ".html"), Text: l.Raw(m.ID + ".text")}
	}
}

// Mail is a kind of mails.
type Mail struct {
	ID   string // with which the ids of its texts begin
	Key  string // below that of login by e-mail
	Text *MailText
}

// Mails are the mails that are no notices.
func (e *Email) Mails() []Mail {
	return []Mail{
		{"mails.validation", "", &e.MailText}, {"mails.recovery", ".recovery", &e.Recovery},
		{"mails.invitation", ".invitation", &e.Invitation},
		{"mails.taken", ".taken", &e.Taken}, {"mails.change", ".change", &e.Change}, {"mails.undo", ".undo", &e.Undo},
		{"mails.code", ".login.codeMail", &e.Login.CodeMail}, {"mails.link", ".login.linkMail", &e.Login.LinkMail},
	}
}

// noticeIn returns the texts of a notice in a language.
func noticeIn(l *texts.Language, kind string) MailText {
	id := "mails.notice." + kind
	body := l.Raw(id+".text") + ": " + l.Raw("mails.noticeFrom")
	if kind != "disabled" && kind != "deleted" && kind != "impersonated" { // the user can't change them
		body += " " + l.Raw("mails.noticeAdvice")
	}
	body += "{{with .Name}} · {{.}}{{end}}"
	return MailText{Subject: l.Raw(id + ".subject"), HTML: "<p>" + body + "</p>", Text: body}
}

// MailsIn returns the texts of mails in a language. Those of the configuration are for all languages.
func MailsIn(c *Config, l *texts.Language) Email {
	e := *c.Authentication.Email
	e.setTexts(l)
	const path = "authentication.providers.email"
	configured := c.Authentication.Email.Mails()
	for i, m := range e.Mails() {
		overlay(c.doc, path+m.Key, configured[i].Text, m.Text)
	}
	e.Notices.Kinds = map[string]Notice{}
	for kind, n := range c.Authentication.Email.Notices.Kinds {
		text := noticeIn(l, kind)
		overlay(c.doc, path+".notices."+kind, &n.MailText, &text)
		e.Notices.Kinds[kind] = Notice{MailText: text}
	}
	return e
}

// MailID returns the id that the texts of a mail begin with, by its key below that of login by e-mail, or below the
// mail's.
func MailID(key string) string {
	if kind, ok := strings.CutPrefix(key, ".notices."); ok {
		return "mails.notice." + kind
	}
	for _, m := range (&Email{}).Mails() {
		if m.Key != "" && (key == m.Key || strings.HasPrefix(key, m.Key+".")) {
			return m.ID
		}
	}
	return "mails.validation"
}

// overlay sets the texts of a mail that the file has. A mail with one body of its own has no other body.
func overlay(file *decode.Document, path string, configured, into *MailText) {
	if file.IsSet(path + ".subject") {
		into.Subject = configured.Subject
	}
	if file.IsSet(path+".html") || file.IsSet(path+".text") {
		into.HTML, into.Text = configured.HTML, configured.Text
	}
}
