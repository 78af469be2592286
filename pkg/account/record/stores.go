package record

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Mailboxes are the mailboxes in a store.
type Mailboxes = Table[Mailbox, *Mailbox]

// Stores are the stores of accounts.
type Stores struct {
	Users    Table[User, *User]
	Idents   Table[Ident, *Ident]
	Sessions Table[Session, *Session]

	// Those of the store of tokens.
	Tokens    Table[Token, *Token]
	Mailboxes Mailboxes
	Tries     Table[Tries, *Tries]
	Devices   Table[Devices, *Devices]
	Exports   Table[Exports, *Exports]

	Finder UserFinder

	Now func() time.Time
}

// Open returns the stores of accounts.
func Open(users, idents, sessions, tokens *store.Store, finder UserFinder, now func() time.Time) *Stores {
	return &Stores{
		Users: newTable[User](users), Idents: newTable[Ident](idents), Sessions: newTable[Session](sessions),
		Tokens: newTable[Token](tokens), Mailboxes: newTable[Mailbox](tokens), Tries: newTable[Tries](tokens),
		Devices: newTable[Devices](tokens), Exports: newTable[Exports](tokens),
		Finder: finder, Now: now,
	}
}

// Links is the table of the record of links for the first admin. It makes no events, because listeners and readers of
// the log do not need to see a start of belfry.
func (s *Stores) Links() Mailboxes {
	return Mailboxes{s.Mailboxes.Store.WithOptions(func(o *store.Options) { o.NoEvents = true }), s.Mailboxes.codec}
}

// ClockTolerance is how far ahead the clock of another process may be. A time further ahead was stored before the clock
// was set back: belfry does not wait until the clock reaches it again.
const ClockTolerance = time.Minute

// AsService returns a context whose writes are belfry's own, for the request
// of ctx and for a user, if there is one.
func AsService(ctx context.Context, user string) context.Context {
	call := store.Call{Origin: event.OriginAuth, Ctx: store.CallOf(ctx).Ctx}
	if user != "" {
		call.Actor = &user
	}
	return store.WithCall(ctx, call)
}

// Managing returns a context for writes on behalf of the caller, without the restrictions of clients.
func Managing(ctx context.Context) context.Context {
	call := store.CallOf(ctx)
	return store.WithCall(ctx, store.Call{Origin: call.Origin, Actor: call.Actor, Ctx: call.Ctx})
}

// timeFormat makes text that sorts like the times.
const timeFormat = object.TimeFormat

// Timestamp returns a time in the format of records.
func Timestamp(t time.Time) string { return object.FormatTime(t) }

// Time returns the time that Timestamp has written; the zero time for another text.
func Time(text string) time.Time {
	t, err := time.Parse(timeFormat, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// TimeText is Timestamp, and "" for the zero time.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Timestamp(t)
}

// IgnoreNotFound returns err unless it is NotFound.
func IgnoreNotFound(err error) error {
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// IgnoreStale returns err unless the object was deleted or changed since it was
// read.
func IgnoreStale(err error) error {
	if errors.Is(err, errs.Mismatch) {
		return nil
	}
	return IgnoreNotFound(err)
}
