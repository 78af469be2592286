package account

import (
	"context"
	"encoding/json"
	"errors"
	"maps"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// maxAttempts is how often a write is retried because other requests change the
// same record.
const maxAttempts = 10

// errContention is returned after maxAttempts.
func errContention() error {
	return errs.New(errs.Conflict, "others keep changing the same login: try again")
}

// createUser creates a user with one ident. Exists when the identity belongs to
// a user.
func (s *Service) createUser(ctx context.Context, reg registration) (store.Stored, error) {
	return s.createUserAs(asService(ctx, ""), func(uuid string) context.Context { return asService(ctx, uuid) }, reg)
}

// createUserAs is createUser with the context in which the ident is written, and that in
// which the user is, by the user's uuid.
func (s *Service) createUserAs(ctx context.Context, creating func(uuid string) context.Context, reg registration) (store.Stored, error) {
	uuid := object.NewUUID()
	if err := s.users.Check(ctx, reg.fields, uuid); err != nil {
		return store.Stored{}, err
	}
	uuid, err := s.claimIdent(ctx, reg.identity, uuid)
	if err != nil {
		return store.Stored{}, err
	}
	user, err := s.users.Save(creating(uuid), reg.fields, uuid, func(e *event.Envelope) {
		e.Event, e.User, e.Object = event.Register, e.Object, nil
		e.Datas = json.RawMessage(reg.datas.Encode())
	})
	if errors.Is(err, errs.Exists) {
		return user, reg.errTaken() // another request has adopted the same ident
	}
	return user, err
}

// claimIdent creates the ident of a user that does not exist yet, and returns
// that user's uuid. It is not the proposed one if an interrupted registration
// left an ident.
func (s *Service) claimIdent(ctx context.Context, id identity, proposed string) (uuid string, err error) {
	fields := id.identFields()
	fields.Set(fieldUser, proposed)
	s.setTokens(fields, store.Stored{}, id)
	for range maxAttempts {
		_, err := s.idents.Save(ctx, fields, id.uuid())
		if err == nil {
			return proposed, nil
		}
		if !errors.Is(err, errs.Exists) {
			return "", err
		}
		user, ident, err := s.findOwner(ctx, id)
		if err != nil {
			return "", err
		}
		if user.UUID != "" {
			return "", id.errTaken()
		}
		if ident.UUID == "" {
			continue // deleted meanwhile
		}
		if uuid, err := s.adoptIdent(ctx, id, ident); uuid != "" || err != nil {
			return uuid, err
		}
	}
	return "", errContention()
}

// adoptIdent takes over an ident whose user does not exist. The ident of a
// deleted user is deleted instead, and "" means that the claim must be retried.
func (s *Service) adoptIdent(ctx context.Context, id identity, ident store.Stored) (uuid string, err error) {
	o, err := ident.Object()
	if err != nil {
		return "", err
	}
	uuid, _ = o.Text(fieldUser)
	_, deleted, err := s.users.Deleted(ctx, uuid)
	if err != nil {
		return "", err
	}
	if deleted || !object.ValidUUID(uuid) {
		return "", ignoreStale(s.idents.Delete(ctx, ident.UUID, ident.Revision))
	}
	fields := id.identFields()
	fields.Set("profile", id.merged(o["profile"]))
	s.setTokens(fields, ident, id)
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return value == nil })
	if _, err = s.idents.Update(ctx, fields, store.UpdateOptions{UUID: ident.UUID, If: ident.Revision}); err != nil {
		return "", ignoreStale(err)
	}
	return uuid, nil
}
