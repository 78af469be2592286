package registration

import (
	"context"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
)

// linkAddress adds an address to the account of the logged-in user. A
// user with a password has to give it: a stolen session must not become a
// permanent login.
func (s *Flow) linkAddress(ctx context.Context, id record.Identity, c passwords.Credentials,
	from sessions.Client) (sessions.Issued, error) {
	me := from.Session
	if !s.Email.PostValidation {
		// Only a client with the token may learn whether the address is taken. The token is checked first: the password
		// of a repeated form is that of another account, and not a wrong guess.
		if _, err := s.Post.Verify(ctx, id.ID, c.Token, record.PurposeValidate); err != nil {
			return sessions.Issued{}, err
		}
	}
	hash, err := s.verifyOrHashPassword(ctx, me, c.Password)
	if err != nil {
		return sessions.Issued{}, err
	}
	owner, _, err := s.DB.FindOwner(record.AsService(ctx, ""), id)
	if err != nil {
		return sessions.Issued{}, err
	}
	if owner.UUID != "" && owner.UUID != me.User.UUID {
		return sessions.Issued{}, id.ErrTaken()
	}
	if owner.UUID == "" {
		if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
			notices.Announcement{Kind: notices.NoticeLoginAdded, About: id.ID}); err != nil {
			return sessions.Issued{}, err
		}
	}
	if hash != "" {
		if err := s.Notices.Announce(record.AsService(ctx, me.User.UUID), me.User,
			notices.Announcement{Kind: notices.NoticePassword}); err != nil {
			return sessions.Issued{}, err
		}
	}
	if id.Validated, err = s.consumeRegistrationToken(ctx, id, c.Token, from); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Links.Link(ctx, users.Identity{Identity: id}, me); err != nil {
		return sessions.Issued{}, err
	}
	user, err := s.Sessions.ChangeCurrent(ctx, me, func(now *record.User) error {
		if hash == "" {
			return record.ErrUnchanged
		}
		now.Password, now.PasswordByMail = hash, sessions.ProvesMailboxAlone(me.Methods, me.User)
		now.Publish(s.DB.AuditPassword(me.User, record.ReasonFirst))
		return nil
	})
	if err != nil {
		return sessions.Issued{}, err
	}
	s.requestValidation(ctx, id)
	return s.Sessions.Replace(ctx, user, me.Proof(), from)
}

// verifyOrHashPassword verifies the password of a user who has one. For a user without a password it returns the hash
// to set.
func (s *Flow) verifyOrHashPassword(ctx context.Context, me *sessions.Session,
	password string) (hash string, err error) {
	if err := s.Passwords.RequireProof(ctx, me, password); err != nil || sessions.HasPassword(me) {
		return "", err
	}
	return s.Passwords.Hash(ctx, password)
}

// HasAddress reports whether the logged-in user has an address and a password: a form that adds or registers the
// address then has no further effect.
func (s *Flow) HasAddress(ctx context.Context, me *sessions.Session, address string) (bool, error) {
	if !sessions.HasPassword(me) {
		return false, nil
	}
	owner, _, err := s.DB.FindOwner(record.AsService(ctx, ""), record.AddressIdentity(address))
	return owner.UUID == me.User.UUID, err
}
