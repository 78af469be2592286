package config

import "regexp"

// Fields of the templates of mails. Texts in an action may have braces, as in {{printf "{%s}" .Token}}.
var (
	mailLink  = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Link\b`)
	mailToken = regexp.MustCompile(`\{\{([^}]|\}[^}])*\.Token\b`)
)

// checkMailTexts refuses texts of mails that lack both the link and the token, which the reader needs. A program that
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
				c.doc.Problem(path+m.key+key, "lacks {{.Token}}, the code: %s", m.what)
			default:
				c.doc.Problem(path+m.key+key, "has neither {{.Link}} nor {{.Token}}: %s", m.what)
			}
		}
	}
}

// SetDefaults sets the texts of mails.
func (e *Email) SetDefaults() {
	e.MailText = MailText{
		Subject: "Confirm your address",
		HTML:    `<p><a href="{{.Link}}">Confirm your address</a> or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
		Text:    "Confirm your address: {{.Link}} or enter {{.Token}}. If you did not request this mail, ignore it.",
	}
	e.Recovery = MailText{
		Subject: "Set a new password",
		HTML:    `<p><a href="{{.Link}}">Set a new password</a> or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
		Text:    "Set a new password: {{.Link}} or enter {{.Token}}. If you did not request this mail, ignore it.",
	}
	e.Taken = MailText{
		Subject: "You have an account already",
		HTML:    `<p>Someone, probably you, tried to register {{.Login}} at {{.Link}}, but that login has an account already. Log in with it, or request a new password.</p>`,
		Text: "Someone, probably you, tried to register {{.Login}} at {{.Link}}, but that login has an account " +
			"already. Log in with it, or request a new password.",
	}
	e.Change = MailText{
		Subject: "Confirm your new address",
		HTML:    `<p><a href="{{.Link}}">Confirm your new address</a> while you are logged in, or enter {{.Token}}. If you did not request this mail, ignore it.</p>`,
		Text: "Confirm your new address, while you are logged in: {{.Link}} or enter {{.Token}}. If you did not " +
			"request this mail, ignore it.",
	}
	e.Undo = MailText{
		Subject: "The address of your account is to be changed",
		HTML:    `<p>Somebody, probably you, has asked to replace or remove an address of your account {{.Login}}. If that was not you, <a href="{{.Link}}">undo it</a>; if it was, say so there, so that nobody can undo it later.</p>`,
		Text: "Somebody, probably you, has asked to replace or remove an address of your account {{.Login}}. If " +
			"that was not you, undo it; if it was, say so there, so that nobody can undo it later: {{.Link}}",
	}
	e.Login.CodeMail = MailText{
		Subject: "Your code to log in",
		HTML:    `<p>Your code to log in is <strong>{{.Token}}</strong>. Enter it where you asked for it, and give it to nobody. If you did not request this mail, ignore it.</p>`,
		Text: "Your code to log in is {{.Token}}. Enter it where you asked for it, and give it to nobody. If you " +
			"did not request this mail, ignore it.",
	}
	e.Login.LinkMail = MailText{
		Subject: "Log in",
		HTML:    `<p><a href="{{.Link}}">Log in</a> in the browser where you asked for this mail, or enter {{.Token}} there. If you did not request this mail, ignore it.</p>`,
		Text: "Log in, in the browser where you asked for this mail: {{.Link}} or enter {{.Token}} there. If you " +
			"did not request this mail, ignore it.",
	}
}
