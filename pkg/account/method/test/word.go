// Package test is a method for tests, and the example of how to add a method: users remember a word, and enter it. No
// program includes it.
package test

import (
	"context"
	"crypto/subtle"

	"belfry/internal/seal"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
)

// Name is the name of the method.
const Name = "word"

// Method makes words, and verifies them.
type Method struct {
	method.Unasked
	Sealer *seal.Sealer // may be nil
}

// New makes a Method.
func New(_ *record.Stores, sealer *seal.Sealer) method.Method { return &Method{Sealer: sealer} }

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: Name, Title: "Word", Login: true, AAL: 1, Factor: true, Secret: true,
		Texts: about.Texts{
			Add: "Add a word", Setup: "Learn the word, and type it.", SetupCode: "The word", SetupAdd: "Add the word",
			Confirm: "Your new word", Answer: "Your word", LoginButton: "Log in with a word",
		},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return true }

// Allow implements method.Factor.
func (s *Method) Allow(*sessions.Session) error { return nil }

// Setup makes a word.
func (s *Method) Setup(context.Context, *sessions.Session) (method.Setup, error) {
	return method.Setup{Secret: secret.Random(6)}, nil
}

// Enroll implements method.Factor.
func (s *Method) Enroll(_ context.Context, _ *sessions.Session, word, code string,
	try method.Try) (check func(now record.User) error, err error) {
	return nil, try(func(context.Context) (uint64, bool, error) { return 0, same(word, code), nil })
}

// Prove implements method.Method.
func (s *Method) Prove(_ context.Context, user record.User, a method.Answer,
	_ string) (step uint64, ok bool, err error) {
	word, has, err := method.SecretOf(s.Sealer, user, Name)
	return 0, same(word, a.Code) && has, err
}

func same(word, code string) bool { return subtle.ConstantTimeCompare([]byte(word), []byte(code)) == 1 }
