package auth

import (
	"context"
	"encoding/json"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// fieldUnlinked names, in a user, the idents that are being unlinked. It is
// what keeps two unlinkings at once from each leaving the other for the last
// way in: each writes the user's record before it counts what is left.
const fieldUnlinked = "_unlinked"

func unlinkedOf(body []byte) (uuids []string) {
	_ = json.Unmarshal(object.Field(body, fieldUnlinked), &uuids)
	return uuids
}

// Unlink removes a way in of the user who is logged in. NotFound when it is not
// theirs; Conflict when it is the last one.
func (s *Service) Unlink(ctx context.Context, me *Session, ident string) error {
	ctx = own(ctx, me.User.UUID)
	missing := errs.New(errs.NotFound, "you have no ident with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	there, err := s.Idents.Get(ctx, ident)
	if errs.Is(err, errs.NotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	if owner, _ := object.Text(object.Field(there.Body, fieldUser)); owner != me.User.UUID {
		return missing
	}
	_, err = s.Users.Revise(ctx, me.User.UUID, func(user store.Stored) (store.Revision, error) {
		var idents []string
		if err := linked(ctx, s.Idents, user.UUID, func(found store.Stored, _ object.Object) error {
			idents = append(idents, found.UUID)
			return nil
		}); err != nil {
			return store.Revision{}, err
		}
		// Those that are gone by now need not be remembered any more.
		going := slices.DeleteFunc(unlinkedOf(user.Body), func(uuid string) bool { return !slices.Contains(idents, uuid) })
		if !slices.Contains(going, ident) {
			going = append(going, ident)
		}
		if !slices.ContainsFunc(idents, func(uuid string) bool { return !slices.Contains(going, uuid) }) {
			return store.Revision{}, errs.New(errs.Conflict, "this is your last way in: link another one first, or delete the account")
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, going)
		return store.Revision{Fields: fields}, nil
	})
	if err != nil {
		return err
	}
	return unlessMissing(s.Idents.Delete(ctx, ident, 0))
}

// relink makes an ident count as a way in again.
func (s *Service) relink(ctx context.Context, me *Session, ident string) error {
	_, err := s.reviseMe(ctx, me, func(now object.Object) object.Object {
		going := unlinkedOf(now.Encode())
		left := slices.DeleteFunc(slices.Clone(going), func(uuid string) bool { return uuid == ident })
		if len(left) == len(going) {
			return nil
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, left)
		return fields
	})
	return err
}
