package pages

import (
	"html/template"
	"strings"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/texts"
)

// Account is the data of the page account for a logged-in user.
type Account struct {
	LoggedIn bool

	// Secret, QR and Codes are shown once, in the reply to a form. That page shows nothing else.
	Method about.Method // that is being set up
	Secret string       // of it, for instance of an authenticator app
	QR     template.URL // the same, as a picture
	Codes  []string     // new recovery codes

	Done    string // result of the previous form; "" without one
	Problem string // why it failed; "" if it did not
	Form    string // the form that failed: password, address, deletion, step, name or picture; "" for others

	Username string // the address for password managers, which stands beside passwords
	Setup    string // the second factor whose code is asked for

	// the step by which the user has to authenticate again, as in the problem step-up-required; "" for none
	Step     string
	Password bool     // they can do so by their password
	Proofs   []string // or by these second factors

	Policy        string // of second factors: off, optional or required
	Factors       []Factor
	Addable       []string // types of second factors that can be added
	RecoveryCodes int      // that were not used
	Passkeys      []Passkey
	Sessions      []Session
	Addresses     []Address
	ByMail        bool // addresses and passwords can be changed
	HasPassword   bool

	Profile Profile

	Export    bool
	Deletable bool
	Undoable  string // until when a deletion that is planned now can be canceled; "" where accounts are deleted at once
	Deleted   string // when the account will be deleted; "" if that is not planned
}

// Factor is a second factor.
type Factor struct{ Type, Title, Added string }

// Passkey is a passkey; Suspected is when there may have been a copy of it, "" for never.
type Passkey struct{ UUID, Name, Added, LastUsed, Suspected string }

// Session is a session; Device is its browser and system, or the program.
type Session struct {
	ID, Device, Methods, LastUsed string
	Current                       bool
}

// TextID returns the id of the text about a session.
func (s Session) TextID() string {
	if s.Current {
		return "account.sessionCurrent"
	}
	return "account.session"
}

// Address is an e-mail address with which the user logs in. New is what was entered to replace it, and refused.
type Address struct{ UUID, Address, New string }

// account returns the data of the page account for a session, which may be nil.
func (h *handler) account(x *httpkit.Exchange, l *texts.Language, me *sessions.Session) (Account, error) {
	query := x.Query()
	known := func(section, parameter string) string {
		if id := section + "." + query.Get(parameter); l.Has(id) {
			return l.Text(id)
		}
		return ""
	}
	a := Account{Done: known("outcome", "outcome"), Problem: known("accountProblem", "reason")}
	if me == nil || me.Key != nil { // an API key manages no account
		return a, nil
	}
	o, err := h.service.Overview(x.Context(), me)
	if err != nil {
		return a, err
	}
	a.LoggedIn, a.Step, a.Password, a.HasPassword = true, o.StepUp.Step, o.StepUp.Password, o.HasPassword
	a.Policy, a.RecoveryCodes, a.ByMail = o.Factors.Policy, o.Factors.RecoveryCodes, h.service.EmailEnabled()
	a.Export, a.Deletable = h.o.Export, h.service.Deletion.Enabled()
	if until := h.service.Deletion.Until(); !until.IsZero() {
		a.Undoable = l.Time(until)
	}
	methods := h.service.Methods
	for _, proof := range o.StepUp.Factors {
		if m := methods.Get(proof); m != nil && m.Enabled() {
			a.Proofs = append(a.Proofs, proof)
		}
	}
	has := map[string]bool{}
	for _, f := range o.Factors.Factors {
		has[f.Type] = true
		a.Factors = append(a.Factors,
			Factor{f.Type, account.In(l, methods.About(f.Type)).Title, readable(l, f.Created)})
	}
	for _, f := range methods.Factors() {
		m := f.About()
		if f.Enabled() && !has[m.Name] && (!m.Mailbox || len(o.Addresses) > 0) && (!m.Script || len(o.Passkeys) > 0) {
			a.Addable = append(a.Addable, m.Name)
		}
	}
	if f := methods.Factor(query.Get("setup")); f != nil && !f.About().Once && !has[f.About().Name] {
		a.Setup = f.About().Name
	}
	for _, p := range o.Passkeys {
		a.Passkeys = append(a.Passkeys,
			Passkey{p.UUID, p.Name, readable(l, p.Created), readable(l, p.LastUsed), readable(l, p.CloneSuspected)})
	}
	for _, s := range o.Sessions {
		a.Sessions = append(a.Sessions, Session{s.ID, deviceOf(l, s.Origin), h.methodsOf(l, s.Methods),
			readable(l, s.LastUsed), s.Current})
	}
	a.Username = h.o.displayName(me)
	if len(o.Addresses) > 0 {
		a.Username = o.Addresses[0].Address
	}
	if a.ByMail {
		for _, address := range o.Addresses {
			a.Addresses = append(a.Addresses, Address{UUID: address.Ident, Address: address.Address})
		}
	}
	if o.Deletion != nil {
		a.Deleted = readable(l, o.Deletion.Deleted)
	}
	if a.Profile, err = h.profile(x, me); err != nil {
		return a, err
	}
	switch a.Form = formOf(query.Get("form"), a); a.Form {
	case "name":
		err = h.nameAgain(x, l, me, query.Get("reason"), &a)
	case "address":
		h.addressAgain(x, &a)
		if query.Get("reason") == "invalid" {
			a.Problem = l.Text(invalidAddress)
		}
	}
	if query.Get("reason") == "step-up" && a.Step != "" {
		a.Form = "step" // what has to be done first is there, at the top
	}
	return a, err
}

