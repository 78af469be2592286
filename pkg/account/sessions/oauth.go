package sessions

import (
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// StateError is returned for a callback that belongs to no flow of this browser.
func StateError() error {
	return errs.New(errs.Mismatch, "this login was not begun here, has been finished, or took too long")
}

// ApplicationFor returns the application that a token was made for; nil for none. Its redirect
// has to be configured still.
func (s *Sessions) ApplicationFor(t record.Token) (*Application, error) {
	if t.Application == nil || t.Application.Redirect == "" {
		return nil, nil
	}
	if _, ok := s.registered(t.Application.Redirect); !ok {
		return nil, StateError()
	}
	return t.Application, nil
}
