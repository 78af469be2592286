package command

import (
	"context"
	"fmt"
	"io"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

// Reloaded is the result of a reload.
type Reloaded struct {
	File string `json:"file"` // the configuration
	// changed keys, and keys of files with changed content; none: nothing was done
	Changed []string `json:"changed,omitempty"`
	// indexes that are being built in the background, as Books.user; lists that need one are refused until then
	Building []string `json:"building,omitempty"`
	Refused  []string `json:"refused,omitempty"` // problems because of which nothing was changed
}

// refusal is Invalid, with the problems because of which a process has refused a reload.
func (r *Reloaded) refusal(of hold.Holder) error {
	if len(r.Refused) == 0 {
		return nil
	}
	return errs.New(errs.Invalid, "%s has refused the configuration, and serves with the previous one:\n%s", of,
		strings.Join(r.Refused, "\n"))
}

// Reload makes the serving process read its configuration again. Errors: Invalid with the problems if it refuses the
// configuration; Unavailable if no process serves.
var Reload = Operation[none, Reloaded, none]{
	Name: "reload", Served: "there is nothing to reload",
	Run: func(ctx context.Context, at *Place, _ none, _ func(none)) (*Reloaded, error) { return at.Reload(ctx) },
	Commands: []Command[none, Reloaded]{{Words: "reload", Help: "Make the serving belfry read its configuration again.",
		Flags: &reloadFlags{}}},
}

type reloadFlags struct{}

// Request implements Flags.
func (*reloadFlags) Request(context.Context, Streams) (in none, err error) { return in, nil }

// Print implements Flags.
func (*reloadFlags) Print(s Streams, r *Reloaded) error {
	text := r.File + ": reloaded; nothing has changed\n"
	if len(r.Changed) > 0 {
		text = r.File + ": reloaded; these keys changed:\n  " + strings.Join(r.Changed, "\n  ") + "\n"
	}
	_, err := io.WriteString(s.Out, text)
	if err == nil && len(r.Building) > 0 {
		_, err = fmt.Fprintf(s.Err, "these indexes are being built in the background; lists that need one are "+
			"refused until it is complete: %s\n",
			strings.Join(r.Building, ", "))
	}
	return err
}

// Examined are the findings of the serving process about itself, for `belfry doctor`.
type Examined struct {
	Version  string           `json:"version"`
	Findings []doctor.Finding `json:"findings"`
}

// Examine requests the findings of the serving process about itself.
var Examine = Operation[none, Examined, none]{
	Name: "doctor", Served: "there is nobody to ask",
	Reads: func(none) bool { return true },
	Run:   func(ctx context.Context, at *Place, _ none, _ func(none)) (*Examined, error) { return at.Examine(ctx) },
}
