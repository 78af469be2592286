package mails

import (
	"context"
	"errors"

	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// BeginFactor sends a code to the address of the user who is logged in, by which they add codes of mails as a second factor.
// Errors: those of RequireFresh; Exists; Conflict without an address, and after a login by mail; Limited.
func (s *Method) BeginFactor(ctx context.Context, me *sessions.Session) error {
	if err := s.requireEnrollableEmail(ctx, me); err != nil {
		return err
	}
	return s.SendSecondCode(ctx, me.User, enrollment.SetupUUID(me.ID))
}

// requireEnrollableEmail is RequireEnrollable for codes of mails. A session that began by a mail would have proven the mailbox twice.
func (s *Method) requireEnrollableEmail(ctx context.Context, me *sessions.Session) error {
	if err := s.Enrollment.RequireEnrollable(ctx, me, record.FactorEmail); err != nil {
		return err
	}
	if sessions.ProvesMailbox(me.Methods, me.User) {
		return errs.New(errs.Conflict, "you have logged in by a mail, or by a password that was set by one, to which a code of another mail adds nothing: log in in another way, or add another second factor")
	}
	return nil
}

// ConfirmFactor adds codes of mails as a second factor, by the code that BeginFactor has sent in the same session. It returns
// what totp.Method.Confirm does.
func (s *Method) ConfirmFactor(ctx context.Context, code string, from sessions.Client) (session sessions.Issued, codes []string, err error) {
	me := from.Session
	if err := s.requireEnrollableEmail(ctx, me); err != nil {
		return session, nil, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return session, nil, err
	}
	address := ""
	if err := s.Guesses.Code(ctx, me.User.UUID, record.FactorEmail, func(ctx context.Context) (uint64, bool, error) {
		to, ok, err := s.CheckSecondCode(ctx, me.User, enrollment.SetupUUID(me.ID), code)
		address = to
		return 0, ok, err
	}); err != nil {
		return session, nil, err
	}
	// The user has the address and the account: codes go there whatever other addresses they add.
	own, ident := record.AsService(ctx, me.User.UUID), record.AddressIdentity(address).UUID()
	if err = s.Links.CheckOwnAddress(own, me, ident); err == nil {
		err = s.Links.MarkValidated(own, ident, true)
	}
	if errors.Is(err, errs.NotFound) {
		err = errs.New(errs.Conflict, "the address to which the code was sent is not yours any more: begin again")
	}
	if err != nil {
		return session, nil, err
	}
	codes, err = s.Enrollment.Add(ctx, me, record.Factor{Type: record.FactorEmail}, nil)
	if err != nil {
		return session, nil, err
	}
	s.Guesses.Return(from.Address)
	session, err = s.Sessions.Raise(ctx, record.FactorEmail, from)
	return session, codes, err
}
