package passwords

import (
	"context"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
)

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{Name: record.MethodPassword, Title: "Password", AAL: 1}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return s.Email != nil }

// Prove implements method.Method: the code is a password.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer, _ string) (step uint64, ok bool, err error) {
	ok, err = s.Verify(ctx, user, a.Code)
	return 0, ok, err
}
