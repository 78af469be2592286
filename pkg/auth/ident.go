package auth

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// fieldUnlinked names, in a user, the idents that are being unlinked: they count
// no more as ways in. It is what keeps two unlinkings at once from each leaving
// the other for the last one: both write the user's record.
//
// An ident is unlinked as it was when it was condemned, at a revision that is
// noted with it. Linking it anew makes it another one first, and only then counts
// it again; unless that one has been condemned meanwhile too.
const fieldUnlinked = "_unlinked"

// unlinked are idents with the latest revisions at which they were condemned.
type unlinked map[string]uint64

func unlinkedOf(body []byte) unlinked {
	going := unlinked{}
	_ = json.Unmarshal(object.Field(body, fieldUnlinked), &going)
	return going
}

// Unlink removes a way in of the user who is logged in. NotFound when it is not
// theirs; Conflict when it is the last one.
func (s *Service) Unlink(ctx context.Context, me *Session, ident string) error {
	ctx = own(ctx, me.User.UUID)
	missing := errs.New(errs.NotFound, "you have no ident with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	for range maxClaims {
		there, err := s.idents.Get(ctx, ident)
		if errors.Is(err, errs.NotFound) {
			return missing
		}
		if err != nil {
			return err
		}
		if owner, _ := object.Text(object.Field(there.Body, fieldUser)); owner != me.User.UUID {
			return missing
		}
		if err := s.condemn(ctx, me.User.UUID, there); err != nil {
			return err
		}
		if err = s.idents.Delete(ctx, ident, there.Revision); !errors.Is(err, errs.Mismatch) {
			return unlessMissing(err)
		}
	}
	return errs.New(errs.Conflict, "the same login keeps being used: try again")
}

// condemn makes an ident count no more as a way in of a user. Conflict when no
// other is left.
func (s *Service) condemn(ctx context.Context, user string, ident store.Stored) error {
	_, err := s.users.Revise(ctx, user, func(user store.Stored) (store.Revision, error) {
		var idents []string
		if err := linked(ctx, s.idents, user.UUID, func(found store.Stored, _ object.Object) error {
			idents = append(idents, found.UUID)
			return nil
		}); err != nil {
			return store.Revision{}, err
		}
		// Those that are gone by now need not be remembered any more.
		going := unlinkedOf(user.Body)
		maps.DeleteFunc(going, func(uuid string, _ uint64) bool { return !slices.Contains(idents, uuid) })
		going[ident.UUID] = max(going[ident.UUID], ident.Revision)
		left := slices.DeleteFunc(idents, func(uuid string) bool { return going[uuid] > 0 })
		if ok, err := s.anyOf(ctx, left, user.UUID); err != nil || !ok {
			if err == nil {
				err = errs.New(errs.Conflict, "this is your last way in: link another one first, or delete the account")
			}
			return store.Revision{}, err
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, going)
		return store.Revision{Fields: fields}, nil
	})
	return err
}

// anyOf reports whether at least one of some idents is a user's. They were found
// by an index, which may lag.
func (s *Service) anyOf(ctx context.Context, idents []string, user string) (bool, error) {
	for _, uuid := range idents {
		there, err := s.idents.Get(ctx, uuid)
		if owner, _ := object.Text(object.Field(there.Body, fieldUser)); err == nil && owner == user {
			return true, nil
		}
		if unlessMissing(err) != nil {
			return false, err
		}
	}
	return false, nil
}

// relink makes an ident that was linked count as a way in again.
func (s *Service) relink(ctx context.Context, me *Session, ident store.Stored) error {
	_, err := s.reviseMe(ctx, me, func(now object.Object) object.Object {
		going := unlinkedOf(now.Encode())
		if at, ok := going[ident.UUID]; !ok || at >= ident.Revision {
			return nil
		}
		delete(going, ident.UUID)
		fields := object.Object{}
		fields.Set(fieldUnlinked, going)
		return fields
	})
	return err
}
