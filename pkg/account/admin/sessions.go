package admin

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/texts"
)

// EndSessions ends all sessions and API keys of a user. NotFound.
func (s *Admin) EndSessions(ctx context.Context, uuid string) (store.Stored, error) {
	return s.Sessions.EndAll(ctx, uuid)
}

// EndSession ends one session of a user. NotFound if it is not a session of the user.
func (s *Admin) EndSession(ctx context.Context, user, id string) error {
	err := s.Sessions.Revoke(record.Managing(ctx), user, id)
	if errors.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "the user has no session with this id")
	}
	return err
}

// SendRecovery requests the mail with which a user sets a new password, to an address with which
// they log in: address, or the only one if that is "". It returns the address.
//
// Errors: NotFound; Conflict without login by e-mail, for a disabled user, and for a user without such an address or
// with several if none is given; Limited within the interval of mails.
func (s *Admin) SendRecovery(ctx context.Context, uuid, address string) (string, error) {
	if s.Email == nil {
		return "", errs.New(errs.Conflict, "no mail can be sent: login by e-mail is not configured "+
			"(authentication.providers.email); set a password instead")
	}
	user, err := s.DB.Users.Store.Get(record.AsService(ctx, ""), uuid)
	if err != nil {
		return "", err
	}
	if record.IsDisabled(user) {
		return "", errs.New(errs.Conflict, "the user is disabled: enable them first")
	}
	addresses, err := s.addressesOf(ctx, uuid)
	if err != nil {
		return "", err
	}
	if normal, err := record.KnownAddress(address); err == nil {
		address = normal
	}
	switch {
	case len(addresses) == 0:
		return "", errs.New(errs.Conflict, "the user has no e-mail address to log in with")
	case address == "" && len(addresses) > 1:
		return "", errs.New(errs.Conflict, "the user has several e-mail addresses: name the one for the mail")
	case address == "":
		address = addresses[0]
	case !slices.Contains(addresses, address):
		return "", errs.New(errs.Conflict, "%q is not an address that the user logs in with", address)
	}
	owner, err := s.DB.Users.Of(user)
	if err != nil {
		return "", err
	}
	language := cmp.Or(s.Notices.LanguageOf(ctx, owner), texts.Asked(ctx)) // that of the admin for a new user
	ctx = texts.WithLanguage(record.Managing(ctx), language)
	return address, s.Post.EnqueueAs(ctx, address, post.RecoveryMailbox, record.PurposeRecover)
}

// addressesOf returns the e-mail addresses with which a user logs in, sorted.
func (s *Admin) addressesOf(ctx context.Context, uuid string) (all []string, err error) {
	for ident, err := range s.DB.Idents.Owned(record.AsService(ctx, ""), uuid) {
		if err != nil {
			return all, err
		}
		if ident.IsAddress() {
			all = append(all, ident.ID)
		}
	}
	slices.Sort(all)
	return all, nil
}
