package pages

import (
	"cmp"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"belfry/internal/baseurl"
	"belfry/pkg/account"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/texts"
)

// View is the data of the templates.
type View struct {
	Base  string // the path of belfry's URL, before all paths of its own; "" for none
	Host  string // of belfry's URL
	Style string // URL of the style sheet

	Name     string // of the application; without one, Host
	Branded  bool   // Name is configured
	Logo     string // URL of its logo; "" for none
	Language string // the tag of the language of the page

	Script     string // URL of the script of passkeys, on pages that use them; "" on others, and without passkeys
	PageScript string // URL of the script of forms with passwords, on pages that have them

	User string // the logged-in user: their name, else address, else uuid; "": nobody

	Links     Links
	Actions   Actions
	Logins    []about.Method // besides e-mail and providers
	Providers []Provider     // besides e-mail
	Stores    []Store        // that the API document names; only on the start page

	AddressFirst bool   // registration begins with a mail
	Codes        bool   // login by the code in a mail is configured
	MailLinks    bool   // login by the link in a mail is configured
	Login, Token string // from the link of a mail
	MailSent     bool
	Undo         bool // the link of a mail undoes a change of address, and does not confirm it
	Kept         bool // the holder of the right to undo a change of address has confirmed the change
	NewAddress   bool // the logged-in user has confirmed a new address
	OtherBrowser bool // the link of a mail was opened in another browser than the one that asked for it
	PasswordSet  bool
	Invited      bool // the page of a recovery is for the first password of an invited user

	Reason, Message string // of a failure
	Problem         string // why the form of this page failed, which the browser sent before; "" if it did not
	Done            string // earlier result, for a repetition: the same was sent twice, which is not a failure

	Factors     []string // with which the login can be completed; only of the page second-factor
	FactorNames string   // the same, for the field factors of its forms

	Enroll bool // the logged-in user has to add a second factor first

	Application Application // that the login is for; only of the page authorize
	Account     Account     // only of the page account

	methods method.Methods
	texts   *texts.Language
}

// Method returns the description of a method of second factors by its name.
func (v View) Method(name string) about.Method { return account.In(v.texts, v.methods.About(name)) }

// in returns the view in a language.
func (v View) in(l *texts.Language) View {
	v.texts, v.Language = l, l.Tag()
	v.Logins = slices.Clone(v.Logins)
	for i := range v.Logins {
		v.Logins[i] = account.In(l, v.Logins[i])
	}
	return v
}

// RightToLeft reports whether the page is written from right to left.
func (v View) RightToLeft() bool { return v.texts.RightToLeft() }

// Text returns a text in the language of the page, by its id, with the names and values of its placeholders in turn.
// Values are escaped, unless they are HTML.
func (v View) Text(id string, pairs ...any) template.HTML {
	values := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		switch value := pairs[i+1].(type) {
		case template.HTML:
			values[name] = string(value)
		case int:
			values[name] = value
		default:
			values[name] = template.HTMLEscaper(value)
		}
	}
	return template.HTML(v.texts.Fill(id, values, template.HTMLEscapeString)) //nolint:gosec // escaped above
}

// Strong returns a value of a text that stands out.
func (v View) Strong(text string) template.HTML { return element("strong", text) }

// Code returns a value of a text that is one of a program.
func (v View) Code(text string) template.HTML { return element("code", text) }

// UserLink returns the name of the logged-in user, as a link to the account.
func (v View) UserLink() template.HTML {
	if v.Links.Account == "" {
		return v.Strong(v.User)
	}
	link := element(`a href="`+template.HTMLEscapeString(v.Links.Account)+`"`, v.User)
	return "<strong>" + link + "</strong>"
}

func element(tag, text string) template.HTML {
	name, _, _ := strings.Cut(tag, " ")
	return template.HTML("<" + tag + ">" + template.HTMLEscapeString(text) + "</" + name + ">") //nolint:gosec // escaped
}

// Application is the application that requests a login.
type Application struct {
	Name     string // the configured redirect
	Native   bool   // it is a program on the device of the user, not a website
	Request  string // value of the field authorize of the form
	Register bool   // the form registers
	// this page with either form; RegisterURL is "" if a registration begins with a mail, or is not possible
	LoginURL, RegisterURL string
}

// Links are the linked pages; "" for a page that is not served.
type Links struct{ Start, Login, Register, Recovery, Console, OpenAPI, AsyncAPI, MailLogin, Account string }

