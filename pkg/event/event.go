// Package event defines the events that belfry publishes: one envelope for all
// of them, and their subjects.
package event

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"

	"belfry/pkg/object"
)

// Name is the name of an event.
type Name string

// The events of a store. Those in the past tense are durable: once a write is
// acknowledged, its event is delivered at least once to every durable
// listener. The others are published before the operation.
const (
	StoreSave    Name = "Store.Save"
	StoreSaved   Name = "Store.Saved"
	StoreUpdate  Name = "Store.Update"
	StoreUpdated Name = "Store.Updated"
	StoreDelete  Name = "Store.Delete"
	StoreDeleted Name = "Store.Deleted"
	StoreGet     Name = "Store.Get"
)

// Durable events that describe the purpose of a write to an object. They are
// pending in the object's record beside the event of the store.
const (
	Register       Name = "Register"
	BinaryUploaded Name = "Binary.Uploaded"
	BinaryDeleted  Name = "Binary.Deleted"
)

// Durable events about the security of a user's account. The record of the write that caused an
// event holds it while it is pending; its object is the user. They need a permission of their
// own: a selection includes them only by name.
const (
	AuthLoggedIn        Name = "Auth.LoggedIn"        // a session began
	AuthLoginFailed     Name = "Auth.LoginFailed"     // a wrong password, code or signature for an account that exists
	AuthLoggedOut       Name = "Auth.LoggedOut"       // a session ended before its time
	AuthSessionsEnded   Name = "Auth.SessionsEnded"   // all sessions of the user ended
	AuthSteppedUp       Name = "Auth.SteppedUp"       // a session was authenticated again
	AuthPasswordSet     Name = "Auth.PasswordSet"     // by the user, by a recovery or by an admin
	AuthFactorAdded     Name = "Auth.FactorAdded"     // a second factor, or a passkey
	AuthFactorRemoved   Name = "Auth.FactorRemoved"   // one of them, or all by an admin
	AuthRecoveryCodes   Name = "Auth.RecoveryCodes"   // new recovery codes were issued
	AuthLoginLinked     Name = "Auth.LoginLinked"     // an ident was added to the account
	AuthLoginUnlinked   Name = "Auth.LoginUnlinked"   // an ident was removed from it
	AuthAddressChanged  Name = "Auth.AddressChanged"  // an address was replaced, or the replacement was undone
	AuthKeyCreated      Name = "Auth.KeyCreated"      // an API key
	AuthKeyRevoked      Name = "Auth.KeyRevoked"      // an API key
	AuthExported        Name = "Auth.Exported"        // the user downloaded their data
	AuthDeletionPlanned Name = "Auth.DeletionPlanned" // the user asked for the deletion of the account
	AuthDeletionUndone  Name = "Auth.DeletionUndone"  // and took that back
	AuthCloneSuspected  Name = "Auth.CloneSuspected"  // the signature counter of a passkey went back
	AuthImpersonated    Name = "Auth.Impersonated"    // an admin began to see what the user may read
)

// ConfigChanged is the durable event of a change of the configuration that an admin has made in the console. Its object
// is the admin, and Envelope.Changed has the keys. A selection includes it only by name.
const ConfigChanged Name = "Config.Changed"

// Auth returns the names of the events about the security of accounts.
func Auth() []Name {
	return []Name{
		AuthLoggedIn, AuthLoginFailed, AuthLoggedOut, AuthSessionsEnded, AuthSteppedUp, AuthPasswordSet,
		AuthFactorAdded, AuthFactorRemoved, AuthRecoveryCodes,
		AuthLoginLinked, AuthLoginUnlinked, AuthAddressChanged, AuthKeyCreated, AuthKeyRevoked, AuthExported,
		AuthDeletionPlanned, AuthDeletionUndone, AuthCloneSuspected, AuthImpersonated,
	}
}

// Durable returns the names of all durable events: those of the log.
func Durable() []Name {
	return append([]Name{StoreSaved, StoreUpdated, StoreDeleted, Register, BinaryUploaded, BinaryDeleted,
		ConfigChanged}, Auth()...)
}

// Origins: the interface or component that made a write.
const (
	OriginHTTP    = "http"
	OriginGo      = "go"
	OriginBus     = "bus"
	OriginMapping = "mapping"
	OriginCompute = "compute" // computed fields whose expressions have changed
	OriginCopy    = "copy"    // copies of referenced objects
	OriginCascade = "cascade"
	OriginSweep   = "sweep"
	OriginAuth    = "auth"
	OriginMail    = "mail"
	OriginCommand = "command"

	OriginAggregate = "aggregate" // counts, sums, least and greatest values of objects
)

// ByWorker reports whether an origin is a worker that derives properties of an object from other objects. Such a write
// causes further derived properties only where the configuration says that they depend on it.
func ByWorker(origin string) bool {
	return origin == OriginMapping || origin == OriginAggregate || origin == OriginCopy
}

// MaxSize is the maximum size of an encoded event in bytes.
const MaxSize = 256 << 10

