package users

import (
	"context"
	"encoding/json"
	"errors"

	"belfry/pkg/account/record"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Create creates a user with one ident. Exists when the identity belongs to
// a user.
func (s *Users) Create(ctx context.Context, reg New) (record.User, error) {
	return s.CreateAs(record.AsService(ctx, ""),
		func(uuid string) context.Context { return record.AsService(ctx, uuid) }, reg)
}

// CreateAs is Create with two contexts: for the write of the ident, and, by the user's uuid, for the write of the user.
func (s *Users) CreateAs(ctx context.Context, creating func(uuid string) context.Context,
	reg New) (record.User, error) {
	uuid := object.NewUUID()
	if err := s.DB.Users.Store.Check(ctx, reg.Fields, uuid); err != nil {
		return record.User{}, err
	}
	uuid, err := s.claimIdent(ctx, reg.Identity, uuid)
	if err != nil {
		return record.User{}, err
	}
	user, err := s.DB.Users.Store.Save(creating(uuid), reg.Fields, uuid, func(e *event.Envelope) {
		e.Event, e.User, e.Object = event.Register, e.Object, nil
		e.Datas = json.RawMessage(reg.Datas.Encode())
	})
	if errors.Is(err, errs.Exists) {
		return record.User{}, reg.ErrTaken() // another request has adopted the same ident
	}
	if err != nil {
		return record.User{}, err
	}
	return s.DB.Users.Of(user)
}

// claimIdent creates the ident of a user that does not exist yet, and returns
// that user's uuid. It is not the proposed one if an interrupted registration
// left an ident.
func (s *Users) claimIdent(ctx context.Context, id Identity, proposed string) (uuid string, err error) {
	ident := s.identOf(id)
	ident.User = proposed
	for range record.Attempts {
		_, err := s.DB.Idents.Create(ctx, id.UUID(), ident)
		if err == nil {
			return proposed, nil
		}
		if !errors.Is(err, errs.Exists) {
			return "", err
		}
		user, there, err := s.DB.FindOwner(ctx, id.Identity)
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

// identOf returns the ident of a new user.
func (s *Users) identOf(id Identity) record.Ident {
	ident := id.NewIdent()
	if id.Used {
		ident.LastUsed = s.DB.Now()
	}
	return ident
}

// adoptIdent takes over an ident whose user does not exist. The ident of a
// deleted user is deleted instead, and "" means that the claim must be retried.
func (s *Users) adoptIdent(ctx context.Context, id Identity, there record.Ident) (uuid string, err error) {
	_, deleted, err := s.DB.Users.Store.Deleted(ctx, there.User)
	if err != nil {
		return "", err
	}
	if deleted || !object.ValidUUID(there.User) {
		return "", record.IgnoreStale(s.DB.Idents.Store.Delete(ctx, there.UUID, there.Revision))
	}
	_, err = s.DB.Idents.ChangeAt(ctx, there.Meta, func(i *record.Ident) error {
		adopted := s.identOf(id)
		i.LastUsed = adopted.LastUsed
		i.Validated, i.Proven, i.Profile = adopted.Validated, adopted.Proven, id.Merged(i.Profile).Encode()
		id.setTokens(i)
		return nil
	})
	if err != nil {
		return "", record.IgnoreStale(err)
	}
	return there.User, nil
}

// Identity is an identity with the data of its provider, or of the user who links it.
type Identity struct {
	record.Identity
	Keep func(*record.Ident) // sets the tokens of the provider in its ident; nil without tokens
	Must bool                // the login fails if its ident was not written
	Used bool                // its user logs in with it now

	// Further fields of a linked identity.
	Passkey *record.Credential
	Name    string             // of a passkey
	Single  bool               // Exists even for the user who has it
	Events  []store.ExtraEvent // published with its ident
}

// NewIdent returns the ident of an identity, without its user.
func (id Identity) NewIdent() record.Ident {
	i := id.Ident()
	i.Credential, i.Name = id.Passkey, id.Name
	id.setTokens(&i)
	return i
}

// setTokens sets the tokens of the provider in an ident.
func (id Identity) setTokens(i *record.Ident) {
	if id.Keep != nil {
		id.Keep(i)
	}
}

// New is a user about to be created.
type New struct {
	Identity
	Fields object.Object // of the user, as they will be stored
	Datas  object.Object // of the event Register
}

// InterceptRegistration calls the interceptor with a user before any record of
// them is written. It may refuse the user and may add fields.
func (s *Users) InterceptRegistration(ctx context.Context, reg *New) error {
	if s.Interceptor == nil {
		return nil
	}
	asked := reg.Fields.Clone()
	delete(asked, record.FieldPassword)
	patch, err := s.Interceptor.Intercept(ctx, store.InterceptRequest{
		Op: "register", Store: s.DB.Users.Store.Name(), Object: asked.Encode(), Datas: reg.Datas.Encode(),
		Call: store.CallOf(ctx),
	})
	if err != nil || len(patch) == 0 {
		return err
	}
	if reg.Fields, err = object.MergePatch(reg.Fields,
		s.DB.Users.Store.Rules().SettableByInterceptor(patch)); err != nil {
		return err
	}
	return s.DB.Users.Store.Check(record.AsService(ctx, ""), reg.Fields, object.NewUUID())
}
