// Package passwords is the method by which a password proves a user's identity.
package passwords

import (
	"context"

	"belfry/pkg/account/guess"
	"belfry/pkg/account/method"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/weak"
)

// Method verifies and sets passwords.
type Method struct {
	method.Unasked

	DB      *record.Stores
	Guesses *guess.Guesses
	Email   *post.Email // nil without login by e-mail
	Hasher  *Hasher
	weak    *weak.Checker // of passwords that are set

	Uses     *once.Uses
	Sessions *sessions.Sessions
}

// New makes a Method of its fields, which refuses weak passwords.
func New(m Method, o weak.Options) *Method {
	o.Slot = func(ctx context.Context) (func(), error) { return m.Hasher.Acquire(ctx) }
	m.weak = weak.New(o)
	return &m
}