// Ctx is the context of the request that caused an event.
type Ctx struct {
	Request   string `json:"request,omitempty"`   // request id
	Address   string `json:"address,omitempty"`   // the client's network address
	UserAgent string `json:"userAgent,omitempty"` // as the client sent it
	Trace     string `json:"trace,omitempty"`     // W3C traceparent

	// Wait is the subject on which workers report that they have applied the
	// event, so that a request can wait for the work that its write caused.
	Wait string `json:"wait,omitempty"`

	// Rest is what is left of a worker's work on the event, in the copy of the event that the worker has handed over to
	// itself.
	Rest string `json:"rest,omitempty"`
}

// Envelope is the form of every event.
type Envelope struct {
	ID    string `json:"id"`    // unique; equal for repeated deliveries of one event
	Event Name   `json:"event"` // for instance Store.Saved
	Time  string `json:"time"`  // RFC 3339, UTC, microseconds
	Store string `json:"store"` // the store's name
	UUID  string `json:"uuid"`  // of the object
	// after the operation; a string because a float can't represent it exactly
	Revision uint64  `json:"revision,string"`
	Actor    *string `json:"actor"`  // uuid of the acting user, or null
	Origin   string  `json:"origin"` // http, go, mapping, cascade, ...

	// Object is the object after the operation; for a deletion, its last state.
	// Nil and ObjectOmitted set when the event would exceed MaxSize.
	Object        json.RawMessage `json:"object,omitempty"`
	ObjectOmitted bool            `json:"objectOmitted,omitempty"`

	// Previous holds the previous values of the top-level fields that changed;
	// a field that was absent before has no entry. When a deletion's object is
	// omitted it holds the fields that the mappings of its store need.
	Previous        object.Object `json:"previous,omitempty"`
	PreviousOmitted bool          `json:"previousOmitted,omitempty"` // fields too large were left out

	// Arrays says which entries of a large array a worker has changed, by the name of the array: in place of Object
	// and of the array in Previous.
	Arrays map[string]Entries `json:"arrays,omitempty"`

	// Changed are the names of the fields that an update changed, of those on which copies of references depend. Of
	// Config.Changed, they are the keys.
	Changed []string `json:"changed,omitempty"`
	// Added are the names of the top-level fields of an updated Object that were absent before. With Previous
	// they tell the object as it was. Nil if Object is.
	Added []string `json:"added,omitempty"`

	// Binaries maps the properties of the object that hold records of binaries
	// to their service: {"photos":"files"}.
	Binaries json.RawMessage `json:"binaries,omitempty"`

	// User and Datas belong to Register: the user as it was created, and the form
	// or the provider's profile that it was created from.
	User  json.RawMessage `json:"user,omitempty"`
	Datas json.RawMessage `json:"datas,omitempty"`

	// Property, Index and Record belong to Binary.Uploaded and Binary.Deleted: the
	// location of the binary, and its record. When an upload replaced a record,
	// Previous holds that one as record.
	Property string          `json:"property,omitempty"`
	Index    *int            `json:"index,omitempty"`
	Record   json.RawMessage `json:"record,omitempty"`

	// Auth belongs to the events Auth.*: see AuthDetails.
	Auth json.RawMessage `json:"auth,omitempty"`

	Ctx Ctx `json:"ctx"`
}

// Entries are changed entries of an array.
type Entries struct {
	Set     []json.RawMessage `json:"set,omitempty"`     // entries that are new or have other values
	Removed []string          `json:"removed,omitempty"` // uuids of entries that are no more
}

// Size is about how many bytes the entries have in an event.
func (e Entries) Size() (size int) {
	for _, entry := range e.Set {
		size += len(entry) + 1
	}
	for _, uuid := range e.Removed {
		size += len(uuid) + 3
	}
	return size
}

// AuthDetails are the details of an event Auth.* besides its user and its context. They have no secrets.
type AuthDetails struct {
	// how: password, passkey, totp, recovery, email, link, or the name of a provider
	Method string `json:"method,omitempty"`
	// the type of the factor, or the uuid of the ident or the id of the key, that the event is about
	Factor  string `json:"factor,omitempty"`
	Session string `json:"session,omitempty"` // id
	AAL     int    `json:"aal,omitempty"`     // of the session: 1, or 2 with a second factor
	Reason  string `json:"reason,omitempty"`  // a word, for instance why a login failed
	Due     string `json:"due,omitempty"`     // the time of the planned act
}

// Partitions is the number of partitions in the subjects of the log. An ordered
// listener handles one event of a partition at a time.
const Partitions = 32

// Partition is the partition of an object's events.
func Partition(uuid string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uuid))
	return int(h.Sum32() % Partitions)
}

// LogPrefix is the prefix of the subject of every durable event.
const LogPrefix = "events."

// Subject is the subject of an event in the log:
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

// FromToken reverses Token.
func FromToken(token string) string { return strings.ReplaceAll(token, "%2E", ".") }

// TraceParent returns a W3C trace context, "" when it is not well-formed:
// version, trace, parent and flags in lower-case hexadecimal.
func TraceParent(s string) string {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return ""
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:]
	for _, part := range [...]string{version, trace, parent, flags} {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return ""
		}
	}
	if version == "ff" || strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return ""
	}
	return s
}