// Actions are the URLs that forms are sent to; "" for methods that are not configured.
type Actions struct{ Login, Validation, Recovery, Logout, MailLogin, Address, Mailed string }

// below returns the links as browsers reach them.
func (l Links) below(base baseurl.URL) Links {
	for _, link := range []*string{&l.Start, &l.Login, &l.Register, &l.Recovery, &l.Console, &l.OpenAPI, &l.AsyncAPI,
		&l.MailLogin, &l.Account} {
		*link = base.Below(*link)
	}
	return l
}

func (a Actions) below(base baseurl.URL) Actions {
	for _, action := range []*string{&a.Login, &a.Validation, &a.Recovery, &a.Logout, &a.MailLogin, &a.Address,
		&a.Mailed} {
		*action = base.Below(*action)
	}
	return a
}

func storesBelow(stores []Store, base baseurl.URL) []Store {
	stores = slices.Clone(stores)
	for i := range stores {
		stores[i].URL = base.Below(stores[i].URL)
	}
	return stores
}

// Provider is a provider to log in through.
type Provider struct{ Name, Title, URL string }

// Store is a store that the API serves.
type Store struct {
	Name, URL string
	List      bool // GET of the URL lists its objects
}

// titles are the names of providers for people.
var titles = map[string]string{
	"github": "GitHub", "google": "Google", "facebook": "Facebook", "amazon": "Amazon", "twitter": "Twitter",
	"apple": "Apple", "microsoft": "Microsoft", "gitlab": "GitLab", "discord": "Discord", "linkedin": "LinkedIn",
	"slack": "Slack",
}

// title returns the name of a provider for people.
func title(name string) string {
	return cmp.Or(titles[name], strings.ToUpper(name[:1])+name[1:])
}

// view returns the data of a page, and the session of the logged-in user, nil for nobody.
func (h *handler) view(x *httpkit.Exchange, page string) (View, *sessions.Session) {
	v := h.base.in(languageOf(x, h.service))
	// Clients without a valid session see the page, and so do all while sessions can't be
	// read.
	session, err := h.calls.AccountSession(x)
	if err == nil && session != nil {
		v.User, v.Enroll = h.o.displayName(session), session.Missing == errs.StepEnroll
	}
	if v.Links.Console != "" && !h.service.Sessions.IsAdmin(x.Context(), session) {
		v.Links.Console = ""
	}
	query := x.Query()
	v.Login, v.Token = query.Get("login"), query.Get("token")
	v.Undo, v.Kept = query.Get("change") == "undo", query.Get("change") == "kept"
	v.NewAddress = query.Get("change") == "confirmed"
	v.OtherBrowser = query.Get("browser") == "other"
	v.Invited = query.Get("invited") == "true" && v.Token != ""
	v.MailSent, v.PasswordSet = query.Get("mail") == "sent", query.Get("password") == "set"
	if reason := query.Get("reason"); v.texts.Has("failure." + reason) {
		v.Reason = reason
	}
	if done := query.Get("done"); v.texts.Has("done." + done) {
		v.Done = done
	}
	switch {
	case v.Done != "":
		v.Message = v.texts.Text("done." + v.Done)
	case v.Reason != "":
		v.Message = v.texts.Text("failure." + v.Reason)
	default:
		v.Message = v.texts.Text("failure.unexplained")
	}
	if v.Reason != "" && (page == mailPage && !v.MailSent ||
		slices.Contains([]string{loginPage, registerPage, recoveryPage}, page)) {
		v.Problem = v.Message
		if id := v.formProblem(page); v.texts.Has(id) {
			v.Problem = v.texts.Text(id)
		}
		if v.Login == "" && h.o.TakeTyped != nil {
			v.Login = h.o.TakeTyped(x)
		}
	}
	return v, session
}

// formProblem returns the id of the text that explains at the form of a page why it failed; none for an explanation
// that is that of all pages.
func (v View) formProblem(page string) string {
	addressOnly := page == mailPage || v.Token == "" && (page == recoveryPage || page == registerPage && v.AddressFirst)
	switch {
	case v.Reason == "invalid" && addressOnly:
		return invalidAddress
	case page == recoveryPage || page == mailPage && v.Reason == "denied":
		return ""
	}
	return formProblem(v.Reason, page == registerPage)
}

