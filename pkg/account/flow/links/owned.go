package links

import (
	"context"
	"errors"
	"iter"

	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// CheckOwnAddress reports NotFound for an ident that is not an address of the logged-in user.
func (s *Flow) CheckOwnAddress(ctx context.Context, me *sessions.Session, ident string) error {
	missing := errs.New(errs.NotFound, "you have no e-mail address with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	i, err := s.DB.Idents.Read(ctx, ident)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err == nil && (i.User != me.User.UUID || !i.IsAddress()) {
		return missing
	}
	return err
}

// IsPasskey reports whether an ident is a passkey with a credential.
func IsPasskey(i record.Ident) bool {
	return i.Type == record.PasskeyType && i.Credential != nil && len(i.Credential.PublicKey) > 0
}

// PasskeysOf iterates over the passkeys of a user. It ends after the first error.
func (s *Flow) PasskeysOf(ctx context.Context, user string) iter.Seq2[record.Ident, error] {
	return func(yield func(record.Ident, error) bool) {
		for ident, err := range s.DB.Idents.Owned(ctx, user) {
			if (err != nil || IsPasskey(ident)) && !yield(ident, err) {
				return
			}
		}
	}
}

// HasPasskey reports whether a user has a passkey that is not being removed.
func (s *Flow) HasPasskey(ctx context.Context, user record.User) (has bool, err error) {
	all := []string{}
	for ident, err := range s.PasskeysOf(ctx, user.UUID) {
		if err != nil {
			return false, err
		}
		if user.Unlinked[ident.UUID] == 0 {
			all = append(all, ident.UUID)
		}
	}
	return s.Users.AnyOwned(ctx, all, user.UUID)
}
