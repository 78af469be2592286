package console

import (
	"context"
	"slices"
	"strings"
)

// Settings is the data of the view Settings: parts of the configuration that admins look up, without secrets.
type Settings struct {
	File      string // of the configuration; "": none
	Callback  string // the URL to which providers return users
	Providers []SettingsProvider
	Limits    []SettingsLimits
	Pages     []SettingsPage // that belfry serves
	Branding  []Setting      // of these pages and of mails, as far as it is configured
	Templates string         // the folder of templates that replace belfry's; "" for none
	Languages string         // the folder of further languages; "" for none
	Redirects []Setting      // where browsers continue
}

// SettingsProvider is a provider of logins that the configuration has.
type SettingsProvider struct {
	Name    string
	Kind    string // "e-mail and password", "OpenID Connect, https://id.example.com"
	Enabled bool   // else its key is empty
	Returns bool   // users return from it to the callback
}

// SettingsLimits are limits of one kind.
type SettingsLimits struct {
	Title string
	All   []Setting
}

// Setting is the value of a key of the configuration.
type Setting struct {
	Key, Value, Default string
}

// Changed reports whether a value is not the default.
func (s Setting) Changed() bool { return s.Value != s.Default }

// SettingsPage is a page for users.
type SettingsPage struct{ Name, Path string }

// Mailer describes a mailer, which the operation at mailPath tries.
type Mailer struct {
	Name, Type, From string
	Server           string                           // host:port, or the folder of type file
	Failing          func(ctx context.Context) string // why it does not work; "" if it works, as far as is known
	Sent             func() bool                      // it has sent a mail, as far as this process knows
}

const mailPath = "settings/mail"

func (c *Console) settings(o Options) view {
	if o.Settings == nil {
		return view{}
	}
	v := settingsView{Settings: *o.Settings, tryMail: o.operation(mailPath), edited: o.Model.edited()}
	if o.System != nil {
		v.mail = o.System.Mail
	}
	return view{name: "settings", title: "Settings", routes: []route{get("/settings", v.show)}}
}

type settingsView struct {
	Settings
	mail    *Mailer    // nil: no mails are sent
	tryMail *Operation // may be nil
	edited  bool       // the view Model has forms for some of it
}

// settingsPage is the data of the page.
type settingsPage struct {
	Settings
	Mail      *Mailer
	MailFails string
	TryMail   *operationPage
	LastMail  *Done
	Edited    bool
}

func (v settingsView) show(r *request) error {
	p := settingsPage{Settings: v.Settings, Mail: v.mail, Edited: v.edited}
	if v.mail != nil {
		ctx, cancel := context.WithTimeout(r.Context(), checksTime)
		defer cancel()
		p.MailFails = v.mail.Failing(ctx)
		if v.tryMail != nil {
			p.TryMail = &operationPage{Operation: *v.tryMail, Form: slices.Clone(v.tryMail.Fields())}
			if me := r.name(); strings.Contains(me, "@") { // the admin sees whether the mail arrives
				for i := range p.TryMail.Form {
					p.TryMail.Form[i].Value = me
				}
			}
			if v.tryMail.Last != nil {
				p.LastMail = v.tryMail.Last()
			}
		}
	}
	return r.Page("settings", "Settings", p)
}
