// Package wire defines the messages of store operations over the bus, for the server
// (natsapi) and the client (client): subjects, headers, bodies.
package wire

import (
	"encoding/json"

	"belfry/pkg/errs"
)

// The operations, as the last token of a subject.
const (
	Save   = "save"
	Update = "update"
	Delete = "delete"
	Exists = "exists"
	Get    = "get"
	List   = "list"
)

// IsWrite reports whether an operation writes.
func IsWrite(op string) bool { return op == Save || op == Update || op == Delete }

// Subject is the subject for requests of an operation of a store.
func Subject(store, op string) string { return "store." + store + "." + op }

// Headers of a request. Their names are case-insensitive.
const (
	HeaderKey   = "Idempotency-Key"
	HeaderActor = "Belfry-Actor"
	HeaderTrace = "Traceparent"
	HeaderID    = "X-Request-Id"
)

// HeaderRetryAfter is how many seconds to wait before retrying; in a problem.
const HeaderRetryAfter = "Retry-After"

// MaxKey is the longest idempotency key in bytes.
const MaxKey = 200

// ValidateKey returns an error unless a key is 1 to MaxKey printable ASCII
// characters.
func ValidateKey(key string) error {
	ok := key != "" && len(key) <= MaxKey
	for i := 0; ok && i < len(key); i++ {
		ok = key[i] >= ' ' && key[i] <= '~'
	}
	if !ok {
		return errs.New(errs.Invalid, "%s must be 1 to %d printable ASCII characters", HeaderKey, MaxKey)
	}
	return nil
}

// Request is the body of a request. Each operation accepts some of its fields.
type Request struct {
	Object   json.RawMessage `json:"object,omitempty"`   // save, update
	UUID     string          `json:"uuid,omitempty"`     // all but list; save and update also accept it in the object
	Revision uint64          `json:"revision,omitempty"` // update, delete: the precondition
	Words    string          `json:"q,omitempty"`        // this and those that follow: list
	Filter   string          `json:"filter,omitempty"`
	Sort     string          `json:"sort,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	Cursor   string          `json:"cursor,omitempty"`
	Before   string          `json:"before,omitempty"`
	Count    string          `json:"count,omitempty"` // exact or estimate
	Explain  bool            `json:"explain,omitempty"`
	Fields   string          `json:"fields,omitempty"` // get, list
}

// Reply is the body of a successful reply.
type Reply struct {
	Object json.RawMessage `json:"object,omitempty"`
	// too large for a message: get it, or read it over HTTP
	ObjectOmitted bool              `json:"objectOmitted,omitempty"`
	Revision      uint64            `json:"revision,omitempty"`
	Exists        *bool             `json:"exists,omitempty"`
	Objects       []json.RawMessage `json:"objects,omitempty"`
	Cursor        string            `json:"cursor,omitempty"` // of the next page; "" at the end
	Before        string            `json:"before,omitempty"` // of the page before; "" on the first
	Count         *Count            `json:"count,omitempty"`
	Plan          json.RawMessage   `json:"plan,omitempty"`
}

// Count is how many objects match a list.
type Count struct {
	Value    int64  `json:"value"`
	Accuracy string `json:"accuracy"` // exact, atLeast or estimate
}

// Problem is the body of an error reply, in the form of RFC 9457. The headers of the
// micro protocol have its status and detail too.
type Problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []errs.Field `json:"errors,omitempty"`

	// Of a write that expected the object at another revision: where it is, and whether nobody but belfry's workers has
	// written it since.
	Revision    uint64 `json:"currentRevision,omitempty"`
	OnlyWorkers *bool  `json:"onlyWorkers,omitempty"`
}
