// Package errs defines the errors that belfry returns.
//
// An error has a kind, a message that may be shown to the caller, and optionally
// a cause that may not. Each boundary translates the kind once: pkg/api to an
// HTTP status, pkg/listener to an ack decision, cmd/belfry to an exit code. An
// error without a kind is Internal: its text goes to the log and never to a
// client.
//
// A Kind is itself an error, so that errors.Is tests for it:
//
//	if errors.Is(err, errs.NotFound) { ... }
//
// The outermost Error of a chain decides: an error that wraps a NotFound as Unavailable is
// Unavailable and no longer NotFound. The cause remains available to errors.Is and
// errors.As with any other target.
package errs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
)

// Kind classifies an error by a caller's possible reaction. It is an error, to
// be the target of errors.Is.
type Kind uint8

// The kinds. Their order carries no meaning.
const (
	Internal        Kind = iota // a bug or an unexpected failure; details are logged, not returned
	Invalid                     // the input is wrong: malformed, or refused by validation
	Unauthenticated             // a policy denies and nobody is logged in
	Denied                      // a policy denies the logged-in user
	NotFound                    // no such object, store or route
	Exists                      // the uuid is taken
	Mismatch                    // a precondition (revision, hash) does not hold
	Conflict                    // concurrent writes won too often; retry
	TooLarge                    // over a size limit
	Unsupported                 // wrong media type
	Limited                     // too many requests; retry after RetryAfter
	Unavailable                 // a backend or the bus is unavailable; retry after RetryAfter
	Canceled                    // the caller canceled or its deadline passed
	Taken                       // another object has a value that must be unique
)

var kindNames = [...]string{
	"internal", "invalid", "unauthenticated", "denied", "not found", "exists",
	"mismatch", "conflict", "too large", "unsupported", "limited", "unavailable", "canceled", "taken",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

func (k Kind) Error() string { return k.String() }

// Field is one violation inside an input: Pointer is an RFC 6901 JSON pointer
// to the place ("" is the whole document), Message is the expectation there.
type Field struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
	Keyword string `json:"keyword,omitempty"` // of the JSON Schema that is violated; "" for other violations
}

func (f Field) String() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// Revision is where an object is that a write did not meet as it expected.
type Revision struct {
	Now         uint64 // its revision
	OnlyWorkers bool   // since the revision that the write expected, nobody but belfry's workers has written the object
}

// Error is an error with a kind. Message is for the caller and holds no
// secrets; Err is the cause and is only for the log.
type Error struct {
	Kind       Kind
	Message    string
	Fields     []Field       // violations, for Invalid and Taken
	RetryAfter time.Duration // for Limited and Unavailable; 0 means unknown
	At         *Revision     // of the object, for Mismatch of a write; nil: unknown
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

// Is reports whether target is e's kind.
func (e *Error) Is(target error) bool {
	k, ok := target.(Kind)
	return ok && k == e.Kind
}

// Unwrap returns the cause, without its kind.
func (e *Error) Unwrap() error {
	if e.Err == nil {
		return nil
	}
	return cause{e.Err}
}

// cause hides the kinds of an error that has been given another one.
type cause struct{ err error }

func (c cause) Error() string { return c.err.Error() }

func (c cause) Is(target error) bool {
	if _, ok := target.(Kind); ok {
		return false
	}
	return errors.Is(c.err, target)
}

func (c cause) As(target any) bool { return errors.As(c.err, target) }

// New makes an error of a kind. The message is fmt.Sprintf(format, args...)
// and may be shown to the caller.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a message for the caller; err itself is not shown.
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
	var k Kind
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.As(err, &k):
		return k
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Canceled
	default:
		return Internal
	}
}

// Messages returns the messages of err and of the errors that it wraps, joined by ": ", without the text of causes that
// have no kind: those of servers and libraries, which may have addresses with passwords. "" if none has a kind.
func Messages(err error) string {
	var all []string
	for own := (*Error)(nil); errors.As(err, &own); err = own.Err {
		if own.Message != "" {
			all = append(all, own.Message)
		}
	}
	return strings.Join(all, ": ")
}

// Attributes are an error's attributes in a log: its text, and the stack of a panic.
func Attributes(err error) []slog.Attr {
	if err == nil {
		return nil
	}
	all := []slog.Attr{slog.String("error", err.Error())}
	var p *Panic
	if errors.As(err, &p) {
		all = append(all, slog.String("stack", string(p.Stack)))
	}
	return all
}

// Panic is a panic that ended one request and nothing else. It is Internal, and
// its stack is for the log.
type Panic struct {
	Value any
	Stack []byte
}

// Panicked makes an error of the value of recover, with the present stack.
func Panicked(value any) *Panic { return &Panic{Value: value, Stack: debug.Stack()} }

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Steps that a logged-in user may have to take before they may do something.
const (
	StepSecondFactor   = "second-factor"  // log in with a second factor
	StepReauthenticate = "reauthenticate" // prove their identity again
	StepEnroll         = "enroll"         // add a second factor to the account
)

// StepUp is the cause of an Unauthenticated error for a logged-in user: their request needs a stronger, or a
// more recent, authentication (RFC 9470).
type StepUp struct {
	Step    string
	AAL     int           // needed; 0: that of the session is enough
	MaxAge  time.Duration // of the authentication; with StepReauthenticate
	Factors []string      // with StepSecondFactor at a login: the types that can be used
	Flow    string        // with StepSecondFactor at a login, for a program: to send with the factor
}

func (s *StepUp) Error() string { return "a step is missing: " + s.Step }

// NeedsStepUp returns an Unauthenticated error that says which step is missing.
func NeedsStepUp(s StepUp, format string, args ...any) error {
	return Wrap(&s, Unauthenticated, format, args...)
}
