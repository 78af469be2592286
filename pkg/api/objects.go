package api

import (
	"context"
	"errors"
	"net/http"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Whether a reply may be kept: what was read, by its reader, to be asked about
// again with If-None-Match; what a write replied, by nobody.
const (
	revalidate = "private, no-cache"
	noStore    = "no-store"
)

// resource is a store exposed at a path.
type resource struct {
	server *Server
	store  *store.Store
	url    string // without a slash at its end
}

// create is POST on the collection.
func (r *resource) create(x *exchange) error {
	absent, err := x.onlyIfAbsent()
	if err != nil {
		return err
	}
	o, err := r.server.readObject(x, jsonType)
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
	x.set("Location", r.url+"/"+stored.UUID)
	x.set("Cache-Control", noStore)
	x.object(http.StatusCreated, stored)
	return nil
}

// get is GET on an object.
func (r *resource) get(x *exchange) error {
	uuid, err := x.uuid()
	if err != nil {
		return err
	}
	match, err := parseTags("If-Match", x.req.Header["If-Match"])
	if err != nil {
		return err
	}
	noneMatch, err := parseTags("If-None-Match", x.req.Header["If-None-Match"])
	if err != nil {
		return err
	}
	call, err := r.server.call(x)
	if err != nil {
		return err
	}
	stored, err := r.store.Get(store.WithCall(x.req.Context(), call), uuid)
	if err != nil {
		return err
	}
	if match.given && !match.strongly(stored.Revision) {
		return errs.New(errs.Mismatch, "the object is at none of the revisions in If-Match")
	}
	x.set("Cache-Control", revalidate)
	if noneMatch.given && noneMatch.weakly(stored.Revision) {
		x.set("Etag", etag(stored.Revision))
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	x.object(http.StatusOK, stored)
	return nil
}

// replace is PUT on an object: each field given replaces the stored one.
func (r *resource) replace(x *exchange) error {
	return r.update(x, store.UpdateOptions{}, jsonType)
}

// patch is PATCH on an object: an RFC 7396 merge patch.
func (r *resource) patch(x *exchange) error {
	x.set("Accept-Patch", mergePatchType+", "+jsonType)
	return r.update(x, store.UpdateOptions{Patch: true}, mergePatchType, jsonType)
}

func (r *resource) update(x *exchange, opts store.UpdateOptions, types ...string) error {
	var err error
	if opts.UUID, err = x.uuid(); err != nil {
		return err
	}
	match, err := r.preconditions(x, opts.UUID)
	if err != nil {
		return err
	}
	o, err := r.server.readObject(x, types...)
	if err != nil {
		return err
	}
	stored, err := r.write(x, func(ctx context.Context) (stored store.Stored, err error) {
		err = match.attempt(func(ifRevision uint64) error {
			opts.If = ifRevision
			stored, err = r.store.Update(ctx, o, opts)
			return err
		})
		return stored, err
	})
	if err != nil {
		return err
	}
	x.set("Cache-Control", noStore)
	x.object(http.StatusOK, stored)
	return nil
}

// delete is DELETE on an object.
func (r *resource) delete(x *exchange) error {
	uuid, err := x.uuid()
	if err != nil {
		return err
	}
	match, err := r.preconditions(x, uuid)
	if err != nil {
		return err
	}
	_, _, err = r.server.write(x, func(ctx context.Context) error {
		return match.attempt(func(ifRevision uint64) error { return r.store.Delete(ctx, uuid, ifRevision) })
	})
	if err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// preconditions reads those of a write on an object. If-None-Match: * can't
// hold where the object is a condition already.
func (r *resource) preconditions(x *exchange, uuid string) (tags, error) {
	match, err := parseTags("If-Match", x.req.Header["If-Match"])
	if err != nil {
		return tags{}, err
	}
	absent, err := x.onlyIfAbsent()
	if err != nil || !absent {
		return match, err
	}
	exists, err := r.store.Exists(x.req.Context(), uuid)
	if err == nil && exists {
		err = errs.New(errs.Mismatch, "If-None-Match: * does not hold, since the object exists")
	}
	return match, err
}

// write makes a write and returns the object for the reply: as stored or,
// after waiting for the consequences, as it is then.
func (r *resource) write(x *exchange, act func(context.Context) (store.Stored, error)) (stored store.Stored, err error) {
	ctx, applied, err := r.server.write(x, func(ctx context.Context) error {
		stored, err = act(ctx)
		return err
	})
	if err != nil || !applied {
		return stored, err
	}
	if again, err := r.store.Get(ctx, stored.UUID); err == nil {
		return again, nil
	}
	// Deleted meanwhile, or not for this client to read: what it wrote, it may see.
	return stored, nil
}

// object replies with an object.
func (x *exchange) object(status int, stored store.Stored) {
	x.set("Etag", etag(stored.Revision))
	x.send(status, jsonType, stored.Body)
}
