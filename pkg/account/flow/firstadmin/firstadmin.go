package firstadmin

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const (
	// TTL is how long a link for the first admin is valid.
	TTL = time.Hour
)

const (
	// firstAdminUsers is how many users are read to find that none is an admin.
	firstAdminUsers = 200
)

// Offer returns the token of a link for the first admin, and the end of its validity. It returns "" if there are users,
// or if the rule of admins would not make its user an admin. Earlier links, of this process or others, stay valid until
// they expire.
func (s *Flow) Offer(ctx context.Context) (token string, expires time.Time, err error) {
	ctx = record.AsService(ctx, "")
	if needed, err := s.Needed(ctx); !needed || err != nil {
		return "", time.Time{}, err
	}
	token, expires = secret.New(), s.DB.Now().Add(TTL)
	link := record.MailedToken{Hash: secret.Digest(token), For: record.PurposeFirstAdmin, Mail: object.NewUUID()}
	if err := s.storeLink(ctx, link, TTL); err != nil {
		return "", time.Time{}, err
	}
	// Another process may have created an admin, and removed the existing links, between the check of the users and the
	// write.
	if some, err := s.hasUsers(ctx); some || err != nil {
		return "", time.Time{}, errors.Join(err, s.Users.EndFirstAdmin(ctx))
	}
	return token, expires, nil
}

// Needed reports whether there are no users, and the field admin would make a user an admin.
func (s *Flow) Needed(ctx context.Context) (bool, error) {
	if !s.marksMakeAdmins(ctx) {
		return false, nil
	}
	some, err := s.hasUsers(record.AsService(ctx, ""))
	return !some && err == nil, err
}

// marksMakeAdmins reports whether the rule of the configuration accepts every user who is
// marked as an admin, without other fields.
func (s *Flow) marksMakeAdmins(ctx context.Context) bool {
	user := object.Object{}
	user.Set("uuid", object.NewUUID())
	user.Set("admin", true)
	return s.Admins.Holds(ctx, user)
}

func (s *Flow) hasUsers(ctx context.Context) (bool, error) {
	for _, err := range s.DB.Users.Store.All(ctx, 1) {
		return err == nil, err
	}
	return false, nil
}

// storeLink stores the token of a link.
func (s *Flow) storeLink(ctx context.Context, link record.MailedToken, ttl time.Duration) error {
	return s.DB.Links().Ensure(ctx, users.FirstAdminUUID, func(m *record.Mailbox) { m.Expires = s.DB.Now().Add(ttl) },
		func(m *record.Mailbox) error {
			s.Post.AddToken(m, link, ttl)
			return nil
		})
}

// errFirstAdmin does not reveal the error of the link.
func errFirstAdmin() error {
	return errs.New(errs.Denied,
		"the link is wrong, was used, or has expired, or there is already an admin: a restart of belfry on data "+
			"without users prints another link; "+
			"`belfry user create ADDRESS --admin` creates an admin at any time")
}

// Check returns Denied unless a token is of a valid link for the first admin, and Limited for an address with too many
// tries.
func (s *Flow) Check(ctx context.Context, token string, from sessions.Client) error {
	_, err := s.verifyFirstAdmin(ctx, token, from)
	return err
}

func (s *Flow) verifyFirstAdmin(ctx context.Context, token string, from sessions.Client) (post.VerifiedToken, error) {
	if err := s.Guesses.Take(from.Address); err != nil {
		return post.VerifiedToken{}, err
	}
	v, err := s.findLink(record.AsService(ctx, ""), token)
	if err == nil || once.Repeated(err) != nil {
		s.Guesses.Return(from.Address)
	}
	return v, once.Recognize(err, from)
}

func (s *Flow) findLink(ctx context.Context, token string) (post.VerifiedToken, error) {
	links, err := s.DB.Links().Read(ctx, users.FirstAdminUUID)
	if err != nil && !errors.Is(err, errs.NotFound) {
		return post.VerifiedToken{}, err
	}
	purposes := []record.Purpose{record.PurposeFirstAdmin}
	if t, ok := s.Post.ValidToken(links, token, purposes); ok {
		return post.VerifiedToken{Mailbox: links.UUID, Token: t}, s.checkNoAdmin(ctx)
	}
	if r := s.Uses.RepeatedToken(links, token, purposes); r != nil {
		return post.VerifiedToken{}, s.repeatedFirst(ctx, r)
	}
	return post.VerifiedToken{}, errFirstAdmin()
}

