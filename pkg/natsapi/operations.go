package natsapi

import (
	"context"
	"fmt"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/errs"
	"belfry/pkg/op"
	"belfry/pkg/store"
	"belfry/pkg/wire"
)

// Operations adds the requests to the stores of a contract that are on the bus. For documents alone there are no
// stores.
func Operations(set *op.Set, stores map[string]*store.Store) {
	for _, s := range set.Contract.Stores {
		if s.Bus {
			addStore(set, s, operations{stores[s.Name]})
		}
	}
}

// addStore adds the requests to a store.
func addStore(set *op.Set, s *apimodel.Store, run operations) {
	uuid := apimodel.UUID("The object's uuid.")
	at := ordered.Of("description",
		"Act only while the object is at this revision; else 412. A number as in replies, or its digits as in events.",
		"oneOf", []any{
			ordered.Of("type", "integer", "minimum", 1), ordered.Of("type", "string", "pattern", "^[1-9][0-9]{0,19}$"),
		})
	stored := func(schema *ordered.Object) *ordered.Object {
		return op.Payload("The object as it is now.", 1,
			"revision", ordered.Of("type", "integer", "minimum", 1, "description", "The object's revision."),
			"object", schema,
			"objectOmitted",
			ordered.Of("type", "boolean", "const", true, "description", "The object was too large for a message."))
	}
	written := stored(s.Written(len(s.Interceptors["get"]) > 0)) // the policy does not apply on the bus
	gone := ordered.Of("type", "object", "description", "It was deleted.", "additionalProperties", false)
	unique := strings.TrimSpace(s.Uniqueness())
	add := func(r op.Request, required int, properties ...any) {
		r.Store, r.Payload = s, op.Payload("", required, properties...)
		r.Payload.Set("additionalProperties", false)
		set.AddRequest(r)
	}
	add(op.Request{Op: wire.Save, Write: true, Summary: "Create an object.", Description: unique, Reply: written,
		Run: run.save}, 1,
		"object", apimodel.Ref(s.InputName()), "uuid",
		apimodel.UUID("The new object's uuid; without it that in the object, or one that is made."))
	add(op.Request{Op: wire.Update, Write: true, Summary: "Replace fields of an object.", Description: unique,
		Reply: written, Run: run.update}, 1,
		"object", apimodel.Ref(s.UpdateName()), "uuid", apimodel.UUID("The object's uuid, unless it is in the object."),
		"revision", at)
	add(op.Request{Op: wire.Delete, Write: true, Summary: "Delete an object.", Reply: gone, Run: run.delete}, 1, "uuid",
		uuid, "revision", at)
	add(op.Request{Op: wire.Exists, Summary: "Ask whether there is an object.",
		Reply: op.Payload("", 1, "exists", ordered.Of("type", "boolean")), Run: run.exists}, 1, "uuid", uuid)
	add(op.Request{Op: wire.Get, Summary: "Read an object.", Reply: stored(apimodel.Ref(s.ObjectName())), Run: run.get},
		1, "uuid", uuid, "fields", op.Text(fieldsText))
	add(op.Request{Op: wire.List, Summary: "List objects.",
		Reply: op.Payload("A page.", 1, "objects", ordered.Of("type", "array", "items", apimodel.Ref(s.ObjectName())),
			"cursor", op.Text("Where the next page starts; absent on the last page."),
			"before", op.Text("Where the page before ends; absent on the first page."),
			"count", apimodel.Count(), "plan", apimodel.Ref("ListPlan"), "warning", apimodel.Warning())}, 0,
		"q", op.Text("The words to find, as over HTTP."), "filter", op.Text("As over HTTP."), "sort",
		op.Text("As over HTTP."),
		"limit", ordered.Of("type", "integer", "minimum", 1, "maximum", 500, "description",
			"Objects a page; 50 without it."),
		"cursor", op.Text("Where to continue: that of the previous page."), "fields", op.Text(fieldsText),
		"before", op.Text("Go back: that of the page that follows, instead of cursor."),
		"count", ordered.Of("type", "string", "enum", []any{"exact", "estimate"}, "description",
			"Count the objects that match."),
		"explain", ordered.Of("type", "boolean", "description", "Return how the page was read."))
}

// fieldsText describes a projection.
const fieldsText = "The fields to return, as title,address.city; without it all. The uuid is always there, and what " +
	"is left out is absent, also where the schema requires it."

// operations run the requests to a store, but lists: see service.list.
type operations struct{ store *store.Store }

func (s operations) save(ctx context.Context, in *op.Asked) ([]byte, error) {
	o, err := s.store.Save(ctx, in.Object, in.UUID)
	return encodeObject(o, in.Limit), underObject(err)
}

func (s operations) update(ctx context.Context, in *op.Asked) ([]byte, error) {
	o, err := s.store.Update(ctx, in.Object, store.UpdateOptions{UUID: in.UUID, If: in.Revision})
	return encodeObject(o, in.Limit), underObject(err)
}

func (s operations) delete(ctx context.Context, in *op.Asked) ([]byte, error) {
	return []byte("{}"), s.store.Delete(ctx, in.UUID, in.Revision)
}

func (s operations) exists(ctx context.Context, in *op.Asked) ([]byte, error) {
	exists, err := s.store.Exists(ctx, in.UUID)
	return fmt.Appendf(nil, `{"exists":%t}`, exists), err
}

func (s operations) get(ctx context.Context, in *op.Asked) ([]byte, error) {
	o, err := s.store.GetView(ctx, in.UUID, store.View{Fields: in.Fields})
	if err == nil && len(o.Body) > in.Limit {
		err = errs.New(errs.TooLarge, "the object has %d bytes; the bus carries at most %d: read it over HTTP",
			len(o.Body), in.Limit)
	}
	return encodeObject(o, in.Limit), err
}
