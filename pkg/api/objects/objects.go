// Package objects serves stores as REST resources.
//
// # The way of a create
//
//	POST /books
//	  kit.Router        filters: CORS, cross-site request forgery
//	  kit.Calls.Limit   limits of the address and of the user
//	  resource.create   preconditions and the object of the body
//	  kit.Calls.Write   authenticates the client; honors Prefer: wait
//	  store.Store.Save  policy, schema, limits; writes the record with its event
//	  kit.Exchange      201 with Location, ETag and the object
package objects

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
)

// Restrict names the operations of a store that have no route.
type Restrict struct {
	Create, Update, Delete, Get bool
}

// Options are the options of Mount.
type Options struct {
	Store    *store.Store
	URL      string // path of the collection: begins with a slash, no colon, no asterisk
	Restrict Restrict
	List     bool // GET on the collection
}

// resource is a store exposed at a path.
type resource struct {
	store *store.Store
	calls *kit.Calls
	pages *pagememory.Budget // of lists
	sizes pagememory.Sizes
	url   string // without a trailing slash
	noGet bool   // GET of an object has no route
}

// Mount adds the routes of a store; pages is the memory of all lists.
func Mount(r *kit.Router, calls *kit.Calls, pages *pagememory.Budget, o Options) {
	res := &resource{store: o.Store, calls: calls, pages: pages, url: strings.TrimRight(o.URL, "/"), noGet: o.Restrict.Get}
	one := res.url + "/:" + kit.UUIDParam
	if !o.Restrict.Create {
		r.Handle(http.MethodPost, res.url, calls.Limit(kit.Write, res.create))
	}
	if o.List {
		r.HandleGet(res.url, calls.Limit(kit.List, res.list))
	}
	if !o.Restrict.Get {
		r.HandleGet(one, calls.Limit(kit.Read, res.get))
	}
	if !o.Restrict.Update {
		r.Handle(http.MethodPut, one, calls.Limit(kit.Write, res.replace))
		r.Handle(http.MethodPatch, one, calls.Limit(kit.Write, res.patch))
	}
	if !o.Restrict.Delete {
		r.Handle(http.MethodDelete, one, calls.Limit(kit.Write, res.delete))
	}
}

// create is POST on the collection.
func (r *resource) create(x *kit.Exchange) error {
	if len(x.Request.Header["If-Match"]) > 0 {
		return errs.New(errs.Invalid, "If-Match is not supported on POST, which creates an object: change an existing one with PUT or PATCH")
	}
	absent, err := x.OnlyIfAbsent()
	if err != nil {
		return err
	}
	o, err := x.ReadObject(kit.JSON)
	if err != nil {
		return err
	}
	stored, err := r.write(x, func(ctx context.Context) (store.Stored, error) {
		return r.store.Save(ctx, o, "")
	})
	if absent && errors.Is(err, errs.Exists) {
		return errs.Wrap(err, errs.Mismatch, "If-None-Match: * does not hold, since the uuid is taken")
	}
	if err != nil {
		return err
	}
	x.SetHeader("Location", r.url+"/"+stored.UUID)
	x.SetHeader("Cache-Control", kit.NoStore)
	x.SendObject(http.StatusCreated, stored)
	return nil
}

// get is GET and HEAD on an object.
func (r *resource) get(x *kit.Exchange) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	match, err := x.IfMatch()
	if err != nil {
		return err
	}
	noneMatch, err := x.IfNoneMatch()
	if err != nil {
		return err
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	stored, err := r.store.Get(ctx, uuid)
	if err != nil {
		return err
	}
	if match.Given && !match.MatchObject(stored) {
		return errs.New(errs.Mismatch, "the object is at none of the revisions in If-Match")
	}
	x.SetHeader("Cache-Control", kit.Revalidate)
	if noneMatch.Given && noneMatch.MatchView(stored) {
		x.SendNotModified(stored)
		return nil
	}
	x.SendObject(http.StatusOK, stored)
	return nil
}

// replace is PUT on an object: each field given replaces the stored one.
func (r *resource) replace(x *kit.Exchange) error {
	return r.update(x, store.UpdateOptions{}, kit.JSON)
}

// patch is PATCH on an object: an RFC 7396 merge patch.
func (r *resource) patch(x *kit.Exchange) error {
	x.SetHeader("Accept-Patch", kit.MergePatch+", "+kit.JSON)
	return r.update(x, store.UpdateOptions{Patch: true}, kit.MergePatch, kit.JSON)
}

func (r *resource) update(x *kit.Exchange, opts store.UpdateOptions, types ...string) error {
	var err error
	if opts.UUID, err = x.UUID(); err != nil {
		return err
	}
	match, err := r.preconditions(x, opts.UUID)
	if err != nil {
		return err
	}
	o, err := x.ReadObject(types...)
	if err != nil {
		return err
	}
	stored, err := r.write(x, func(ctx context.Context) (stored store.Stored, err error) {
		err = match.Attempt(func(ifRevision uint64) error {
			opts.If = ifRevision
			stored, err = r.store.Update(ctx, o, opts)
			return err
		})
		return stored, err
	})
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	x.SendObject(http.StatusOK, stored)
	return nil
}

// delete is DELETE on an object.
func (r *resource) delete(x *kit.Exchange) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	match, err := r.preconditions(x, uuid)
	if err != nil {
		return err
	}
	_, _, err = r.calls.Write(x, func(ctx context.Context) error {
		return match.Attempt(func(ifRevision uint64) error { return r.store.Delete(ctx, uuid, ifRevision) })
	})
	if err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}

// preconditions reads those of a write to an object. If-None-Match: * fails if the
// object exists, as it has to for an update or a delete.
func (r *resource) preconditions(x *kit.Exchange, uuid string) (kit.Tags, error) {
	match, err := x.IfMatch()
	if err != nil {
		return kit.Tags{}, err
	}
	absent, err := x.OnlyIfAbsent()
	if err != nil || !absent {
		return match, err
	}
	exists, err := r.store.Exists(x.Request.Context(), uuid)
	if err == nil && exists {
		err = errs.New(errs.Mismatch, "If-None-Match: * does not hold, since the object exists")
	}
	return match, err
}

// write makes a write and returns the object for the reply: as it was written or,
// after waiting for the consequences, as it is then. The store decides what of it
// the client may see.
func (r *resource) write(x *kit.Exchange, act func(context.Context) (store.Stored, error)) (stored store.Stored, err error) {
	ctx, applied, err := r.calls.Write(x, func(ctx context.Context) error {
		stored, err = act(r.withoutGet(ctx))
		return err
	})
	if err != nil || !applied || r.noGet {
		return stored, err
	}
	if current, err := r.store.Reread(ctx, stored.UUID); err == nil {
		return current, nil
	}
	// Deleted meanwhile, or not readable by this client any more.
	return stored, nil
}

// withoutGet says in the call that nobody may get objects here, if so.
func (r *resource) withoutGet(ctx context.Context) context.Context {
	if !r.noGet {
		return ctx
	}
	call := store.CallOf(ctx)
	call.NoGet = true
	return store.WithCall(ctx, call)
}
