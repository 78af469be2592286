// Package event defines what belfry tells the world: one envelope for every
// event, and the subjects on which it travels.
package event

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"belfry/pkg/store/object"
)

// Name is the name of an event.
type Name string

// The events of a store. Those in the past tense are durable: once a write is
// acknowledged, its event is delivered at least once to every durable
// listener. The others are announcements before the act.
const (
	StoreSave    Name = "Store.Save"
	StoreSaved   Name = "Store.Saved"
	StoreUpdate  Name = "Store.Update"
	StoreUpdated Name = "Store.Updated"
	StoreDelete  Name = "Store.Delete"
	StoreDeleted Name = "Store.Deleted"
	StoreGet     Name = "Store.Get"
)

// Durable events that tell what a write to an object meant. They wait in the
// object's record beside the event of the store.
const (
	Register       Name = "Register"
	BinaryUploaded Name = "Binary.Uploaded"
	BinaryDeleted  Name = "Binary.Deleted"
)

// Durable are the names of all durable events: those of the log.
var Durable = []Name{StoreSaved, StoreUpdated, StoreDeleted, Register, BinaryUploaded, BinaryDeleted}

// Origins: by which way a write came in.
const (
	OriginHTTP    = "http"
	OriginGo      = "go"
	OriginBus     = "bus"
	OriginMapping = "mapping"
	OriginCascade = "cascade"
	OriginSweep   = "sweep"
	OriginAuth    = "auth"
	OriginMail    = "mail"
)

// MaxSize is the most bytes one encoded event has.
const MaxSize = 256 << 10

// Ctx is the context of the request that caused an event.
type Ctx struct {
	Request   string `json:"request,omitempty"`   // request id
	Address   string `json:"address,omitempty"`   // the client's network address
	UserAgent string `json:"userAgent,omitempty"` // as the client gave it
	Trace     string `json:"trace,omitempty"`     // W3C traceparent

	// Wait is the subject that hears when a worker has applied the event: how
	// a request waits for the work that its write caused.
	Wait string `json:"wait,omitempty"`
}

// Envelope is the form of every event.
type Envelope struct {
	ID       string  `json:"id"`              // unique; equal for repeated deliveries of one event
	Event    Name    `json:"event"`           // for instance Store.Saved
	Time     string  `json:"time"`            // RFC 3339, UTC, microseconds
	Store    string  `json:"store"`           // the store's name
	UUID     string  `json:"uuid"`            // of the object
	Revision uint64  `json:"revision,string"` // after the act; a string because it is beyond what a float holds exactly
	Actor    *string `json:"actor"`           // uuid of the user who acted, or null
	Origin   string  `json:"origin"`          // http, go, mapping, cascade, ...

	// Object is the object after the act; for a deletion its last state.
	// Nil and ObjectOmitted set when the event would exceed MaxSize.
	Object        json.RawMessage `json:"object,omitempty"`
	ObjectOmitted bool            `json:"objectOmitted,omitempty"`

	// Previous holds the former values of the top-level fields that changed;
	// a field that was absent before has no entry. When a deletion's object is
	// omitted it holds what the mappings of its store need.
	Previous        object.Object `json:"previous,omitempty"`
	PreviousOmitted bool          `json:"previousOmitted,omitempty"` // fields too large were left out

	// Binaries says which properties of the object hold records of binaries,
	// and of which service: {"photos":"files"}.
	Binaries json.RawMessage `json:"binaries,omitempty"`

	// User and Datas are what Register tells: the user as it was made, and
	// the form or the provider's profile that it was made from.
	User  json.RawMessage `json:"user,omitempty"`
	Datas json.RawMessage `json:"datas,omitempty"`

	// Property, Index and Record are what Binary.Uploaded and Binary.Deleted
	// tell: where the binary is, or was, and its record. When an upload replaced
	// a record, Previous holds that one as record.
	Property string          `json:"property,omitempty"`
	Index    *int            `json:"index,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"`

	Ctx Ctx `json:"ctx"`
}

// Partitions is how many partitions the log's subjects carry. A listener that
// needs order takes one event of a partition at a time.
const Partitions = 32

// Partition is the partition of an object's events.
func Partition(uuid string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uuid))
	return int(h.Sum32() % Partitions)
}

// LogPrefix begins the subject of every durable event.
const LogPrefix = "events."

// Subject is where the durable log keeps an event:
// events.<partition>.<Event>.<Store>.<uuid>, for instance
// events.7.Store.Saved.Users.0199f3. See Token for the uuid.
func Subject(name Name, store, uuid string) string {
	return LogPrefix + strconv.Itoa(Partition(uuid)) + "." + string(name) + "." + store + "." + Token(uuid)
}

// Filter is the subject that selects the durable events of a name and a store;
// "*" selects every store.
func Filter(name Name, store string) string {
	return LogPrefix + "*." + string(name) + "." + store + ".*"
}

// Token writes a uuid as one token of a subject: a dot, which would divide it,
// becomes %2E. No other character of a uuid needs it.
func Token(uuid string) string { return strings.ReplaceAll(uuid, ".", "%2E") }

// FromToken undoes Token.
func FromToken(token string) string { return strings.ReplaceAll(token, "%2E", ".") }
