package plan

import (
	"slices"
	"strings"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/post"
	"belfry/pkg/mail"
	"belfry/pkg/texts"
)

// compileLanguages reads the files of languages.
func (p *Plan) compileLanguages() config.Problems {
	languages, err := account.Languages(p.Config.Pages.Languages)
	if err != nil {
		return config.Problems{p.Config.Problem("pages.languages", "%v", err)}
	}
	p.Auth.Languages = languages
	return nil
}

// mailsOf are the texts of mails, by their keys below that of login by e-mail.
func mailsOf(e *config.Email) map[string]config.MailText {
	all := map[string]config.MailText{}
	for _, m := range e.Mails() {
		all[m.Key] = *m.Text
	}
	for kind, text := range e.Notices.Kinds {
		all[".notices."+kind] = text.MailText
	}
	return all
}

// compileMails parses the texts of mails, in all languages.
func (p *Plan) compileMails(e *config.Email) (problems config.Problems) {
	const at = "authentication.providers.email"
	all := map[string]*mail.Templates{}
	for key, text := range mailsOf(e) {
		t, err := mail.ParseTemplates(text.Subject, text.HTML, text.Text)
		if err != nil {
			problems = append(problems, p.Config.Problem(at+key, "%v", err))
			continue
		}
		all[key] = t
	}
	if len(problems) > 0 {
		return problems
	}
	english := p.Auth.Languages.Languages()[0]
	for _, l := range p.Auth.Languages.Languages() {
		if l != english && !slices.ContainsFunc(english.IDs(), func(id string) bool {
			return strings.HasPrefix(id, "mails.") && l.Translates(id)
		}) {
			continue // its mails are the English ones, as templates say; others would take memory
		}
		problems = append(problems, p.addMails(l, all)...)
	}
	to := p.Auth.Email
	to.Validation, to.Recovery, to.Taken, to.Change, to.Undo = all[""], all[".recovery"], all[".taken"], all[".change"],
		all[".undo"]
	to.Invitation = all[".invitation"]
	to.Login.CodeMail, to.Login.LinkMail = all[".login.codeMail"], all[".login.linkMail"]
	to.Notices = map[post.Notice]*mail.Templates{}
	for kind := range e.Notices.Kinds {
		to.Notices[post.Notice(kind)] = all[".notices."+kind]
	}
	return problems
}

// addMails adds mails in a language.
func (p *Plan) addMails(l *texts.Language, all map[string]*mail.Templates) (problems config.Problems) {
	e := config.MailsIn(p.Config, l)
	wrong := func(key string, problem any) {
		problems = append(problems, p.Config.Problem("pages.languages", "in %s, the text of the mail %s: %v", l.Tag(),
			config.MailID(key), problem))
	}
	e.Lacking(func(key, problem string) { wrong(key, problem) })
	for key, text := range mailsOf(&e) {
		t, err := mail.ParseTemplates(text.Subject, text.HTML, text.Text)
		if err != nil {
			wrong(key, err)
			continue
		}
		all[key].Add(l.Tag(), t)
	}
	return problems
}
