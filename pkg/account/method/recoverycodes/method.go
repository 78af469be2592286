package recoverycodes

import (
	"context"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
)

// About describes the method.
func (s *Method) About() about.Method {
	return about.Method{
		Name: record.FactorRecovery, Title: "recovery code", Spare: true,
		Texts: about.Texts{Answer: "Recovery code", Add: "Use a recovery code", Hint: "Each works once."},
	}
}

// Enabled implements method.Method.
func (s *Method) Enabled() bool { return true }

// Prove implements method.Method.
func (s *Method) Prove(ctx context.Context, user record.User, a method.Answer, _ string) (step uint64, ok bool, err error) {
	ok, err = s.Use(ctx, user, a.Code)
	return 0, ok, err
}
