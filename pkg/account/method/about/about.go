// Package about describes methods of authentication for routes, documents, pages and the console.
package about

import "cmp"

// Method describes a method.
type Method struct {
	Name  string // in routes, sessions, events and records
	Title string // for people, in a list of second factors

	// Login means that the method can begin a login, by the answer of a script, or with an address and a code. Such a
	// code is as hard to guess as a password, and may be sent again. Wrong codes are counted by account and by network
	// address, like wrong passwords.
	Login bool

	AAL    int  // of a login by only this method: 1, or 2 for a method with two factors
	Factor bool // users can add it as a second factor
	Secret bool // it has a secret, which is shown once while it is set up
	Once   bool // it is added by one request: there is nothing to confirm
	Spare  bool // it replaces a second factor

	Mailbox bool // it proves access to a mailbox
	Script  bool // its answer comes from an authenticator by a script; for other methods it is a code

	// Asked is the last part of the route that sends a code, or makes a challenge, for methods whose answer depends on
	// it; "" for others.
	Asked string

	Texts
	API API
}

// Texts are shown by pages and the console.
type Texts struct {
	Add           string // the button that adds the second factor, or the summary of a method that replaces one
	Setup         string // instructions for the data that is shown once while it is added
	SetupCode     string // the label of the field below that
	SetupAdd      string // and its button
	Confirm       string // the label of the field for its code while it is added, on the page without that data
	Answer        string // the label of the field for its code, or the button that starts the script
	Ask, AskAgain string // the buttons that send a code
	Hint          string // below the field
	LoginButton   string // logs in
	Field         string // the id of the field on the page of second factors; "": the name of the method
	Digits        bool   // the code has only digits
}

// API documents the routes of a second factor.
type API struct {
	Begin, Put Operation // POST and PUT of /auth/factors/{name}
	Ask        Operation // POST of /auth/second-factor/{asked}
	Code       string    // the description of its code
}

// Operation names and describes an operation.
type Operation struct{ ID, Summary, Description string }

// FieldID is the id of the field for the code.
func (m Method) FieldID() string { return cmp.Or(m.Field, m.Name) }

// Sent reports whether its code is sent on request.
func (m Method) Sent() bool { return m.Asked != "" && !m.Script }

// Configured is a method, and whether it is configured. Users can remove a second factor that is no longer
// configured.
type Configured struct {
	Method
	Enabled bool
}

// TextsByID returns the texts for people, by the ids that they have in files of languages.
func (m *Method) TextsByID() map[string]*string {
	id := "method." + m.Name + "."
	return map[string]*string{
		id + "title": &m.Title, id + "add": &m.Add, id + "setup": &m.Setup, id + "setupCode": &m.SetupCode,
		id + "setupAdd": &m.SetupAdd, id + "confirm": &m.Confirm, id + "answer": &m.Answer, id + "ask": &m.Ask,
		id + "askAgain": &m.AskAgain, id + "hint": &m.Hint, id + "loginButton": &m.LoginButton,
	}
}
