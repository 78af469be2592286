package account

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// The first admin is made by a link that belfry prints when it starts on data without users.
// All tokens of such links are in one record in the store of tokens, which is what several
// processes agree by: a link is used by the write that removes all of them, and whoever makes
// an admin in another way removes them before.

const (
	// FirstAdminTTL is how long a link for the first admin is valid.
	FirstAdminTTL = time.Hour

	// firstAdminUUID is the uuid of the record. That of a mailbox ends with its kind.
	firstAdminUUID = "first-admin"

	// firstAdminUsers is how many users are read to find that none is an admin.
	firstAdminUsers = 200
)

// OfferFirstAdmin returns the token of a link for the first admin, and until when it is valid; ""
// where there are users, or where the rule of admins would not make an admin of its user. Links that
// were made before, by this process or others, stay valid as long as they are.
func (s *Service) OfferFirstAdmin(ctx context.Context) (token string, expires time.Time, err error) {
	ctx = record.AsService(ctx, "")
	if needed, err := s.NeedsFirstAdmin(ctx); !needed || err != nil {
		return "", time.Time{}, err
	}
	token, expires = secret.New(), s.now().Add(FirstAdminTTL)
	link := record.MailedToken{Hash: secret.Digest(token), For: record.PurposeFirstAdmin, Mail: object.NewUUID()}
	if err := s.storeLink(ctx, link, FirstAdminTTL); err != nil {
		return "", time.Time{}, err
	}
	// Somebody else may have made an admin, and removed the links there were, between the look
	// at the users and the write.
	if some, err := s.hasUsers(ctx); some || err != nil {
		return "", time.Time{}, errors.Join(err, s.endFirstAdmin(ctx))
	}
	return token, expires, nil
}

// NeedsFirstAdmin reports whether there are no users, and one who is marked as an admin would be one.
func (s *Service) NeedsFirstAdmin(ctx context.Context) (bool, error) {
	if !s.marksMakeAdmins(ctx) {
		return false, nil
	}
	some, err := s.hasUsers(record.AsService(ctx, ""))
	return !some && err == nil, err
}

// marksMakeAdmins reports whether a user who is marked as an admin is one by the rule of the
// configuration, whatever other fields they have.
func (s *Service) marksMakeAdmins(ctx context.Context) bool {
	user := object.Object{}
	user.Set("uuid", object.NewUUID())
	user.Set("admin", true)
	return s.admins.Holds(ctx, user)
}

func (s *Service) hasUsers(ctx context.Context) (bool, error) {
	for _, err := range s.db.Users.All(ctx, 1) {
		return err == nil, err
	}
	return false, nil
}

// storeLink stores the token of a link.
func (s *Service) storeLink(ctx context.Context, link record.MailedToken, ttl time.Duration) error {
	return s.db.Links().Ensure(ctx, firstAdminUUID, func(m *record.Mailbox) { m.Expires = s.now().Add(ttl) }, func(m *record.Mailbox) error {
		s.addToken(m, link, ttl)
		return nil
	})
}

// endFirstAdmin removes all links. Whoever makes an admin calls it before.
func (s *Service) endFirstAdmin(ctx context.Context) error {
	_, err := s.db.Links().Change(ctx, firstAdminUUID, func(m *record.Mailbox) error {
		if len(m.Tokens) == 0 {
			return record.ErrUnchanged
		}
		m.Tokens = nil
		return nil
	})
	return record.IgnoreNotFound(err)
}

// errFirstAdmin does not say what is wrong with the link.
func errFirstAdmin() error {
	return errs.New(errs.Denied, "the link is wrong, was used, or has expired, or there is an admin already: a restart of belfry on data without users prints another one; "+
		"`belfry user create ADDRESS --admin` makes an admin at any time")
}

// CheckFirstAdmin reports Denied unless a token is that of a valid link for the first admin. Limited
// for an address that has tried too often.
func (s *Service) CheckFirstAdmin(ctx context.Context, token string, from Client) error {
	_, err := s.verifyFirstAdmin(ctx, token, from)
	return err
}

func (s *Service) verifyFirstAdmin(ctx context.Context, token string, from Client) (verifiedToken, error) {
	if err := s.guesses.Take(from.Address); err != nil {
		return verifiedToken{}, err
	}
	v, err := s.findLink(record.AsService(ctx, ""), token)
	if err == nil || Repeated(err) != nil {
		s.guesses.Return(from.Address)
	}
	return v, recognize(err, from)
}

func (s *Service) findLink(ctx context.Context, token string) (verifiedToken, error) {
	links, err := s.db.Links().Read(ctx, firstAdminUUID)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return verifiedToken{}, err
	}
	purposes := []record.Purpose{record.PurposeFirstAdmin}
	if t, ok := s.validToken(links, token, purposes); ok {
		return verifiedToken{links.UUID, t}, s.checkNoAdmin(ctx)
	}
	if r := s.repeatedToken(links, token, purposes); r != nil {
		return verifiedToken{}, s.repeatedFirst(ctx, r)
	}
	return verifiedToken{}, errFirstAdmin()
}