// repeatedFirst is the error of another use of a link, once its first use, which may be in progress, has made an admin.
func (s *Flow) repeatedFirst(ctx context.Context, r *once.Repetition) error {
	made, err := s.Uses.Await(ctx, r.At, func() (is, final bool, err error) {
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
	return once.ErrRepeated(*r, errs.Denied)
}

// checkNoAdmin returns errFirstAdmin if there is an admin, or too many users to know. It also finds admins that
// users.EndFirstAdmin does not know, by a rule over other fields.
func (s *Flow) checkNoAdmin(ctx context.Context) error {
	users, more, err := s.DB.Users.Store.Scan(ctx, nil, firstAdminUsers)
	if err != nil {
		return err
	}
	for _, stored := range users {
		user, err := s.DB.Users.Of(stored)
		if err != nil {
			return err
		}
		admin, err := s.Sessions.IsAdminUser(ctx, user)
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

// Create creates the first admin by the token of a link, and logs them in. Of several calls, in
// any process and by any link, one succeeds. If the user can't be created, the link stays
// valid. Errors: Denied for an invalid or expired token; Invalid for an invalid address,
// password or user; Exists for an address that is taken; Limited.
func (s *Flow) Create(ctx context.Context, token string, c passwords.Credentials,
	from sessions.Client) (sessions.Issued, error) {
	link, err := s.verifyFirstAdmin(ctx, token, from)
	if err != nil {
		return sessions.Issued{}, err
	}
	reg, err := s.firstAdmin(ctx, c)
	if err != nil {
		return sessions.Issued{}, err
	}
	user, err := s.useLink(record.AsService(ctx, ""), link, reg, from)
	if err != nil {
		return sessions.Issued{}, once.Recognize(err, from)
	}
	return s.Login.LogIn(ctx, user, s.Sessions.ProofBy(record.Email, record.MethodPassword, 1), from)
}

// firstAdmin returns the registration of the first admin. It finds errors before
// the link is used.
func (s *Flow) firstAdmin(ctx context.Context, c passwords.Credentials) (users.New, error) {
	if err := c.Validate(); err != nil {
		return users.New{}, err
	}
	if _, err := record.NormalizeAddress(c.Login); err != nil {
		return users.New{}, err
	}
	if err := s.Passwords.CheckNew(ctx, record.FieldPassword, c.Password, c.Own()); err != nil {
		return users.New{}, err
	}
	hash, err := s.Passwords.Hash(ctx, c.Password)
	if err != nil {
		return users.New{}, err
	}
	id := record.AddressIdentity(c.Login)
	reg := users.New{Identity: users.Identity{Identity: id}, Fields: s.Admin.NewUser(admin.NewUser{Admin: true}),
		Datas: object.Object{}}
	reg.Fields.Set(record.FieldPassword, hash)
	reg.Datas.Set("login", id.ID)
	return reg, s.DB.Users.Store.Check(record.AsService(ctx, ""), reg.Fields, object.NewUUID())
}

// useLink ends all links, and then creates the user.
func (s *Flow) useLink(ctx context.Context, link post.VerifiedToken, reg users.New,
	from sessions.Client) (record.User, error) {
	if err := s.Post.ConsumeIn(ctx, s.DB.Links(), link, record.ActFirstAdmin, from); err != nil {
		switch r := once.Repeated(err); {
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
		reg.Used = true
		if user, err = s.Users.Create(ctx, reg); err == nil {
			return user, nil
		}
	}
	if !errors.Is(err, errs.Denied) {
		// If the user was created, and only the reply was lost, checkNoAdmin finds the admin.
		until := record.Time(link.Token.Until).Sub(s.DB.Now())
		err = errors.Join(err, s.storeLink(context.WithoutCancel(ctx), link.Token, until))
	}
	return record.User{}, err
}
