package auth

import (
	"context"
	"fmt"

	"belfry/pkg/auth/weak"
	"belfry/pkg/errs"
)

// checkLength reports Invalid for a new password of a wrong length.
func checkLength(field, password string) error {
	if n := len(password); n < MinPassword || n > MaxPassword {
		return errPassword(field, fmt.Sprintf("must have %d to %d bytes", MinPassword, MaxPassword))
	}
	return nil
}

// checkNew reports Invalid for a password that must not be set: one of a wrong length, or a weak one. Callers that anybody can
// reach call it before they read anything of an account, so that the reply is the same for every account and for none; and
// check the length and take an attempt of the network address before, since this check takes time, and may ask another server.
func (s *Service) checkNew(ctx context.Context, field, password string) error {
	if err := checkLength(field, password); err != nil {
		return err
	}
	if refusal := s.weak.Check(ctx, password); refusal != nil {
		return &WeakPassword{Reason: refusal.Reason, err: errPassword(field, refusal.Message)}
	}
	return nil
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