// repeatedFirst is the error of another use of a link, once its first use, which may be in progress, has made an admin.
func (s *Service) repeatedFirst(ctx context.Context, r *Repetition) error {
	made, err := s.await(ctx, r.at, func() (is, final bool, err error) {
		err = s.checkNoAdmin(ctx)
		if errors.Is(err, errs.Denied) {
			return true, true, nil
		}
		return false, false, err
	})
	switch {
	case err != nil:
		return err
	case !made:
		return errFirstAdmin()
	}
	return errRepeated(*r, errs.Denied)
}

// checkNoAdmin reports errFirstAdmin if there is an admin, or so many users that this is not
// known. It finds an admin of which endFirstAdmin does not know: one of a rule over other fields.
func (s *Service) checkNoAdmin(ctx context.Context) error {
	users, more, err := s.db.Users.Scan(ctx, nil, firstAdminUsers)
	if err != nil {
		return err
	}
	for _, stored := range users {
		user, err := s.db.Users.Of(stored)
		if err != nil {
			return err
		}
		admin, err := s.isAdmin(ctx, user)
		if err != nil {
			return err
		}
		if admin {
			return errFirstAdmin()
		}
	}
	if more != nil {
		return errFirstAdmin()
	}
	return nil
}

// isAdmin reports whether a user is an admin by the rule of the configuration.
func (s *Service) isAdmin(ctx context.Context, user record.User) (bool, error) {
	seen, err := s.seenByRules(user)
	return err == nil && s.admins.Holds(ctx, seen), err
}

// CreateFirstAdmin creates the first admin by the token of a link, and logs them in. Of several
// calls, in whatever process and by whatever link, one succeeds. If the user can't be created,
// the link stays valid. Errors: Denied for a token that is not valid (any more); Invalid for an
// address, a password or a user that can't be; Exists for an address that is taken; Limited.
func (s *Service) CreateFirstAdmin(ctx context.Context, token string, c Credentials, from Client) (IssuedSession, error) {
	link, err := s.verifyFirstAdmin(ctx, token, from)
	if err != nil {
		return IssuedSession{}, err
	}
	reg, err := s.firstAdmin(ctx, c)
	if err != nil {
		return IssuedSession{}, err
	}
	user, err := s.useLink(record.AsService(ctx, ""), link, reg, from)
	if err != nil {
		return IssuedSession{}, recognize(err, from)
	}
	return s.completeLogin(ctx, user, s.proofBy(record.Email, record.MethodPassword, 1), from)
}

// firstAdmin returns the registration of the first admin. It finds what can be wrong with it before
// the link is used.
func (s *Service) firstAdmin(ctx context.Context, c Credentials) (registration, error) {
	if err := c.validate(); err != nil {
		return registration{}, err
	}
	if _, err := NormalizeAddress(c.Login); err != nil {
		return registration{}, err
	}
	if err := s.checkNew(ctx, record.FieldPassword, c.Password, c.own()); err != nil {
		return registration{}, err
	}
	hash, err := s.hashPassword(ctx, c.Password)
	if err != nil {
		return registration{}, err
	}
	id := record.AddressIdentity(c.Login)
	reg := registration{identity: identity{Identity: id}, fields: s.newUser(NewUser{Admin: true}), datas: object.Object{}}
	reg.fields.Set(record.FieldPassword, hash)
	reg.datas.Set("login", id.ID)
	return reg, s.db.Users.Check(record.AsService(ctx, ""), reg.fields, object.NewUUID())
}

// useLink ends all links, and then creates the user.
func (s *Service) useLink(ctx context.Context, link verifiedToken, reg registration, from Client) (record.User, error) {
	if err := s.consumeTokenIn(ctx, s.db.Links(), link, ActFirstAdmin, from); err != nil {
		switch r := Repeated(err); {
		case r != nil:
			err = s.repeatedFirst(ctx, r)
		case errors.Is(err, errs.Denied):
			err = errFirstAdmin()
		}
		return record.User{}, err
	}
	// An admin may have been made since the link was verified.
	err := s.checkNoAdmin(ctx)
	var user record.User
	if err == nil {
		if user, err = s.createUser(ctx, reg); err == nil {
			return user, nil
		}
	}
	if !errors.Is(err, errs.Denied) {
		// If the user was created, and only the reply was lost, checkNoAdmin finds the admin.
		until := record.Time(link.token.Until).Sub(s.now())
		err = errors.Join(err, s.storeLink(context.WithoutCancel(ctx), link.token, until))
	}
	return record.User{}, err
}
