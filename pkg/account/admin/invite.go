package admin

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
)

// Invitation is that of a user who has neither set a password nor logged in yet.
type Invitation struct {
	Address string `json:"address"`
	Sent    string `json:"sent"`  // when the mail was last requested
	Until   string `json:"until"` // about when the link in it expires
	Expired bool   `json:"expired"`
}

// Invite requests the invitation, the mail with which a new user sets the first password, or requests it again. Nobody
// can log in as the user before that: there is no password, and the link of the mail is the only proof of the address.
// It returns the address. Errors: those of SendRecovery; Conflict for a user who has a password, or has logged in.
func (s *Admin) Invite(ctx context.Context, uuid string) (string, error) {
	user, err := s.DB.Users.Read(record.AsService(ctx, ""), uuid)
	if err != nil {
		return "", err
	}
	idents, err := s.identsOf(record.AsService(ctx, ""), uuid)
	if err != nil {
		return "", err
	}
	if user.Password != "" || slices.ContainsFunc(idents, func(i record.Ident) bool { return !i.LastUsed.IsZero() }) {
		return "", errs.New(errs.Conflict,
			"the user has a password, or has logged in: send a mail to set a new password")
	}
	if len(idents) != 1 || !idents[0].IsAddress() {
		return s.SendRecovery(ctx, uuid, "") // it returns why no mail can be sent
	}
	ident, before := idents[0].UUID, time.Time{}
	mark := func(at time.Time) error {
		_, err := s.DB.Idents.Change(record.Managing(ctx), ident, func(i *record.Ident) error {
			before, i.Invited = i.Invited, at
			return nil
		})
		return err
	}
	// The mail is composed by what the ident says then.
	if err := mark(s.DB.Now()); err != nil {
		return "", err
	}
	address, err := s.SendRecovery(ctx, uuid, idents[0].ID)
	if err != nil && mark(before) != nil {
		s.Sessions.Log.WarnContext(ctx, "auth: a user is shown as invited again, but the mail was not requested",
			"user", uuid)
	}
	return address, err
}

// invitationOf returns the invitation of a user; nil without one, and once it was accepted.
func (s *Admin) invitationOf(user record.User, idents []record.Ident) *Invitation {
	for _, ident := range idents {
		if s.Email == nil || !ident.IsAddress() || !ident.AwaitsFirst(user) {
			continue
		}
		until := ident.Invited.Add(s.Email.TokenTTL)
		return &Invitation{Address: ident.ID, Sent: record.Timestamp(ident.Invited), Until: record.Timestamp(until),
			Expired: !s.DB.Now().Before(until)}
	}
	return nil
}
