package pages

import (
	"cmp"
	"html/template"
	"strings"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
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
	Setup   string // the second factor whose code is asked for

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

	Export    bool
	Deletable bool
	Deleted   string // when the account will be deleted; "" if that is not planned
}

// Factor is a second factor.
type Factor struct{ Type, Title, Added string }

// Passkey is a passkey; Suspected is when there may have been a copy of it, "" for never.
type Passkey struct{ UUID, Name, Added, LastUsed, Suspected string }

// Session is a session; Device is its User-Agent header.
type Session struct {
	ID, Device, Methods, LastUsed string
	Current                       bool
}

// Address is an e-mail address with which the user logs in.
type Address struct{ UUID, Address string }

// outcomes are results of forms.
var outcomes = map[string]string{
	"passkey-added":    "The passkey is added. You can log in with it.",
	"passkey-renamed":  "The passkey is renamed.",
	"passkey-removed":  "The passkey is removed. Remove it from your device as well.",
	"factor-added":     "The second factor is added.",
	"factor-removed":   "The second factor is removed.",
	"session-ended":    "The session has ended.",
	"password-set":     "The password is set. All other sessions have ended.",
	"address-mailed":   "We have sent a mail to the new address. Open its link in this browser.",
	"deletion-planned": "Your account will be deleted. All other sessions have ended.",
	"deletion-undone":  "Your account is kept.",
	"proven":           "Thank you. You can change your account for ten minutes.",
}

// accountProblems explain why forms failed.
var accountProblems = map[string]string{ //nolint:gosec // no credentials
	"step-up": "First prove again who you are. Then repeat your action.",
	"refused": "That was not right. Check your input, and try again.",
	"ended":   "Your session has ended. Log in again.",
	"taken":   "That already belongs to an account.",
	"last": "That is not possible now. The last way to log in, the last passkey that is a second factor, and " +
		"a required second factor can't be removed. A setup expires after ten minutes.",
	"gone":        "This no longer exists.",
	"limited":     "Too many attempts, or another mail was sent just now. Wait for a minute, and try again.",
	"invalid":     "The form is not valid. Check it, and choose a password of at least 8 characters.",
	"common":      messages["common"],
	"breached":    messages["breached"],
	"unavailable": "The service is unavailable at the moment. Try again in a minute.",
}

// account returns the data of the page account for a session, which may be nil.
func (h *handler) account(x *httpkit.Exchange, me *sessions.Session) (Account, error) {
	query := x.Query()
	a := Account{Done: outcomes[query.Get("outcome")], Problem: accountProblems[query.Get("reason")]}
	if me == nil || me.Key != nil { // an API key manages no account
		return a, nil
	}
	o, err := h.service.Overview(x.Context(), me)
	if err != nil {
		return a, err
	}
	a.LoggedIn, a.Step, a.Password, a.HasPassword = true, o.StepUp.Step, o.StepUp.Password, o.HasPassword
	a.Policy, a.RecoveryCodes, a.ByMail = o.Factors.Policy, o.Factors.RecoveryCodes, h.service.EmailEnabled()
	a.Export, a.Deletable = h.export, h.service.Deletion.Enabled()
	methods := h.service.Methods
	for _, proof := range o.StepUp.Factors {
		if m := methods.Get(proof); m != nil && m.Enabled() {
			a.Proofs = append(a.Proofs, proof)
		}
	}
	has := map[string]bool{}
	for _, f := range o.Factors.Factors {
		has[f.Type] = true
		a.Factors = append(a.Factors, Factor{f.Type, methods.About(f.Type).Title, readable(f.Created)})
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
			Passkey{p.UUID, p.Name, readable(p.Created), readable(p.LastUsed), readable(p.CloneSuspected)})
	}
	for _, s := range o.Sessions {
		device := httpkit.Truncate(cmp.Or(s.UserAgent, "an unknown device"), 200)
		a.Sessions = append(a.Sessions,
			Session{s.ID, device, strings.Join(s.Methods, ", "), readable(s.LastUsed), s.Current})
	}
	if a.ByMail {
		for _, address := range o.Addresses {
			a.Addresses = append(a.Addresses, Address{address.Ident, address.Address})
		}
	}
	if o.Deletion != nil {
		a.Deleted = readable(o.Deletion.Deleted)
	}
	return a, nil
}

// readable returns a time of an object for people.
func readable(text string) string {
	at, err := time.Parse(object.TimeFormat, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format("2006-01-02 15:04 UTC")
}

// AccountReply returns the page that replies to a form of the logged-in user with data that is shown once, and its
// Content-Security-Policy, which permits no script.
func (o Options) AccountReply(service *account.Service, me *sessions.Session,
	a Account) (body []byte, policy string, err error) {
	v := baseView(service, o.Links)
	v.User, v.Account = displayName(me), a
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
		Sessions: []Session{{"s1", "Mozilla/5.0", "password, totp", "2026-03-01 12:00 UTC", true},
			{"s2", "curl/8", "password", "2026-03-01 12:00 UTC", false}},
		Addresses: []Address{{"ada@example.com_email", "ada@example.com"}},
	}
}

// accountSamples are a view with each kind of reply of the page account.
func accountSamples(full View) (all []View) {
	for _, change := range []func(*Account){
		func(a *Account) {
			*a = Account{Method: about.Method{Name: "totp"}, Secret: "ABCD", QR: "data:image/png;base64,AAAA"}
		},
		func(a *Account) { *a = Account{Codes: []string{"AAAA-BBBB-CCCC-DDDD"}} },
		func(a *Account) { *a = Account{Problem: accountProblems["ended"]} },
		func(a *Account) {
			a.Setup, a.Step, a.Done, a.Deleted = "totp", "", outcomes["proven"], "2026-03-01 12:00 UTC"
		},
		func(a *Account) { a.Setup, a.Proofs, a.Password, a.HasPassword = "email", nil, false, false },
		func(a *Account) {
			a.Policy, a.Factors, a.Passkeys, a.Problem = "off", nil, nil, accountProblems["last"]
		},
	} {
		v := full
		change(&v.Account)
		all = append(all, v)
	}
	return all
}
