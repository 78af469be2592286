package command

import (
	"context"
	"io"

	"belfry/config"
	"belfry/pkg/app/hold"
)

// Operation is the work of a command. The process that serves the stores does it, if there is one, and otherwise the
// command itself, with the stores open. The control request comes from this value, too:
//
//	command ──► Operation.Do ──► POST /{name} of the process that serves ──► Run
//	                         └─► the stores, opened ───────────────────────► Run
//
// The request has In as JSON. The reply has a line of JSON for each report of progress, P, and at last one with Out or
// the failure. Code that does an operation is that of Untyped, which is not compiled for each operation.
type Operation[In, Out, P any] struct {
	Name      string // of the work: in the lock of the data folder, in the log, and in the path of the control request
	Storeless bool   // no store is opened
	Own       bool   // every command does it itself, without the stores, also while they are served
	Served    string // only the process that serves does it; the text explains the consequence if no process serves
	Max       int64  // bytes of In as JSON; 0: 4 KiB

	// of the command, which does it on the bus as a user of its own; the process that serves has no part in it
	Bus  Connection
	Bare bool // the command needs no configuration

	Reads   func(in In) bool                    // it changes no object; nil: it may
	Creates func(in In) bool                    // the stores need not exist yet; nil: they do
	Check   func(c *config.Config, in In) error // validates the request before stores are opened; nil: no check
	Run     func(ctx context.Context, at *Place, in In, report func(P)) (*Out, error)
	Doing   func(in In) string // the name in the log; nil: Name

	Input  func(*In) *io.Reader // the data after In in the request; nil: none
	Output func(*In) *io.Writer // replaces the lines of the reply; nil: no output
	Broken string               // the consequence of a reply that ends too early, for the error; "": none

	// For the command line. An operation with a Help has a command of the same name. Its flags are the fields of In,
	// with tags of kong, and it prints Out by Text, or as JSON.
	Help     string
	Prints   Printed
	Text     func(w io.Writer, in In, out *Out) error
	Show     func(s Streams, in In) (report func(P), end func(error)) // shows the progress; nil: not shown
	Commands []Command[In, Out]                                       // with flags of their own

	Console *Console[In, Out] // nil: admins don't run it in the console
}

// Serving returns the place of a process that serves, until done is called. With reads it is for work that changes no
// object.
type Serving func(reads bool) (at *Place, done func())

// none is the progress of work without reports, and the request of an operation without parameters.
type none = struct{}

// Operations are all operations, in the order of their commands.
var Operations = []*Untyped{
	Reload.Untyped(), Verify.Untyped(), Access.Untyped(), Schema.Untyped(), Users.Untyped(), Mail.Untyped(),
	Keys.Untyped(), Import.Untyped(), Export.Untyped(), Migration.Untyped(), Backup.Untyped(), BackupList.Untyped(),
	BackupVerify.Untyped(), RestoreBackup.Untyped(), Examine.Untyped(), LetterList.Untyped(), LetterShow.Untyped(),
	LetterRetry.Untyped(), LetterDrop.Untyped(), ListenerList.Untyped(), ListenerReset.Untyped(),
	ListenerConfirm.Untyped(), BusSetup.Untyped(), BusRole.Untyped(), BusAccount.Untyped(), EventTail.Untyped(),
	EventGet.Untyped(), EventErase.Untyped(),
}

// Do does the operation for a configuration. Errors: those of Check, of opening the stores, and of Run; Unavailable if
// the process that serves does not reply.
func (o *Operation[In, Out, P]) Do(ctx context.Context, c *config.Config, in In, report ...func(P)) (*Out, error) {
	out, err := o.Untyped().do(ctx, c, &in, reports(report))
	return typed[*Out](out), err
}

// Ask requests the operation from a process that serves.
func (o *Operation[In, Out, P]) Ask(ctx context.Context, h hold.Holder, in In, report ...func(P)) (*Out, error) {
	out, err := o.Untyped().ask(ctx, h, &in, reports(report))
	return typed[*Out](out), err
}

// reports is one function that calls all of them.
func reports[P any](all []func(P)) func(any) {
	return func(p any) {
		for _, report := range all {
			report(*p.(*P))
		}
	}
}

// typed is a result with its type, nil for none.
func typed[R any](out any) (r R) {
	if out != nil {
		r = out.(R)
	}
	return r
}
