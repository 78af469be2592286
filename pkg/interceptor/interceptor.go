// Package interceptor replies to belfry's requests before an operation of a client takes
// place: a program on the bus allows the act, refuses it with a message, or amends
// its object. The example is a complete one.
//
// Which operations of which stores are intercepted, and by which names, is in
// belfry's configuration (stores.<store>.intercept), with the timeout and what a
// missing reply means. See docs/guides/interceptors.md.
package interceptor

import (
	"encoding/json"

	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Request is the body of a request to an interceptor.
type Request struct {
	Op    string `json:"op"` // save, update, delete, get, register
	Store string `json:"store"`
	// empty for register, because the user does not exist yet
	UUID string `json:"uuid"`
	// as it would be stored; for get, as it would be returned
	Object        json.RawMessage `json:"object,omitempty"`
	Stored        json.RawMessage `json:"stored,omitempty"`        // as it is, for update and delete
	StoredOmitted bool            `json:"storedOmitted,omitempty"` // Stored was too large for a message
	// mapped arrays that Object and Stored are without, because they were too large for a message
	ArraysOmitted []string        `json:"arraysOmitted,omitempty"`
	Datas         json.RawMessage `json:"datas,omitempty"` // of register: the form, or the provider's profile
	Actor         *string         `json:"actor"`           // uuid of the user who acts, or null
	Ctx           event.Ctx       `json:"ctx"`
}

// Response is the body of a reply: exactly one of its fields is set. Anything else
// counts as a failure of the interceptor.
type Response struct {
	Allow  bool          `json:"allow,omitempty"`
	Refuse *Refusal      `json:"refuse,omitempty"`
	Amend  object.Object `json:"amend,omitempty"` // a merge patch (RFC 7396)
}

// Refusal is the error that the client gets.
type Refusal struct {
	Status  int    `json:"status,omitempty"` // of HTTP, 400 to 499; 0: 403
	Message string `json:"message"`
}

// Allow allows the act.
func Allow() Response { return Response{Allow: true} }

// Refuse refuses the act. The status is of HTTP, 400 to 499, or 0 for 403; the
// client gets the message.
func Refuse(status int, message string) Response {
	return Response{Refuse: &Refusal{Status: status, Message: message}}
}

// Amend allows the act with a change of its object: a merge patch (RFC 7396).
// For get it changes the reply alone. An empty patch allows.
func Amend(patch object.Object) Response {
	if len(patch) == 0 {
		return Allow()
	}
	return Response{Amend: patch}
}

// Subject is the subject of the requests of an operation ("*" for all) on a store
// ("*" for all) to the interceptors of a name.
func Subject(op, store, name string) string { return "intercept." + op + "." + store + "." + name }