// addressAgain shows the form of an address after a failure, with what was entered.
func (h *handler) addressAgain(x *httpkit.Exchange, a *Account) {
	if h.o.TakeTyped == nil {
		return
	}
	ident, typed, _ := strings.Cut(h.o.TakeTyped(x), " ")
	for i := range a.Addresses {
		if a.Addresses[i].UUID == ident {
			a.Addresses[i].New = typed
		}
	}
}

// formOf returns the form that failed, if the page has it.
func formOf(name string, a Account) string {
	shown := map[string]bool{"password": a.ByMail, "address": len(a.Addresses) > 0,
		"deletion": a.Deletable && a.Deleted == "", "step": a.Step != "",
		"name": a.Profile.Renames, "picture": a.Profile.Uploads || a.Profile.Removes}
	if a.Problem == "" || !shown[name] {
		return ""
	}
	return name
}

// deviceOf returns the browser and the system of a session in words, or else the program.
func deviceOf(l *texts.Language, of sessions.Origin) string {
	switch {
	case of.Device != "":
		return l.Device(of.Device)
	case of.UserAgent == "" || strings.HasPrefix(of.UserAgent, "Mozilla/"):
		return l.Text("account.unknownDevice")
	}
	return httpkit.Truncate(of.UserAgent, 60)
}

// methodsOf returns the methods of a login in words.
func (h *handler) methodsOf(l *texts.Language, names []string) string {
	var all []string
	for _, name := range names {
		if m := h.service.Methods.Get(name); m != nil {
			name = account.In(l, m.About()).Title
		} else {
			name = title(name)
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// readable returns a time of an object for people.
func readable(l *texts.Language, text string) string {
	at, err := time.Parse(object.TimeFormat, text)
	if err != nil {
		return ""
	}
	return l.Time(at)
}

// AccountReply returns the page that replies to a form of the logged-in user with data that is shown once, and its
// Content-Security-Policy, which permits no script.
func (o Options) AccountReply(x *httpkit.Exchange, service *account.Service, me *sessions.Session,
	a Account) (body []byte, policy string, err error) {
	v := o.baseView(service).in(languageOf(x, service))
	a.Method = account.In(v.texts, a.Method)
	v.User, v.Account = o.displayName(me), a
	body, err = o.Templates.render(accountPage, v)
	return body, strictPolicy(formTargets(o.Redirects)), err
}

func sampleAccount() Account {
	return Account{
		LoggedIn: true, Policy: "required", Password: true, HasPassword: true, ByMail: true, Export: true,
		Deletable: true,
		Step:      "reauthenticate", Proofs: []string{"totp", "passkey", "email", "recovery"}, RecoveryCodes: 9,
		Factors: []Factor{{"totp", "Authenticator app", "2026-03-01 12:00 UTC"}},
		Addable: []string{"totp", "passkey", "email"},
		Passkeys: []Passkey{{"abc_passkey", "Laptop", "2026-03-01 12:00 UTC", "2026-03-02 12:00 UTC",
			"2026-03-03 12:00 UTC"}, {"def_passkey", "Phone", "2026-03-01 12:00 UTC", "", ""}},
		Sessions: []Session{{"s1", "Firefox on Linux", "Password, Authenticator app", "2026-03-01 12:00 UTC", true},
			{"s2", "curl/8", "password", "2026-03-01 12:00 UTC", false}},
		Addresses: []Address{{"ada@example.com_email", "ada@example.com", "grace@example.com"}},
		Profile: Profile{Renames: true, Name: "Ada", Uploads: true, Accept: "image/*", MaxSize: "5 MB",
			Picture: "/binary/Users/ada/picture/0?thumb=90x90", Hash: "0123", Removes: true},
	}
}

// accountSamples are a view with each kind of reply of the page account.
func accountSamples(full View) (all []View) {
	english := texts.English()
	for _, change := range []func(*Account){
		func(a *Account) {
			*a = Account{Method: about.Method{Name: "totp"}, Secret: "ABCD", QR: "data:image/png;base64,AAAA"}
		},
		func(a *Account) { *a = Account{Codes: []string{"AAAA-BBBB-CCCC-DDDD"}} },
		func(a *Account) { *a = Account{Problem: english.Text("accountProblem.ended")} },
		func(a *Account) {
			a.Setup, a.Step, a.Done, a.Deleted = "totp", "", english.Text("outcome.proven"), "2026-03-01 12:00 UTC"
		},
		func(a *Account) { a.Setup, a.Proofs, a.Password, a.HasPassword = "email", nil, false, false },
		func(a *Account) {
			a.Policy, a.Factors, a.Passkeys, a.Problem = "off", nil, nil, english.Text("accountProblem.last")
		},
	} {
		v := full
		change(&v.Account)
		all = append(all, v)
	}
	return all
}
