// Package objects serves stores as REST resources.
//
// # The way of a create
//
//	POST /books
//	  kit.Router        filters: CORS, cross-site request forgery
//	  kit.Calls.Limit   limits of the address and of the user
//	  resource.create   preconditions and the object of the body
//	  kit.Calls.Write   authenticates the client; honors Prefer: wait
//	  resource.execute  once for an Idempotency-Key
//	  store.Store.Save  policy, schema, limits; writes the record with its event
//	  outcome           201 with Location, ETag and the object
package objects

import (
	"context"
	"net/http"
	"strings"

	"belfry/pkg/api/kit"
	"belfry/pkg/api/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
)

// Restrict names the operations of a store that have no route.
type Restrict struct {
	Create, Get, Update, Delete bool
}

// Options are the options of Mount.
type Options struct {
	Store    *store.Store
	URL      string // path of the collection: begins with a slash, no colon, no asterisk
	Restrict Restrict
	List     bool // GET on the collection

	// Expand is the fields that name objects of another store, which clients may get: the store, by field.
	Expand map[string]*store.Store
}

// Shared is what all resources use.
type Shared struct {
	Calls *kit.Calls
	Pages *pagememory.Budget   // the memory of all lists and batches
	Keyed *idempotent.Executor // nil: requests have no Idempotency-Key
}

// resource is a store exposed at a path.
type resource struct {
	store    *store.Store
	calls    *kit.Calls
	pages    *pagememory.Budget // of lists
	keyed    *idempotent.Executor
	streams  *streams
	sizes    pagememory.Sizes
	expanded pagememory.Sizes // of gets with expansions
	url      string           // without a trailing slash
	restrict Restrict
	expand   map[string]*store.Store
	urls     map[*store.Store]string // of all stores
}

func newResource(shared Shared, o Options) *resource {
	return &resource{
		store: o.Store, calls: shared.Calls, pages: shared.Pages, keyed: shared.Keyed, url: strings.TrimRight(o.URL, "/"), restrict: o.Restrict,
		expand: o.Expand,
	}
}

// Mount adds the routes of stores, and of batches of operations on them.
func Mount(r *kit.Router, shared Shared, stores []Options) {
	var all []*resource
	streams, urls := newStreams(), map[*store.Store]string{}
	for _, o := range stores {
		res := newResource(shared, o)
		res.streams, res.urls = streams, urls
		urls[o.Store] = res.url
		res.mount(r, o)
		all = append(all, res)
	}
	if len(all) > 0 {
		mountBatch(r, shared, all)
	}
}

// mount adds the routes of a store.
func (r *resource) mount(router *kit.Router, o Options) {
	calls := r.calls
	one := r.url + "/:" + kit.UUIDParam
	for method := range methodKeys {
		path := one
		if method == http.MethodPost {
			path = r.url
		}
		router.Unexposed(method, path, r.unexposed(method))
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		router.Unexposed(method, r.url, "the list of "+r.store.Name()+" is not exposed: stores."+r.store.Name()+".expose.list is false")
	}
	if !o.Restrict.Create {
		router.Handle(http.MethodPost, r.url, calls.Limit(kit.Write, r.create))
	}
	if o.List {
		router.HandleGet(r.url, calls.Limit(kit.List, r.list))
	}
	if !o.Restrict.Get {
		router.HandleGet(one, calls.Limit(kit.Read, r.get))
	}
	if !o.Restrict.Update {
		router.Handle(http.MethodPut, one, calls.Limit(kit.Write, r.replace))
		router.Handle(http.MethodPatch, one, calls.Limit(kit.Write, r.patch))
	}
	if !o.Restrict.Delete {
		router.Handle(http.MethodDelete, one, calls.Limit(kit.Write, r.delete))
	}
}

// methodKeys are the keys of expose.restrict that leave out a method of a collection, or of an object.
var methodKeys = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update", http.MethodPatch: "update", http.MethodDelete: "delete",
}

// unexposed returns why a method is left out: the key and its value.
func (r *resource) unexposed(method string) string {
	name, key := r.store.Name(), methodKeys[method]
	return "objects of " + name + " have no " + key + " over HTTP: stores." + name + ".expose.restrict." + key + " is true"
}

// create is POST on the collection.
func (r *resource) create(x *kit.Exchange) error {
	if x.HasMedia(kit.NDJSON) {
		return r.stream(x)
	}
	q, err := newRequest(http.MethodPost, "", x.Request.Header)
	if err != nil {
		return err
	}
	if err := r.readBody(x, q, kit.JSON, kit.NDJSON); err != nil {
		return err
	}
	return r.write(x, q)
}

// readBody reads the body of a request, unless its token is refused anyway.
func (r *resource) readBody(x *kit.Exchange, q *request, types ...string) (err error) {
	if _, err = r.calls.Session(x); err != nil {
		return err
	}
	q.body, err = x.ReadObject(types...)
	return err
}

// get is GET and HEAD on an object.
func (r *resource) get(x *kit.Exchange) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	q, err := newRequest(http.MethodGet, uuid, x.Request.Header)
	if err != nil {
		return err
	}
	query, err := parameters(x.Request.URL.RawQuery, "fields", "expand")
	if err != nil {
		return err
	}
	q.view.Fields = query.Get("fields")
	if q.view.Expand, err = r.expansions(x, query.Get("expand")); err != nil {
		return err
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	if len(q.view.Expand) > 0 {
		return r.getExpanded(ctx, x, q)
	}
	o, err := r.read(ctx, q)
	if err != nil {
		return err
	}
	o.send(x)
	return nil
}

// replace is PUT on an object: each field given replaces the stored one.
func (r *resource) replace(x *kit.Exchange) error {
	return r.update(x, http.MethodPut, kit.JSON)
}

// patch is PATCH on an object: an RFC 7396 merge patch.
func (r *resource) patch(x *kit.Exchange) error {
	x.SetHeader("Accept-Patch", kit.MergePatch+", "+kit.JSON)
	return r.update(x, http.MethodPatch, kit.MergePatch, kit.JSON)
}

func (r *resource) update(x *kit.Exchange, method string, types ...string) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	q, err := newRequest(method, uuid, x.Request.Header)
	if err != nil {
		return err
	}
	if err := r.readBody(x, q, types...); err != nil {
		return err
	}
	return r.write(x, q)
}

// delete is DELETE on an object.
func (r *resource) delete(x *kit.Exchange) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	q, err := newRequest(http.MethodDelete, uuid, x.Request.Header)
	if err != nil {
		return err
	}
	return r.write(x, q)
}

// write makes a write and replies with its outcome: as it was written or, after
// waiting for the consequences, as it is then.
func (r *resource) write(x *kit.Exchange, q *request) error {
	var o outcome
	ctx, applied, err := r.calls.Write(x, func(ctx context.Context) (err error) {
		if o, err = r.execute(ctx, x, q); o.replayed {
			x.MarkReplayed()
		}
		return err
	})
	if err != nil {
		return err
	}
	if applied {
		o = r.reread(ctx, x, o)
	}
	o.send(x)
	return nil
}
