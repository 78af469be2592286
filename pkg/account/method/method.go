// Package method has the common part of the methods of authentication. Each has a folder here, and does not import the
// others; the flows in belfry/pkg/account/flow use them by this interface.
//
//	          Begin                     Prove
//	login ─────────────► asked for ─────────────► proven ──► it counts, or Forget
//	step-up
//	          Setup                     Enroll
//	session ───────────► set up ────────────────► a second factor ──► removed by the flow of enrollment
package method

import (
	"context"
	"encoding/json"

	"belfry/internal/seal"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// Method is a way in which a user proves their identity.
type Method interface {
	About() about.Method

	// Enabled reports whether it is configured.
	Enabled() bool

	// Begin sends a code, or makes a challenge, for a pending login or a session, which flow identifies. Only methods
	// with about.Method.Asked need it.
	Begin(ctx context.Context, user record.User, flow string) (Challenge, error)

	// Prove reports whether an answer proves a user's identity in a flow. A code that is valid once per time step has a
	// step. A Denied error has the reason why an answer is wrong.
	Prove(ctx context.Context, user record.User, a Answer, flow string) (step uint64, ok bool, err error)

	// Forget forgets a right answer whose flow failed: it must not count as a repetition.
	Forget(ctx context.Context, user string, a Answer)
}

// Factor is a method that can be added to an account as a second factor.
type Factor interface {
	Method

	// Allow returns the reason why it can't be added in a session, in addition to the rules of all methods; nil if it
	// can.
	Allow(me *sessions.Session) error

	// Setup begins to add it, and returns data that is shown once. A secret is kept for Enroll, and with the second
	// factor: SecretOf returns it. Methods with about.Method.Once have nothing to set up.
	Setup(ctx context.Context, me *sessions.Session) (Setup, error)

	// Enroll verifies the code for the setup of the same session, by try, which limits guesses. check is called with
	// the user as of the write that adds it; may be nil.
	Enroll(ctx context.Context, me *sessions.Session, secret, code string,
		try Try) (check func(now record.User) error, err error)
}

// Again is a method by which logged-in users without a second factor authenticate again.
type Again interface {
	Method
	Has(ctx context.Context, user record.User) (bool, error)
}

// Login is a method that begins a login in its own way. Other methods authenticate the user of an address.
type Login interface {
	Method
	Identify(ctx context.Context, login string, a Answer, from sessions.Client) (Identified, error)
}

// Try makes a try of a code, within the limits of wrong codes.
type Try func(verify func(ctx context.Context) (step uint64, ok bool, err error)) error

// Answer is a user's proof of identity.
type Answer struct {
	Type   string // the method; "" for that of authenticator apps
	Code   string
	Signed Signed // of a method with about.Method.Script
}

// Signed is an authenticator's answer to a challenge.
type Signed struct {
	Credential json.RawMessage // a PublicKeyCredential, as its toJSON makes it
	Secret     string          // of the challenge
	Cookie     bool            // Secret comes from a cookie
}

// Challenge is the data with which a client calls an authenticator. It is empty if a code was sent.
type Challenge struct {
	Options json.RawMessage // {"publicKey": ...}, for navigator.credentials
	Secret  string          // binds the challenge to the client: a cookie, or a field of the answer
	Name    string          // distinguishes the cookies of challenges, since each tab has its own
}

// Setup is the data for adding a second factor. It is shown once.
type Setup struct {
	Secret string // in base32, for typing; "" if a code was sent
	URI    string // otpauth://totp/…
	PNG    []byte // the URI as a QR code
}

// Identified is the user that a login has identified.
type Identified struct {
	User  record.User
	Ident record.Ident // by which they were found
	record.Proof

	// Address means that the user has proven to have the address of the ident, by a mail to it.
	Address bool

	// Settle records the result of the login; may be nil. ok means that it has succeeded, or waits for a second factor.
	Settle func(ctx context.Context, ok bool, err error)
}

// SecretOf returns the secret of a user's second factor. ok is false for a user without it.
func SecretOf(sealer *seal.Sealer, user record.User, name string) (key string, ok bool, err error) {
	f, ok := user.Factors.Get(name)
	if !ok {
		return "", false, nil
	}
	key, err = secret.Open(sealer, name+user.UUID, f.Secret)
	return key, err == nil, err
}

// SetupUUID is the uuid of a session's setup: another session can't confirm it.
func SetupUUID(session string) string { return record.KindEnrollment + secret.Hex(session) }

// Unasked is embedded by methods that need neither a sent code nor a challenge.
type Unasked struct{}

// Begin implements Method.
func (Unasked) Begin(context.Context, record.User, string) (Challenge, error) {
	return Challenge{}, errs.New(errs.NotFound, "this method needs no request before its answer")
}

// Forget implements Method.
func (Unasked) Forget(context.Context, string, Answer) {}
