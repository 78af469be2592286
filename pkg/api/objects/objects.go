// Package objects serves stores as REST resources.
//
// # The path of a create
//
//	POST /books
//	  httpkit.Router        filters: CORS, cross-site request forgery
//	  httpkit.Calls.Limit   limits of the address and of the user
//	  resource.create   preconditions and the object of the body
//	  httpkit.Calls.Write   authenticates the client; honors Prefer: wait
//	  resource.execute  once for an Idempotency-Key
//	  store.Store.Save  policy, schema, limits; writes the record with its event
//	  outcome           201 with Location, ETag and the object
package objects

import (
	"context"
	"net/http"

	"belfry/config"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
)

// Shared has the dependencies of all resources.
type Shared struct {
	Calls *httpkit.Calls
	Pages *pagememory.Budget   // the memory of all lists and batches
	Keyed *idempotent.Executor // nil: requests have no Idempotency-Key
}

// resource is a store exposed at a path.
type resource struct {
	store    *store.Store
	calls    *httpkit.Calls
	pages    *pagememory.Budget // of lists
	keyed    *idempotent.Executor
	streams  *streams
	sizes    pagememory.Sizes
	expanded pagememory.Sizes // of gets with expansions
	url      string
	restrict config.Restrict // operations that have no route
	expand   map[string]*store.Store
	urls     map[*store.Store]string // of all stores
}

// Resources are the stores of a contract that are exposed.
type Resources struct {
	Shared
	all    []*resource
	byName map[string]*resource
}

// NewResources returns the handlers of the stores that a contract exposes.
func NewResources(shared Shared, k *apimodel.Contract, stores map[string]*store.Store) *Resources {
	all := &Resources{Shared: shared, byName: map[string]*resource{}}
	streams, urls := newStreams(), map[*store.Store]string{}
	for _, s := range k.Stores {
		if s.Expose == nil {
			continue
		}
		r := &resource{
			store: stores[s.Name], calls: shared.Calls, pages: shared.Pages, keyed: shared.Keyed, streams: streams,
			url: s.Expose.URL, restrict: s.Expose.Restrict, expand: map[string]*store.Store{}, urls: urls,
		}
		for _, key := range s.Expand {
			r.expand[key.Name] = stores[key.Target]
		}
		urls[r.store], all.byName[s.Name], all.all = r.url, r, append(all.all, r)
	}
	return all
}

// of returns a store; nil if only a document is written, without stores.
func (all *Resources) of(name string) *resource {
	if all == nil {
		return nil
	}
	return all.byName[name]
}

// methodKeys are the keys of expose.restrict that leave out a method of a collection, or of an object.
var methodKeys = map[string]string{
	http.MethodPost: "create", http.MethodGet: "get", http.MethodHead: "get", http.MethodPut: "update",
	http.MethodPatch: "update", http.MethodDelete: "delete",
}

// unexposed returns the key, and its value, because of which a store lacks the route of a method.
func unexposed(name, method string) string {
	key := methodKeys[method]
	return "objects of " + name + " have no " + key + " over HTTP: stores." + name + ".expose.restrict." + key +
		" is true"
}

// create is POST on the collection.
func (r *resource) create(x *httpkit.Exchange) error {
	if x.HasMedia(httpkit.NDJSON) {
		return r.stream(x)
	}
	q, err := newRequest(http.MethodPost, "", x.Request.Header)
	if err != nil {
		return err
	}
	if err := r.readBody(x, q, httpkit.JSON, httpkit.NDJSON); err != nil {
		return err
	}
	return r.write(x, q)
}

// readBody reads the body of a request, unless its token is refused anyway.
func (r *resource) readBody(x *httpkit.Exchange, q *request, types ...string) (err error) {
	if _, err = r.calls.Session(x); err != nil {
		return err
	}
	q.body, err = x.ReadObject(types...)
	return err
}

// get is GET and HEAD on an object.
func (r *resource) get(x *httpkit.Exchange) error {
	uuid, err := x.UUID()
	if err != nil {
		return err
	}
	q := request{method: http.MethodGet, uuid: uuid} // on the stack
	if err := q.readHeaders(x.Request.Header); err != nil {
		return err
	}
	if x.Request.URL.RawQuery != "" {
		query, err := parameters(x.Request.URL.RawQuery, "fields", "expand")
		if err != nil {
			return err
		}
		q.view.Fields = query.Get("fields")
		if q.view.Expand, err = r.expansions(x, query.Get("expand")); err != nil {
			return err
		}
	}
	ctx, err := r.calls.Client(x)
	if err != nil {
		return err
	}
	if len(q.view.Expand) > 0 {
		return r.getExpanded(ctx, x, &q)
	}
	o, err := r.read(ctx, &q)
	if err != nil {
		return err
	}
	o.send(x)
	return nil
}

// replace is PUT on an object: each given field replaces the stored one.
func (r *resource) replace(x *httpkit.Exchange) error {
	return r.update(x, http.MethodPut, httpkit.JSON)
}

// patch is PATCH on an object: an RFC 7396 merge patch.
func (r *resource) patch(x *httpkit.Exchange) error {
	x.SetHeader("Accept-Patch", httpkit.MergePatch+", "+httpkit.JSON)
	return r.update(x, http.MethodPatch, httpkit.MergePatch, httpkit.JSON)
}

func (r *resource) update(x *httpkit.Exchange, method string, types ...string) error {
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
func (r *resource) delete(x *httpkit.Exchange) error {
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

// write makes a write and replies with its outcome: the object as it was written or, after waiting for the
// consequences, as it is then.
func (r *resource) write(x *httpkit.Exchange, q *request) error {
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
