package client

import (
	"context"
	"encoding/json"
	"iter"

	"belfry/pkg/errs"
	"belfry/pkg/natsapi/wire"
	"belfry/pkg/store/object"
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
	return stored(s.client.call(ctx, s.name, wire.Get, wire.Request{UUID: uuid}, collect(opts)))
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

// Query selects objects; see docs/http.md for filters and orders.
type Query struct {
	Filter string
	Sort   string
	Page   int // page size of the requests; 0: the server's default
}

// List returns the objects that a query selects, page by page as they are
// taken. An error ends it.
func (s *Store) List(ctx context.Context, q Query, opts ...Option) iter.Seq2[object.Object, error] {
	return func(yield func(object.Object, error) bool) {
		o := collect(opts)
		request := wire.Request{Filter: q.Filter, Sort: q.Sort, Limit: q.Page}
		for {
			r, err := s.client.call(ctx, s.name, wire.List, request, o)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, data := range r.Objects {
				one, err := object.Decode(data)
				if !yield(one, err) || err != nil {
					return
				}
			}
			if r.Cursor == "" {
				return
			}
			request.Cursor = r.Cursor
		}
	}
}
