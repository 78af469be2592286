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
type unlinkedIdents map[string]uint64

func unlinkedOf(body []byte) unlinkedIdents {
	unlinked := unlinkedIdents{}
	_ = json.Unmarshal(object.Field(body, fieldUnlinked), &unlinked)
	return unlinked
}

// Unlink removes a way in of the user who is logged in. NotFound when it is not
// theirs; Conflict when it is the last one.
func (s *Service) Unlink(ctx context.Context, me *Session, ident string) error {
	ctx = asService(ctx, me.User.UUID)
	missing := errs.New(errs.NotFound, "you have no ident with this uuid")
	if !object.ValidUUID(ident) {
		return missing
	}
	for range maxAttempts {
		stored, err := s.idents.Get(ctx, ident)
		if errors.Is(err, errs.NotFound) {
			return missing
		}
		if err != nil {
			return err
		}
		if owner, _ := object.Text(object.Field(stored.Body, fieldUser)); owner != me.User.UUID {
			return missing
		}
		if err := s.markUnlinked(ctx, me.User.UUID, stored); err != nil {
			return err
		}
		if err = s.idents.Delete(ctx, ident, stored.Revision); !errors.Is(err, errs.Mismatch) {
			return ignoreNotFound(err)
		}
	}
	return errs.New(errs.Conflict, "the same login keeps being used: try again")
}

// condemn makes an ident count no more as a way in of a user. Conflict when no
// other is left.
func (s *Service) markUnlinked(ctx context.Context, user string, ident store.Stored) error {
	_, err := s.users.Mutate(ctx, user, func(user store.Stored) (store.Mutation, error) {
		var idents []string
		if err := forEachOwned(ctx, s.idents, user.UUID, func(found store.Stored, _ object.Object) error {
			idents = append(idents, found.UUID)
			return nil
		}); err != nil {
			return store.Mutation{}, err
		}
		// Those that are gone by now need not be remembered any more.
		unlinked := unlinkedOf(user.Body)
		maps.DeleteFunc(unlinked, func(uuid string, _ uint64) bool { return !slices.Contains(idents, uuid) })
		unlinked[ident.UUID] = max(unlinked[ident.UUID], ident.Revision)
		left := slices.DeleteFunc(idents, func(uuid string) bool { return unlinked[uuid] > 0 })
		if ok, err := s.anyOwned(ctx, left, user.UUID); err != nil || !ok {
			if err == nil {
				err = errs.New(errs.Conflict, "this is your last way in: link another one first, or delete the account")
			}
			return store.Mutation{}, err
		}
		fields := object.Object{}
		fields.Set(fieldUnlinked, unlinked)
		return store.Mutation{Fields: fields}, nil
	})
	return err
}

// anyOf reports whether at least one of some idents is a user's. They were found
// by an index, which may lag.
func (s *Service) anyOwned(ctx context.Context, idents []string, user string) (bool, error) {
	for _, uuid := range idents {
		stored, err := s.idents.Get(ctx, uuid)
		if owner, _ := object.Text(object.Field(stored.Body, fieldUser)); err == nil && owner == user {
			return true, nil
		}
		if ignoreNotFound(err) != nil {
			return false, err
		}
	}
	return false, nil
}

// relink makes an ident that was linked count as a way in again.
func (s *Service) clearUnlinked(ctx context.Context, me *Session, ident store.Stored) error {
	_, err := s.updateCurrentUser(ctx, me, func(now object.Object) object.Object {
		unlinked := unlinkedOf(now.Encode())
		if at, ok := unlinked[ident.UUID]; !ok || at >= ident.Revision {
			return nil
		}
		delete(unlinked, ident.UUID)
		fields := object.Object{}
		fields.Set(fieldUnlinked, unlinked)
		return fields
	})
	return err
}
