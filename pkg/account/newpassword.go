package account

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belfry/pkg/account/record"
	"belfry/pkg/account/weak"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// hashPassword returns the hash of a password as it is stored.
func (s *Service) hashPassword(ctx context.Context, password string) (string, error) {
	return s.hasher.hash(ctx, password)
}

// dummyHash has the length of a hash, and is that of no password.
func (s *Service) dummyHash() string { return s.hasher.dummy }

// checkLength reports Invalid for a new password of a wrong length.
func checkLength(field, password string) error {
	if n := len(passwordForm(password)); n < MinPassword || n > MaxPassword {
		return errPassword(field, fmt.Sprintf("must have %d to %d bytes", MinPassword, MaxPassword))
	}
	return nil
}

// checkNew reports Invalid for a password that must not be set: one of a wrong length, or a weak one; Limited where too many wait.
// own are texts of the user, which are guessed first. Callers that anybody can reach call it before they read anything of an account, so
// that the reply is the same for every account and for none; and check the length and take an attempt of the network address before,
// since this check takes time, and may ask another server.
func (s *Service) checkNew(ctx context.Context, field, password string, own []string) error {
	if err := checkLength(field, password); err != nil {
		return err
	}
	forms := make([]string, 0, len(own))
	for _, text := range own {
		forms = append(forms, passwordForm(text))
	}
	refusal, err := s.weak.Check(ctx, passwordForm(password), forms)
	if err != nil {
		return err
	}
	if refusal != nil {
		return &WeakPassword{Reason: refusal.Reason, err: errPassword(field, refusal.Message)}
	}
	return nil
}

// own returns texts of the user whom a form is about.
func (c Credentials) own() []string { return append([]string{c.Login}, names(c.Fields)...) }

// names returns texts by which somebody is called: those of the fields name, firstName, nickname and the like.
func names(fields object.Object) (texts []string) {
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := object.Text(fields[field]); ok && strings.Contains(strings.ToLower(field), "name") {
			texts = append(texts, text)
		}
	}
	return texts
}

// ownOf returns texts of a user: names and addresses, those of their idents as well. They are read where they are used alone.
func (s *Service) ownOf(ctx context.Context, user record.User) (texts []string, err error) {
	if s.weak.MinScore == 0 {
		return nil, nil
	}
	fields, err := user.Object()
	if err != nil {
		return nil, err
	}
	texts = names(fields)
	for ident, err := range s.db.Idents.Owned(record.AsService(ctx, ""), user.UUID) {
		if err != nil {
			return texts, err
		}
		if profile, err := object.Parse(ident.Profile); err == nil {
			address, _ := profile.Text(record.Email)
			texts = append(append(texts, address), names(profile)...)
		}
	}
	return texts, nil
}

func errPassword(field, message string) *errs.Error {
	return &errs.Error{Kind: errs.Invalid, Message: "the password can't be used", Fields: []errs.Field{{Pointer: "/" + field, Message: message}}}
}

// WeakPassword is the error of a password that must not be set because it is weak. It is Invalid.
type WeakPassword struct {
	Reason weak.Reason
	err    *errs.Error
}

func (e *WeakPassword) Error() string { return e.err.Error() }

// Unwrap returns the error for the caller.
func (e *WeakPassword) Unwrap() error { return e.err }
