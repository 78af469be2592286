// Package history records what clients requested of a belfry and what it replied, the events that it
// published, and what it held when nothing was pending: all that the checks of package check judge.
package history

import (
	"fmt"
	"math"
	"strings"
)

// Object is the identity of an object.
type Object struct{ Store, UUID string }

func (o Object) String() string { return o.Store + " " + o.UUID }

// Kind is what a request does.
type Kind string

// The kinds of requests, and those of writes that clients learn from the log.
const (
	Create  Kind = "create"
	Put     Kind = "put"   // replaces the fields that it has
	Patch   Kind = "patch" // merges
	Delete  Kind = "delete"
	Get     Kind = "get"
	Attach  Kind = "attach"  // adds a file
	Remove  Kind = "remove"  // removes a file
	Cascade Kind = "cascade" // a worker deleted the object with its target
	Clear   Kind = "clear"   // a worker removed a reference to an object that was deleted
	Undo    Kind = "undo"    // belfry took back a write that it then refused; the object is as it was before
)

// Writes reports whether a request of this kind changes something.
func (k Kind) Writes() bool { return k != Get }

// Outcome is what is known of a request's effect.
type Outcome int

// The outcomes. After a lost reply or a 5xx nothing is known: the write may have been made, or may be
// made later.
const (
	Unknown Outcome = iota
	Done
	Refused
)

func (o Outcome) String() string { return [...]string{"unknown", "done", "refused"}[o] }

// Never is when a request of unknown outcome returned.
const Never = math.MaxInt64

// Op is one request and its reply. Times are in nanoseconds since the history began.
type Op struct {
	Request string // its X-Request-Id, which its events carry
	Client  int
	Object  Object
	Kind    Kind
	Bus     bool // sent over the bus with an idempotency key, until there was a reply

	Fields      Fields // of Create, Put, Patch: what was sent
	IfMatch     uint64 // the precondition; 0: none
	IfAbsent    bool   // If-None-Match: *
	IfNoneMatch uint64 // of Get
	File        string // of Attach and Remove: the hash

	Call, Return int64
	Outcome      Outcome
	Status       int
	Problem      string // the type or the error, in short

	// Of the reply.
	Revision uint64 // 0: not said
	Body     []byte // the object; nil when there was none
}

// Token is the title that this write set, which no other write sets; "" when it sets none.
func (o Op) Token() string { return o.Fields.Text("title") }

func (o Op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s (request %s", o.Kind, o.Object, o.Request)
	if len(o.Fields) > 0 {
		fmt.Fprintf(&b, ", %s", o.Fields)
	}
	if o.IfMatch != 0 {
		fmt.Fprintf(&b, ", if at %d", o.IfMatch)
	}
	fmt.Fprintf(&b, "): %s", o.Outcome)
	if o.Status != 0 {
		fmt.Fprintf(&b, " %d", o.Status)
	}
	if o.Problem != "" {
		fmt.Fprintf(&b, " %s", o.Problem)
	}
	if o.Revision != 0 {
		fmt.Fprintf(&b, " at revision %d", o.Revision)
	}
	if o.Body != nil {
		fmt.Fprintf(&b, ", the object has %s", FieldsOf(o.Body))
	}
	return b.String()
}

// State is an object at one time; the zero State when it does not exist.
type State struct {
	Revision uint64
	Body     []byte
}

// Exists reports whether the object exists.
func (s State) Exists() bool { return s.Body != nil }

// Short returns the start of a text.
func Short(text []byte) string { return string(text[:min(len(text), 300)]) }
