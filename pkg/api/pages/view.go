package pages

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"belfry/internal/baseurl"
	"belfry/pkg/account"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
)

// View is the data of the templates.
type View struct {
	Base  string // the path of belfry's URL, before all paths of its own; "" for none
	Host  string // of belfry's URL
	Style string // URL of the style sheet

	Script string // URL of the script of passkeys, on pages that use them; "" on others, and without passkeys

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
	OtherBrowser bool // the link of a mail was opened in another browser than the one that asked for it
	PasswordSet  bool

	Reason, Message string // of a failure
	Done            string // earlier result, for a repetition: the same was sent twice, which is not a failure

	Factors     []string // with which the login can be completed; only of the page second-factor
	FactorNames string   // the same, for the field factors of its forms

	Enroll bool // the logged-in user has to add a second factor first

	Application Application // that the login is for; only of the page authorize
	Account     Account     // only of the page account

	methods method.Methods
}

// Method returns the description of a method of second factors by its name.
func (v View) Method(name string) about.Method { return v.methods.About(name) }

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
type Actions struct{ Login, Validation, Recovery, Logout, MailLogin, Address string }

// below returns the links as browsers reach them.
func (l Links) below(base baseurl.URL) Links {
	for _, link := range []*string{&l.Start, &l.Login, &l.Register, &l.Recovery, &l.Console, &l.OpenAPI, &l.AsyncAPI,
		&l.MailLogin, &l.Account} {
		*link = base.Below(*link)
	}
	return l
}

func (a Actions) below(base baseurl.URL) Actions {
	for _, action := range []*string{&a.Login, &a.Validation, &a.Recovery, &a.Logout, &a.MailLogin, &a.Address} {
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

// messages explain the reasons of failures.
var messages = map[string]string{ //nolint:gosec // no credentials
	"denied":   "The address or the password is wrong, or you refused.",
	"disabled": "This account is disabled. Ask the operator of this service.",
	"step-up": "You are logged in, but not recently or not with a second factor, and this changes your account. " +
		"Log out, log in again, and try once more.",
	"unknown": "There is no account with this address.",
	"state":   "The login was started in another browser, or took too long. Start again.",
	"taken":   "This login already belongs to an account. Log in, or set a new password.",
	"limited": "Too many attempts, or another mail was sent just now. Wait for a minute, and try again.",
	"origin":  "A page of another site began a login while you were logged in. Nothing was changed.",
	"invalid": "The form is not valid: check the address, and choose a password of at least 8 characters.",
	"common": "This is one of the most common passwords, which attackers try first. Go back, and choose " +
		"another one.",
	"weak": "This password is too easy to guess. Go back, and choose a longer one, or several unrelated words.",
	"breached": "This password appears in data breaches, so attackers try it. Go back, choose another one, and " +
		"change it everywhere else you use it.",
	"unavailable": "The service is unavailable at the moment. Try again in a minute.",
	"token":       "The link is wrong, was used, or has expired. Ask for another mail.",
	"provider":    "The provider is unavailable at the moment. Try again in a minute.",
	"rejected": "The provider refused the login, or sent an invalid reply. Start again. If it fails again, " +
		"contact the operator of this service: the log has the reason.",
}

const unknownFailure = "The login failed."

// doneMessages are the results of the first use for a client that repeats it. They are the same for every account.
var doneMessages = map[string]string{
	string(record.ActConfirmed): "This address is confirmed. The link was opened before; there is nothing left to do.",
	string(record.ActRegistered): "This address is registered. The link was used for that; log in with the password " +
		"that was chosen.",
	string(record.ActPassword): "A new password was set by this link. Log in with it, or ask for another mail if you " +
		"did not choose it.",
	string(record.ActLoggedIn): "This login is finished. It can't be used a second time: to log in here, begin again.",
	string(record.ActAddress): "The new address is confirmed. The link was used for that; there is nothing " +
		"left to do.",
	string(record.ActUndone):  "The change of the address was undone by this link. Set a new password to log in.",
	string(record.ActKept):    "The change of the address was confirmed by this link.",
	string(record.ActPasskey): "The passkey was added.",
	string(record.ActChanged): "The new password is set.",
	string(record.ActProven):  "You have proven again who you are.",
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
func (h *handler) view(x *httpkit.Exchange) (View, *sessions.Session) {
	v := h.base
	// Clients without a valid session see the page, and so do all while sessions can't be
	// read.
	session, err := h.calls.AccountSession(x)
	if err == nil && session != nil {
		v.User, v.Enroll = displayName(session), session.Missing == errs.StepEnroll
	}
	query := x.Query()
	v.Login, v.Token = query.Get("login"), query.Get("token")
	v.Undo, v.Kept = query.Get("change") == "undo", query.Get("change") == "kept"
	v.OtherBrowser = query.Get("browser") == "other"
	v.MailSent, v.PasswordSet = query.Get("mail") == "sent", query.Get("password") == "set"
	if reason := query.Get("reason"); messages[reason] != "" {
		v.Reason = reason
	}
	if done := query.Get("done"); doneMessages[done] != "" {
		v.Done = done
	}
	v.Message = cmp.Or(doneMessages[v.Done], messages[v.Reason], unknownFailure)
	return v, session
}

// displayName returns the name of a user on the user's pages.
func displayName(session *sessions.Session) string {
	if name, ok := session.Visible.Text("name"); ok && strings.TrimSpace(name) != "" {
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
	full := View{
		Host: "belfry.example.com", Style: stylePath, Script: scriptPath, Logins: sampleLogins(), Enroll: true,
		Account: sampleAccount(), User: "ada@example.com",
		Links: Links{"/", "/login", "/register", "/recovery", "/console", "/openapi.json", "/asyncapi.json",
			"/login/mail", "/account"},
		Actions: allActions(), Codes: true, MailLinks: true,
		Providers: []Provider{{"github", "GitHub", "/auth/github"}},
		Stores:    []Store{{"Books", "/books", true}, {"Authors", "/authors", false}},
		Factors:   []string{"totp", "passkey", "email", "recovery"}, FactorNames: "totp passkey email recovery",
		Login: "ada@example.com", Token: "0123456789", Reason: "denied", Message: messages["denied"],
		Application: Application{Name: "http://127.0.0.1/in", Native: true, Request: "response_type=code",
			LoginURL: "/auth/authorize?a=b", RegisterURL: "/auth/authorize?a=b&register=true"},
	}
	sent, set, first := full, full, full
	set.OtherBrowser, set.Undo = true, true
	sent.MailSent, set.PasswordSet = true, true
	first.Kept, first.Done = true, "confirmed"
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
		"/auth/email/address"}
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
