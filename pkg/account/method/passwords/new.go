package passwords

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/weak"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// Hash returns the hash of a password as it is stored.
func (s *Method) Hash(ctx context.Context, password string) (string, error) {
	return s.Hasher.hash(ctx, password)
}

// Dummy has the length of a hash, and is that of no password.
func (s *Method) Dummy() string { return s.Hasher.dummy }

// CheckLength reports Invalid for a new password of a wrong length.
func CheckLength(field, password string) error {
	if n := len(PasswordForm(password)); n < MinPassword || n > MaxPassword {
		return errPassword(field, fmt.Sprintf("must have %d to %d bytes", MinPassword, MaxPassword))
	}
	return nil
}

// CheckNew returns Invalid for a password with a wrong length or a weak password; Limited if too many calls wait. own
// are texts of the user, which attackers guess first.
//
// This check takes time, and may send a request to another server. So public callers check the length and take an
// attempt of the network address first. They call CheckNew before they read an account, so that the reply does not
// depend on whether one exists.
func (s *Method) CheckNew(ctx context.Context, field, password string, own []string) error {
	if err := CheckLength(field, password); err != nil {
		return err
	}
	forms := make([]string, 0, len(own))
	for _, text := range own {
		forms = append(forms, PasswordForm(text))
	}
	refusal, err := s.weak.Check(ctx, PasswordForm(password), forms)
	if err != nil {
		return err
	}
	if refusal != nil {
		return &WeakPassword{Reason: refusal.Reason, err: errPassword(field, refusal.Message)}
	}
	return nil
}

// Own returns texts of the user of a form.
func (c Credentials) Own() []string { return append([]string{c.Login}, Names(c.Fields)...) }

// Names returns the names of a user: the texts of the fields name, firstName, nickname and the like.
func Names(fields object.Object) (texts []string) {
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if text, ok := object.Text(fields[field]); ok && strings.Contains(strings.ToLower(field), "name") {
			texts = append(texts, text)
		}
	}
	return texts
}

// OwnOf returns texts of a user: names and addresses, including those of the user's idents. They are read only if they
// are used.
func (s *Method) OwnOf(ctx context.Context, user record.User) (texts []string, err error) {
	if s.weak.MinScore == 0 {
		return nil, nil
	}
	fields, err := user.Object()
	if err != nil {
		return nil, err
	}
	texts = Names(fields)
	for ident, err := range s.DB.Idents.Owned(record.AsService(ctx, ""), user.UUID) {
		if err != nil {
			return texts, err
		}
		if profile, err := object.Parse(ident.Profile); err == nil {
			address, _ := profile.Text(record.Email)
			texts = append(append(texts, address), Names(profile)...)
		}
	}
	return texts, nil
}

func errPassword(field, message string) *errs.Error {
	return &errs.Error{Kind: errs.Invalid, Message: "the password can't be used",
		Fields: []errs.Field{{Pointer: "/" + field, Message: message}}}
}

// WeakPassword is the error of a password that must not be set because it is weak. It is Invalid.
type WeakPassword struct {
	Reason weak.Reason
	err    *errs.Error
}

func (e *WeakPassword) Error() string { return e.err.Error() }

// Unwrap returns the error for the caller.
func (e *WeakPassword) Unwrap() error { return e.err }

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{Name: record.MethodPassword, Title: "Password", AAL: 1}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return s.Email != nil }

// Prove implements method.Method: the code is a password.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer,
	_ string) (step uint64, ok bool, err error) {
	ok, err = s.Verify(ctx, user, a.Code)
	return 0, ok, err
}
