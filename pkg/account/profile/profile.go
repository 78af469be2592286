// Package profile lets users edit their own name and picture on belfry's page of their account. It has no rights of its
// own. Every function takes the context of the user's call, and does, or tries without writing, the same as a PATCH of
// the user, or an upload or deletion of a file, over HTTP:
//
//	Shown            store.CheckUpdate, binary.Service.Validate   which forms the page shows
//	Rename           store.Update                                 rules, schema, interceptors, event
//	RemovePicture    binary.Service.Delete                        the same, and the file becomes garbage
//
// The picture is the first file of a property. A new one replaces it: package files receives it.
package profile

import (
	"context"
	"errors"

	"belfry/internal/thumbnail"
	"belfry/pkg/apimodel"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Profile is what users can edit of themselves.
type Profile struct {
	apimodel.Profile
	Users *store.Store
	Files *binary.Service // of Picture; nil without one
}

// Shown is what a page shows to a user.
type Shown struct {
	Renames bool   // the user may change the name, as far as is known before the new one is
	Name    string // as it is
	Changes bool   // the user may change the picture
	Hash    string // of the picture; "": there is no picture
	Drawn   bool   // there are thumbnails of pictures of its type
}

// Shown returns what a page shows to the user of ctx, who is stored under a uuid and sees visible of themselves.
func (p *Profile) Shown(ctx context.Context, uuid string, visible object.Object) (s Shown, err error) {
	if p.Name != "" {
		name, isText := visible.Text(p.Name)
		s.Name = name
		if isText || visible[p.Name] == nil {
			// The rule of a field is only for a value that differs.
			if s.Renames, err = granted(p.CheckName(ctx, uuid, name+"a")); err != nil {
				return s, err
			}
		}
	}
	if p.Picture == nil {
		return s, nil
	}
	s.Changes, err = granted(p.Files.Validate(ctx, binary.Upload{Place: p.Place(uuid), Size: -1}))
	if err != nil {
		return s, err
	}
	record, err := p.Files.Get(ctx, p.Place(uuid))
	if err != nil {
		_, err = granted(err)
		return s, err
	}
	s.Hash, s.Drawn = record.Hash, thumbnail.Draws(record.Mimetype)
	return s, nil
}

// granted reports whether an operation is not refused because of its user. A schema refuses values, not users.
func granted(err error) (bool, error) {
	switch errs.KindOf(err) {
	case errs.Denied, errs.Unauthenticated, errs.NotFound, errs.Conflict:
		return false, nil
	case errs.Invalid, errs.TooLarge:
		return true, nil
	}
	return err == nil, err
}

// CheckName returns the error with which a name would be refused, as far as that is known without writing it.
func (p *Profile) CheckName(ctx context.Context, uuid, name string) error {
	return p.Users.CheckUpdate(p.call(ctx), p.named(name), store.UpdateOptions{UUID: uuid, Patch: true})
}

// Rename sets the name of a user, and changes nothing else; "" removes it.
func (p *Profile) Rename(ctx context.Context, uuid, name string) error {
	_, err := p.Users.Update(p.call(ctx), p.named(name), store.UpdateOptions{UUID: uuid, Patch: true})
	return err
}

// RemovePicture removes the picture of a user if it has a hash. Mismatch if it has another one by now.
func (p *Profile) RemovePicture(ctx context.Context, uuid, hash string) error {
	_, err := p.Files.Delete(ctx, p.Place(uuid), hash)
	return err
}

// Place is where the picture of a user is.
func (p *Profile) Place(uuid string) binary.Place {
	return binary.Place{Store: p.Users.Name(), UUID: uuid, Property: p.Picture.Property}
}

func (p *Profile) named(name string) object.Object {
	if name == "" {
		return object.Object{p.Name: []byte("null")}
	}
	return object.Object{p.Name: object.AppendString(nil, name)}
}

// call returns the context of a call of a user who may have no route to read users.
func (p *Profile) call(ctx context.Context) context.Context {
	if !p.NoGet {
		return ctx
	}
	call := store.CallOf(ctx)
	call.NoGet = true
	return store.WithCall(ctx, call)
}

// Refusal returns why a name is refused; its message is "" if the error does not say so.
func (p *Profile) Refusal(err error) errs.Field {
	var e *errs.Error
	if !errors.As(err, &e) {
		return errs.Field{}
	}
	for _, f := range e.Fields {
		if f.Pointer == object.Pointer(p.Name) {
			return f
		}
	}
	if len(e.Fields) > 0 { // the user has become invalid before, by another schema
		first := e.Fields[0]
		return errs.Field{Message: first.String(), Keyword: first.Keyword}
	}
	return errs.Field{Message: e.Message}
}