// invalidAddress is the id of the text about a form that has only an address.
const invalidAddress = "formProblem.invalidAddress"

// formProblem returns the id of the text that explains at the form of a login, or of a registration, why it failed.
func formProblem(reason string, registers bool) string {
	if registers && reason == "invalid" {
		reason = "invalidNew"
	}
	return "formProblem." + reason
}

// displayName returns the name of a user on the user's pages.
func (o Options) displayName(session *sessions.Session) string {
	property := "name"
	if o.Profile != nil && o.Profile.Name != "" {
		property = o.Profile.Name
	}
	if name, ok := session.Visible.Text(property); ok && strings.TrimSpace(name) != "" {
		return httpkit.Truncate(name, 100)
	}
	var idents []struct{ UUID, Type string }
	if json.Unmarshal(object.Field(session.User.Body, "idents"), &idents) == nil {
		for _, ident := range idents {
			if address, ok := strings.CutSuffix(ident.UUID, "_email"); ok && ident.Type == "email" {
				return address
			}
		}
	}
	return session.User.UUID
}

// samples are the views by which templates are tried.
func samples() []View {
	english := texts.English()
	full := View{
		Host: "belfry.example.com", Name: "Kitchen", Branded: true, Logo: "/auth/logo-1.png", Style: stylePath,
		PageScript: pageScriptPath, Problem: english.Text("failure.denied"), Language: "en",
		texts: english, Script: scriptPath, Logins: sampleLogins(), Enroll: true,
		Account: sampleAccount(), User: "ada@example.com",
		Links: Links{"/", "/login", "/register", "/recovery", "/console", "/openapi.json", "/asyncapi.json",
			"/login/mail", "/account"},
		Actions: allActions(), Codes: true, MailLinks: true,
		Providers: []Provider{{"github", "GitHub", "/auth/github"}},
		Stores:    []Store{{"Books", "/books", true}, {"Authors", "/authors", false}},
		Factors:   []string{"totp", "passkey", "email", "recovery"}, FactorNames: "totp passkey email recovery",
		Login: "ada@example.com", Token: "0123456789", Reason: "denied", Message: english.Text("failure.denied"),
		Application: Application{Name: "http://127.0.0.1/in", Native: true, Request: "response_type=code",
			LoginURL: "/auth/authorize?a=b", RegisterURL: "/auth/authorize?a=b&register=true"},
	}
	sent, set, first := full, full, full
	set.OtherBrowser, set.Undo, set.NewAddress = true, true, true
	sent.MailSent, set.PasswordSet = true, true
	first.Kept, first.Done, first.Invited = true, "confirmed", true
	first.AddressFirst, first.Token, first.User = true, "", ""
	first.Application.Register, first.Application.Native = true, false
	return append(accountSamples(full), full, sent, set, first, View{})
}

func sampleLogins() []about.Method {
	return []about.Method{{Name: "passkey", Script: true, Texts: about.Texts{LoginButton: "Log in with a passkey"}},
		{Name: "code", Texts: about.Texts{Answer: "Code"}}}
}

func allActions() Actions {
	return Actions{"/auth/email", "/auth/email/validation", "/auth/email/recovery", "/auth/logout", "/auth/email/code",
		"/auth/email/address", "/auth/email/callback"}
}

func actionsOf(service *account.Service) Actions {
	all := allActions()
	if !service.EmailEnabled() {
		return Actions{Logout: all.Logout}
	}
	if code, link := service.Mails.Logins(); !code && !link {
		all.MailLogin = ""
	}
	return all
}

// applicationTargets are the sources of the redirects of applications: their hosts, and the schemes of programs.
func applicationTargets(redirects []string) (all string) {
	for _, r := range redirects {
		u, err := url.Parse(r)
		switch {
		case err != nil:
		case u.Scheme == "https":
			all += " https://" + u.Host
		case !strings.Contains(all+" ", " "+u.Scheme+": "):
			all += " " + u.Scheme + ":"
		}
	}
	return all
}

// formTargets are the sources of Content-Security-Policy that forms may lead to: browsers
// check where a form's reply redirects to as well.
func formTargets(redirects []string) string {
	all := "'self'"
	for _, r := range redirects {
		if u, err := url.Parse(r); err == nil && u.Host != "" {
			if origin := u.Scheme + "://" + u.Host; !strings.Contains(all, " "+origin) {
				all += " " + origin
			}
		}
	}
	return all
}
