package auth

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// way is a way in: what an ident stands for.
type identity struct {
	providerID string // the provider's id of the user
	provider   string // the provider
	profile    object.Object
	validated  bool
}

// fieldProven tells, in an ident, that its address was proven by whom the
// account belongs to. validated alone can be a stranger's account and a link
// that the address's owner followed.
const fieldProven = "_proven"

// fieldAdded tells, in an ident, that its way in was added to an account that
// was there before.
const fieldAdded = "_added"

func (who identity) uuid() string { return identUUID(who.providerID, who.provider) }

// fields are those of the ident, but for its user.
func (who identity) identFields() object.Object {
	o := object.Object{}
	o.Set("type", who.provider)
	o.Set("profile", who.profile)
	o.Set("validated", who.validated)
	o.Set(fieldProven, who.validated)
	o.Set("_id", who.providerID)
	return o
}

// taken says that a way in belongs to a user already.
func (who identity) alreadyRegistered() error {
	return errs.New(errs.Exists, "there is an account with this login already")
}

// stands reports an ident that stands for another way in although its uuid is
// the same: ids of providers are theirs to choose.
func (who identity) matches(ident object.Object) error {
	id, _ := ident.Text("_id")
	kind, _ := ident.Text("type")
	if id != who.providerID || kind != who.provider {
		return errs.New(errs.Denied, "the login is like that of another provider's user and can't be told from it")
	}
	return nil
}

// newcomer is a user about to be registered.
type registration struct {
	identity
	fields object.Object // of the user, as they are to be stored
	datas  object.Object // what Register tells
}

// owner returns the user whom a way in belongs to, and the ident; the user's
// UUID is "" when it belongs to nobody.
func (s *Service) findOwner(ctx context.Context, who identity) (user, ident store.Stored, err error) {
	ident, err = s.idents.Get(ctx, who.uuid())
	if errors.Is(err, errs.NotFound) {
		// As many reads as for a way in that is known.
		_, err := s.users.Get(ctx, who.uuid())
		return user, ident, ignoreNotFound(err)
	}
	if err != nil {
		return user, ident, err
	}
	o, err := ident.Object()
	if err != nil {
		return user, ident, err
	}
	if err := who.matches(o); err != nil {
		return user, ident, err
	}
	uuid, _ := o.Text(fieldUser)
	user, err = s.users.Get(ctx, uuid)
	return user, ident, ignoreNotFound(err)
}

// register makes a user with one way in. Exists when that belongs to a user.
func (s *Service) createUser(ctx context.Context, reg registration) (store.Stored, error) {
	ctx = asService(ctx, "")
	uuid := object.NewUUID()
	if err := s.users.Check(ctx, reg.fields, uuid); err != nil {
		return store.Stored{}, err
	}
	uuid, err := s.claimIdent(ctx, reg.identity, uuid)
	if err != nil {
		return store.Stored{}, err
	}
	user, err := s.users.Save(asService(ctx, uuid), reg.fields, uuid, func(e *event.Envelope) {
		e.Event, e.User, e.Object = event.Register, e.Object, nil
		e.Datas = json.RawMessage(reg.datas.Encode())
	})
	if errors.Is(err, errs.Exists) {
		return user, reg.alreadyRegistered() // by whoever adopted the same ident meanwhile
	}
	return user, err
}

// maxClaims is how often claiming starts over because others change the ident.
const maxAttempts = 10

// claim makes the ident of a way in name a user who is yet to be made, and
// returns that user's uuid: another one than proposed where a registration
// broke off between its two records.
func (s *Service) claimIdent(ctx context.Context, who identity, proposed string) (uuid string, err error) {
	ident := who.identFields()
	ident.Set(fieldUser, proposed)
	for range maxAttempts {
		_, err := s.idents.Save(ctx, ident, who.uuid())
		if err == nil {
			return proposed, nil
		}
		if !errors.Is(err, errs.Exists) {
			return "", err
		}
		user, there, err := s.findOwner(ctx, who)
		if err != nil {
			return "", err
		}
		if user.UUID != "" {
			return "", who.alreadyRegistered()
		}
		if there.UUID == "" {
			continue // gone meanwhile
		}
		if uuid, err := s.adoptIdent(ctx, who, there); uuid != "" || err != nil {
			return uuid, err
		}
	}
	return "", errContention()
}

// adopt takes over an ident whose user is not there. One whose user was deleted
// goes with that user, so it is removed, and "" says to claim anew.
func (s *Service) adoptIdent(ctx context.Context, who identity, ident store.Stored) (uuid string, err error) {
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
	if _, err = s.idents.Update(ctx, who.identFields(), store.UpdateOptions{UUID: ident.UUID, If: ident.Revision}); err != nil {
		return "", ignoreStale(err)
	}
	return uuid, nil
}

