// Package errs is belfry's only vocabulary of errors.
//
// An error has a kind, a message that may be shown to whoever caused it, and
// optionally a cause that may not. Whoever stands at an edge translates the
// kind once: pkg/api to an HTTP status, pkg/listener to an ack decision,
// cmd/belfry to an exit code. An error without a kind is Internal: its text
// goes to the log and never to a client.
package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what sort of thing went wrong, in terms of what a caller can do.
type Kind uint8

// The kinds. Their order carries no meaning.
const (
	Internal        Kind = iota // a fault of ours; details are logged, not told
	Invalid                     // the input is wrong: malformed, or refused by validation
	Unauthenticated             // a policy denies and nobody is logged in
	Denied                      // a policy denies whoever is logged in
	NotFound                    // no such object, store or route
	Exists                      // the uuid is taken
	Mismatch                    // a precondition (revision, hash) does not hold
	Conflict                    // others changed the object too often meanwhile; try again
	TooLarge                    // over a size limit
	Unsupported                 // wrong media type
	Limited                     // too many requests; try again after RetryAfter
	Unavailable                 // a backend or the bus is away; try again after RetryAfter
	Canceled                    // the caller went away or its deadline passed
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "denied", "not found", "exists",
	"mismatch", "conflict", "too large", "unsupported", "limited", "unavailable", "canceled",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Field is one violation inside an input: Pointer is an RFC 6901 JSON pointer
// to the place ("" is the whole document), Message says what is expected there.
type Field struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

func (f Field) String() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// Error is an error with a kind. Message is for the caller and holds no
// secrets; Err is the cause and is for the log alone.
type Error struct {
	Kind       Kind
	Message    string
	Fields     []Field       // violations, for Invalid
	RetryAfter time.Duration // for Limited and Unavailable; 0 means unknown
	Err        error
}

// Error is the message, each violation as "; pointer: message", and the cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for _, f := range e.Fields {
		b.WriteString("; " + f.String())
	}
	if e.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind. The message is fmt.Sprintf(format, args...)
// and may be shown to the caller.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a message for the caller; err itself stays hidden.
// It returns nil when err is nil.
func Wrap(err error, kind Kind, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Err: err}
}

// KindOf reports the kind of err: that of the outermost *Error in its chain,
// Canceled for a context's end, Internal otherwise.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	default:
		return Internal
	}
}

// Is reports whether err is of the kind. It is false for a nil err.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
