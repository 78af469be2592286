package record

import (
	"net/url"
	"strings"
	"time"
)

// Token is a login, a flow, a challenge or a setup in progress, which is used once. Its fields depend on its kind,
// which is the prefix of its uuid.
type Token struct {
	Meta

	Expires time.Time `record:"expires" left:"stays, stays, stays, stays"`

	// Use describes how the token was used up. It then has no other data.
	Use *Use `record:"_use" left:"stays, stays, stays, stays"`

	// Of tokens that are bound to a user and the epoch: logins that wait for a second factor, codes for applications.
	User  string  `record:"_user" left:"ends, ends, ends, ends"` // of a flow: the user to link the identity to
	Epoch *uint64 `record:"_epoch" left:"ends, ends, ends, ends"`
	Proof
	Application *Application `record:"_application" left:"ends, ends, ends, ends"`

	// Of a login that waits for its second factor.
	Ident string `record:"_ident" left:"ends, ends, ends, ends"` // with which it began, if it is an address
	Tries int    `record:"_tries" left:"ends, ends, ends, ends"`
	// since when answers are being verified
	InFlight map[string]string `record:"_inFlight" left:"ends, ends, ends, ends"`

	// Of a code for an application.
	Session  string `record:"_session" left:"ends, ends, ends, ends"`  // that the first use makes; absent before
	Replayed bool   `record:"_replayed" left:"ends, ends, ends, ends"` // it was used twice

	// the secret of an authenticator app that a session sets up
	Setup string `record:"_totp" left:"ends, ends, ends, ends"`
	// of a passkey's challenge: bound to a session, or to a login that waits
	Purpose string `record:"_purpose" left:"ends, ends, ends, ends"`

	// Of a login at a provider, which is bound to a browser: linking needs a session.
	FlowProvider string `record:"provider" left:"otherwise, otherwise, otherwise, otherwise"`
	Browser      string `record:"_browser" left:"otherwise, otherwise, otherwise, otherwise"`
	Secret       string `record:"_secret" left:"otherwise, otherwise, otherwise, otherwise"`
}

// Kinds of tokens, by which their uuids begin.
const (
	KindPending      = "pending-"      // a login that waits for its second factor
	KindCode         = "code-"         // for an application
	KindFlow         = "flow-"         // a login at a provider
	KindChallenge    = "passkey-"      // for a passkey
	KindEnrollment   = "enroll-"       // of a second factor
	KindRegistration = "registration-" // of an address, without a token
)

// Proven returns the proof of identity of a token's user.
func (t Token) Proven() Proof {
	p := t.complete()
	if p.At.IsZero() {
		p.At, _ = time.Parse(timeFormat, t.Created)
	}
	return p
}

// InEpoch is the epoch of the user of a token when it was made.
func (t Token) InEpoch() uint64 {
	if t.Epoch == nil {
		return 0
	}
	return *t.Epoch
}

// Use is the use of a token.
type Use struct {
	Act      Act    `json:"act"`
	Provider string `json:"provider,omitempty"`
	Browser  string `json:"browser,omitempty"` // digest of the cookie of the browser
	Secret   string `json:"secret,omitempty"`  // digest of the secret of the flow
	Answer   string `json:"answer,omitempty"`  // digest of the answer
	Done     bool   `json:"done,omitempty"`    // the act has succeeded; absent while it is in progress

	// Application means that it was for an application: the browser was redirected there with a code, which is sent
	// once.
	Application bool `json:"application,omitempty"`
}

// Application is a request of an application to log a user in (RFC 6749, section 4.1.1): a native application, or a
// website of another origin. The login ends with a code that is sent to the application, which exchanges it for a
// token, instead of a session of the browser.
type Application struct {
	Redirect  string `json:"redirect"`         // the URL to which the browser takes the code
	Name      string `json:"name"`             // the configured redirect that allows it
	Challenge string `json:"challenge"`        // of PKCE, by S256
	State     string `json:"state,omitempty"`  // returned unchanged
	Client    string `json:"client,omitempty"` // client_id; the exchange has to repeat it
}

// Native reports whether the code leaves the browser for a program. Any program can listen on the
// loopback interface or claim a scheme, so a login for one needs the user's consent each time.
func (a *Application) Native() bool { return !strings.HasPrefix(a.Redirect, "https://") }

// Location returns the redirect URL of the browser, with parameters for the application and its state.
func (a *Application) Location(parameters url.Values) string {
	if a.State != "" {
		parameters.Set("state", a.State)
	}
	separator := "?"
	if strings.Contains(a.Redirect, "?") {
		separator = "&"
	}
	return a.Redirect + separator + parameters.Encode()
}

// Tries are the tries of a user's second factors, in all processes.
type Tries struct {
	Meta

	Failures Failures  `record:"_failedLogins,keep" left:"stays, stays, stays, stays"`
	LastStep uint64    `record:"_step,keep" left:"stays, stays, stays, stays"` // no code of an app is accepted twice
	Expires  time.Time `record:"expires" left:"stays, stays, stays, stays"`
}

// Devices are the devices from which a user has logged in. The record only has hashes, and one browser has different
// hashes for each of its users.
type Devices struct {
	Meta

	// by User.DeviceEpoch: the hashes stay, and are of no device
	Known   []Device  `record:"_devices" left:"ends, ends, ends, ends"`
	Expires time.Time `record:"expires" left:"stays, stays, stays, stays"`
}

// Device is one of them: a browser by its cookie, or a network address with a user agent.
type Device struct {
	Hash string `json:"hash"`
	At   string `json:"at"` // of the last login, to a month

	Since    string `json:"since,omitempty"`    // User.DeviceEpoch
	Language string `json:"language,omitempty"` // of the login
}

// Exports are the exports of a user's data.
type Exports struct {
	Meta

	Began []string `record:"_exports" left:"stays, stays, stays, stays"` // when those of the last hour did
	// the id of the running export: it was authorized when it began
	Running string    `record:"_export" left:"stays, stays, stays, stays"`
	Leased  time.Time `record:"_leased" left:"stays, stays, stays, stays"` // until when it runs unless it is renewed
	Expires time.Time `record:"expires" left:"stays, stays, stays, stays"`
}

// Act is the act for which a secret was used.
type Act string

// The acts.
const (
	ActConfirmed  Act = "confirmed"  // an address was validated
	ActRegistered Act = "registered" // an address was registered, or added to an account
	ActPassword   Act = "password"   // a recovery has set a password
	ActLoggedIn   Act = "login"      // a login, or that an identity was linked
	ActAddress    Act = "address"    // a new address was confirmed
	ActUndone     Act = "undone"     // a change of address was undone
	ActKept       Act = "kept"       // a change of address can no longer be undone
	ActPasskey    Act = "passkey"    // a passkey was added
	ActChanged    Act = "changed"    // the user of a session has changed the password
	ActProven     Act = "proven"     // the user of a session has proven their identity again
	ActFirstAdmin Act = "first"      // the first admin was created
)
