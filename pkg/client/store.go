package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/wire"
)

// Store is a store of a belfry.
type Store struct {
	client *Client
	name   string
}

// Stored is an object as the store has it.
type Stored struct {
	Object   object.Object // nil when Omitted
	Revision uint64
	Omitted  bool // the object is too large for this reply
}

// UUID is the uuid of the object.
func (s Stored) UUID() string {
	uuid, _ := s.Object.Text("uuid")
	return uuid
}

// Into decodes the object into a Go value, as encoding/json does.
func (s Stored) Into(v any) error {
	if s.Omitted {
		return errs.New(errs.TooLarge, "the object is too large for a reply over the bus")
	}
	return errs.Wrap(json.Unmarshal(s.Object.Encode(), v), errs.Invalid, "the object does not fit into %T", v)
}

// As decodes the object that a call has returned: client.As[Book](store.Get(ctx, uuid)).
func As[T any](s Stored, err error) (T, error) {
	var v T
	if err != nil {
		return v, err
	}
	return v, s.Into(&v)
}

// Save stores a new object: an object.Object, or any value that is one as JSON.
// Without a field uuid it gets a uuid.
//
// Errors: Invalid, TooLarge, Exists when the uuid is taken, Denied and others by
// an interceptor, Conflict for a key that was used for another write, and
// Unavailable when the context ends before a reply.
func (s *Store) Save(ctx context.Context, o any, opts ...Option) (Stored, error) {
	return s.write(ctx, wire.Save, o, collect(opts))
}

// Update replaces the fields given in the object that field uuid names.
//
// Errors: those of Save but for Exists; NotFound; Mismatch (see AtRevision).
func (s *Store) Update(ctx context.Context, o any, opts ...Option) (Stored, error) {
	return s.write(ctx, wire.Update, o, collect(opts))
}

func (s *Store) write(ctx context.Context, op string, o any, opts options) (Stored, error) {
	data, err := encode(o)
	if err != nil {
		return Stored{}, errs.Wrap(err, errs.Invalid, "the object can't be written as JSON")
	}
	request := wire.Request{Object: data}
	if op == wire.Update {
		request.Revision = opts.revision
	}
	return stored(s.client.call(ctx, s.name, op, request, opts))
}

// Delete removes an object. Errors: NotFound, Mismatch (see AtRevision), Denied
// and others by an interceptor, Conflict, Unavailable.
func (s *Store) Delete(ctx context.Context, uuid string, opts ...Option) error {
	o := collect(opts)
	_, err := s.client.call(ctx, s.name, wire.Delete, wire.Request{UUID: uuid, Revision: o.revision}, o)
	return err
}

// Exists reports whether there is an object with this uuid.
func (s *Store) Exists(ctx context.Context, uuid string, opts ...Option) (bool, error) {
	r, err := s.client.call(ctx, s.name, wire.Exists, wire.Request{UUID: uuid}, collect(opts))
	return err == nil && r.Exists != nil && *r.Exists, err
}

// Get returns an object. Errors: NotFound, TooLarge for one that the bus can't
// carry, those of an interceptor, Unavailable.
func (s *Store) Get(ctx context.Context, uuid string, opts ...Option) (Stored, error) {
	o := collect(opts)
	return stored(s.client.call(ctx, s.name, wire.Get, wire.Request{UUID: uuid, Fields: o.fields}, o))
}

func stored(r *wire.Reply, err error) (Stored, error) {
	if err != nil {
		return Stored{}, err
	}
	s := Stored{Revision: r.Revision, Omitted: r.ObjectOmitted}
	if !s.Omitted {
		s.Object, err = object.Decode(r.Object)
	}
	return s, err
}

// Query selects objects; see docs/reference/lists.md for filters and orders.
type Query struct {
	Words  string // in the text of the objects: q over HTTP
	Filter string
	Sort   string
	Fields string // of the objects, as "title,address.city"; "": all
	Page   int    // page size of the requests; 0: the server's default
}

// List returns the objects that a query selects, page by page as they are
// taken. An error ends it.
func (s *Store) List(ctx context.Context, q Query, opts ...Option) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		at := PageOf{}
		for {
			page, err := s.Page(ctx, q, at, opts...)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, one := range page.Objects {
				if !yield(one, nil) {
					return
				}
			}
			if page.Cursor == "" {
				return
			}
			at.Cursor = page.Cursor
		}
	}
}

// maxConcurrentGets is how many objects Expand gets at once.
const maxConcurrentGets = 16

// Expand gets the objects of this store that a field of others names, a uuid or an array of them, each once, and
// returns them by uuid. Those that do not exist, or that an interceptor refuses, are absent. It is for what expand does
// over HTTP: over the bus the permission to read this store is its own. Errors: those of Get.
func (s *Store) Expand(ctx context.Context, field string, objects []object.Object,
	opts ...Option) (map[string]Stored, error) {
	found := map[string]Stored{}
	var mu sync.Mutex
	asked := map[string]bool{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentGets)
	get := func(uuid string) {
		if asked[uuid] || !object.ValidUUID(uuid) {
			return
		}
		asked[uuid] = true
		group.Go(func() error {
			o, err := s.Get(ctx, uuid, opts...)
			if errors.Is(err, errs.NotFound) || errors.Is(err, errs.Denied) {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			found[uuid] = o
			return err
		})
	}
	for _, o := range objects {
		if uuid, ok := o.Text(field); ok {
			get(uuid)
		}
		object.Elements(o[field], func(element []byte) bool {
			if uuid, ok := object.Text(element); ok {
				get(uuid)
			}
			return true
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// PageOf says which page of a list is asked for, and what with it. The zero PageOf is the first.
type PageOf struct {
	Cursor  string // that of the page before
	Before  string // that of the page after, instead
	Count   string // "exact" or "estimate": the objects that match are counted
	Explain bool   // the page has a Plan
}

// Page is a page of a list.
type Page struct {
	Objects []object.Object
	Cursor  string          // of the next page; "" for none
	Before  string          // of the page before; "" for none
	Count   *Count          // nil: it was not asked for
	Plan    json.RawMessage // as docs/lists.md describes it; nil: it was not asked for
}

// Count is how many objects match.
type Count = wire.Count

// Page returns one page of the objects that a query selects.
func (s *Store) Page(ctx context.Context, q Query, at PageOf, opts ...Option) (Page, error) {
	r, err := s.client.call(ctx, s.name, wire.List, wire.Request{
		Words: q.Words, Filter: q.Filter, Sort: q.Sort, Limit: q.Page, Fields: q.Fields, Cursor: at.Cursor,
		Before: at.Before, Count: at.Count, Explain: at.Explain,
	}, collect(opts))
	if err != nil {
		return Page{}, err
	}
	page := Page{Cursor: r.Cursor, Before: r.Before, Count: r.Count, Plan: r.Plan}
	for _, data := range r.Objects {
		one, err := object.Decode(data)
		if err != nil {
			return Page{}, err
		}
		page.Objects = append(page.Objects, one)
	}
	return page, nil
}
