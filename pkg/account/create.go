package account

import (
	"context"
	"encoding/json"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

// createUser creates a user with one ident. Exists when the identity belongs to
// a user.
func (s *Service) createUser(ctx context.Context, reg registration) (record.User, error) {
	return s.createUserAs(record.AsService(ctx, ""), func(uuid string) context.Context { return record.AsService(ctx, uuid) }, reg)
}

// createUserAs is createUser with the context in which the ident is written, and that in
// which the user is, by the user's uuid.
func (s *Service) createUserAs(ctx context.Context, creating func(uuid string) context.Context, reg registration) (record.User, error) {
	uuid := object.NewUUID()
	if err := s.db.Users.Check(ctx, reg.fields, uuid); err != nil {
		return record.User{}, err
	}
	uuid, err := s.claimIdent(ctx, reg.identity, uuid)
	if err != nil {
		return record.User{}, err
	}
	user, err := s.db.Users.Save(creating(uuid), reg.fields, uuid, func(e *event.Envelope) {
		e.Event, e.User, e.Object = event.Register, e.Object, nil
		e.Datas = json.RawMessage(reg.datas.Encode())
	})
	if errors.Is(err, errs.Exists) {
		return record.User{}, reg.ErrTaken() // another request has adopted the same ident
	}
	if err != nil {
		return record.User{}, err
	}
	return s.db.Users.Of(user)
}

// claimIdent creates the ident of a user that does not exist yet, and returns
// that user's uuid. It is not the proposed one if an interrupted registration
// left an ident.
func (s *Service) claimIdent(ctx context.Context, id identity, proposed string) (uuid string, err error) {
	ident := id.ident()
	ident.User = proposed
	for range record.Attempts {
		_, err := s.db.Idents.Create(ctx, id.UUID(), ident)
		if err == nil {
			return proposed, nil
		}
		if !errors.Is(err, errs.Exists) {
			return "", err
		}
		user, there, err := s.db.FindOwner(ctx, id.Identity)
		if err != nil {
			return "", err
		}
		if user.UUID != "" {
			return "", id.ErrTaken()
		}
		if there.UUID == "" {
			continue // deleted meanwhile
		}
		if uuid, err := s.adoptIdent(ctx, id, there); uuid != "" || err != nil {
			return uuid, err
		}
	}
	return "", record.ErrContention()
}

// adoptIdent takes over an ident whose user does not exist. The ident of a
// deleted user is deleted instead, and "" means that the claim must be retried.
func (s *Service) adoptIdent(ctx context.Context, id identity, there record.Ident) (uuid string, err error) {
	_, deleted, err := s.db.Users.Deleted(ctx, there.User)
	if err != nil {
		return "", err
	}
	if deleted || !object.ValidUUID(there.User) {
		return "", record.IgnoreStale(s.db.Idents.Delete(ctx, there.UUID, there.Revision))
	}
	_, err = s.db.Idents.ChangeAt(ctx, there.Meta, func(i *record.Ident) error {
		adopted := id.ident()
		i.Validated, i.Proven, i.Profile = adopted.Validated, adopted.Proven, id.Merged(i.Profile).Encode()
		id.setTokens(i)
		return nil
	})
	if err != nil {
		return "", record.IgnoreStale(err)
	}
	return there.User, nil
}
