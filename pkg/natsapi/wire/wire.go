// Package wire is the form of store operations over the bus, for those who
// answer them (busapi) and those who ask (client): subjects, headers, bodies.
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

// Ops are all operations.
func Ops() []string { return []string{Save, Update, Delete, Exists, Get, List} }

// Writes reports whether an operation changes something.
func IsWrite(op string) bool { return op == Save || op == Update || op == Delete }

// Subject is where an operation of a store is asked for.
func Subject(store, op string) string { return "store." + store + "." + op }

// Headers of a request. Their case is of no account.
const (
	HeaderKey   = "Idempotency-Key"
	HeaderActor = "Belfry-Actor"
	HeaderTrace = "Traceparent"
	HeaderID    = "X-Request-Id"
)

// HeaderRetry is how many seconds to wait before asking again; of a fault.
const HeaderRetryAfter = "Retry-After"

// MaxKey is the longest idempotency key in bytes.
const MaxKey = 200

// CheckKey reports a key that is not 1 to MaxKey printable ASCII characters.
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

// Request is the body of a request. Each operation takes some of its fields.
type Request struct {
	Object   json.RawMessage `json:"object,omitempty"`   // save, update
	UUID     string          `json:"uuid,omitempty"`     // all but list; save and update find it in the object as well
	Revision uint64          `json:"revision,omitempty"` // update, delete: only while the object is at it
	Filter   string          `json:"filter,omitempty"`   // these four: list
	Sort     string          `json:"sort,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	Cursor   string          `json:"cursor,omitempty"`
}

// Reply is the body of a reply that is no fault.
type Reply struct {
	Object        json.RawMessage   `json:"object,omitempty"`
	ObjectOmitted bool              `json:"objectOmitted,omitempty"` // it was too large; get it, or read it over HTTP
	Revision      uint64            `json:"revision,omitempty"`
	Exists        *bool             `json:"exists,omitempty"`
	Objects       []json.RawMessage `json:"objects,omitempty"`
	Cursor        string            `json:"cursor,omitempty"` // of the next page; "" at the end
}

// Fault is the body of a fault, in the form of RFC 9457. The headers of the
// micro protocol say its status and detail as well.
type Problem struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []errs.Field `json:"errors,omitempty"`
}