// link gives the user who is logged in a further way in. That it is theirs
// already is fine; Exists when it is another's.
func (s *Service) linkIdent(ctx context.Context, who identity, me *Session) error {
	user := me.User
	ctx = asService(ctx, user.UUID)
	ident := who.identFields()
	ident.Set(fieldUser, user.UUID)
	ident.Set(fieldAdded, true)
	for range maxAttempts {
		linked, err := s.idents.Save(ctx, ident, who.uuid())
		if err == nil {
			if err := s.confirmLink(ctx, me, linked); err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, linked)
		}
		if !errors.Is(err, errs.Exists) {
			return err
		}
		owner, there, err := s.findOwner(ctx, who)
		switch {
		case err != nil:
			return err
		case owner.UUID == user.UUID:
			if there, err = s.recordUse(ctx, there.UUID, who.profile); errors.Is(err, errs.NotFound) {
				continue // unlinked meanwhile
			} else if err != nil {
				return err
			}
			return s.clearUnlinked(ctx, me, there)
		case owner.UUID != "":
			return who.alreadyRegistered()
		case there.UUID == "":
			continue
		}
		// Left behind by a registration that broke off, or by a user who is gone.
		if err := s.requireAbandoned(ctx, there); err != nil {
			return err
		}
		if err := ignoreStale(s.idents.Delete(ctx, there.UUID, there.Revision)); err != nil {
			return err
		}
	}
	return errContention()
}

// contended is the error of a login that was never found twice alike.
func errContention() error {
	return errs.New(errs.Conflict, "others keep changing the same login: try again")
}

// registrationLasts is more than a registration needs between its two records.
const registrationTimeout = time.Minute

// abandoned reports Conflict for an ident whose user may be about to be made:
// without the ident that user would have no way in.
func (s *Service) requireAbandoned(ctx context.Context, ident store.Stored) error {
	o, err := ident.Object()
	if err != nil {
		return err
	}
	user, _ := o.Text(fieldUser)
	_, deleted, err := s.users.Deleted(ctx, user)
	if err == nil && !deleted && s.now().Sub(timeField(o, "updated")) < registrationTimeout {
		err = errs.New(errs.Conflict, "somebody is registering with this login: try again in a minute")
	}
	return err
}

// confirm takes a way in back that a session has linked after its end: whoever
// ended it may have looked through the ways in just before this one was there.
func (s *Service) confirmLink(ctx context.Context, me *Session, ident store.Stored) error {
	err := s.checkActive(ctx, me)
	if errors.Is(err, errs.Unauthenticated) {
		if err := ignoreStale(s.idents.Delete(ctx, ident.UUID, ident.Revision)); err != nil {
			return err
		}
	}
	return err
}

// used is use of a way in that may be gone.
func (s *Service) recordUseIfPresent(ctx context.Context, ident string, profile object.Object) error {
	_, err := s.recordUse(ctx, ident, profile)
	return ignoreNotFound(err)
}

// use notes that a way in was used, with the profile that came with it, and
// forgets its failures.
func (s *Service) recordUse(ctx context.Context, ident string, profile object.Object) (store.Stored, error) {
	return s.idents.Mutate(ctx, ident, func(store.Stored) (store.Mutation, error) {
		now := s.now()
		fields := object.Object{fieldFailures: failures{At: now}.encode()}
		fields.Set("lastUsed", timestamp(now))
		if profile != nil {
			fields.Set("profile", profile)
		}
		return store.Mutation{Fields: fields}, nil
	})
}

// fieldFailures holds the failed logins of an ident.
const fieldFailures = "_failedLogins"

// failuresOf are the failures that an ident tells of.
func failuresOf(ident object.Object) failures {
	var f failures
	kept, err := object.Decode(ident[fieldFailures])
	if err != nil {
		return f
	}
	f.Count, _ = strconv.Atoi(string(kept["count"]))
	f.At = timeField(kept, "at")
	return f
}

// encode writes failures as an ident keeps them.
func (f failures) encode() []byte {
	kept := object.Object{}
	kept.Set("count", f.Count)
	kept.Set("at", timestamp(f.At))
	return kept.Encode()
}

// failed notes failures in an ident.
func (s *Service) recordFailures(ctx context.Context, ident string, f failures) error {
	_, err := s.idents.Mutate(ctx, ident, func(there store.Stored) (store.Mutation, error) {
		o, err := there.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		noted := failuresOf(o)
		if noted.At.After(f.At.Add(time.Millisecond)) {
			return store.Mutation{}, nil // a later failure, or a login
		}
		f.Count = max(f.Count, noted.unexpired(f.At).Count)
		return store.Mutation{Fields: object.Object{fieldFailures: f.encode()}}, nil
	})
	return ignoreNotFound(err)
}
