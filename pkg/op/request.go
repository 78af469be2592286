package op

import (
	"context"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/object"
	"belfry/pkg/wire"
)

// Request is an operation on a store that programs request over the bus, at the subject store.<Store>.<Op>.
type Request struct {
	Store   *apimodel.Store
	Op      string // wire.Save, the last token of the subject
	Write   bool   // it may have an idempotency key
	Summary string

	Description string
	Payload     *ordered.Object // the schema of its body, which has no other fields
	Reply       *ordered.Object // the schema of the reply's body

	Run func(ctx context.Context, in *Asked) ([]byte, error)
}

// Asked is the validated body of a request: all its fields are known, and the required ones are present.
type Asked struct {
	wire.Request               // the fields that operations of every store have
	Object       object.Object // of wire.Request.Object
	Body         object.Object // all fields
	Limit        int           // the largest body of the reply
}

// AddRequest adds an operation over the bus.
func (s *Set) AddRequest(r Request) { s.requests = append(s.requests, r) }

// Requests returns the operations over the bus on a store, in the order of the document.
func (s *Set) Requests(store string) (all []Request) {
	for _, r := range s.requests {
		if r.Store.Name == store {
			all = append(all, r)
		}
	}
	return all
}

// Fields returns the fields of the body, and the required ones.
func (r *Request) Fields() (all, required []string) {
	for _, m := range r.Payload.Object("properties").Members() {
		all = append(all, m.Name)
	}
	required, _ = r.Payload.Get("required").([]string)
	return all, required
}
